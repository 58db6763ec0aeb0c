"""The storage operations: one suite, every backend, a module for each noun."""
