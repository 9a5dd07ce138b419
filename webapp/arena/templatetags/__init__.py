"""Template tags of the arena."""
