"""Contract of ChatModel over a server with faults: every failure is `RemoteModelError`, in bounded time and memory."""

import asyncio
import json
import logging
import socket
import threading
import time

import pytest
from pydantic import ValidationError

from tests.stub import BAD_JSON, Disconnect, Drip, Hang, Huge, Raw, Redirect, Status, Stub
from training.engines.base import ChatMessage, Sampling
from training.engines.remote.addresses import AllowList
from training.engines.remote.chat import RemoteModel
from training.engines.remote.config import RemoteConfig
from training.errors import BadInput, RemoteModelError, WindowFull

HELLO = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Hello?")]


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


@pytest.fixture
async def model(stub):
    made = []

    def make(**changes):
        config = RemoteConfig(address=stub.url, model="stub", **{"timeout_s": 0.3, **changes})
        made.append(RemoteModel(config, allowed=AllowList.of([f"{stub.url}=CANARY_API_KEY"])))
        return made[-1]

    yield make
    for remote in made:
        await remote.close()


async def test_an_answer_comes_with_its_cost(stub, model):
    stub.answer = "one two three"
    reply = await model().reply(HELLO, Sampling())
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("one two three", 7, 3)
    assert stub.requests[0].messages == [m.to_dict() for m in HELLO]
    assert stub.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("fault", [Status(500), Status(429), Disconnect(), Hang()], ids=str)
async def test_a_passing_fault_is_retried(stub, model, fault):
    stub.script(fault, fault, "third time")
    assert (await model().reply(HELLO, Sampling())).text == "third time"


@pytest.mark.parametrize(
    "fault, calls, says",
    [
        (Hang(), 3, "no complete answer within 0.3 s"),
        (Drip(), 3, "no complete answer within 0.3 s"),
        (Status(500), 3, "status 500"),
        (Disconnect(), 3, "cannot connect"),
        (Status(404), 1, "status 404"),
        (Status(401), 1, "status 401"),
        (Huge(10_000_000), 1, "larger than"),
        (Huge(10, encoding="gzip"), 1, "compressed"),
        (BAD_JSON, 1, "not a chat completion"),
        (Raw("<html>maintenance</html>", "text/html"), 1, "not a chat completion"),
        (Raw("[]"), 1, "not a chat completion"),
        (Raw('{"choices": []}'), 1, "choices"),
        (Raw('{"choices": [{"message": {"content": 5}}]}'), 1, "content"),
        (Redirect("http://127.0.0.1:9/v1/chat/completions"), 1, "status 307"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_lasting_fault_ends_as_an_error_in_bounded_time(stub, model, fault, calls, says):
    stub.answer = fault
    patience = 0.3 if calls == 3 else 10.0  # what is refused at sight must not be taken for slow on a busy machine
    start = time.monotonic()
    with pytest.raises(RemoteModelError, match=says):
        await model(timeout_s=patience).reply(HELLO, Sampling())
    assert time.monotonic() - start < 3 * patience + 5.0
    assert len(stub.requests) == calls <= 3


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 256 output tokens",
        '{"code": "context_length_exceeded"}',
        "the request exceeds the available context size",
        "`inputs` tokens + `max_new_tokens` must be <= 2048",
    ],
)
async def test_a_chat_that_is_too_long_is_an_error_of_its_own(stub, model, message):
    stub.answer = Status(400, json.dumps({"error": {"message": message}}))
    with pytest.raises(WindowFull):
        await model().reply(HELLO, Sampling())
    assert len(stub.requests) == 1
    stub.answer = Status(400)
    with pytest.raises(RemoteModelError) as caught:
        await model().reply(HELLO, Sampling())
    assert type(caught.value) is RemoteModelError


@pytest.mark.serial
async def test_a_server_cannot_make_us_wait_longer_than_the_bound(stub, model, monkeypatch):
    monkeypatch.setattr("training.engines.remote.chat.PATIENCE_S", 0.2)
    stub.answer = Status(429, headers={"Retry-After": "100"})
    start = time.monotonic()
    with pytest.raises(RemoteModelError):
        await model(timeout_s=0.1, retries=1).reply(HELLO, Sampling())
    assert time.monotonic() - start < 1.0  # 2 × 0.1 s of trying and 0.2 s of waiting


async def test_a_redirect_is_never_followed(stub, model):
    with Stub("from elsewhere") as other:
        stub.answer = Redirect(f"{other.url}/chat/completions")
        with pytest.raises(RemoteModelError, match="307"):
            await model().reply(HELLO, Sampling())
        assert other.requests == []


async def test_nobody_listens(stub, model):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        remote = RemoteModel(RemoteConfig(address=address, model="m", retries=0), allowed=AllowList.of([address]))
        with pytest.raises(RemoteModelError, match="cannot connect"):
            await remote.reply(HELLO, Sampling())


async def test_only_listed_sampling_parameters_are_sent(stub, model):
    sampling = Sampling(temperature=0.7, top_p=0.9, top_k=40, max_tokens=64, stop=("\n",))
    await model().reply(HELLO, sampling, seed=5)
    sent = {k: v for k, v in stub.requests[0].body.items() if k not in {"messages", "model"}}
    assert sent == {"temperature": 0.7, "top_p": 0.9, "max_tokens": 64, "stop": ["\n"], "seed": 5}
    await model(accepts=("max_completion_tokens", "top_k"), json_object=True).reply(HELLO, sampling, seed=5)
    sent = {k: v for k, v in stub.requests[1].body.items() if k not in {"messages", "model"}}
    assert sent == {"max_completion_tokens": 64, "top_k": 40, "response_format": {"type": "json_object"}}


async def test_sampling_out_of_range_never_leaves(stub, model):
    for wrong in (Sampling(temperature=3), Sampling(top_p=0), Sampling(max_tokens=0)):
        with pytest.raises(BadInput, match="sampling"):
            await model().reply(HELLO, wrong)
    with pytest.raises(ValidationError):
        RemoteConfig(address=stub.url, model="m", accepts=("logit_bias",))
    assert stub.requests == []


async def test_a_long_echo_of_the_secret_leaves_no_half_of_it(stub, model, monkeypatch):
    key = "sk-canary-" + "k" * 40
    monkeypatch.setenv("CANARY_API_KEY", key)
    for before in (150, 170, 185, 195):
        stub.answer = Status(401, "x" * before + key)
        with pytest.raises(RemoteModelError) as caught:
            await model(secret="CANARY_API_KEY").reply(HELLO, Sampling())
        assert "sk-" not in str(caught.value)


async def test_the_secret_is_looked_up_at_call_time_and_never_shown(stub, model, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    remote = model(secret="CANARY_API_KEY")
    with pytest.raises(BadInput, match="CANARY_API_KEY is not set"):
        await remote.reply(HELLO, Sampling())
    monkeypatch.setenv("CANARY_API_KEY", "sk-canary-1")
    await remote.reply(HELLO, Sampling())
    monkeypatch.setenv("CANARY_API_KEY", "sk-canary-2")
    stub.answer = Status(401, '{"error": {"message": "wrong key: sk-canary-2"}}')
    with pytest.raises(RemoteModelError) as caught:
        await remote.reply(HELLO, Sampling())
    assert [r.headers["authorization"] for r in stub.requests] == ["Bearer sk-canary-1", "Bearer sk-canary-2"]
    assert "[key]" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for shown in (caplog.text, str(caught.value), repr(remote.config), str(remote.config.to_dict())):
        assert "sk-canary" not in shown


@pytest.mark.parametrize("name", ["sk-live-123", "DATABASE_URL", "SECRET_KEY", "my_api_key", "A_API_KEY\n"])
def test_a_secret_is_given_by_name_only(name):
    with pytest.raises(ValidationError, match="never the key itself"):
        RemoteConfig(address="http://127.0.0.1/v1", model="m", secret=name)


async def test_headers_from_the_environment_stay_here(stub, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: yes")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await model().reply(HELLO, Sampling())
    assert not {"x-other", "openai-organization"} & stub.requests[0].headers.keys()
    assert "sk-other" not in str(stub.requests[0].headers)


async def test_calls_in_flight_are_limited(stub, model):
    running, most, lock = 0, 0, threading.Lock()

    def slow(body):
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        time.sleep(0.03)
        with lock:
            running -= 1
        return "done"

    stub.answer = slow
    remote = model(concurrency=3, timeout_s=5)
    await asyncio.gather(*(remote.reply(HELLO, Sampling()) for _ in range(9)))
    assert most == 3
    assert len(stub.requests) == 9


def test_one_model_serves_several_event_loops(stub):
    remote = RemoteModel(RemoteConfig(address=stub.url, model="stub"), allowed=AllowList.of([stub.url]))

    async def ask():
        text = (await remote.reply(HELLO, Sampling())).text
        await remote.close()
        return text

    assert [asyncio.run(ask()) for _ in range(3)] == ["ok"] * 3
