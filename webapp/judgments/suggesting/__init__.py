"""Suggestions for annotators by rules, classifiers and judge models, and the classifiers that learn from labels."""
