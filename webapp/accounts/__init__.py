"""Accounts: people, their roles, guests and API keys."""
