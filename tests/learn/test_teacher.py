"""Round 0 of self-play: a teacher plays the learner's seats, and the learner learns from its strategies."""

import asyncio

import pytest

from tests.learn.small_runs import another, make_run, stop_at
from tests.learn.test_constrained import episodes
from tests.stub import Stub
from tests.trust.test_kill_resume import final_bits, history, numbers
from training import rewards
from training.attempts.start import reopen
from training.games import lookup
from training.learn import trainer
from training.methods.advantages import reinforce_returns
from training.opponent_sections import TEACHER
from training.records import LEARNER
from training.store import read_lines
from training.text.template import ChatTokenizer

ROUND_0 = {"name": "round-0", "steps": 1, "teacher": {"source": "scripted", "speaks": False}}
ROUNDS = {"name": "rounds", "steps": 2, "rollout": {"scenarios": 2, "games": 1}, "learn": {"epochs": 2}}
SECTIONS = {
    "speaker": {"source": "follower:80", "words": 20},
    "game": {"name": "negotiation", "settings": {"turn_limit": 6}},
    "method": {"name": "epo", "result": False},
    "reward": {"process": "rule"},
    "rollout": {"scenarios": 3, "games": 2},
}


def make_rounds(root, phases=(ROUND_0, ROUNDS), **sections):
    learn = {"kl": "none", "kl_measured": False, "tokens_per_batch": 16384, **sections.pop("learn", {})}
    return make_run(
        root, steps=sum(phase["steps"] for phase in phases), phases=phases, learn=learn, **SECTIONS | sections
    )


def summaries(run_dir, step):
    lines = [line for line, _ in read_lines(run_dir.attempt(1).index)]
    return [line["summary"] for line in lines if line["step"] == step]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    config, run_dir = make_rounds(tmp_path_factory.mktemp("rounds"))
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    return run_dir


def test_the_teacher_plays_the_first_round_and_the_learner_the_others(whole):
    seated = [{policy for summary in summaries(whole, step) for policy in summary["policies"]} for step in (1, 2, 3)]
    assert seated == [{TEACHER}, {LEARNER}, {LEARNER}]
    assert [len(summaries(whole, step)) for step in (1, 2, 3)] == [6, 2, 2]
    starts = [[summary["scenario"] for summary in summaries(whole, step)] for step in (1, 2, 3)]
    assert len({*starts[0]}) == 3
    assert {*starts[1]} | {*starts[2]} == {*starts[0]}  # the second pass over three starts begins where the first ended
    assert [line["phase"] for line in history(whole)] == [1, 2, 2]
    assert not any(name.startswith("reward_against") for line in history(whole) for name in line)


def test_the_learner_learns_the_strategies_of_the_teacher(whole):
    first = episodes(whole, 1)
    assert any(turn.move and turn.strategy.startswith("propose ") for episode, _ in first for turn in episode.turns)
    moved = 0
    for episode, credit in first:
        assert {trace.policy for trace in episode.traces} == {LEARNER}  # the speaker and the teacher have no tokens
        assert {trace.seat for trace in episode.traces} == {turn.seat for turn in episode.turns}
        for trace, of_trace in zip(episode.traces, credit, strict=True):
            assert set(trace.turn) - {-1} == {at for at, turn in enumerate(episode.turns) if turn.seat == trace.seat}
            assert not any(trace.logprobs)
            assert not trace.versions
            by_turn = {turn: value for turn, value in zip(trace.turn, of_trace["reinforce"], strict=True) if turn >= 0}
            assert by_turn == pytest.approx({int(turn): value for turn, value in of_trace["turn_advantages"].items()})
            moved += any(by_turn.values())
    assert moved
    line = history(whole)[0]
    assert (line["gap_mean"], line["importance"]) == (0, pytest.approx(1))
    assert line["grad_norm"] > 0
    assert {"reward_process", "reward", "strategies_formed"} <= set(line)


def test_what_is_learned_is_the_written_form(whole):
    config = reopen(whole)
    context = trainer.build(config, whole, None)
    chat: ChatTokenizer = context.chat
    learned = 0
    for episode, _ in episodes(whole, 1):
        for trace in episode.traces:
            replies = {}
            for token, turn in zip(trace.tokens, trace.turn, strict=True):
                replies.setdefault(turn, []).append(token)
            for turn, tokens in replies.items():
                if turn >= 0:
                    assert chat.decode(tokens) == f"Strategy: {episode.turns[turn].strategy}"
                    learned += 1
    assert learned
    asyncio.run(context.close())


def test_rounds_that_stop_go_on_to_the_same_bits(whole, tmp_path, monkeypatch):
    parts = another(whole, tmp_path)
    stop_at(monkeypatch, 1, 2, 3)
    for _ in range(3):
        assert trainer.run(reopen(parts), parts)["result"] == "stopped"
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [numbers(line) for line in history(parts)] == [numbers(line) for line in history(whole)]
    assert final_bits(parts) == final_bits(whole)


def test_all_games_of_the_teacher_are_kept_and_count_by_their_rewards(whole):
    """Strategies after which nothing came nearer have weight 0; they stay in the mean."""
    reward = rewards.build(reopen(whole).reward, lookup("negotiation"))
    unrewarded = 0
    for episode, credit in episodes(whole, 1):
        score = asyncio.run(reward.score(episode, 0))
        for trace, of_trace in zip(episode.traces, credit, strict=True):
            turns = [at for at, turn in enumerate(episode.turns) if turn.seat == trace.seat]
            earned = [score.parts["process"][at] for at in turns]
            expected = dict(zip(map(str, turns), reinforce_returns(earned, 0.99), strict=True))
            assert of_trace["turn_advantages"] == pytest.approx(expected, abs=1e-4)
            unrewarded += 0.0 in expected.values()
    assert unrewarded, "every game of the teacher went well"


@pytest.mark.parametrize(
    "source, learned", [("follower:80", "Strategy: ask nicely"), ("self", "Strategy: ask nicely\nHi.")]
)
def test_a_teacher_at_an_address_writes_reasoning_strategy_and_reply(tmp_path, monkeypatch, source, learned):
    with Stub() as stub:
        stub.answer = "She may like water.\nStrategy: ask nicely\nHi."
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        teacher = {"source": f"{stub.url} stub", "max_tokens": 77, "temperature": 0.0}
        config, run_dir = make_rounds(
            tmp_path,
            [{**ROUND_0, "teacher": teacher}],
            speaker={"source": source},
            method={"name": "epo", "form": "sft"},
        )
        assert trainer.run(config, run_dir)["result"] == "succeeded"
        asked = [request.body for request in stub.requests]
    assert {(body["max_tokens"], body["temperature"]) for body in asked} == {(77, 0.0)}
    assert all("First reason step by step" in body["messages"][0]["content"] for body in asked)
    decode = trainer.build(config, run_dir, None).chat.decode
    for episode, credit in episodes(run_dir, 1):
        assert {(turn.private, turn.strategy, turn.reply) for turn in episode.turns} == {
            ("She may like water.", "ask nicely", "Hi.")
        }
        for trace, of_trace in zip(episode.traces, credit, strict=True):
            tokens = [token for token, sampled in zip(trace.tokens, trace.mask, strict=True) if sampled]
            assert decode(tokens) == "".join([learned] * len({*trace.turn} - {-1}))
            weights = {value for value, on in zip(of_trace["reinforce"], trace.mask, strict=True) if on}
            assert weights == {1.0}


def test_a_teacher_that_is_a_model_shares_the_engine_of_its_weights(tmp_path):
    """Its traces have the policy `teacher`, and the learner's are beside them."""
    phase = {**ROUND_0, "teacher": {"source": str(tmp_path / "model"), "speaks": False, "max_tokens": 8}}
    config, run_dir = make_rounds(tmp_path, [phase])
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    for episode, credit in episodes(run_dir, 1):
        policies = [trace.policy for trace in episode.traces]
        assert set(policies) == {TEACHER, LEARNER}
        assert [of_trace is not None for of_trace in credit] == [policy == LEARNER for policy in policies]


def test_a_strategy_that_does_not_fit_the_window_is_an_error_of_its_game(tmp_path):
    """The learner's window has no room for what the teacher has read."""
    config, run_dir = make_rounds(tmp_path, [ROUND_0], engine={"window": 120})
    result = trainer.run(config, run_dir)
    assert result["result"] == "failed"
    assert "there was nothing to learn from" in result["why"]
    assert all(summary["error"]["kind"] == "engine" for summary in summaries(run_dir, 1))
