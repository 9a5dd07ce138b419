"""A person who calls the REST API."""

import json

from django.test import Client

from webapp.accounts.services import create_key


class Caller:
    """Calls the API as one person."""

    def __init__(self, user):
        self.key, token = create_key(user=user, name="test")
        self.client = Client(headers={"Authorization": f"Bearer {token}"})

    def get(self, path, **query):
        return self.client.get(f"/api/v1/{path}", query)

    def post(self, path, **data):
        return self.client.post(f"/api/v1/{path}", json.dumps(data), "application/json")

    def delete(self, path):
        return self.client.delete(f"/api/v1/{path}")


def refusal(answer):
    """The status of a refusal, which has the same shape whatever was wrong, and the field that it names."""
    body = answer.json()
    assert set(body) == {"where", "why"}
    assert body["why"]
    return answer.status_code, body["where"]
