"""Corpora: collections of passages that people upload, the indexes that workers build of them, and their search."""
