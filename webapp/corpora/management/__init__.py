"""Commands of the corpora."""
