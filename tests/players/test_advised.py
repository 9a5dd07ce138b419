"""A seat with a strategist: who reads what, whose tokens are whose, and a speaker that follows some strategies."""

import asyncio

import pytest

from tests.chat_tokenizers import tokenizer
from tests.games.play import steps
from tests.learn.small_runs import make_run
from tests.learn.test_constrained import episodes
from tests.players.test_model_players import Remote
from tests.table_talk import negotiation, reply_tokens
from training import config, games, samples
from training.engines.base import Sampling
from training.engines.scripted import ScriptedEngine
from training.errors import BadInput
from training.learn import trainer
from training.players import make
from training.players.advised import AdvisedPlayer, Strategist
from training.players.base import Reply
from training.players.model import ModelPlayer
from training.players.remote import RemotePlayer
from training.records import LEARNER, Episode, Message, Move
from training.rollout import RolloutPolicy, play
from training.run_sections import SpeakerSection
from training.store import read_lines
from training.text.conversations import traces
from training.text.parsing import parse
from training.text.strategies import advice, name_move, named_move, read_strategy
from training.text.template import ChatTokenizer

FORM = SpeakerSection(source="follower:100")
TEN = "one two three four five six seven eight nine ten"


def chat_tokenizer():
    return ChatTokenizer(tokenizer("chatml"))


def strategist(engine, scenario, seat=0, form=FORM, **named):
    return Strategist(engine, chat_tokenizer(), Sampling(), seat=seat, names=scenario.seats, form=form, **named)


def strategies(*texts):
    return ScriptedEngine([reply_tokens(text) for text in texts])


class Fixed:
    """A speaker that always says the same."""

    async def act(self, seat, observation, seed):
        return Reply("Let us talk.")

    def traces(self):
        return ()


@pytest.mark.parametrize(
    "reply, text, formed",
    [
        ("Strategy: ask for all the food", "ask for all the food", True),
        ("<think>water is cheap</think> strategy : give water away", "give water away", True),
        ("ask for all the food", "ask for all the food", False),
        (f"Strategy: {TEN}", TEN, True),
        (f"Strategy: {TEN} eleven", TEN, False),
        ("Strategy: wait\nStrategy: accept", "wait", False),
        ("**Strategy:** wait", "wait", False),
        ("Strategy:", "", False),
        ("", "", False),
    ],
)  # fmt: skip
def test_a_strategy_is_the_labelled_line_up_to_its_longest(reply, text, formed):
    read = read_strategy(reply, FORM)
    assert (read.text, read.formed) == (text, formed)


def test_a_thought_has_a_label_of_its_own():
    form = SpeakerSection(source="follower:100", label="Thought", words=3)
    assert read_strategy("Thought: open the fridge first", form).text == "open the fridge"
    assert read_strategy("Thought: open it", form).formed
    assert not read_strategy("Strategy: open it", form).formed


def test_the_strategist_reads_its_seat_and_its_strategies_and_the_speaker_both():
    scenario = negotiation()
    game, remote = games.make(scenario), Remote("All the food for me?", "<accept/>")
    asked = []
    replies = iter(["Strategy: ask for the food", "Strategy: accept less"])
    engine = ScriptedEngine(lambda request: asked.append(request) or reply_tokens(next(replies)))
    player = AdvisedPlayer(strategist(engine, scenario), RemotePlayer(remote, Sampling(), scenario.seats))
    first = asyncio.run(player.act(0, game.observe(0), 7))
    assert (first.text, first.strategy) == ("All the food for me?", "ask for the food")
    game.step({0: Move(action="talk", text=first.text)})
    game.step({1: Move(action="talk", text="Not all of it.")})
    second = asyncio.run(player.act(0, game.observe(0), 8))
    assert (second.text, second.strategy) == ("<accept/>", "accept less")

    read = chat_tokenizer().decode(asked[1].prompt)
    assert "You are the strategist of Ann" in read
    places = [read.index(part) for part in ("Ann begins.", "Strategy: ask for the food", "Ann: All the food for me?")]
    assert places == sorted(places)
    assert "Bob: Not all of it." in read
    assert asked[0].seed != asked[1].seed

    heard = [(message.role, message.content) for message in remote.asked[1][0]]
    assert [role for role, _ in heard] == ["system", "user", "assistant", "user"]
    assert heard[0][1].count("strategist") == 0  # its rules are those of any seat
    assert "Your strategist advises: ask for the food" in heard[1][1]
    assert heard[2] == ("assistant", "All the food for me?")
    assert heard[3][1].splitlines()[-1] == "Your strategist advises: accept less"


def test_tokens_of_the_strategist_are_the_learners_and_those_of_the_speaker_are_not():
    scenario = negotiation(turn_limit=4)
    spoken = ScriptedEngine(lambda request: reply_tokens("Hello there."))
    speaker = ModelPlayer(spoken, chat_tokenizer(), Sampling(), seat=0, names=scenario.seats, policy="speaker")
    player = AdvisedPlayer(strategist(strategies("Strategy: greet", "Strategy: wait"), scenario), speaker)
    episode = asyncio.run(play(scenario, [player, Fixed()]))
    assert episode.error is None
    turns = [turn for turn in episode.turns if turn.seat == 0]
    assert [turn.strategy for turn in turns] == ["greet", "wait"]
    by_policy = {trace.policy: trace for trace in episode.traces}
    assert set(by_policy) == {LEARNER, "speaker"}
    decode = chat_tokenizer().decode
    for policy, text in ((LEARNER, "Strategy: greet"), ("speaker", "Hello there.")):
        trace = by_policy[policy]
        tokens = [token for token, turn in zip(trace.tokens, trace.turn, strict=True) if turn == 0]
        assert decode(tokens).startswith(text)
    assert set(by_policy[LEARNER].turn) - {-1} == set(by_policy["speaker"].turn) - {-1}
    assert Episode.from_dict(episode.to_dict()) == episode


def test_a_branch_of_the_speaker_names_its_own_parent():
    """A speaker with a narrow window begins anew; the strategist's traces stand before its."""
    scenario = negotiation(turn_limit=12)
    long = " ".join(["word"] * 60)
    speaker = ModelPlayer(
        ScriptedEngine(lambda request: reply_tokens(long)),
        chat_tokenizer(),
        Sampling(max_tokens=100),
        seat=0,
        names=scenario.seats,
        policy="speaker",
        window=1200,
    )
    endless = ScriptedEngine(lambda request: reply_tokens("Strategy: wait"))
    episode = asyncio.run(
        play(scenario, [AdvisedPlayer(strategist(endless, scenario), speaker), make("random", scenario, 1)])
    )
    branches = [trace for trace in episode.traces if trace.policy == "speaker" and trace.parent is not None]
    assert branches, "the window was never full"
    for trace in branches:
        index, shared = trace.parent
        assert episode.traces[index].policy == "speaker"
        assert episode.traces[index].tokens[:shared] == trace.tokens[:shared]


def test_nobody_else_reads_a_strategy():
    scenario = negotiation(turn_limit=6)
    seen = []

    class Watching(Fixed):
        async def act(self, seat, observation, seed):
            seen[-1].append(observation.model_dump_json())
            return Reply("Fine.")

    for text in ("Strategy: lie about the food", "Strategy: tell the truth"):
        seen.append([])
        engine = ScriptedEngine(lambda request, text=text: reply_tokens(text))
        player = AdvisedPlayer(strategist(engine, scenario), Fixed())
        episode = asyncio.run(play(scenario, [player, Watching()]))
        assert all(turn.strategy for turn in episode.turns if turn.seat == 0)
        assert not any("strateg" in message for message in seen[-1])
    assert seen[0] == seen[1]
    assert seen[0]


def test_a_refused_reply_has_a_strategy_of_its_own_and_is_read_by_both():
    scenario = negotiation(turn_limit=2)
    remote = Remote("<dance/>", "Good day.")
    engine = strategies("Strategy: dance", "Strategy: greet")
    player = AdvisedPlayer(strategist(engine, scenario), RemotePlayer(remote, Sampling(), scenario.seats))
    episode = asyncio.run(play(scenario, [player, Fixed()], rules=RolloutPolicy(retries=1)))
    turns = [turn for turn in episode.turns if turn.seat == 0]
    assert [(turn.strategy, turn.passed) for turn in turns] == [("dance", False), ("greet", True)]
    last = [message.content for message in remote.asked[1][0]]
    assert "is not an action that is possible now" in last[-1]
    assert last[-1].endswith("Your strategist advises: greet")


def seen_by_a_follower(strategy, actions_of=None):
    observation = games.make(negotiation()).observe(0)
    lines = (Message(author=None, text=f"Your strategist advises: {strategy}", channel="strategy"),)
    return observation.model_copy(update={"messages": (*observation.messages, *lines)})


@pytest.mark.parametrize(
    "strategy, move",
    [
        ("propose food 2, water 1", "<propose>food 2, water 1</propose>"),
        ("Propose 2 food and 1 water", "<propose>food 2, water 1</propose>"),
        ("walk away", "<walk_away/>"),
        ("talk I need water", "I need water"),
        ("talk", ""),  # nothing to say
        ("propose food 9, water 1", ""),
        ("accept", ""),  # there is no proposal yet
        ("be friendly", ""),
        ("", ""),
    ],
)
def test_a_strategy_names_a_move_by_an_offered_action(strategy, move):
    assert named_move(strategy, games.make(negotiation()).observe(0).actions) == move


@pytest.mark.parametrize("game", ["negotiation", "kuhn_poker", "werewolf", "among_us"])
def test_the_strategy_that_names_a_move_is_read_as_that_move(game):
    for number, scenario in enumerate(samples.for_game(game)[:4]):
        live = games.make(scenario.with_seed(number + 1))
        for moves in steps(live, number):
            for seat, move in moves.items():
                if move.origin == "seat":
                    actions = live.observe(seat).actions
                    reply = named_move(name_move(move, actions), actions)
                    made, _ = parse(reply, live.observe(seat))
                    assert (made.action, made.args) == (move.action, move.args)


def test_a_strategists_traces_can_be_made_of_its_episode():
    """What was sampled, and what is made of the record to learn from, are the same tokens."""
    scenario = negotiation(turn_limit=6)
    endless = ScriptedEngine(lambda request: reply_tokens("Strategy: ask for water"))
    player = AdvisedPlayer(strategist(endless, scenario), Fixed())
    episode = asyncio.run(play(scenario, [player, Fixed()]))
    [sampled] = [trace for trace in episode.traces if trace.policy == LEARNER]
    [made] = traces(episode, chat_tokenizer(), seats=[0], form=FORM)
    assert (made.tokens, made.mask, made.turn) == (sampled.tokens, sampled.mask, sampled.turn)
    assert not any(any(trace.mask) for trace in traces(episode, chat_tokenizer(), seats=[1], form=FORM))


@pytest.mark.parametrize("percent", [1, 30, 60, 100])
def test_a_follower_follows_so_many_of_the_strategies(percent):
    scenario = negotiation()
    seen = seen_by_a_follower("propose food 3, water 2")
    player = make(f"follower:{percent}", scenario, 0)
    count = 2000
    replies = [asyncio.run(player.act(0, seen, seed)).text for seed in range(count)]
    followed = sum(reply == "<propose>food 3, water 2</propose>" for reply in replies) / count
    # at random it proposes that in 1 of 3 actions x 12 divisions
    expected = percent / 100 + (1 - percent / 100) / 36
    assert abs(followed - expected) < 4 * (expected * (1 - expected) / count) ** 0.5 + 1e-9
    assert replies[:5] == [asyncio.run(player.act(0, seen, seed)).text for seed in range(5)]


def test_a_follower_without_a_strategist_moves_at_random():
    scenario = negotiation(turn_limit=8)
    episode = asyncio.run(play(scenario, [make("follower:100", scenario, seat) for seat in (0, 1)]))
    assert episode.error is None
    assert all(turn.passed for turn in episode.turns)
    text, observation = advice(games.make(scenario).observe(0))
    assert (text, observation) == ("", games.make(scenario).observe(0))


def test_more_than_all_strategies_cannot_be_followed():
    with pytest.raises(BadInput, match="at most 100"):
        make("follower:101", negotiation(), 0)


@pytest.mark.parametrize(
    "sections, where, why",
    [
        ({"speaker": {"source": "scripted"}}, "speaker.source", "reads no strategies"),
        ({"speaker": {"source": "mirror"}}, "speaker.source", "is no speaker"),
        ({"speaker": {"source": "speaker"}}, "speaker.source", "is no speaker"),
        ({"speaker": {"source": "follower:200"}}, "speaker.source", "at most 100"),
        (
            {
                "kind": "suite",
                "suite": {"tasks": [{"game": "negotiation", "opponent": "speaker"}]},
                "speaker": {"source": "follower:200"},
            },
            "speaker.source",
            "at most 100",
        ),
        ({"opponents": [{"source": "speaker"}]}, "opponents.0.source", "has no speaker"),
        ({"sampling": {"constrain": True}, "speaker": {"source": "follower:9"}}, "sampling.constrain", "free text"),
        (
            {"speaker": {"source": "follower:9"}, "evaluate": {"nashconv": ["kuhn_poker"]}},
            "evaluate.nashconv",
            "itself",
        ),
        (
            {"kind": "suite", "suite": {"tasks": [{"game": "negotiation", "opponent": "speaker"}]}},
            "suite.tasks.0.opponent",
            "has no speaker",
        ),
    ],
)
def test_a_speaker_that_cannot_work_is_refused_by_its_field(sections, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        config.parse(sections)
    assert caught.value.where == where


def test_a_strategist_learns_against_its_past_another_strategist_and_the_speaker_alone(tmp_path):
    made, run_dir = make_run(
        tmp_path,
        steps=3,
        speaker={"source": "follower:50"},
        opponents=[{"source": "speaker"}, {"source": "past"}, {"source": str(tmp_path / "model")}],
        game={"name": "negotiation", "settings": {"turn_limit": 4}},
        rollout={"scenarios": 3, "games": 2},
    )
    assert trainer.run(made, run_dir)["result"] == "succeeded"
    played = [record for step in (1, 2, 3) for record in episodes(run_dir, step)]
    by_source = {policy for episode, _ in played for trace in episode.traces for policy in [trace.policy]}
    assert LEARNER in by_source
    for episode, credit in played:
        for trace, trace_credit in zip(episode.traces, credit, strict=True):
            assert (trace_credit is not None) == (trace.policy == LEARNER)
        assert all(
            turn.strategy
            for turn in episode.turns
            if any(trace.policy == LEARNER and trace.seat == turn.seat for trace in episode.traces)
        )
    lines = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert all(0 <= line["strategies_formed"] <= 1 for line in lines)
