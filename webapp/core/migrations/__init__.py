"""Migrations of the core app."""
