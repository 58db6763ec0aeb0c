"""Several processes in one, on virtual time: what is ready runs in an order drawn from a seed, and a process can be killed or frozen."""
