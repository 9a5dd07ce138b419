"""The api app: the REST API."""
