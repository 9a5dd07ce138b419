"""The scenarios app: datasets of scenarios and conversations."""
