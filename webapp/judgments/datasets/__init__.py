"""Judgments in and out: dataset versions, files."""
