"""Commands of the datasets."""
