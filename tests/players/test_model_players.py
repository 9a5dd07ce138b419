"""Players over models: what they send, and what they keep."""

import asyncio
from collections import Counter

import pytest
from scipy.stats import chisquare

from tests.chat_tokenizers import tokenizer
from tests.table_talk import negotiation, reply_tokens
from training import games
from training.engines.base import ChatReply, Sampling
from training.engines.scripted import BigramEngine, ScriptedEngine
from training.errors import EngineError, WindowFull
from training.players.base import Measured
from training.players.model import ModelPlayer
from training.players.remote import RemotePlayer
from training.players.uniform import UniformPlayer
from training.records import Action, Argument, Message, Move, Observation
from training.text.choices import MOST
from training.text.messages import chat
from training.text.template import ChatTokenizer


class Remote:
    """A ChatModel that remembers what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def reply(self, messages, sampling, seed=None):
        self.asked.append((messages, sampling, seed))
        return ChatReply(self.answers.pop(0))


def test_a_remote_player_sends_the_observation_as_a_chat():
    scenario, sampling = negotiation(), Sampling(max_tokens=7)
    game, remote = games.make(scenario), Remote("Hello.", "<accept/>")
    player = RemotePlayer(remote, sampling, scenario.seats)
    first = asyncio.run(player.act(0, game.observe(0), 2**40 + 3))
    assert (first.text, first.tokens, player.traces()) == ("Hello.", (), ())
    game.step({0: Move(action="talk", text="Hello.")})
    game.step({1: Move(action="talk", text="Hi!")})
    asyncio.run(player.act(0, game.observe(0), 1))
    messages, parameters, seed = remote.asked[1]
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert [message.model_dump() for message in messages] == chat(game.observe(0), 0, scenario.seats)
    assert (parameters, seed) == (sampling, 1)
    assert 0 <= remote.asked[0][2] < 2**31


class Narrow(Remote):
    """A ChatModel whose window is so many characters."""

    def __init__(self, window):
        super().__init__()
        self.window = window

    async def reply(self, messages, sampling, seed=None):
        self.asked.append(messages)
        if sum(len(message.content) for message in messages) > self.window:
            raise WindowFull("too long")
        return ChatReply("Hello.")


def long_talk(turns=40):
    scenario = negotiation(turn_limit=100)
    game = games.make(scenario)
    for turn in range(turns):
        game.step({turn % 2: Move(action="talk", text=f"{turn}: " + "word " * 20)})
    return scenario, game.observe(0)


def test_a_remote_model_with_an_outgrown_window_is_sent_the_newest_messages():
    scenario, seen = long_talk()
    whole = chat(seen, 0, scenario.seats)
    window = len(whole[0]["content"]) + 1000
    remote = Narrow(window)
    assert asyncio.run(RemotePlayer(remote, Sampling(), scenario.seats).act(0, seen, 1)).text == "Hello."
    *_, sent = [[message.model_dump() for message in asked] for asked in remote.asked]
    kept = len(sent) - 1
    assert sent == [whole[0], *whole[-kept:]]  # the rules, and the end of the talk without a gap
    assert [message["role"] for message in sent[:3]] == ["system", "user", "assistant"]
    # what was kept is not far below the window: one more cut to three quarters was not needed
    assert 0.5 * 1000 < sum(len(message["content"]) for message in sent[1:]) <= 1000
    assert len(remote.asked) < 10


def test_newest_messages_that_do_not_fit_are_an_error():
    scenario, seen = long_talk()
    remote = Narrow(10)
    with pytest.raises(WindowFull):
        asyncio.run(RemotePlayer(remote, Sampling(), scenario.seats).act(0, seen, 1))
    assert [message.role for message in remote.asked[-1]] == ["system", "user"]


def test_a_model_player_passes_sampling_seed_and_stops_to_the_engine():
    scenario, requests = negotiation(), []
    engine = ScriptedEngine(lambda request: requests.append(request) or reply_tokens("Hello."))
    chat_tokenizer = ChatTokenizer(tokenizer("chatml"))
    player = ModelPlayer(engine, chat_tokenizer, Sampling(max_tokens=50), seat=0, names=scenario.seats, policy="old")
    seen = games.make(scenario).observe(0)
    reply = asyncio.run(player.act(0, seen, 77))
    (request,) = requests
    assert (reply.text, reply.tokens) == ("Hello.", tuple(reply_tokens("Hello.")))
    assert (request.seed, request.stop_token_ids) == (77, chat_tokenizer.stop_ids)
    assert request.prompt == chat_tokenizer.prompt(chat(seen, 0, scenario.seats))
    (trace,) = player.traces()
    assert (trace.policy, trace.seat) == ("old", 0)
    assert isinstance(player, Measured)
    assert player.totals() == {"cut": 0, "discarded": 0.0}


def test_logprobs_of_the_trace_are_the_engines():
    """A uniform policy over V tokens: every sampled token has log-probability -log V."""
    import numpy as np

    made = tokenizer("chatml")
    engine = BigramEngine(np.zeros((len(made), len(made))))
    scenario = negotiation()
    player = ModelPlayer(engine, ChatTokenizer(made), Sampling(max_tokens=30), seat=0, names=scenario.seats)
    asyncio.run(player.act(0, games.make(scenario).observe(0), 1))
    (trace,) = player.traces()
    sampled = [logprob for logprob, mask in zip(trace.logprobs, trace.mask, strict=True) if mask]
    assert sampled
    assert sampled == pytest.approx([-np.log(len(made))] * len(sampled))


def test_a_failing_engine_leaves_no_half_turn():
    scenario = negotiation()
    player = ModelPlayer(
        ScriptedEngine([]), ChatTokenizer(tokenizer("chatml")), Sampling(), seat=0, names=scenario.seats
    )
    with pytest.raises(EngineError, match="no reply"):
        asyncio.run(player.act(0, games.make(scenario).observe(0), 1))
    assert sum(player.traces()[0].mask) == 0


def test_a_trace_says_from_where_on_which_weights_sampled_it():
    """The engine takes new weights between the first and the second reply, and none before the third."""
    scenario = negotiation()
    chat_tokenizer = ChatTokenizer(tokenizer("chatml"))
    engine = ScriptedEngine([reply_tokens(text) for text in ("One.", "Two.", "Three.")])
    player = ModelPlayer(engine, chat_tokenizer, Sampling(max_tokens=40), seat=0, names=scenario.seats)
    game = games.make(scenario)
    for text, version in (("One.", 3), ("Two.", 4), ("Three.", 4)):
        asyncio.run(engine.load_weights([], version))
        asyncio.run(player.act(0, game.observe(0), 1))
        game.step({0: Move(action="talk", text=text)})
        game.step({1: Move(action="talk", text="Hi!")})
    [trace] = player.traces()
    first, second = trace.turn.index(0), trace.turn.index(1)
    assert trace.versions == ((first, 3), (second, 4))
    steps = trace.sampled_by()
    assert {(turn, step) for turn, step in zip(trace.turn, steps, strict=True)} == {(-1, None), (0, 3), (1, 4), (2, 4)}
    assert "versions" not in trace.model_copy(update={"versions": ()}).to_dict()


def offered(*actions):
    return Observation(messages=(Message(author=None, text="Your turn."),), actions=actions)


def test_replies_are_limited_to_legal_moves_where_these_can_be_listed():
    level = Argument(name="level", kind="integer", low=1, high=3)
    bid = Action(name="bid", args=(level,), text="private")
    wide = bid.model_copy(update={"args": (level.model_copy(update={"high": MOST + 1}),)})
    talk = Action(name="talk", text="required", bare=True)
    requests = []
    replies = iter(["<bid>3</bid>", "<bid>200</bid>", "Hello."])
    engine = ScriptedEngine(lambda request: requests.append(request) or reply_tokens(next(replies)))
    sampling = Sampling(max_tokens=50, constrain=True)
    player = ModelPlayer(engine, ChatTokenizer(tokenizer("chatml")), sampling, seat=0, names=("Ann", "Bob"))
    for actions in ([bid], [wide], [bid, talk]):
        asyncio.run(player.act(0, offered(*actions), 1))
    listed = tuple(tuple(reply_tokens(f"<bid>{number}</bid>")) for number in (1, 2, 3))
    assert [request.choices for request in requests] == [listed, (), ()]
    assert player.totals() == {"cut": 0, "discarded": 0.0, "constrained": 1, "unlisted": 1}
    (trace,) = player.traces()
    assert [at for at, turn in enumerate(trace.turn) if turn == 0] == sorted(trace.choices)


def test_random_moves_are_uniform_and_words_are_the_models():
    # seven moves: of a policy that samples token by token, each first token alike, one of them would have a half
    bid = Action(name="bid", args=(Argument(name="level", kind="integer", low=1, high=6),), text="private")
    leave = Action(name="leave", text="private")
    talk = Action(name="talk", text="required", bare=True)
    requests = []
    engine = ScriptedEngine(lambda request: requests.append(request) or reply_tokens("Hello."))
    chat = ChatTokenizer(tokenizer("chatml"))

    def player():
        sampling = Sampling(max_tokens=50, constrain=True)
        return UniformPlayer(engine, chat, sampling, seat=0, names=("Ann", "Bob"))

    def drawn(seed):
        return asyncio.run(player().act(0, offered(bid, leave), seed)).text

    replies = Counter(drawn(seed) for seed in range(1400))
    assert len(replies) == 7
    assert chisquare(list(replies.values())).pvalue > 0.001
    assert [drawn(seed) for seed in range(20)] == [drawn(seed) for seed in range(20)]
    assert requests == [], "no policy was asked"
    speaker = player()
    move = asyncio.run(speaker.act(0, offered(bid, leave), 1))
    assert asyncio.run(speaker.act(0, offered(bid, talk), 1)).text == "Hello."
    [request] = requests
    assert request.choices == ()
    [trace] = speaker.traces()
    places = [at for at, turn in enumerate(trace.turn) if turn == 0]
    assert tuple(trace.tokens[at] for at in places) == move.tokens
    # the trace says that nothing was sampled there: one token was allowed at each place, with certainty
    assert {at: (trace.tokens[at],) for at in places} == trace.choices
    assert not any(trace.logprobs[at] for at in places)
    assert speaker.totals() == {"cut": 0, "discarded": 0.0, "constrained": 1, "unlisted": 0, "random_moves": 1}


def test_a_legal_move_longer_than_a_reply_may_be_is_an_error_of_the_game():
    bid = Action(name="bid", args=(Argument(name="level", kind="integer", low=1, high=3),), text="private")
    needed = len(reply_tokens("<bid>1</bid>"))
    sampling = Sampling(max_tokens=needed - 1, constrain=True)
    player = ModelPlayer(ScriptedEngine([]), ChatTokenizer(tokenizer("chatml")), sampling, seat=0, names=("Ann", "Bob"))
    with pytest.raises(EngineError, match=f"sampling.max_tokens: a legal move takes {needed} tokens"):
        asyncio.run(player.act(0, offered(bid), 1))
