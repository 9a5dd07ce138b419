"""Names for checkpoints, such as `best`, which move from one to another; and who beats whom."""
