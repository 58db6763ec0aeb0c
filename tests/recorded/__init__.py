"""Runs as they were recorded, kept: the graphs of today must still come to their ends over their records."""
