"""A whole run of listening and speaking in Among Us, with constrained decoding, a fixed imposter and a partner."""

import numpy as np
import pytest

from tests.learn.small_runs import another, make_run, stop_at
from tests.learn.test_probes import records
from tests.learn.test_trainer import lines
from tests.toy_models import write_random_llama
from tests.trust.test_kill_resume import final_bits, history, numbers
from training import games
from training.attempts.start import reopen
from training.learn import trainer
from training.records import LEARNER, Episode, Scenario
from training.store import dumps

SETTINGS = {"width": 2, "height": 1, "tasks": 2, "cooldown": 1, "rounds": 24, "discussion": 1, "words": 6}
START = Scenario(id="ship", game="among_us", seats=("Ada", "Ben", "Cia", "Dan"), settings=SETTINGS)


CREW = {"source": "phase imposter", "learner": ["crewmate"], "partner": "phase listen"}
IN_TURN = [
    {"name": "listen", "steps": 2, "method": {"variant": "L"}, "rollout": {"random_moves": True}},
    {"name": "crew", "steps": 2, "opponents": [{**CREW, "source": "phase listen"}], "reference": "phase listen"},
    {
        "name": "imposter",
        "steps": 2,
        "opponents": [{"source": "phase crew", "learner": ["imposter"], "ally": "phase listen"}],
        "begin": "phase listen",
        "reference": "phase listen",
    },
    {"name": "crew-2", "steps": 2, "opponents": [CREW], "begin": "phase crew", "reference": "phase listen"},
]


def make(tmp_path, *, layers=1, **sections):
    rules = "".join(
        message.text for seat in range(4) for message in games.make(START.with_seed(1)).observe(seat).messages
    )
    write_random_llama(tmp_path / "model", layers=layers, window=4096, known=rules)
    (tmp_path / "data.jsonl").write_text(dumps(START.to_dict()) + "\n")
    steps = sum(phase["steps"] for phase in sections.get("phases", ())) or 3
    return make_run(
        tmp_path,
        game={"name": "among_us", "settings": {}},
        sampling={"max_tokens": 12, "constrain": True},
        rollout={"scenarios": 6, "games": 1},
        reward={"scale": "raw"},
        method={"name": "listen_speak", "kl_on": "messages"},
        learn={"steps": steps, "lr": 1e-2, "critic_warmup": 0, "save_every": steps, "kl": "k1", "kl_coef": 0.05},
        stop={"failing": 1.0, "kl_ceiling": 1e6, "advantage_drift": 0.0, "entropy_fall": 0.0},
        **sections,
    )


def run(tmp_path):
    opponents = [{"source": "start", "learner": ["crewmate"], "partner": "start"}]
    config, run_dir = make(tmp_path, layers=2, opponents=opponents)
    return trainer.run(config, run_dir), run_dir


def test_a_crew_acts_listens_and_speaks(tmp_path):
    result, run_dir = run(tmp_path)
    assert result["result"] == "succeeded", result["why"]
    metrics = lines(run_dir.attempt(1).metrics)
    assert all(line["nll_loss"] > 0 != line["ppo_loss"] for line in metrics)
    asked, actions, messages, fixed = set(), 0, 0, 0
    for step, record in records(run_dir):
        episode = Episode.from_dict(record["episode"])
        imposter = episode.roles.index("imposter")
        for number, (trace, credit) in enumerate(zip(episode.traces, record["credit"], strict=True)):
            assert (credit is None) == (trace.policy != LEARNER)
            assert trace.policy != LEARNER or trace.seat != imposter
            if credit is None or "advantages" not in credit:
                continue
            assert number == trace.seat or trace.parent
            for index in set(trace.turn) - {-1}:
                at = [place for place, turn in enumerate(trace.turn) if turn == index]
                spoken = {credit["advantages"][place] for place in at}
                if trace.choices.keys() & set(at):
                    assert len(spoken) == 1, "the tokens of an action share an advantage"
                    actions += 1
                else:
                    assert episode.turns[index].move is None or episode.turns[index].move.action == "talk"
                    messages += 1
        for belief in episode.beliefs:
            assert belief.seat != imposter
            if episode.traces[belief.trace].policy != LEARNER:
                fixed += 1
                continue
            asked.add(step)
            nll = np.array(record["credit"][belief.trace]["nll"])
            assert np.flatnonzero(nll).tolist() == list(range(*belief.span))
    assert actions > 100
    assert messages > 5
    assert fixed > 5, "the partner is asked, and learns nothing"
    assert asked == {1, 2, 3}, "there was a meeting in every step"
    losses = [line["nll_loss"] for line in metrics]
    assert losses[2] < 0.9 * losses[0], "answers and observations become likelier"
    check_reported_effects(run_dir)


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory):
    """A listening policy from random play, then crew, imposter and crew in turn."""
    config, run_dir = make(tmp_path_factory.mktemp("in_turn"), phases=IN_TURN)
    result = trainer.run(config, run_dir)
    assert result["result"] == "succeeded", result["why"]
    return run_dir


def test_the_listening_policy_learns_from_random_moves_and_words_of_its_own(in_turn):
    drawn, spoken, answers = 0, 0, 0
    for step, record in records(in_turn):
        episode = Episode.from_dict(record["episode"])
        for trace, credit in zip(episode.traces, record["credit"], strict=True):
            moves = {at for at in trace.choices if trace.mask[at]}
            if step > 2:  # moves are the policy's again: some token had alternatives
                drawn += trace.policy == LEARNER and any(len(ids) > 1 for ids in trace.choices.values())
                continue
            assert all(len(trace.choices[at]) == 1 for at in moves)
            speech_places = {at for at, sampled in enumerate(trace.mask) if sampled} - moves
            assert all(trace.logprobs[at] < 0 for at in speech_places), "words are sampled from the model"
            assert all(episode.turns[trace.turn[at]].passed for at in moves)
            spoken += len(speech_places)
            if credit is not None:
                assert "advantages" not in credit
                weights = np.array(credit["nll"])
                assert not weights[sorted(moves | speech_places)].any(), "no text of its own is imitated"
                answers += trace.prefix is not None and bool(weights.any())
    assert drawn > 10
    assert spoken > 20
    assert answers > 5
    shares = {line["step"]: line.get("random_moves", 0.0) for line in lines(in_turn.attempt(1).metrics)}
    assert 0.5 < shares[1] < 1  # the rest are messages
    assert not any(share for step, share in shares.items() if step > 2)


def test_crew_and_imposter_learn_in_turn(in_turn):
    learners = {step: set() for step in range(1, 9)}
    others = {step: set() for step in range(1, 9)}
    for step, record in records(in_turn):
        episode = Episode.from_dict(record["episode"])
        for trace in episode.traces:
            role = episode.roles[trace.seat]
            (learners if trace.policy == LEARNER else others)[step].add((role, trace.policy))
    sides = [{role for role, _ in learners[step]} for step in (1, 3, 5, 7)]
    assert sides == [{"crewmate", "imposter"}, {"crewmate"}, {"imposter"}, {"crewmate"}]
    assert [others[step] for step in (2, 4, 6, 8)] == [
        set(),
        {("imposter", "phase listen"), ("crewmate", "phase listen")},
        {("crewmate", "phase crew"), ("crewmate", "phase listen")},
        {("imposter", "phase imposter"), ("crewmate", "phase listen")},
    ]


def test_a_run_with_a_trained_imposter_that_stops_in_every_phase_ends_with_the_same_bits(
    in_turn, tmp_path, monkeypatch
):
    parts = another(in_turn, tmp_path)
    stop_at(monkeypatch, 2, 3, 4, 5, 6, 7, 8)
    assert [trainer.run(reopen(parts), parts)["step"] for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [numbers(line) for line in history(parts)] == [numbers(line) for line in history(in_turn)]
    assert final_bits(parts) == final_bits(in_turn)


def check_reported_effects(run_dir):
    """What the index and the metrics say of messages is what the stored games say, counted again."""
    attempt = run_dir.attempt(1)
    indexed = {(line["step"], line["episode"]): line["summary"]["message_effects"] for line in lines(attempt.index)}
    sums: dict[int, list[float]] = {}
    heard = 0
    for step, record in records(run_dir):
        episode = Episode.from_dict(record["episode"])
        answers = {(belief.after, belief.seat): belief.right for belief in episode.beliefs}
        for after, entry in enumerate(episode.moves):
            both = [seat for seat in range(4) if {(after, seat), (after + 1, seat)} <= answers.keys()]
            changes = [answers[after + 1, seat] - answers[after, seat] for seat in both]
            heard += len(changes)
            if changes and episode.roles[entry.seat] == "crewmate":
                sums.setdefault(step, []).append(sum(changes))
    assert heard == sum(row["n"] for effects in indexed.values() for row in effects)
    for line in lines(attempt.metrics):
        assert line["belief_change/crewmate"] == pytest.approx(np.mean(sums[line["step"]]), abs=1e-5)
