"""The home app: the first page and what is running now."""
