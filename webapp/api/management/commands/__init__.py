"""Commands of the api app."""
