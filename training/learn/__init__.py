"""The learning loop: batch, losses, policy, trainer, checkpoints, cold start."""
