"""The arena app: the table where people and models play."""
