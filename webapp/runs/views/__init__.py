"""Pages of runs and checkpoints, one module for each: list, new, one run, its conversations, checkpoints."""
