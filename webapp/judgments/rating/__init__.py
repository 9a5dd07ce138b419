"""Ratings by players after a game."""
