"""Commands of the ladder app."""
