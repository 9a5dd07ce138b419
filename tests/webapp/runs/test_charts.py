"""Choices of charts: stored for each person, checked, used by the pages and by the CSV files."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.runs.making import CONFIG, make_run
from webapp.runs.models import Metric, Run
from webapp.runs.preferences.models import Preference
from webapp.runs.preferences.services import ChartChoices
from webapp.runs.summaries.chart_page import Smoothing, bundles, quantiles

pytestmark = pytest.mark.django_db


def with_metrics(run: Run, rows: list[dict[str, float]]) -> Run:
    for step, values in enumerate(rows, 1):
        Metric.objects.create(run=run, step=step, fence=1, at="2026-01-01T00:00:00Z", values=values)
    return run


def read(response: Any) -> list[list[str]]:
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(response.getvalue().decode(), newline="")))


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


def test_the_moving_average_by_hand() -> None:
    average = Smoothing(0.5)
    # (1·½ + 3)/(1·½ + 1) = 3.5/1.5; then (3.5/2 + 2)/(1.5/2 + 1) = 3.75/1.75
    assert [average.add(value) for value in (1.0, None, 3.0, 2.0)] == [1.0, None, 3.5 / 1.5, 3.75 / 1.75]


def test_students_quantiles_are_those_of_the_tables() -> None:
    assert quantiles(5) == pytest.approx([12.706, 4.303, 3.182, 2.776], abs=5e-4)


def test_choices_are_stored_for_their_person_alone(
    client: Client, other_researcher: Any, researcher: Any, client_of: Callable[..., Client]
) -> None:
    run = with_metrics(make_run(researcher), [{"reward": 0.1}])
    chosen = {"smoothing": 0.6, "mean": False, "order": ["kl", "reward"], "hidden": ["loss"], "log_y": ["kl"]}
    assert client.post(reverse("runs:charts"), {"charts": json.dumps(chosen)}).status_code == 204
    assert '"smoothing": 0.6' in client.get(reverse("runs:detail", args=[run.pk])).content.decode()
    other = client_of(other_researcher).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert '"smoothing": 0.0' in other
    assert client.post(reverse("runs:charts"), {"charts": ""}).status_code == 204
    assert not Preference.objects.exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"smoothing": 1}',
        '{"unknown": 1}',
        '{"order": ["' + "x" * 201 + '"]}',
        '{"order": ["a\\u0000"]}',
        json.dumps({"order": ["x"] * 501}),
        "x" * 200_000,
    ],
)
def test_choices_that_are_not_valid_are_refused(client: Client, text: str) -> None:
    assert client.post(reverse("runs:charts"), {"charts": text}).status_code == 400
    assert not Preference.objects.exists()


def test_stored_choices_of_another_release_fall_back_to_the_defaults(researcher: Any) -> None:
    Preference.objects.create(user=researcher, name="charts", value={"other": 1})
    assert ChartChoices.of(researcher) == ChartChoices()


def test_runs_are_seeds_of_one_training_if_only_seed_and_name_differ(researcher: Any) -> None:
    first = make_run(researcher, name="a", config={**CONFIG, "seed": 1, "name": "a"})
    second = make_run(researcher, name="b", config={**CONFIG, "seed": 2, "name": "b"})
    third = make_run(researcher, name="c", config={**CONFIG, "learn": {"steps": 7}})
    assert bundles([first, third, second]) == [
        {"name": f"a #{first.pk} and 1 more seed", "runs": [0, 2]},
        {"name": f"c #{third.pk}", "runs": [1]},
    ]


def test_the_file_of_curves_has_what_the_charts_show(client: Client, researcher: Any) -> None:
    first = with_metrics(make_run(researcher, name="=1+1"), [{"reward": 1.0, "loss": 5.0}, {"reward": 3.0}])
    second = with_metrics(make_run(researcher), [{"kl": 0.5}])
    client.post(reverse("runs:charts"), {"charts": '{"hidden": ["loss"], "smoothing": 0.5}'})
    rows = read(client.get(reverse("runs:curves-csv"), {"run": [first.pk, second.pk]}))
    smooth = ["reward (smoothed 0.5)", "kl (smoothed 0.5)"]
    assert rows[0] == ["run", "name", "step", "reward", "kl", *smooth]
    assert rows[1:] == [
        [str(first.pk), "'=1+1", "1", "1.0", "", "1.0", ""],
        [str(first.pk), "'=1+1", "2", "3.0", "", str(3.5 / 1.5), ""],
        [str(second.pk), "made", "1", "", "0.5", "", "0.5"],
    ]


def test_the_file_of_a_comparison_has_differences_first(client: Client, researcher: Any) -> None:
    first = with_metrics(make_run(researcher, config={**CONFIG, "seed": 1}), [{"reward": 1.0}])
    second = make_run(researcher, config={**CONFIG, "seed": 2})
    rows = read(client.get(reverse("runs:comparison-csv"), {"run": [first.pk, second.pk]}))
    assert rows == [
        ["kind", "name", f"made #{first.pk}", f"made #{second.pk}"],
        ["configuration", "seed", "1", "2"],
        ["last value", "Reward", "1.0", ""],
    ]


def test_a_comparison_begins_with_the_differences(client: Client, researcher: Any) -> None:
    runs = [with_metrics(make_run(researcher, config={**CONFIG, "seed": seed}), [{"reward": 1.0}]) for seed in (1, 2)]
    text = client.get(reverse("runs:compare"), {"run": [run.pk for run in runs]}).content.decode()
    assert text.index("Differences between") < text.index('id="curves"') < text.index("Last values")
    assert "Mean of seeds" in text
