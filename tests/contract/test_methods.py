"""Every registered method keeps the contract of `training.methods.base`; a new one is tested by these as it is added.

Each is tried in every combination of its choices (fields of type `Literal` and `bool`).
"""

import itertools
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError

from tests.methods.episodes import scored, trace
from training.config import CONFIGS
from training.learn.score import Rollout, give_credit
from training.methods import REGISTRY
from training.methods.base import MethodConfig
from training.records import LEARNER, Belief, EpisodeCredit, Needs, TraceCredit
from webapp.runs import presets

ROOT = Path(__file__).parents[2]

methods = pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY)


def configured(kind):
    """Every configuration that the choices of a method allow, the default one first."""
    choices = {
        name: (True, False) if field.annotation is bool else get_args(field.annotation)
        for name, field in kind.model_fields.items()
        if name != "name" and (field.annotation is bool or str(field.annotation).startswith("typing.Literal"))
    }
    yield kind()
    for values in itertools.product(*choices.values()):
        try:
            yield kind(**dict(zip(choices, values, strict=True)))
        except ValidationError:  # a combination that the method refuses
            continue


ASKED = Belief(seat=0, after=0, question="?", probabilities={"A": 0.25, "B": 0.75}, truth=("B",), trace=2, span=(1, 3))
"""An answer to the probe in the last game, whose right choice is the last two tokens of the third trace."""


def episodes(needs, seed=0):
    """Games of two starts: with several turns, a failed one, a branch, a silent seat, another policy, and a probe."""
    listed = [
        ([trace("..00..22"), trace("...1.33", seat=1)], {0: 1.0, 1: 0.25}, {"passed": [True, False, True, True]}),
        ([trace(".00"), trace("...1", parent=(0, 1)), trace("..22", seat=1)], {0: -0.5, 1: 0.75}, {}),
        ([trace(".0.2"), trace("..1", seat=1, policy="past 3")], {0: 0.5, 1: 0.0}, {"start": ("t", 1)}),
        (
            [trace(".00"), trace("..", seat=1), trace("...", prefix=(0, 2))],
            {0: 0.0, 1: 1.0},
            {"start": ("t", 1), "rewards": [-0.25], "beliefs": (ASKED,)},
        ),
    ]
    rng = np.random.default_rng(seed)

    def per_token(traces):
        return [rng.normal(size=len(seat_trace.tokens)) for seat_trace in traces]

    return [
        scored(
            traces,
            returns,
            {head: per_token(traces) for head in needs.critic},
            token_rewards=per_token(traces) if seed else (),
            **more,
        )
        for traces, returns, more in listed
    ]


def credited(method, games):
    """The credit of each game; the trainer calls the method for each group that it needs."""
    rollouts = [Rollout(number, game.episode, scored=game) for number, game in enumerate(games)]
    give_credit(rollouts, method)
    return [rollout.credit for rollout in rollouts]


def plain(credits_):
    """Credit as lists and numbers, which can be compared."""
    fields = TraceCredit.__dataclass_fields__
    return [
        [None if entry is None else {name: _plain(getattr(entry, name)) for name in fields} for entry in credit.traces]
        for credit in credits_
    ]


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return {key: _plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def check_needs(method):
    """The heads that it names are distinct, and its groups are those that the trainer knows."""
    assert isinstance(method.needs, Needs)
    assert method.needs.group in ("conversation", "start", "game")
    assert all(isinstance(head, str) and head for head in method.needs.critic)
    assert len(set(method.needs.critic)) == len(method.needs.critic)
    assert isinstance(method.needs.probes, bool)


def check_credit(method, games):
    """Credit is for the learner's traces, token by token, and on sampled tokens only."""
    for game, credit in zip(games, credited(method, games), strict=True):
        assert isinstance(credit, EpisodeCredit)
        assert len(credit.traces) == len(game.episode.traces), "one entry for each trace"
        for seat_trace, trace_credit in zip(game.episode.traces, credit.traces, strict=True):
            if seat_trace.policy != LEARNER:
                assert trace_credit is None, "a trace of another policy receives None"
            elif trace_credit is not None:
                check_trace(method, seat_trace, trace_credit)


def check_trace(method, seat_trace, credit):
    """Every array has a finite number for each token; advantages are 0 where nothing was sampled."""
    streams = [stream for stream in (credit.ppo, credit.reinforce, credit.nll) if stream is not None]
    for array in (*streams, *credit.value_targets.values(), *credit.value_mask.values()):
        assert np.shape(array) == (len(seat_trace.tokens),), "one number for each token"
        assert np.isfinite(array).all()
    for stream in (credit.ppo, credit.reinforce):
        assert stream is None or not stream[np.array(seat_trace.mask) == 0].any(), (
            "credit on a token that was not sampled"
        )
    assert set(credit.value_targets) == set(credit.value_mask) <= set(method.needs.critic), (
        "a head that needs must name"
    )
    assert all(mask.dtype == bool for mask in credit.value_mask.values())
    assert set(credit.turn_advantages) <= set(seat_trace.turn) - {-1}
    assert all(np.isfinite(advantage) for advantage in credit.turn_advantages.values())


def check_state(make):
    """What is read back from a file goes on as what was written; the same state gives the same credit again."""
    method, again = make(), make()
    games, later = episodes(method.needs), episodes(method.needs, seed=1)
    assert plain(credited(method, games)) == plain(credited(again, games)), "the episodes were changed"
    state = method.state_dict()
    written = json.loads(json.dumps(state, allow_nan=False))
    assert written == state, "the state is JSON data"
    restored = make()
    restored.load_state_dict(written)
    assert restored.state_dict() == state
    assert plain(credited(restored, later)) == plain(credited(method, later))


@methods
def test_it_is_registered_under_its_name_and_described(kind):
    assert REGISTRY[kind().name] is kind
    assert kind.summary.endswith("."), "lists show this sentence"
    assert kind.from_dict(kind().to_dict()) == kind()
    for config in configured(kind):
        check_needs(config.build())


@methods
def test_it_has_a_page_a_configuration_and_a_preset(kind):
    if not kind.__module__.startswith("training."):
        pytest.skip("a plugin's method comes with its own")
    name = kind().name
    files = {f"{name}/{file.name}" for file in (CONFIGS / name).glob("*.toml")}
    presets_of = {preset.file for preset in presets.PRESETS.values()}
    assert files, f"no configuration in training/configs/{name}"
    assert files & presets_of, f"no preset in webapp/runs/presets.py names a file of training/configs/{name}"
    page = ROOT / "docs" / "methods" / f"{name}.md"
    assert page.is_file(), f"no page docs/methods/{name}.md"
    links = {"README.md": f"](docs/methods/{name}.md)", "docs/index.md": f"](methods/{name}.md)"}
    for file, link in {**links, "docs/nav.toml": f'"methods/{name}"'}.items():
        assert link in (ROOT / file).read_text("utf-8"), f"{file} does not name the page of {name}: {link}"


@methods
def test_a_method_that_imitates_has_no_other_credit(kind):
    for config in configured(kind):
        method = config.build()
        if method.needs.imitates:
            for each in method.credit(episodes(method.needs)):
                for credit in filter(None, each.traces):
                    assert (credit.ppo, credit.reinforce, dict(credit.value_targets)) == (None, None, {})
            assert not method.needs.critic


@methods
def test_credit_is_on_the_learners_sampled_tokens(kind):
    for config in configured(kind):
        for seed in (0, 1):
            method = config.build()
            check_credit(method, episodes(method.needs, seed))


@methods
def test_results_that_differ_give_credit(kind):
    """By default; else the tests above would prove nothing."""
    method = kind().build()
    credits_ = [
        each for credit in credited(method, episodes(method.needs)) for each in credit.traces if each is not None
    ]
    streams = [stream for each in credits_ for stream in (each.ppo, each.reinforce, each.nll) if stream is not None]
    assert any(stream.any() for stream in streams)


@methods
def test_the_state_survives_a_restart(kind):
    for config in configured(kind):
        check_state(config.build)


class Even:
    """Credits every sampled token of the learner with 1."""

    needs = Needs()

    def credit(self, group):
        return [EpisodeCredit([self.of(seat_trace) for seat_trace in scored.episode.traces]) for scored in group]

    def of(self, seat_trace):
        return TraceCredit(ppo=np.array(seat_trace.mask, dtype=float)) if seat_trace.policy == LEARNER else None

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class OnEverything(Even):
    def of(self, seat_trace):
        return TraceCredit(reinforce=np.ones(len(seat_trace.tokens))) if seat_trace.policy == LEARNER else None


class ForEverybody(Even):
    def of(self, seat_trace):
        return TraceCredit(ppo=np.array(seat_trace.mask, dtype=float))


class WithoutHead(Even):
    def of(self, seat_trace):
        places = np.array(seat_trace.mask, dtype=bool)
        head = {"value_targets": {"turn": np.ones(len(places))}, "value_mask": {"turn": places}}
        return TraceCredit(**head) if seat_trace.policy == LEARNER else None


class Forgetful(Even):
    def __init__(self):
        self.calls = 0

    def credit(self, group):
        self.calls += 1
        return super().credit(group)

    def of(self, seat_trace):
        return TraceCredit(ppo=self.calls * np.array(seat_trace.mask)) if seat_trace.policy == LEARNER else None


class InTuples(Even):
    def state_dict(self):
        return {"seen": (1, 2)}


@pytest.mark.parametrize(
    "wrong, why",
    [(OnEverything, "not sampled"), (ForEverybody, "another policy"), (WithoutHead, "needs must name")],
)
def test_wrong_credit_is_found(wrong, why):
    check_credit(Even(), episodes(Needs()))
    with pytest.raises(AssertionError, match=why):
        check_credit(wrong(), episodes(Needs()))


def test_a_state_that_is_lost_is_found():
    check_state(Even)
    with pytest.raises(AssertionError):
        check_state(Forgetful)
    with pytest.raises(AssertionError, match="JSON data"):
        check_state(InTuples)


def test_all_choices_are_tried():
    class Choosing(MethodConfig):
        name: str = "choosing"
        whole: bool = False
        number: int = 3

    assert [config.whole for config in configured(Choosing)] == [False, True, False]
