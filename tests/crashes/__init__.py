"""Every point a worker passes is a place to die at: one run lists the points, then one run dies at each."""
