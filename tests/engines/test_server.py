"""Our own model server, in this process: what it understands of a request, and what it cuts off."""

import asyncio
import json
import math
import sys

import pytest

from tests.chat_tokenizers import tokenizer
from tests.toy_models import write_random_llama
from training import engines
from training.engines.base import LONGEST_REPLY, Sampling
from training.engines.local.loading import load_tokenizer
from training.engines.remote.addresses import AllowList
from training.engines.remote.chat import RemoteModel
from training.engines.remote.config import RemoteConfig
from training.engines.scripted import ScriptedEngine
from training.engines.serving import serve, server
from training.engines.serving.config import ServeConfig
from training.players.model import ModelPlayer
from training.records import Message, Observation, Probe
from training.run_sections import SamplingSection
from training.text import messages
from training.text.messages import Chat
from training.text.template import ChatTokenizer

SAID = "I keep the food. You take water. Deal!"


class ServerUnderTest:
    """A server whose model always says `SAID`, and the requests that its engine was given."""

    def __init__(self):
        self.chat = ChatTokenizer(tokenizer("chatml"))
        self.requests = []
        self.app = server.Server(ScriptedEngine(self.say), self.chat, "parley", window=10**6)

    def say(self, request):
        self.requests.append(request)
        return [*self.chat.encode(SAID), *self.chat.stop_ids[:1]]

    def __call__(self, path="/v1/chat/completions", **fields):
        """Return (status, body)."""
        body = json.dumps({"messages": [{"role": "user", "content": "Well?"}], **fields}).encode()
        sent = []

        async def receive():
            return {"body": body}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": path}
        asyncio.run(self.app(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])

    def choice(self, **fields):
        status, body = self(**fields)
        assert status == 200, body
        return body["choices"][0]


@pytest.fixture
def asked():
    return ServerUnderTest()


def remote(sampling):
    """What our client sends of `sampling`."""
    config = RemoteConfig(address="http://127.0.0.1:9/v1", model="parley")
    return RemoteModel(config, allowed=AllowList.of([config.address])).parameters(sampling, 1)


@pytest.mark.parametrize(
    "stop, text",
    [
        (("food",), "I keep the "),
        (("water", "food"), "I keep the "),
        (("wine", "Deal"), "I keep the food. You take water. "),
        (("I keep",), ""),
    ],
)
def test_the_first_stop_text_ends_the_reply(asked, stop, text):
    choice = asked.choice(**remote(Sampling(stop=stop)))
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "stop")
    assert asked.requests[0].sampling.stop == stop


def test_without_a_stop_text_the_whole_reply_is_returned(asked):
    for more in ({}, {"stop": None}, {"stop": []}, {"stop": "wine"}):
        assert asked.choice(**more)["message"]["content"] == SAID
    assert asked.choice(stop=" You")["message"]["content"] == "I keep the food."
    assert asked.choice(max_tokens=3, stop="wine")["finish_reason"] == "length"


@pytest.mark.parametrize("stop", ["", ["food", ""], 7, ["a", "b", "c", "d", "e"]])
def test_a_wrong_stop_text_is_reported(asked, stop):
    status, body = asked(stop=stop)
    assert status == 400
    assert body["error"]["message"].startswith("stop")


def test_top_k_reaches_the_engine(asked):
    for sent in ({}, {"top_k": -1}, {"top_k": 20}):  # vLLM's clients write -1 for all tokens
        asked.choice(**sent)
    assert [request.sampling.top_k for request in asked.requests] == [0, 0, 20]
    assert asked(top_k=-2)[0] == 400


def test_the_longest_reply_of_a_configuration_is_given(asked):
    longest = SamplingSection(max_tokens=LONGEST_REPLY)
    assert asked.choice(**remote(longest))["message"]["content"] == SAID
    assert asked(max_tokens=LONGEST_REPLY + 1)[0] == 400
    with pytest.raises(ValueError, match="max_tokens"):
        SamplingSection(max_tokens=LONGEST_REPLY + 1)


def test_as_many_replies_at_once_as_the_configuration_says(monkeypatch, tmp_path):
    class Started(Exception):
        pass

    def start(folder, options):
        raise Started(options.max_running)

    command = serve.command(ServeConfig(model="m", engine="transformers", max_running=3), tmp_path, 8000)
    monkeypatch.setattr("training.engines.local.transformers.TransformersEngine", start)
    monkeypatch.setattr(sys, "argv", command[2:])
    with pytest.raises(Started) as started:
        server.main()
    assert started.value.args == (3,)


# --- choices ---


class Likely(ScriptedEngine):
    """An engine that notes what it is asked, and gives every token of a reply a log-probability of -1."""

    asked = None

    async def score(self, prefix, continuations):
        self.asked = (list(prefix), [list(tokens) for tokens in continuations])
        return [-float(len(tokens)) for tokens in continuations]


def test_choices_are_scored_as_whole_replies_to_the_chat(asked):
    engine = Likely(asked.say)
    asked.app = server.Server(engine, asked.chat, "parley", window=10**6)
    choices = ["<vote><Ada></vote>", "<vote><Ben></vote> or so"]
    status, body = asked("/v1/choices", choices=choices)
    whole = [[*asked.chat.encode(choice), asked.chat.end_id] for choice in choices]
    assert (status, body) == (200, {"logprobs": [-float(len(tokens)) for tokens in whole]})
    assert engine.asked == (asked.chat.prompt([Chat(role="user", content="Well?")]), whole)


@pytest.mark.parametrize(
    "fields, why",
    [
        ({}, "choices: Field required"),
        ({"choices": []}, "choices"),
        ({"choices": [""]}, "choices.0"),
        ({"choices": ["a"], "model": "other"}, "this server knows parley only"),
        ({"choices": ["word " * 12]}, "maximum context length"),
        ({"choices": ["word " * 5] * 10}, "tokens together, more than 60"),
    ],
)
def test_choices_that_cannot_be_scored_are_refused(asked, fields, why):
    asked.app = server.Server(Likely(asked.say), asked.chat, "parley", window=60)
    status, body = asked("/v1/choices", **fields)
    assert status == 400
    assert why in body["error"]["message"]


def test_choices_are_as_likely_as_a_seat_of_training_believes(asked, tmp_path):
    """The same model as a seat of an episode, which keeps its own tokens, gives the same probabilities."""
    engine = engines.make("transformers", write_random_llama(tmp_path), dtype="float32", device="cpu", window=0,
                          max_running=2, cache_gib=0.1, choices=False)  # fmt: skip
    tokens = ChatTokenizer(load_tokenizer(tmp_path))
    probe = Probe(question="Who was it?", choices=("Ben", "Cleo"), truth=("Ben",), replies=("<Ben>", "<Cleo>"))
    context = Observation(messages=(Message(author=None, text="You are Ada."), Message(author=1, text="Not me.")))
    question = Message(author=None, text=probe.question)
    chat = messages.chat(Observation(messages=(*context.messages, question)), 0, ("Ada", "Ben", "Cleo"))
    asked.app = server.Server(engine, tokens, "parley", window=512)
    _, body = asked("/v1/choices", messages=list(chat), choices=list(probe.replies))
    seat = ModelPlayer(engine, tokens, Sampling(), seat=0, names=("Ada", "Ben", "Cleo"))
    believed = asyncio.run(seat.believe(context, probe)).probabilities
    first, second = body["logprobs"]
    assert believed["Ben"] == pytest.approx(1 / (1 + math.exp(second - first)), rel=1e-4)
    asyncio.run(engine.close())
