"""An installation on several machines, as docker-compose.yml describes it: nodes, a bucket, and a client of its API."""

import http.client
import json
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.deploy import compose
from tests.deploy.s3 import Bucket
from tests.elsewhere import database_address

HOST = "parley.example"
SECRET_KEY = "for-tests-of-several-nodes-" + "0123456789abcdef" * 3


def wait_until(true, seconds, what, pause=0.3):
    """Wait until `true()` is, and return it; what never comes is named with what it last was."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} after {seconds} s: {value!r}")
        time.sleep(pause)
    return value


class Client:
    """What a proxy that ends TLS passes on to one web process: the API with a key, pages with a session."""

    def __init__(self, node, token="", session=""):
        self.node, self.token, self.session = node, token, session

    def ask(self, method, path, body=None, content_type="application/json"):
        """Return (status, body)."""
        headers = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers["Cookie"] = f"__Host-session={self.session}"
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.node.address, self.node.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path):
        """Return the bytes of a page or file."""
        status, body = self.ask("GET", path)
        assert status == 200, f"{path}: {status} {body[:500]!r}"
        return body

    def api(self, method, path, data=None):
        """Return what the API answers."""
        status, body = self.ask(method, f"/api/v1{path}", data)
        assert status < 300, f"{method} {path}: {status} {body[:1000]!r}"
        return json.loads(body) if body else None

    def upload(self, path, file_name, content, **fields):
        """Send a file with fields, as a form does."""
        mark = uuid.uuid4().hex
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in fields.items()
        ]
        head = f'Content-Disposition: form-data; name="files"; filename="{file_name}"'
        body = (
            "".join(parts).encode() + f"--{mark}\r\n{head}\r\n\r\n".encode() + content + f"\r\n--{mark}--\r\n".encode()
        )
        status, answer = self.ask("POST", f"/api/v1{path}", body, f"multipart/form-data; boundary={mark}")
        assert status < 300, f"{path}: {status} {answer[:1000]!r}"
        return json.loads(answer)


@pytest.fixture
def bucket():
    """An empty bucket that every node of the test uses."""
    with Bucket() as made:
        yield made


@pytest.fixture
def nodes(settings, databases, bucket):
    """Makes the machines of an installation by name: `nodes("site", "training")`; stops what they have started."""
    settings.SECRET_KEY = SECRET_KEY  # of sessions that the test makes itself
    variables = {"PARLEY_SECRET_KEY": SECRET_KEY, "PARLEY_HOSTS": HOST, "POSTGRES_PASSWORD": "secret"}
    variables |= {"PARLEY_PROXIES": "127.0.0.0/8", **bucket.environment}
    servers = {"DATABASE_URL": database_address(), "REDIS_URL": django_settings.REDIS_URL}
    hides = compose.can_hide_folders()
    with ExitStack() as stack:

        def make(*names):
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-nodes-")))
            homes = {name: root / name for name in names}
            for home in homes.values():
                home.mkdir()
            made = {}
            for number, name in enumerate(names, 2):
                hidden = [home for other, home in homes.items() if other != name] if hides else []
                made[name] = compose.Node(homes[name], f"127.0.0.{number}", variables, servers, hidden)
                stack.callback(made[name].stop)
            return list(made.values())

        yield make
