"""What is asked of a model and of the base model, and the rows and cells that come of it, by hand."""

import asyncio
import json
import math

import pytest

from tests.evaluate.calibration.knowing import QUESTIONS, SCENARIOS, agent, library
from training import config as configs
from training.errors import BadInput, OutsideError
from training.evaluate.calibration import calibrator
from training.evaluate.calibration.calibrator import Calibrator
from training.evaluate.calibration.report import Cell, Evaluation, Row, cell_of
from training.rundir import RunDir


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes the calibrator of one set, with a search in memory."""
    monkeypatch.setattr(calibrator, "search_tool", lambda section, starts: library)
    (tmp_path / "animals.jsonl").write_text("".join(json.dumps(each.to_dict()) + "\n" for each in SCENARIOS))

    def made(tools=("animals",), game=None, **section):
        sets = [{"label": "Animals", "path": "animals.jsonl", "tools": list(tools), **section.pop("set", {})}]
        config = configs.parse({"calibration": {"sets": sets, **section}, "game": game or {"name": "qa_society"}})
        return Calibrator(config, RunDir(tmp_path))

    return made


def measured(calibrator, *agents):
    """The evaluations and rows of agents, of which the first is the base model."""

    async def all_of_them():
        return [await calibrator.evaluate(each, step, is_base=step == 0) for step, each in enumerate(agents)]

    return asyncio.run(all_of_them())


def test_rows_have_each_way_of_asking(make):
    base = agent("base", known=["paws"], search={"paws": 1 - 1e-9, "setts": 1e-9, "webs": 0.5})
    [(evaluation, rows)] = measured(make(), base)
    assert (evaluation.step, evaluation.model) == (0, "base")
    by_name = {row.question.removesuffix("-animals"): row for row in rows}
    assert list(by_name) == list(QUESTIONS)
    assert {name: (row.searched, row.f1) for name, row in by_name.items() if name != "webs"} == {
        "paws": (1, 1),
        "setts": (0, 0),
    }
    for name, row in by_name.items():
        assert (row.unsearched_f1, row.base_unsearched_f1, row.base_searched_f1) == (name == "paws", name == "paws", 1)
    webs = by_name["webs"]
    assert (webs.search, webs.answer, webs.hedge) == pytest.approx((0.5, 1 / 3, 1 / 6))
    assert webs.legal == pytest.approx(0.5), "half of the replies begin with no action"
    assert (webs.search_logit, webs.answer_logit) == pytest.approx((0, math.log(2)))
    assert [by_name[name].text for name in ("paws", "setts")] == ["otter", "nobody"]


def test_the_answers_of_the_search_curve_are_the_base_models(make):
    base = agent("base", known=["paws"])
    better = agent("better", known=["setts"], search={"webs": 0.9, "setts": 0.2, "paws": 0.1})
    (_, _), (evaluation, rows) = measured(make(), base, better)
    [cell] = evaluation.cells
    # searched for: webs, setts, paws; the base model knows paws by itself
    assert cell.search_calibration.curve.f1 == pytest.approx((1 / 3, 2 / 3, 1, 1))
    # equally sure of all three answers, of which it knows one
    assert cell.answer_calibration.curve.f1 == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert {row.question: row.unsearched_f1 for row in rows} == {
        "paws-animals": 0,
        "setts-animals": 1,
        "webs-animals": 0,
    }


def test_the_base_model_alone_is_made_to_search(make):
    base, other = agent("base"), agent("other")
    measured(make(), base, other)
    assert sum("RETRIEVAL" in prompt for prompt in base.engine.prompts) == 3
    assert not any("RETRIEVAL" in prompt for prompt in other.engine.prompts)


def test_a_base_model_that_is_not_evaluated_is_asked_both_ways(make):
    asking, base = make(), agent("base", known=["paws"])
    asyncio.run(asking.ask_base(base))
    assert asking.has_base
    assert len(base.engine.prompts) == 6
    evaluation, rows = asyncio.run(asking.evaluate(agent("model"), 4))
    assert [(row.base_searched_f1, row.base_unsearched_f1) for row in rows] == [(1, 1), (1, 0), (1, 0)]
    assert evaluation.step == 4
    again = make()
    again.restore(rows)
    assert asyncio.run(again.evaluate(agent("model"), 4)) == (evaluation, rows)


def test_every_tool_is_measured_by_itself_and_an_agent_without_one_has_no_search(make):
    seeking = agent("base", search=dict.fromkeys(QUESTIONS, 1 - 1e-9))
    [(evaluation, rows)] = measured(make(tools=["animals", "stones", ""]), seeking)
    animals, stones, alone = evaluation.cells
    assert [(cell.tool, cell.f1.mean, cell.search_rate.mean) for cell in evaluation.cells] == [
        ("animals", 1, 1),
        ("stones", 0, 1),
        ("", 0, 0),
    ]
    assert (alone.search, alone.search_calibration) == (None, None)
    assert stones.search_calibration.gain.mean == 0
    assert animals.worth.mean == 1
    last = rows[-1]
    assert (last.tool, last.search, last.base_searched_f1, last.base_unsearched_f1) == ("", None, None, None)


def test_a_question_that_failed_is_left_out_and_counted(make):
    [(evaluation, rows)] = measured(make(), agent("base", known=["paws"], broken=["setts"]))
    assert [row.question for row in rows] == ["paws-animals", "webs-animals"]
    assert (evaluation.cells[0].questions, evaluation.cells[0].errors) == (2, 1)
    with pytest.raises(OutsideError, match="no question of Animals was measured: out of memory"):
        measured(make(), agent("base", broken=list(QUESTIONS)))


def test_draws_are_averaged(make):
    [(_, rows)] = measured(make(draws=40, set={"limit": 1}), agent("base", search={"paws": 0.5}))
    [row] = rows
    assert row.question == "paws-animals"
    assert 0.2 < row.searched < 0.8
    assert row.f1 == row.searched, "it knows what it has searched for, and nothing else"


def test_whole_replies_may_be_refused(make):
    class Rambling(type(agent().engine)):
        def write(self, request):
            _, heard = self.heard(request.prompt)
            return super().write(request) if heard.endswith(">") else [*b"hmm"]

    base = agent("base", known=["paws"])
    object.__setattr__(base, "engine", Rambling(known=["paws"]))
    [(evaluation, rows)] = measured(make(limited=False), base)
    assert evaluation.cells[0].f1.mean == 0, "no reply has a tag, so nothing is answered"
    assert rows[0].unsearched_f1 == 1


def row(question, f1, unsearched, **values):
    numbers = {"search": 0.5, "answer": 0.4, "hedge": 0.1, "legal": 1.0, "searched": 1.0, "hedged": 0.0, "text": ""}
    base = {"base_searched_f1": f1, "base_unsearched_f1": unsearched}
    facts = {"label": "Set", "tool": "wiki", "question": question, "f1": f1, "unsearched_f1": unsearched}
    return Row(**{**numbers, **base, **facts, **values})


@pytest.mark.parametrize(
    "gains, counts",
    [
        ([0.5, 0.6] * 10, True),
        ([0.04] * 20, False),  # certain, but too little
        ([1.0, -0.9] * 10, False),  # 0.05 on average, with an interval that reaches below 0
    ],
)
def test_a_set_counts_where_playing_beats_never_searching_clearly(gains, counts):
    rows = [row(str(at), max(gain, 0.0), max(-gain, 0.0)) for at, gain in enumerate(gains)]
    cell = cell_of(rows, 2, in_distribution=False)
    assert cell.worth.mean == pytest.approx(sum(gains) / len(gains))
    assert (cell.counts, cell.errors, cell.in_distribution) == (counts, 2, False)


def test_near_certain_questions_keep_their_order_and_certain_ones_are_finite():
    first, second = (row("q", 0, 0, search=1 - tail, answer=tail, hedge=0.0) for tail in (1e-18, 1e-17))
    assert first.search == second.search == 1
    assert first.search_logit > second.search_logit > 30
    assert math.isfinite(first.answer_logit)


def test_intervals_of_rates_are_those_of_proportions():
    rows = [row(str(at), 0.0, 0.0, searched=float(at < 3)) for at in range(10)]
    cell = cell_of(rows, 0, in_distribution=True)
    # Clopper-Pearson for 3 of 10
    assert (cell.search_rate.low, cell.search_rate.high) == pytest.approx((0.0667, 0.6525), abs=1e-4)
    assert Cell.from_dict(cell.to_dict()) == cell


def test_an_evaluation_is_read_back(make):
    [(evaluation, rows)] = measured(make(tools=["animals", ""]), agent("base"))
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation
    assert [Row.from_dict(row.to_dict()) for row in rows] == rows


@pytest.mark.parametrize(
    "section, where, why",
    [
        ({"set": {"path": "gone.jsonl"}}, "calibration.sets.0.path", "no such file"),
        ({"set": {"label": "Animals", "tools": ["wiki", "wiki"]}}, "calibration.sets", "asked twice"),
        ({"set": {"tools": ["no corpus"]}}, "calibration.sets.0.path", "paws, settings.tools.0"),
    ],
)
def test_sets_that_cannot_be_asked_are_refused_at_their_field(make, section, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        make(**section)
    assert caught.value.where == where


def test_the_runs_settings_of_the_game_hold_but_for_who_can_ask(make):
    game = {"name": "qa_society", "settings": {"max_chars": 44, "asking": True}}
    [evaluation_set] = make(game=game).evaluation_sets
    assert {start.settings["max_chars"] for start in evaluation_set.starts} == {44}
    assert {(start.settings["asking"], *start.settings["tools"], *start.seats) for start in evaluation_set.starts} == {
        (False, "animals", "Ann")
    }
    assert all(start.seed for start in evaluation_set.starts)
