"""Commands of the judgments."""
