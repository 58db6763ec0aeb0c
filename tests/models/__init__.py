"""Plain-Python models of what is too rich to be tested by examples alone."""
