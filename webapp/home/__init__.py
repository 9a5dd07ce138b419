"""The home app: the first page, what is running now, and the demo data."""
