"""The runs app: training runs, their attempts, curves, episodes and checkpoints."""
