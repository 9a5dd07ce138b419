"""Converts observations to chat messages and tokens, and replies to moves."""
