"""Pages of runs and checkpoints: lists, new run, one run, its conversations, checkpoints."""
