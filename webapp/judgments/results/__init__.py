"""What judgments say: means, agreement, authors compared, behaviour by outcome."""
