"""A player that writes strategy and reply in one answer; who reads what, and what of it is learned."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_tokenizers import tokenizer
from tests.learn.small_runs import make_run
from tests.learn.test_constrained import episodes
from tests.players.test_advised import FORM, Fixed
from tests.players.test_model_players import Remote
from tests.table_talk import negotiation, reply_tokens
from training import config, games
from training.engines.base import Sampling
from training.engines.scripted import ScriptedEngine
from training.errors import BadInput
from training.learn import trainer
from training.players import make
from training.players.advised import AdvisedPlayer, RemoteStrategist
from training.players.contestants import ContestantPool
from training.players.model import ModelPlayer
from training.players.react import NamingPlayer, ReActPlayer
from training.players.remote import RemotePlayer
from training.records import LEARNER, Move
from training.rollout import play
from training.run_sections import EngineSection, SpeakerSection
from training.text.conversations import traces
from training.text.parsing import split_private
from training.text.strategies import Strategy, split_strategy
from training.text.template import ChatTokenizer

REACT = SpeakerSection(source="self")
TEN = "one two three four five six seven eight nine ten"


def chat_tokenizer():
    return ChatTokenizer(tokenizer("chatml"))


@pytest.mark.parametrize(
    "answer, strategy, formed, reply",
    [
        ("Strategy: ask for food\nAll the food for me?", "ask for food", True, "All the food for me?"),
        ("\nstrategy :  wait \n\n<accept/>", "wait", True, "<accept/>"),
        (f"Strategy: {TEN} eleven\nHello.", TEN, False, "Hello."),
        ("Strategy: be kind", "be kind", True, ""),
        ("Strategy:\nHello.", "", False, "Hello."),
        ("Hello.", "", False, "Hello."),
        (
            "Water is cheap.\nStrategy: give it\nTake the water.\nAll of it.",
            "give it",
            True,
            "<think>\nWater is cheap.\n</think>\n\nTake the water.\nAll of it.",
        ),
        (
            "<think>hm</think>Strategy: wait\nStrategy: no\nHello.",
            "wait",
            False,
            "<think>\nhm\nStrategy: no\n</think>\n\nHello.",
        ),
        ("**Strategy:** be *very* kind\n\nHello.", "be *very* kind", False, "Hello."),
        ("- __Strategy__: wait\nHello.", "wait", False, "Hello."),
        ("> 1. *Strategy: wait*\nHello.", "wait", False, "Hello."),
        ("### Strategy 1 ： wait\nHello.", "wait", False, "Hello."),
        (
            "<think>hm</think>Strategy: wait<think>so</think>\nHello.",
            "wait",
            True,
            "<think>\nhm\nso\n</think>\n\nHello.",
        ),
        ("Hello.<think>hm</think> Strategy: wait\nBye.", "wait", True, "<think>\nhm\nHello.\n</think>\n\nBye."),
        ("Strategy: wait\nMy strategy: none.\nStrategies: many", "wait", True, "My strategy: none.\nStrategies: many"),
        ("Strategy is all.\n- food: 2", "", False, "Strategy is all.\n- food: 2"),
    ],
)  # fmt: skip
def test_an_answer_is_split_at_the_line_of_the_strategy(answer, strategy, formed, reply):
    assert split_strategy(answer, FORM) == (Strategy(strategy, formed), reply)


OPENINGS = st.text(alphabet=" \t*_#>-•~`\"'([🎯", max_size=6)
NUMBERS = st.sampled_from(["", "1. ", "2) "])
CLOSINGS = st.text(alphabet=" *_`~)]", max_size=4)
LABELS = st.sampled_from(["Strategy", "STRATEGY", "strategy", "Strategy 2"])
LABELLED = st.builds("{}{}{}{}{}: {}SECRET{}".format, OPENINGS, NUMBERS, OPENINGS, LABELS, CLOSINGS, CLOSINGS, CLOSINGS)
SPOKEN = st.sampled_from(["Hello there.", "A good strategy: yes.", "- food 2", "**Bold** words", "strategy", ""])
LINES = st.lists(st.one_of(LABELLED, SPOKEN), max_size=6)


@given(LABELLED, LINES, st.sampled_from(["\n", "\r\n", "\r", "\u2028"]), st.sampled_from(["", "<think>hm</think>"]))
def test_no_labelled_line_is_ever_public_and_every_other_one_is(first, others, newline, thoughts):
    strategy, reply = split_strategy(thoughts + newline.join([first, *others]), FORM)
    public, private = split_private(reply)
    assert "SECRET" in strategy.text
    assert public.split() == [word for line in others if "SECRET" not in line for word in line.split()]
    assert private.count("SECRET") == sum("SECRET" in line for line in others)


def test_a_remote_react_player_reads_its_earlier_strategies():
    scenario = negotiation()
    game = games.make(scenario)
    remote = Remote("I think so.\nStrategy: ask for food\nAll the food for me?", "<accept/>")
    player = ReActPlayer(RemotePlayer(remote, Sampling(), scenario.seats), FORM, reasons=True, forgets=True)
    first = asyncio.run(player.act(0, game.observe(0), 7))
    assert first.strategy == "ask for food"
    assert first.text == "<think>\nI think so.\n</think>\n\nAll the food for me?"
    game.step({0: Move(action="talk", text="All the food for me?")})
    game.step({1: Move(action="talk", text="Not all of it.")})
    assert asyncio.run(player.act(0, game.observe(0), 8)).strategy == ""  # the answer has none
    messages = [(message.role, message.content) for message in remote.asked[1][0]]
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user"]
    assert "First reason step by step" in messages[0][1]
    assert messages[1][1].endswith("Your earlier strategy: ask for food")
    assert messages[2] == ("assistant", "All the food for me?")
    assert "First reason" not in messages[3][1]
    assert "strategy" not in messages[3][1]
    assert player.totals() == {"strategies_formed": 1.0}


def test_a_local_react_player_keeps_its_answers_as_its_context():
    scenario = negotiation(turn_limit=4)
    answers = iter(["Strategy: greet\nHello there.", "Strategy: wait\nWell."])
    asked = []
    engine = ScriptedEngine(lambda request: asked.append(request) or reply_tokens(next(answers)))
    model = ModelPlayer(engine, chat_tokenizer(), Sampling(), seat=0, names=scenario.seats)
    episode = asyncio.run(play(scenario, [ReActPlayer(model, REACT), Fixed()]))
    turns = [turn for turn in episode.turns if turn.seat == 0]
    assert [(turn.strategy, turn.reply) for turn in turns] == [("greet", "Hello there."), ("wait", "Well.")]
    read = chat_tokenizer().decode(asked[1].prompt)
    assert read.count("Strategy: greet\nHello there.") == 1
    assert read.count("Hello there.") == 1
    [sampled] = episode.traces
    [made] = traces(episode, chat_tokenizer(), seats=[0], form=REACT)
    assert (made.tokens, made.mask, made.turn) == (sampled.tokens, sampled.mask, sampled.turn)


def test_reasoning_of_a_teacher_is_not_learned():
    scenario = negotiation(turn_limit=2)
    remote = Remote("She is in a hurry.\nStrategy: greet\nHello.")
    teacher = ReActPlayer(RemotePlayer(remote, Sampling(), scenario.seats), REACT, reasons=True, forgets=True)
    episode = asyncio.run(play(scenario, [teacher, Fixed()]))
    assert episode.turns[0].private == "She is in a hurry."
    decode = chat_tokenizer().decode
    for form, text in ((REACT, "Strategy: greet\nHello."), (FORM, "Strategy: greet")):
        [trace] = traces(episode, chat_tokenizer(), seats=[0], form=form)
        sampled_text = decode([token for token, sampled in zip(trace.tokens, trace.mask, strict=True) if sampled])
        assert sampled_text.removesuffix("<|im_end|>") == text
        assert "hurry" not in decode(trace.tokens)


def test_a_remote_strategist_reads_what_a_local_one_reads():
    scenario = negotiation(turn_limit=4)
    remote = Remote("Strategy: ask for water", "Strategy: insist")
    strategist = RemoteStrategist(remote, Sampling(), scenario.seats, FORM)
    episode = asyncio.run(play(scenario, [AdvisedPlayer(strategist, Fixed()), Fixed()]))
    assert [turn.strategy for turn in episode.turns if turn.seat == 0] == ["ask for water", "insist"]
    sent = [(message.role, message.content) for message in remote.asked[1][0]]
    [trace] = traces(episode, chat_tokenizer(), seats=[0], form=FORM)
    last = max(at for at, place in enumerate(trace.turn) if place == 0)
    until = next(at for at in range(last + 1, len(trace.mask)) if trace.mask[at])
    prompt = chat_tokenizer().prompt([{"role": role, "content": content} for role, content in sent])
    assert list(trace.tokens[:until]) == prompt


@pytest.mark.parametrize("form", [FORM, REACT], ids=["advised", "react"])
def test_players_made_anew_with_the_earlier_strategies_ask_what_one_that_stays_asks(form):
    """As at a table, where every turn has a player of its own."""
    scenario = negotiation(turn_limit=6)
    answers = [f"Strategy: {text}\nWell, {text}." for text in ("greet", "ask for water", "insist")]
    asked = []
    for anew in (False, True):
        game, earlier, player = games.make(scenario), [], None
        remote = Remote(*answers)
        for turn in range(3):
            if player is None or anew:
                player = remote_player(remote, scenario, form, earlier)
            observation = game.observe(0)
            reply = asyncio.run(player.act(0, observation, turn))
            earlier.append((len(observation.messages), reply.strategy))
            game.step({0: Move(action="talk", text="Hm.")})
            game.step({1: Move(action="talk", text="No.")})
        assert [text for _, text in earlier] == ["greet", "ask for water", "insist"]
        asked.append(remote.asked)
    assert asked[0] == asked[1]
    assert "insist" not in str(asked[0])
    assert "ask for water" in str(asked[0][2])


def remote_player(remote, scenario, form, earlier):
    plain = RemotePlayer(remote, Sampling(), scenario.seats)
    if form.react:
        return ReActPlayer(plain, form, forgets=True, earlier=earlier)
    speaker = make("follower:1", scenario, 0)
    return AdvisedPlayer(RemoteStrategist(remote, Sampling(), scenario.seats, form, earlier), speaker, earlier)


def test_a_speaker_made_anew_reads_all_strategies_of_its_seat():
    scenario = negotiation()
    game, speaker = games.make(scenario), Remote("Hello.")
    for text in ("Hi.", "Well?"):
        game.step({0: Move(action="talk", text=text)})
        game.step({1: Move(action="talk", text="No.")})
    strategist = RemoteStrategist(Remote("Strategy: insist"), Sampling(), scenario.seats, FORM)
    plain = RemotePlayer(speaker, Sampling(), scenario.seats)
    earlier = [(len(game.observe(0).messages) - 4, "greet"), (len(game.observe(0).messages) - 2, "wait")]
    asyncio.run(AdvisedPlayer(strategist, plain, earlier).act(0, game.observe(0), 3))
    read = "\n".join(message.content for message in speaker.asked[0][0])
    order = ["You have a strategist", "advises: greet", "Hi.", "advises: wait", "Well?", "advises: insist"]
    assert [read.index(part) for part in order] == sorted(read.index(part) for part in order)


def test_a_naming_player_advises_the_moves_that_it_would_make():
    scenario = negotiation()
    seats = [AdvisedPlayer(NamingPlayer(make("scripted", scenario, 0), FORM), make("follower:100", scenario, 0))]
    seats.append(NamingPlayer(make("scripted", scenario, 1), FORM))
    episode = asyncio.run(play(scenario, seats))
    assert episode.error is None
    proposals = [turn for turn in episode.turns if turn.move and turn.move.action == "propose"]
    assert proposals
    for turn in proposals:
        assert turn.strategy == "propose " + ", ".join(f"{name} {count}" for name, count in turn.move.args.items())


def test_the_speaker_alone_may_write_strategies_of_its_own(monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:9/v1")
    forms = [SpeakerSection(source="http://127.0.0.1:9/v1 m", alone=alone) for alone in ("plain", "react")]
    pools = [ContestantPool(EngineSection(), Sampling(), "cpu", form) for form in forms]
    scenario = negotiation()
    kinds = [type(pool.open("speaker", "b").player(scenario, 0)) for pool in pools]
    assert kinds == [RemotePlayer, ReActPlayer]
    assert type(pools[1].open("http://127.0.0.1:9/v1 other", "a").player(scenario, 0)) is AdvisedPlayer
    itself = ContestantPool(EngineSection(), Sampling(), "cpu", REACT)
    assert type(itself.open("http://127.0.0.1:9/v1 other", "a").player(scenario, 0)) is ReActPlayer


@pytest.mark.parametrize(
    "sections, where, why",
    [
        ({"speaker": {"source": "self"}, "opponents": [{"source": "speaker"}]}, "opponents.0.source", "no speaker"),
        ({"speaker": {"source": "follower:9", "alone": "react"}}, "speaker.alone", "writes no strategies"),
        ({"speaker": {"source": "self"}, "sampling": {"constrain": True}}, "sampling.constrain", "free text"),
    ],
)
def test_a_speaker_that_cannot_write_strategies_is_refused_by_its_field(sections, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        config.parse(sections)
    assert caught.value.where == where


def test_one_model_learns_strategies_and_replies_together(tmp_path):
    made, run_dir = make_run(tmp_path, steps=1, speaker={"source": "self"}, method={"name": "epo"})
    assert trainer.run(made, run_dir)["result"] == "succeeded"
    rewarded = 0
    for episode, credit in episodes(run_dir, 1):
        assert {trace.policy for trace in episode.traces} == {LEARNER}
        for trace, of_trace in zip(episode.traces, credit, strict=True):
            assert len(of_trace["reinforce"]) == len(trace.tokens)
            sampled = [place for place, value in enumerate(trace.mask) if value]
            assert all(of_trace["reinforce"][place] for place in sampled) or not any(of_trace["reinforce"])
            rewarded += any(of_trace["reinforce"])
    assert rewarded, "without a reward other than the mean nothing would be learned"
