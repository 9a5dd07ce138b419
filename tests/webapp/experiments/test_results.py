"""Results and export, recomputed from the export's rows by other means."""

from __future__ import annotations

import csv
import json
from statistics import fmean, stdev
from typing import Any

import pytest
from scipy import stats

from tests.webapp.experiments import making
from training import tables
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.experiments import design, export, measures, participation, results, states
from webapp.experiments.models import Experiment, Participant
from webapp.experiments.states import Outcome

pytestmark = pytest.mark.django_db


def study(owner: User) -> Experiment:
    """Two arms with four participants each, whose answers and results are set."""
    made = making.experiment(owner, per_arm=4)
    making.arm(made, "a")
    making.arm(made, "b")
    making.question(made, "trust")
    making.question(made, "again", kind="choice", options=["yes", "no"], part="after")
    making.question(made, "note", kind="text", options=[], required=False)
    design.open_experiment(experiment=made)
    made = Experiment.objects.get(pk=made.pk)
    for number in range(8):
        participant = making.completed(made, trust=1 + number % 5, again="yes" if number % 3 else "no", note="=1+1")
        assert participant.group is not None
        seat = participant.group.match.seats.get(user=participant.user).seat
        values = {"returns": {str(seat): number / 8, str(1 - seat): 0.0}, "metrics": {"agreement": float(number % 2)}}
        Match.objects.filter(pk=participant.group.match_id).update(**values)
    return made


def rows_of(experiment: Experiment, user: User) -> list[dict[str, str]]:
    pieces = tables.written(export.columns(experiment), export.table(experiment, user))
    return list(csv.DictReader("".join(pieces).splitlines()))


def test_arms_and_differences_equal_a_recomputation_from_the_export(researcher: User) -> None:
    experiment = study(researcher)
    analysis = results.compute(experiment).to_dict()
    rows = [row for row in rows_of(experiment, researcher) if row["analysed"] == "1"]
    for name, column in (("return", "return"), ("trust", "answer_trust")):
        a, b = ([float(row[column]) for row in rows if row["arm"] == arm] for arm in ("a", "b"))
        for arm, values in (("a", a), ("b", b)):
            half = stats.t.ppf(0.975, 3) * stdev(values) / 2
            expected = (fmean(values), fmean(values) - half, fmean(values) + half, 4)
            got = analysis["measures"][name][arm]
            assert (got["mean"], got["low"], got["high"], got["n"]) == pytest.approx(expected)
        error = (stdev(a) ** 2 / 4 + stdev(b) ** 2 / 4) ** 0.5  # Welch's error, with the degrees of the smaller arm
        half = stats.t.ppf(0.975, 3) * error
        lead = fmean(b) - fmean(a)
        got = analysis["differences"]["b"][name]
        assert (got["mean"], got["low"], got["high"]) == pytest.approx((lead, lead - half, lead + half))
    assert [arm["groups"] for arm in analysis["arms"]] == [4, 4]
    yes = [row for row in rows if row["arm"] == "a" and row["answer_again"] == "yes"]
    assert analysis["measures"]["again=yes"]["a"]["mean"] == len(yes) / 4


def test_people_of_one_table_are_one_value(researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR, arms=1, per_arm=4)
    for low, high in ((0.0, 1.0), (0.25, 0.75)):
        first, second = making.come(experiment), making.come(experiment)
        first = participation.heartbeat(participant=first, visible=True)
        making.end_match(first)
        assert first.group is not None
        Match.objects.filter(pk=first.group.match_id).update(returns={"0": low, "1": high})
        for participant in (first, Participant.objects.get(pk=second.pk)):
            participation.finish(participant=participation.update_stage(participant=participant))
    analysis = results.compute(experiment)
    (measure, (estimate,)) = analysis.lines[0]
    assert estimate is not None
    assert (measure.name, analysis.people, analysis.groups) == ("return", [4], [2])
    interval = estimate.interval
    assert interval is not None
    unseen = 1 - 0.025**0.5  # the largest share of others that two equal tables are compatible with (Clopper-Pearson)
    expected = (2, 0.5, 0.5 - unseen * 0.5, 0.5 + unseen * 0.5)
    assert (interval.n, interval.mean, interval.low, interval.high) == pytest.approx(expected)


def test_one_table_has_the_interval_of_its_scale_or_none(researcher: User, client: Any) -> None:
    made = making.experiment(researcher, per_arm=4)
    for name in ("a", "b"):
        making.arm(made, name, game="tic_tac_toe")
    making.question(made, "age", kind="number", options=[])
    design.open_experiment(experiment=made)
    participant = making.completed(made, age=1)
    assert participant.group is not None
    seat = measures.seat_number(participant)
    Match.objects.filter(pk=participant.group.match_id).update(returns={str(seat): -1.0, str(1 - (seat or 0)): 1.0})
    analysis = results.compute(made).to_dict()
    (arm,) = [each["name"] for each in analysis["arms"] if each["groups"]]
    lost, age = (analysis["measures"][name][arm] for name in ("return", "age"))
    # No other table was seen, so their share is at most 0.975, and each of them at most 2 higher.
    assert (lost["mean"], lost["low"], lost["high"]) == pytest.approx((-1, -1, -1 + 0.975 * 2))
    assert (age["mean"], age["low"], age["high"], age["n"]) == (1.0, None, None, 1)
    client.force_login(researcher)
    shown = client.get(f"/experiments/{made.pk}/results/").content.decode()
    assert "[-1, 0.95]" in shown.replace("−", "-")
    assert "no interval: it needs at least two tables, n = 1" in shown
    assert "No difference is shown for “Result of the seat”, “How much age?”: an interval needs" in shown
    first, second = (1, 0) if arm == "b" else (0, 1)
    assert f"b has {first} complete, a has {second}." in shown
    assert 'class="forest"' not in shown


@pytest.mark.parametrize(
    "first, second, scale, expected",
    [
        ([5.0], [1.0, 3.0], (1.0, 5.0), (3.0, -4.0, 4.0)),  # a single table: all that the scale allows
        ([2.0], [1.0, 3.0], None, None),
        ([], [1.0, 3.0], (1.0, 5.0), None),
        # Without other values in two tables each, a share of 1 is above 0.025 ** 0.5, and one of 0 below 1 minus that.
        ([5.0, 5.0], [1.0, 1.0], (1.0, 5.0), (4.0, 4 * (0.025**0.5 - (1 - 0.025**0.5)), 4.0)),
        ([3.0, 5.0], [1.0, 3.0], (1.0, 5.0), (2.0, 2 - 12.7062 * 2**0.5, 2 + 12.7062 * 2**0.5)),  # t of 1 degree
        ([3.0, 5.0], [1.0, 3.0], None, (2.0, 2 - 12.7062 * 2**0.5, 2 + 12.7062 * 2**0.5)),
    ],
)
def test_a_difference_allows_for_its_scale(
    first: list[float],
    second: list[float],
    scale: tuple[float, float] | None,
    expected: tuple[float, float, float] | None,
) -> None:
    got = results.difference(first, second, scale)
    assert (got and (got.mean, got.low, got.high)) == (expected and pytest.approx(expected, rel=1e-5))


def test_broken_groups_and_incomplete_people_are_in_the_export_but_not_in_the_analysis(researcher: User) -> None:
    experiment = making.opened(researcher, arms=1, per_arm=2)
    making.completed(experiment)
    left = making.seated(experiment)
    states.end(states.locked(left), Outcome.LEFT)
    analysed = [row["analysed"] for row in rows_of(experiment, researcher)]
    assert analysed == ["1", "0"]
    assert measures.analysed(experiment).count() == 1


def test_formulas_are_escaped_and_ids_are_the_owners(researcher: User, admin: User) -> None:
    experiment = making.opened(researcher, arms=1, per_arm=2)
    making.come(experiment, "=HYPERLINK(1)")
    assert rows_of(experiment, researcher)[0]["external_id"] == "'=HYPERLINK(1)"
    assert rows_of(experiment, admin)[0]["external_id"] == ""
    (line,) = export.json_lines(experiment, researcher)
    assert json.loads(line)["external_id"] == "=HYPERLINK(1)"


def test_every_column_is_documented(researcher: User) -> None:
    from tests.conftest import ROOT

    text = (ROOT / "docs/experiments.md").read_text("utf-8")
    experiment = making.opened(researcher)
    names = [name for name in export.columns(experiment) if not name.startswith(("time_", "answer_"))]
    assert [name for name in names if f"`{name}`" not in text] == []
    assert [name for name in export.TIMES if f"`{name}`" not in text] == []


def test_both_formats_have_the_same_columns(researcher: User) -> None:
    experiment = making.opened(researcher, arms=1, per_arm=2)
    making.completed(experiment)
    (row,) = export.rows(experiment, researcher)
    assert list(row) == export.columns(experiment)


def test_no_results_without_participants(researcher: User, client: Any) -> None:
    analysis = results.compute(making.opened(researcher))
    assert (analysis.lines, analysis.groups) == ([], [0, 0])
