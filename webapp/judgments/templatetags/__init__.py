"""Template tags of the judgments."""
