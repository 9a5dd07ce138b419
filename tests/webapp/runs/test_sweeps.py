"""Sweeps: values read and combined, previewed, launched all or none, ranked, stopped and resumed together."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.runs.making import make_run
from training.errors import BadInput
from webapp.runs.models import Metric, Run
from webapp.runs.sweeps import space
from webapp.runs.sweeps.models import Sweep, Trial

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


@pytest.mark.parametrize(
    "text, values",
    [
        ("1e-5, 3e-5", [1e-5, 3e-5]),
        ("1, 2", [1, 2]),
        ("a, b", ["a", "b"]),
        ("true, null", [True, None]),
        ("[1, 2], [3]", [[1, 2], [3]]),
        ("1..8", space.Range(1, 8)),
        ("0.0..1", space.Range(0.0, 1)),
        ("1e-6..1e-4 log", space.Range(1e-6, 1e-4, log=True)),
    ],
)
def test_values_are_a_list_or_a_range(text: str, values: Any) -> None:
    assert space.parse_values(text, "learn.lr") == values


@pytest.mark.parametrize("text", ["", "1,,2", "2..1", "0..1 log", "a..b", "1..2 exp", "1..inf", "true..2"])
def test_other_values_are_refused_at_their_field(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        space.parse_values(text, "learn.lr")
    assert refused.value.where == "learn.lr"


def test_a_grid_has_every_combination() -> None:
    assert space.combinations({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    with pytest.raises(BadInput, match="121 runs are more than a sweep may have"):
        space.combinations({"a": list(range(11)), "b": list(range(11))})
    with pytest.raises(BadInput, match="a grid needs a list"):
        space.combinations({"a": space.Range(0, 1)})


def test_a_random_search_draws_within_its_ranges_the_same_for_a_seed() -> None:
    fields: dict[str, space.Values] = {
        "n": space.Range(1, 3),
        "lr": space.Range(1e-6, 1e-2, log=True),
        "kind": ["a", "b"],
    }
    trials = space.drawn(fields, 100, 7)
    assert trials == space.drawn(fields, 100, 7)
    assert trials != space.drawn(fields, 100, 8)
    assert {trial["n"] for trial in trials} == {1, 2, 3}
    assert {trial["kind"] for trial in trials} == {"a", "b"}
    logs = [math.log10(trial["lr"]) for trial in trials]
    assert all(-6 <= value <= -2 for value in logs)
    assert 35 <= sum(value < -4 for value in logs) <= 65, "half of the draws lie below the geometric middle"


FORM = {
    "name": "rates",
    "search": "grid",
    "trials": "3",
    "seed": "0",
    "metric": "reward",
    "goal": "max",
    "path_0": "learn.lr",
    "values_0": "1e-5, 1e-4",
    "path_1": "seed",
    "values_1": "1, 2",
}


def test_a_sweep_is_previewed_then_launched_as_a_group(client: Client) -> None:
    address = reverse("runs:new-sweep")
    preview = client.post(address, FORM).content.decode()
    assert "<h2>4 runs</h2>" in preview
    assert "You have 0 of 20 runs" in preview
    assert not Run.objects.exists()
    answer = client.post(address, {**FORM, "launch": "1"})
    sweep = Sweep.objects.get()
    assert answer["Location"] == reverse("runs:sweep", args=[sweep.pk])
    made = [(run.name, run.group, run.config["learn"]["lr"], run.config["seed"]) for run in Run.objects.order_by("pk")]
    assert made == [
        ("rates 1", "rates", 1e-5, 1),
        ("rates 2", "rates", 1e-5, 2),
        ("rates 3", "rates", 1e-4, 1),
        ("rates 4", "rates", 1e-4, 2),
    ]


def test_a_sweep_beyond_the_quota_starts_no_run(client: Client, settings: Any) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "active_runs": {"researcher": 3, "admin": 3}}
    answer = client.post(reverse("runs:new-sweep"), {**FORM, "launch": "1"})
    assert answer.status_code == 400
    assert "4 would be more than the limit of 3" in answer.content.decode()
    assert not Run.objects.exists()
    assert not Sweep.objects.exists()


@pytest.mark.parametrize(
    "change, why",
    [
        ({"path_0": "learn.unknown"}, "the configuration has no such field"),
        ({"values_0": "-1"}, "greater than"),
        ({"path_1": "learn.lr"}, "stands here once"),
        ({"path_0": "", "values_0": "", "path_1": "", "values_1": ""}, "State at least one field"),
        ({"values_0": "1e-6..1e-4 log"}, "a grid needs a list of values"),
    ],
)
def test_a_wrong_field_is_explained(client: Client, change: dict[str, str], why: str) -> None:
    answer = client.post(reverse("runs:new-sweep"), {**FORM, **change})
    assert answer.status_code == 400
    assert why in answer.content.decode()


def test_a_sweep_begins_from_a_run(client: Client, researcher: Any) -> None:
    run = make_run(researcher, name="origin")
    address = reverse("runs:new-sweep") + f"?run={run.pk}"
    assert "Sweep of origin" in client.get(address).content.decode()
    client.post(address, {**FORM, "launch": "1"})
    assert set(Run.objects.filter(group="rates").values_list("cloned_from", flat=True)) == {run.pk}


@pytest.fixture
def swept(researcher: Any) -> Sweep:
    """Three trials: rewards 0.25, 0.75, and one without any number."""
    sweep = Sweep.objects.create(name="rates", owner=researcher, search="grid", fields=[["learn.lr", "1, 2, 3"]])
    for number, (state, reward) in enumerate([("failed", 0.25), ("running", 0.75), ("queued", None)], 1):
        run = make_run(researcher, name=f"trial {number}", state=state)
        Trial.objects.create(sweep=sweep, run=run, number=number, values={"learn.lr": number})
        if reward is not None:
            Metric.objects.create(run=run, step=1, fence=1, at="2026-01-01T00:00:00Z", values={"reward": reward})
    return sweep


def test_the_page_ranks_the_trials(client: Client, swept: Sweep) -> None:
    text = client.get(reverse("runs:sweep", args=[swept.pk])).content.decode()
    assert text.index("trial 2") < text.index("trial 1") < text.index("trial 3")
    assert text.count(">best</span>") == 1
    Sweep.objects.update(goal="min")
    text = client.get(reverse("runs:sweep", args=[swept.pk])).content.decode()
    assert text.index("trial 1") < text.index("trial 2") < text.index("trial 3")


def test_all_are_stopped_and_resumed_and_the_page_stops_asking(client: Client, swept: Sweep) -> None:
    def act(action: str) -> None:
        client.post(reverse("runs:act-on-sweep", args=[swept.pk]), {"action": action})

    def states() -> list[str]:
        return [trial.run.state for trial in swept.trials.select_related("run")]

    act("stop")
    assert states() == ["failed", "stopping", "stopped"]
    act("resume")
    assert states() == ["queued", "stopping", "queued"]
    part = client.get(reverse("runs:sweep", args=[swept.pk]), headers={"hx-request": "true"})
    assert part.status_code == 200
    Run.objects.update(state="stopped")
    assert client.get(reverse("runs:sweep", args=[swept.pk]), headers={"hx-request": "true"}).status_code == 286


def test_an_empty_list_names_the_next_step(client: Client) -> None:
    assert "There is no sweep yet" in client.get(reverse("runs:sweeps")).content.decode()
