"""Probes: known scores give known probabilities, and no probe affects the game."""

import asyncio
import math

import pytest

from tests.chat_tokenizers import tokenizer
from tests.games.cases.among_us import among_us
from tests.table_talk import SAMPLING, dialogue, reply_tokens, say_anything
from training import players
from training.engines.scripted import ScriptedEngine
from training.errors import EngineError
from training.games import make
from training.players.base import Answer
from training.players.model import ModelPlayer
from training.records import Belief, Episode, Probe, Trace
from training.rollout import RolloutPolicy, play
from training.rollout.probes import with_branches
from training.text.template import ChatTokenizer

CHAT = ChatTokenizer(tokenizer("chatml"))
PROBE = Probe(question="Who is it?", choices=("Ann", "Bartholomew"), truth=("Ann",))
SCENARIO = dialogue(turn_limit=6)


class Scores(ScriptedEngine):
    """Says anything, and holds the first of two answers for three times as likely as the second."""

    def __init__(self, script=say_anything):
        super().__init__(script)
        self.scored, self.prompts = [], []

    async def sample(self, request):
        self.prompts.append(list(request.prompt))
        return await super().sample(request)

    async def score(self, prefix, continuations):
        self.scored.append((list(prefix), [list(c) for c in continuations]))
        return [-7 + math.log(3), -7.0]


def episode(monkeypatch, engine, *, probes=True, window=None, second=None):
    monkeypatch.setattr(type(make(SCENARIO)), "probes", lambda game: {0: PROBE, 1: PROBE})
    seated = [ModelPlayer(engine, CHAT, SAMPLING, seat=seat, names=SCENARIO.seats, window=window) for seat in range(2)]
    if second is not None:
        seated[1] = second
    return asyncio.run(play(SCENARIO, seated, rules=RolloutPolicy(seed=5, retries=1, probes=probes)))


def test_known_scores_give_known_probabilities(monkeypatch):
    played = episode(monkeypatch, Scores())
    assert played.error is None
    assert all(belief.probabilities == pytest.approx({"Ann": 0.75, "Bartholomew": 0.25}) for belief in played.beliefs)
    # before the first move and after every one, each of the two
    assert [(b.after, b.seat) for b in played.beliefs] == [
        (after, seat) for after in range(len(played.moves) + 1) for seat in range(2)
    ]
    assert {(b.question, b.truth) for b in played.beliefs} == {("Who is it?", ("Ann",))}
    assert played.metrics["probes"] == len(played.beliefs)


def test_whole_names_are_scored_behind_all_that_the_seat_saw(monkeypatch):
    engine = Scores()
    played = episode(monkeypatch, engine)
    for prefix, names in engine.scored:
        assert names == [reply_tokens("Ann"), reply_tokens("Bartholomew")]
        assert "Who is it?" in CHAT.decode(prefix)
    assert len({len(tokens) for tokens in names}) == 2  # names of unequal length, compared as a whole
    last = [trace for trace in played.traces if trace.seat == 1 and any(trace.mask)][-1]
    prefix = engine.scored[-1][0]
    shared = len(last.tokens)
    assert prefix[:shared] == list(last.tokens)  # the branch leaves the trace at its end


def test_probing_changes_no_token_of_the_game(monkeypatch):
    asked, plain = Scores(), Scores()
    with_probes, without = episode(monkeypatch, asked), episode(monkeypatch, plain, probes=False)
    game = tuple(trace for trace in with_probes.traces if any(trace.mask))
    assert game == without.traces == with_probes.traces[: len(game)]
    assert {name: with_probes.metrics[name] for name in ("tokens", "sampled_tokens", "branches")} == {
        name: without.metrics[name] for name in ("tokens", "sampled_tokens", "branches")
    }
    assert with_probes.moves == without.moves
    assert asked.prompts == plain.prompts
    assert not plain.scored
    assert without.beliefs == ()
    assert not any("Who is it?" in CHAT.decode(trace.tokens) for trace in game)


def test_a_player_without_a_model_has_no_beliefs(monkeypatch):
    played = episode(monkeypatch, Scores(), second=players.make("scripted", SCENARIO, 1))
    assert {belief.seat for belief in played.beliefs} == {0}


def test_a_question_that_does_not_fit_the_window_is_not_asked(monkeypatch):
    engine = Scores()
    whole = episode(monkeypatch, engine)
    prefix, names = engine.scored[0]  # of seat 0, at the start
    window = len(prefix) + max(map(len, names))
    assert whole.beliefs
    player = ModelPlayer(engine, CHAT, SAMPLING, seat=0, names=SCENARIO.seats, window=window)
    seen = make(SCENARIO).observe(0)
    assert asyncio.run(player.believe(seen, PROBE)) is None
    roomy = ModelPlayer(engine, CHAT, SAMPLING, seat=0, names=SCENARIO.seats, window=window + 1)
    assert asyncio.run(roomy.believe(seen, PROBE)) is not None
    assert player.traces() == roomy.traces() == ()


def test_questions_that_do_not_fit_are_counted_and_the_game_goes_on(monkeypatch):
    short, long = (
        episode(monkeypatch, Scores(), window=2000),
        PROBE.model_copy(update={"question": "Who is it? " * 900}),
    )
    monkeypatch.setattr(f"{__name__}.PROBE", long)
    played = episode(monkeypatch, Scores(), window=2000)
    assert (played.error, played.beliefs, played.moves) == (None, (), short.moves)
    assert (played.metrics["probes"], played.metrics["probes_unfit"]) == (0, 2 * (len(played.moves) + 1))
    assert (short.metrics["probes"], short.metrics["probes_unfit"]) == (2 * (len(short.moves) + 1), 0)


def test_an_engine_that_cannot_score_ends_the_episode_as_data(monkeypatch):
    played = episode(monkeypatch, ScriptedEngine(say_anything))
    assert played.error is not None
    assert played.error.kind == EngineError.kind
    assert played.beliefs == ()


# --- what is kept of a probe -----------------------------------------------------------------------------------------


def whole(episode, index):
    """All tokens of a trace, those of its prefix included."""
    trace = episode.traces[index]
    before = () if trace.prefix is None else episode.traces[trace.prefix[0]].tokens[: trace.prefix[1]]
    return (*before, *trace.tokens)


def test_a_probe_is_a_branch_with_the_tokens_of_its_question_and_the_right_answer(monkeypatch):
    engine = Scores()
    played = episode(monkeypatch, engine)
    game = [trace for trace in played.traces if any(trace.mask)]
    assert [belief.trace for belief in played.beliefs] == list(range(len(game), len(played.traces)))
    for belief, (prefix, names) in zip(played.beliefs, engine.scored, strict=True):
        branch = played.traces[belief.trace]
        assert (branch.seat, branch.policy, branch.parent) == (belief.seat, "learner", None)
        assert not any(branch.mask)
        assert set(branch.turn) == {-1}
        assert whole(played, belief.trace) == (*prefix, *names[0])  # Ann is right
        assert branch.tokens[slice(*belief.span)] == tuple(names[0])
        asked = CHAT.decode(branch.tokens)
        assert asked.count("Who is it?") == 1
        assert "Ann says" not in asked  # what was said stands in the game's trace alone
    assert all(played.traces[belief.trace].prefix[0] == belief.seat for belief in played.beliefs)
    assert played.metrics["probe_tokens"] == sum(len(trace.tokens) for trace in played.traces[len(game) :])


def test_a_record_with_branches_is_read_back_and_one_without_them_is_written_as_before(monkeypatch):
    played, plain = episode(monkeypatch, Scores()), episode(monkeypatch, Scores(), probes=False)
    assert Episode.from_dict(played.to_dict()) == played
    assert not any("prefix" in trace for trace in plain.to_dict()["traces"])
    belief = Belief(seat=0, after=0, question="?", probabilities={"A": 1.0})
    assert set(belief.to_dict()) == {"seat", "after", "question", "probabilities", "truth"}


def answer(tokens, reply):
    return Answer({"A": 0.5, "B": 0.5}, tuple(tokens), reply)


def belief(seat, after):
    return Belief(seat=seat, after=after, question="?", probabilities={"A": 0.5, "B": 0.5}, truth=("A",))


def test_the_prefix_is_the_trace_of_the_seat_that_shares_most():
    def seen(seat, *tokens):
        zeros = (0,) * len(tokens)
        return Trace(seat=seat, tokens=tokens, mask=zeros, turn=zeros, logprobs=zeros)

    traces = [seen(0, 1, 2, 3, 4), seen(1, 1, 2, 3, 9, 9), seen(0, 1, 2, 7, 8)]
    answers = [answer([1, 2, 3, 5, 6, 60], 5), answer([1, 2, 7, 8, 50, 51], 4), answer([1, 2, 3, 9, 5, 50], 5)]
    beliefs, branches = with_branches([belief(0, 0), belief(0, 1), belief(1, 2)], answers, traces)
    assert [branch.prefix for branch in branches] == [(0, 3), (2, 4), (1, 4)]
    assert [branch.tokens for branch in branches] == [(5, 6, 60), (50, 51), (5, 50)]
    assert [(belief.trace, belief.span) for belief in beliefs] == [(3, (2, 3)), (4, (0, 2)), (5, (1, 2))]


def test_a_seat_that_never_moved_has_its_first_probe_as_the_prefix_of_the_others():
    answers = [answer([1, 2, 3, 4], 3), answer([1, 2, 5, 6, 4], 4)]
    beliefs, branches = with_branches([belief(0, 0), belief(0, 1)], answers, [])
    assert [(branch.prefix, branch.tokens) for branch in branches] == [(None, (1, 2, 3, 4)), ((0, 2), (5, 6, 4))]
    assert [belief.span for belief in beliefs] == [(3, 4), (2, 3)]


def test_without_a_right_answer_there_is_no_branch(monkeypatch):
    monkeypatch.setattr(f"{__name__}.PROBE", PROBE.model_copy(update={"truth": ()}))
    played = episode(monkeypatch, Scores())
    assert played.beliefs
    assert {(belief.trace, belief.span) for belief in played.beliefs} == {(None, None)}
    assert all(any(trace.mask) for trace in played.traces)


def test_of_several_right_answers_the_branch_has_the_likeliest():
    player = ModelPlayer(Scores(), CHAT, SAMPLING, seat=0, names=SCENARIO.seats, policy="past 3")
    both = PROBE.model_copy(update={"truth": ("Bartholomew", "Ann"), "replies": ("<vote>Ann</vote>", "<vote>B</vote>")})
    belief = asyncio.run(player.believe(make(SCENARIO).observe(0), both))
    assert belief.tokens[belief.reply :] == tuple(reply_tokens("<vote>Ann</vote>"))  # three times as likely
    assert belief.policy == "past 3"
    assert set(belief.probabilities) == {"Ann", "Bartholomew"}


def test_replies_that_do_not_match_the_choices_are_refused():
    with pytest.raises(ValueError, match="2 choices need as many replies, not 1"):
        Probe(question="?", choices=("A", "B"), replies=("A",))


class Plays(ScriptedEngine):
    """Reports the body at once, then speaks and votes for Ben; every answer is as likely as the others."""

    async def score(self, prefix, continuations):
        return [-float(len(tokens)) for tokens in continuations]


def test_living_crewmates_are_asked_before_the_discussion_and_after_every_message_the_last_included():
    names = ("Ada", "Ben", "Cleo", "Dan", "Eva")
    scenario = among_us(names, 1, [[(1, 0)]] * 5, tasks=1, rounds=40, discussion=1)
    east, wait = "<go>east</go>", "<wait/>"
    script = [
        [wait, wait],
        [east, "<kill>Cleo</kill>", "<go>west</go>"],
        [east, "<task/>"],
        [wait, wait],
        [east, wait, "<report>Cleo</report>"],
    ]

    def player(seat):
        replies = [*script[seat], "I saw it.", "<vote>Ben</vote>" if seat != 1 else "<vote>Ada</vote>"]
        engine = Plays(map(reply_tokens, replies))
        return ModelPlayer(engine, CHAT, SAMPLING, seat=seat, names=names)

    played = asyncio.run(play(scenario, [player(seat) for seat in range(5)], rules=RolloutPolicy(probes=True)))
    assert played.error is None, played.error
    speech_steps = [at for at, entry in enumerate(played.moves) if entry.move.action == "talk"]
    assert len(speech_steps) == 4  # Cleo is dead
    times = [speech_steps[0], *(at + 1 for at in speech_steps)]
    assert [(belief.after, belief.seat) for belief in played.beliefs] == [
        (at, seat) for at in times for seat in (0, 3, 4)
    ]
    assert {belief.truth for belief in played.beliefs} == {("Ben",)}
    vote = tuple(reply_tokens("<vote>Ben</vote>"))
    for belief in played.beliefs:
        assert set(belief.probabilities) == {"Ada", "Ben", "Dan", "Eva"} - {names[belief.seat]}
        branch = played.traces[belief.trace]
        assert branch.tokens[slice(*belief.span)] == vote
        # the last probe, too, is read behind the seat's own trace, which goes on with its vote
        assert branch.prefix[0] == belief.seat
        assert "saw it" not in CHAT.decode(branch.tokens)
