"""The serving app: models that are served for the table."""
