"""Who runs: processes that claim runs, keep hold of them, give them back and clear up after others."""
