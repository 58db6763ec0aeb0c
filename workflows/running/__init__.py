"""What a run does: the graph walked step by step, each effect recorded before the next begins."""
