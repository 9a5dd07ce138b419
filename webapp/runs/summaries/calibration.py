"""A run's calibration by step: charts of F1 and search rate, and the curves and numbers of each question set and tool.

Sets on which the model trains and others stand apart. Drawings have the newest evaluations and the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from training.evaluate.calibration.curves import Calibration, Curve
from training.evaluate.calibration.report import Cell, Evaluation
from training.evaluate.intervals import Interval
from webapp.runs.episodes.discussions import DASHES
from webapp.runs.models import Run
from webapp.runs.summaries.suite_charts import TOP, Chart, DrawnSeries, placed

SHOWN = 12
"""Most evaluations that are shown at first: the first one and the newest."""
DRAWN = 4
"""Most curves in one drawing: the first evaluation and the newest."""
TICK = 0.05
"""The ends of a scale of F1 are multiples of this."""
LISTED = 10
"""Most steps between the points of a curve that are listed as numbers."""


@dataclass(frozen=True)
class DrawnCurve:
    """The curve of one evaluation and that of its shuffled ranking, as SVG points."""

    label: str
    place: int
    dash: str
    path: str
    shuffled: str


@dataclass(frozen=True)
class CurveChart:
    """The curves of some evaluations over shares of the questions, F1 between `ends`; `points` are listed numbers."""

    title: str
    about: str
    ends: tuple[float, float]
    curves: Sequence[DrawnCurve]
    points: Sequence[tuple[float, Sequence[float | None]]]

    @property
    def baselines(self) -> list[tuple[int, str]]:
        """The lines of shuffled rankings, each once, with the place of the first curve that has it."""
        lines: dict[str, int] = {}
        for curve in self.curves:
            lines.setdefault(curve.shuffled, curve.place)
        return [(place, path) for path, place in lines.items()]


@dataclass(frozen=True)
class Line:
    """One evaluation of a question set with one tool."""

    label: str
    model: str
    cell: Cell


@dataclass(frozen=True)
class Panel:
    """One question set with one tool: all shown evaluations, and the drawings of their curves."""

    title: str
    lines: Sequence[Line]
    charts: Sequence[CurveChart]

    @property
    def scenarios(self) -> int:
        """The number of questions, which an estimate repeats where its own differs."""
        return self.newest.questions

    @property
    def newest(self) -> Cell:
        """The cell of the newest evaluation."""
        return self.lines[-1].cell

    @property
    def start(self) -> Cell | None:
        """The cell of the model that the run started from, if it was measured."""
        first = self.lines[0]
        return first.cell if first.label == START else None


@dataclass(frozen=True)
class Group:
    """The question sets of one distribution, with charts of F1 and search rate by step."""

    title: str
    charts: Sequence[Chart]
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Report:
    """All groups; `hidden` is the number of evaluations that are not shown."""

    groups: Sequence[Group]
    hidden: int
    few: bool


START = "start"
"""What the evaluation before the first step is called."""
Shown = Sequence[tuple[str, Evaluation]]


def evaluations(run: Run) -> list[Evaluation]:
    """Return the evaluations of a run by step, of a step that was measured twice the newest."""
    by_step = {data["step"]: data for data in run.evaluations("calibration")}
    return [Evaluation.from_dict(without_file(data)) for _, data in sorted(by_step.items())]


def without_file(data: dict[str, Any]) -> dict[str, Any]:
    """Return an event's data without the name of the file with the rows."""
    return {name: value for name, value in data.items() if name != "rows"}


def row_files(run: Run) -> dict[int, str]:
    """Return the files with the rows of a run's evaluations by step, as the storage names them."""
    return {data["step"]: data["rows"] for data in run.evaluations("calibration") if data.get("rows")}


def report(run: Run, *, whole: bool = False) -> Report | None:
    """Return the report of a run's evaluations, all of them or the first and the newest; None before the first."""
    every = evaluations(run)
    if not every:
        return None
    listed = every if whole else _ends(every, SHOWN)
    shown = [(START if each.step == 0 else str(each.step), each) for each in listed]
    groups = [_group(title, shown, inside) for title, inside in GROUPS if _keys(shown, inside)]
    few = any(cell.f1.few for each in listed for cell in each.cells)
    return Report(groups, len(every) - len(listed), few)


GROUPS = (("In distribution", True), ("Out of distribution", False))


def _ends(rows: Sequence[Any], count: int) -> list[Any]:
    """Return the first and the last of some rows, at most `count`."""
    return list(rows) if len(rows) <= count else [rows[0], *rows[1 - count :]]


def _keys(shown: Shown, inside: bool) -> list[tuple[str, str]]:
    """Return the question sets with their tools, in the order in which they were first measured."""
    cells = (cell for _, each in shown for cell in each.cells if cell.in_distribution == inside)
    return list(dict.fromkeys((cell.label, cell.tool) for cell in cells))


def _cell(evaluation: Evaluation, key: tuple[str, str]) -> Cell | None:
    return next((cell for cell in evaluation.cells if (cell.label, cell.tool) == key), None)


def _title(key: tuple[str, str]) -> str:
    label, tool = key
    return f"{label}, searching {tool}" if tool else f"{label}, without a search"


def _group(title: str, shown: Shown, inside: bool) -> Group:
    keys = _keys(shown, inside)
    seekers = [key for key in keys if key[1]]
    charts = [_by_step("F1", shown, keys)]
    if seekers:
        charts.append(_by_step("Search rate", shown, seekers))
    return Group(title, charts, [_panel(key, shown) for key in keys])


def _by_step(number: str, shown: Shown, keys: Sequence[tuple[str, str]]) -> Chart:
    """Return the chart of a number against steps, with a series for each question set and tool."""

    def interval(evaluation: Evaluation, key: tuple[str, str]) -> Interval | None:
        cell = _cell(evaluation, key)
        return None if cell is None else cell.f1 if number == "F1" else cell.search_rate

    rows = [[interval(each, key) for _, each in shown] for key in keys]
    values = [end for row in rows for each in row if each for end in (each.low, each.high)]
    ends = (0.0, 1.0) if number != "F1" else scale(values)
    series = [
        DrawnSeries(
            label=_title(key),
            place=place,
            dash=DASHES[place % len(DASHES)],
            marks=[placed(each.to_dict() if each else None, at, place, len(keys), ends) for at, each in enumerate(row)],
        )
        for place, (key, row) in enumerate(zip(keys, rows, strict=True))
    ]
    return Chart("Step", number, ends, [label for label, _ in shown], series, heading=f"{number} by step")


def scale(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of a scale of F1 that holds all values: multiples of `TICK` from 0 to 1, which differ."""
    ticks = [value / TICK for value in values]
    low, high = math.floor(round(min(ticks), 6)), math.ceil(round(max(ticks), 6))
    if low == high:
        low, high = max(0, low - 1), low + 1
    return round(max(low * TICK, 0.0), 2), round(min(high * TICK, 1.0), 2)


def _panel(key: tuple[str, str], shown: Shown) -> Panel:
    lines = [Line(label, each.model, cell) for label, each in shown if (cell := _cell(each, key))]
    drawn = _ends(lines, DRAWN)
    searches = [(line.label, line.cell.search_calibration) for line in drawn]
    answers = [(line.label, line.cell.answer_calibration) for line in drawn]
    charts = (
        [_curves("Search calibration", SEARCHED, [(label, each) for label, each in searches if each])] if key[1] else []
    )
    return Panel(_title(key), lines, [*charts, _curves("Answer calibration", ANSWERED, answers)])


SEARCHED = (
    "Mean F1 of the base model’s answers where the questions of highest P(search) are searched for, by their share"
)
ANSWERED = "Mean F1 of the answers, without a search, of which the model is surest, by their share"


def _curves(title: str, about: str, calibrations: Sequence[tuple[str, Calibration]]) -> CurveChart:
    ends = scale(value for _, each in calibrations for curve in (each.curve, each.shuffled) for value in curve.f1)
    drawn = [
        DrawnCurve(label, place, DASHES[place % len(DASHES)], _path(each.curve, ends), _path(each.shuffled, ends))
        for place, (label, each) in enumerate(calibrations)
    ]
    return CurveChart(title, about, ends, drawn, _points([each.curve for _, each in calibrations]))


def _path(curve: Curve, ends: tuple[float, float]) -> str:
    low, high = ends
    places = zip(curve.shares, curve.f1, strict=True)
    return " ".join(f"{100 * share:.4g},{TOP * (high - f1) / (high - low):.4g}" for share, f1 in places)


def _points(curves: Sequence[Curve]) -> list[tuple[float, list[float | None]]]:
    """Return the F1 of every curve at some shares of the first one; None where another curve has no such point."""
    shares = curves[0].shares
    count = min(LISTED, len(shares) - 1) or 1
    chosen = sorted({round(at * (len(shares) - 1) / count) for at in range(count + 1)})
    tables = [dict(zip(curve.shares, curve.f1, strict=True)) for curve in curves]
    return [(shares[at], [table.get(shares[at]) for table in tables]) for at in chosen]
