"""Commands of the home app."""
