"""Migrations of the accounts app."""
