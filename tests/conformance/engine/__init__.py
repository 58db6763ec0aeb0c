"""What the engine promises of every operation, on every backend."""
