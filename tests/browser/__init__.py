"""Tests in a real browser. A package, unlike other test folders, so that its site stops with its last test."""
