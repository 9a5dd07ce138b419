"""Codebooks and judge models: their pages and writes."""
