"""Server-side request forgery: names, numbers, rebinding and redirects lead nowhere but to the listed address."""

import asyncio
from ipaddress import ip_address

import httpx2
import pytest

from tests.stub import Stub
from training.engines.base import ChatMessage, Sampling
from training.engines.remote.addresses import AllowList, refusal
from training.engines.remote.chat import RemoteModel
from training.engines.remote.config import RemoteConfig
from training.engines.remote.transport import GuardedTransport, Refused, resolve
from training.errors import BadInput, RemoteModelError

HELLO = [ChatMessage(role="user", content="Hello?")]


@pytest.fixture
def names(monkeypatch):
    """A name service of our own: host → list of answers, one per lookup (the last one repeats)."""
    table = {}

    async def getaddrinfo(self, host, port, **_):
        answers = table.get(host, [host])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(2, 1, 6, "", (address, port)) for address in ([answer] if isinstance(answer, str) else answer)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return table


@pytest.mark.parametrize(
    "entry, address, fine",
    [
        ("https://models.example/v1", "https://models.example/v1", True),
        ("https://models.example/v1", "https://models.example/v1/", True),
        ("https://models.example/v1", "https://MODELS.example:443/v1/sub", True),
        ("https://models.example", "https://models.example/v1", True),
        ("https://models.example/v1", "https://models.example/v1evil", False),
        ("https://models.example/v1", "https://models.example/", False),
        ("https://models.example/v1", "http://models.example/v1", False),
        ("https://models.example/v1", "https://models.example:8443/v1", False),
        ("https://models.example/v1", "https://models.example.evil.test/v1", False),
        ("https://models.example/v1", "https://evil.test/https://models.example/v1", False),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8001", False),
        ("http://127.0.0.1:8000", "http://127.0.0.1:80000", False),
    ],
)
def test_the_list_matches_whole_origins_and_path_segments(entry, address, fine):
    allowed = AllowList.of([entry])
    if fine:
        assert str(allowed.check(address)).endswith("/")
    else:
        with pytest.raises(BadInput):
            allowed.check(address)


@pytest.mark.parametrize(
    "address",
    [
        "https://models.example@evil.test/v1",
        "https://user:pass@models.example/v1",
        "https://models.example/v1?x=1",
        "https://models.example/v1#x",
        "https://models.example/v1/../admin",
        "https://models.example/v1/%2e%2e/admin",
        "ftp://models.example/v1",
        "file:///etc/passwd",
        "//models.example/v1",
        "models.example",
        "",
        "http://",
        "http://[::1",
    ],
)
def test_an_address_is_plain_or_refused(address):
    with pytest.raises(BadInput):
        AllowList.of(["https://models.example"]).check(address)


def test_nothing_is_allowed_without_a_list(monkeypatch):
    monkeypatch.delenv("MODEL_ADDRESSES", raising=False)
    with pytest.raises(BadInput, match="MODEL_ADDRESSES"):
        RemoteModel(RemoteConfig(address="https://models.example/v1", model="m"))
    monkeypatch.setenv("MODEL_ADDRESSES", "https://a.example/v1, https://models.example/v1")
    RemoteModel(RemoteConfig(address="https://models.example/v1", model="m"))


def test_a_secret_goes_only_where_an_entry_names_it():
    ours, theirs = "https://ours.example/v1", "https://theirs.example/v1"
    listed = AllowList.of([f"{ours}=OURS_API_KEY", f"{theirs}=THEIRS_API_KEY", "https://free.example/v1"])
    for address, secret in ((ours, "OURS_API_KEY"), (f"{ours}/deeper", "OURS_API_KEY"), (theirs, ""), (ours, "")):
        listed.check(address, secret)
    for address in (theirs, "https://free.example/v1"):
        with pytest.raises(BadInput, match=f"may not be sent to .*{address}=OURS_API_KEY in MODEL_ADDRESSES") as caught:
            listed.check(address, "OURS_API_KEY")
        assert caught.value.where == "secret"
    with pytest.raises(BadInput, match="not on the list"):
        listed.check("https://ours.example/other", "OURS_API_KEY")


def test_an_address_listed_twice_takes_either_secret():
    listed = AllowList.of(["https://a.example=ONE_API_KEY", "https://a.example/v1=TWO_API_KEY"])
    listed.check("https://a.example/v1", "ONE_API_KEY")
    listed.check("https://a.example/v1", "TWO_API_KEY")
    with pytest.raises(BadInput, match="may not be sent"):
        listed.check("https://a.example/v2", "TWO_API_KEY")


@pytest.mark.parametrize(
    "entry", ["https://a.example/v1=DATABASE_URL", "https://a.example/v1=", "https://a.example=x=y"]
)
def test_an_entry_names_a_secret_or_none(entry):
    with pytest.raises(BadInput, match=r"https://a\.example"):
        AllowList.of([entry])


def test_a_model_is_not_made_with_a_secret_of_another_address(monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://a.example/v1=A_API_KEY, https://b.example/v1=B_API_KEY")
    RemoteModel(RemoteConfig(address="https://a.example/v1", model="m", secret="A_API_KEY"))
    with pytest.raises(BadInput, match=r"A_API_KEY may not be sent to b\.example"):
        RemoteModel(RemoteConfig(address="https://b.example/v1", model="m", secret="A_API_KEY"))


@pytest.mark.parametrize(
    "number, host, refused",
    [
        ("169.254.169.254", "169.254.169.254", True),
        ("169.254.170.2", "x.example", True),
        ("fe80::1", "x.example", True),
        ("fd00:ec2::254", "x.example", True),
        ("100.100.100.200", "x.example", True),
        ("::ffff:169.254.169.254", "x.example", True),
        ("64:ff9b::a9fe:a9fe", "x.example", True),
        ("2002:a9fe:a9fe::1", "x.example", True),
        ("0.0.0.0", "x.example", True),  # noqa: S104 - never bound
        ("::", "x.example", True),
        ("224.0.0.1", "x.example", True),
        ("255.255.255.255", "x.example", True),
        ("127.0.0.1", "x.example", True),
        ("::ffff:127.0.0.1", "x.example", True),
        ("127.0.0.1", "localhost", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("::1", "::1", False),
        ("10.1.2.3", "vllm", False),
        ("93.184.216.34", "x.example", False),
    ],
)
def test_which_numbers_are_refused(number, host, refused):
    assert (refusal(ip_address(number), host) is not None) is refused


@pytest.mark.parametrize("spelling", ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"])
async def test_every_spelling_of_the_metadata_address_is_refused_even_if_listed(spelling):
    address = f"http://{spelling}/v1"
    try:
        remote = RemoteModel(RemoteConfig(address=address, model="m", retries=0), allowed=AllowList.of([address]))
    except BadInput:
        return
    with pytest.raises(RemoteModelError, match="metadata address"):
        await remote.reply(HELLO, Sampling())


async def test_a_listed_name_that_leads_to_metadata_is_refused_without_a_retry(names):
    names["models.example"] = ["169.254.169.254"]
    address = "http://models.example/v1"
    remote = RemoteModel(RemoteConfig(address=address, model="m"), allowed=AllowList.of([address]))
    with pytest.raises(RemoteModelError, match=r"leads to 169\.254\.169\.254"):
        await remote.reply(HELLO, Sampling())


async def test_one_forbidden_answer_among_several_refuses_all(names):
    names["models.example"] = [["93.184.216.34", "169.254.169.254"]]
    with pytest.raises(Refused):
        await resolve("models.example", 80)


async def test_the_connection_goes_to_the_number_that_was_checked(names):
    # The name changes its answer after the first lookup: a client that looked twice would end at the second.
    with Stub("right") as right:
        names["model.localhost"] = ["127.0.0.1", "169.254.169.254"]
        address = f"http://model.localhost:{right.port}/v1"
        remote = RemoteModel(RemoteConfig(address=address, model="m", retries=0), allowed=AllowList.of([address]))
        assert (await remote.reply(HELLO, Sampling())).text == "right"
        assert right.requests[0].headers["host"] == f"model.localhost:{right.port}"
        with pytest.raises(RemoteModelError, match="metadata"):
            await remote.reply(HELLO, Sampling())
        await remote.close()


async def test_the_transport_itself_refuses_what_is_not_listed():
    with Stub() as stub:
        transport = GuardedTransport(AllowList.of([f"{stub.url}/only"]), 1.0, 1000)
        async with httpx2.AsyncClient(transport=transport) as client:
            with pytest.raises(Refused, match="not an allowed"):
                await client.post(f"{stub.url}/chat/completions", json={})
        assert stub.requests == []
