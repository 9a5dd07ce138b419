"""No request fills the disk: a body over its limit is 413, whatever length it claims, before Django has it all."""

from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from webapp.accounts.models import Role
from webapp.accounts.services import create_key
from webapp.accounts.uploads import may_upload
from webapp.core.bodies import CORPUS, UPLOAD, UPLOADS, USUAL, BoundedBody, limit
from webapp.corpora import services
from webapp.scenarios import importers

PIECE = 64 * 1024


def asked(path, pieces, claimed=None, more=(), method="POST"):
    """Send a body piece by piece to the site, with more headers; return (status, how many pieces were taken)."""
    from django.core.asgi import get_asgi_application

    headers = [(b"host", b"testserver"), (b"content-type", b"multipart/form-data; boundary=x")]
    headers += [(b"content-length", claimed)] if claimed else []
    headers += more
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
    taken, statuses = 0, []

    async def receive():
        nonlocal taken
        if taken >= pieces:
            return {"type": "http.disconnect"}
        taken += 1
        return {"type": "http.request", "body": b"a" * PIECE, "more_body": taken < pieces}

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async_to_sync(BoundedBody(get_asgi_application(), may_upload))(scope, receive, send)
    return statuses, taken


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("claimed", [None, b"10"], ids=["no length", "an understated one"])
def test_an_endless_body_is_cut_off(claimed):
    statuses, taken = asked("/accounts/login/", 10_000, claimed)
    assert statuses == [413]
    assert taken == USUAL // PIECE + 1


def by_session(client):
    """The header of a client that is signed in."""
    return [(b"cookie", "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items()).encode())]


def by_key(user):
    """The header of a user's API key."""
    return [(b"authorization", f"Bearer {create_key(user=user, name='upload')[1]}".encode())]


@pytest.mark.django_db(transaction=True)
def test_a_body_that_says_it_is_too_large_is_not_even_read(client_of, researcher):
    assert asked("/accounts/login/", 10_000, str(USUAL + 1).encode()) == ([413], 0)
    session = by_session(client_of(researcher))
    for path, most in (("/datasets/import/", UPLOAD), ("/corpora/upload/", CORPUS)):
        assert asked(path, 10_000, str(most + 1).encode(), session) == ([413], 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", UPLOADS)
def test_only_those_who_may_upload_have_room_for_it(path, client_of, person):
    """The researcher's body would go on: that it ends early is no refusal."""
    claimed = str(limit(path)).encode()
    assert asked(path, 1, claimed) == ([413], 0)
    forged = [[(b"cookie", b"session=1234")], [(b"authorization", b"Bearer parley_1234")]]
    others = [person(role, str(role)) for role in (Role.GUEST, Role.PLAYER, Role.ANNOTATOR)]
    for header in [*forged, *(by_session(client_of(other)) for other in others), *map(by_key, others)]:
        assert asked(path, 1, claimed, header) == ([413], 0)
    for uploader in (person(role, str(role)) for role in (Role.RESEARCHER, Role.ADMIN)):
        for header in (by_session(client_of(uploader)), by_key(uploader)):
            assert asked(path, 1, claimed, header) == ([], 1)
            assert asked(path, 1, claimed, header, "PUT") == ([413], 0)


@pytest.mark.django_db(transaction=True)
def test_a_usual_body_passes_and_an_import_has_more_room(client_of, researcher):
    assert 413 not in asked("/accounts/login/", 3)[0]
    assert 413 not in asked("/datasets/import/", USUAL // PIECE + 2, more=by_session(client_of(researcher)))[0]
    assert UPLOADS["/datasets/import/"] > importers.MAX_BYTES
    assert UPLOADS["/corpora/upload/"] == UPLOADS["/api/v1/corpora"] > services.MAX_BYTES


def test_only_the_addresses_that_take_files_have_more_room():
    names = ("scenarios:upload", "api:list_datasets", "corpora:upload", "api:list_corpora")
    assert set(UPLOADS) == {reverse(name) for name in names}
    forms = {str(path) for path in Path("templates").rglob("*.html") if "multipart/form-data" in path.read_text()}
    assert forms == {"templates/scenarios/upload.html", "templates/corpora/upload.html"}


@pytest.mark.django_db
def test_every_operation_that_takes_files_has_more_room(client):
    described = client.get("/api/v1/openapi.json").json()["paths"]
    taking = {path for path, known in described.items() if "multipart/form-data" in str(known)}
    assert taking == {"/api/v1/datasets", "/api/v1/corpora"} <= set(UPLOADS)


@pytest.mark.parametrize("upload", UPLOADS)
@pytest.mark.parametrize("change", ["{}x", "{}/x", "{}1/", "/{}", "/x{}", "{}?", "{}%2f"])
def test_an_address_that_only_looks_like_an_upload_has_the_usual_limit(upload, change):
    assert limit(change.format(upload)) == USUAL
