"""The page of a run's calibration: what is drawn by hand, groups, empty states, files of rows, and the API."""

import io
import json
import zipfile
from html.parser import HTMLParser

import pytest
from django.urls import reverse

from tests.webapp.runs.making import CONFIG, calibration_rows, make_calibration, make_run
from training.evaluate.calibration.report import Evaluation
from webapp.accounts.services import create_key
from webapp.runs.summaries import calibration as summaries

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(researcher):
    return make_run(researcher, game="qa_society", method="csp")


@pytest.fixture
def page(researcher, client_of):
    client = client_of(researcher)

    def get(run, query=""):
        response = client.get(reverse("runs:calibration", args=[run.pk]) + query)
        assert response.status_code == 200
        return response.content.decode()

    return get


def measure(run, steps=(0, 1, 2, 3), **fields):
    """PopQA with two tools in distribution, and NQ without a tool out of it; from step to step fewer searches."""
    for step in steps:
        wiki = calibration_rows(searches=0.9 - 0.2 * min(step, 4), knows=0.5)
        stones = calibration_rows(tool="stones", searches=0.5)
        nq = calibration_rows("NQ", "", questions=20)
        made = make_calibration(run, step, (wiki, True), (stones, True), (nq, False), **fields)
    return made


class Text(HTMLParser):
    """The text of a page, and its tables as rows of cells by their region's name."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tables, self._region, self._cell = "", {}, None, False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if named.get("role") == "region":
            self._region = self.tables.setdefault(named["aria-label"], [])
        if tag == "tr" and self._region is not None:
            self._region.append([])
        if tag in ("td", "th") and self._region:
            self._region[-1].append("")
            self._cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = False
        if tag == "table":
            self._region = None

    def handle_data(self, data):
        self.text += data
        if self._cell and self._region:
            self._region[-1][-1] += data


def mean(cell):
    """The number before the interval."""
    return float(cell.split()[0])


def test_every_set_and_tool_has_its_numbers_by_step_in_its_group(run, page):
    measure(run)
    shown = Text(page(run))
    inside, outside = shown.text.split("Out of distribution")
    assert "PopQA, searching wiki" in inside
    assert "PopQA, searching stones" in inside
    assert "NQ, without a search" in outside
    assert "NQ" not in inside
    heads, *rows = shown.tables["F1 and actions, PopQA, searching wiki"]
    assert heads[:5] == ["Step", "F1", "F1 without searches", "Difference", "Search rate"]
    assert [row[0] for row in rows] == ["start", "1", "2", "3"]
    # of 40 questions 20 are known, and a search finds the other 20 and misleads on those that are known: searching for
    # the last 36, 28, 20 and 12 questions leaves 24, 32, 40 and 32 right answers
    assert [mean(row[1]) for row in rows] == [0.6, 0.8, 1, 0.8]
    assert [mean(row[4]) for row in rows] == [0.9, 0.7, 0.5, 0.3]
    _, *areas = shown.tables["Areas, PopQA, searching wiki"]
    # the first 20 searches gain 1 each, the last 20 lose 1: the area under a tent from 0.5 over 1 is 0.75
    assert [mean(row[1]) for row in areas] == [0.75] * 4
    assert len(shown.tables["Areas, NQ, without a search"][0]) == len(heads) - 3


def test_curves_are_drawn_with_their_baseline_between_named_ends(run):
    measure(run)
    [inside, _] = summaries.report(run).groups
    search, answer = inside.panels[0].charts
    assert search.ends == (0.5, 1.0)
    first = [tuple(map(float, point.split(","))) for point in search.curves[0].path.split()]
    assert (first[0], first[20], first[-1]) == ((0, 100), (50, 0), (100, 100))
    assert search.baselines == [(0, "0,100 100,100")], "no and every search are right on half: one line for all models"
    assert [curve.label for curve in search.curves] == ["start", "1", "2", "3"]
    assert answer.ends == (0.5, 1.0)
    assert [share for share, _ in search.points] == pytest.approx([at / 10 for at in range(11)])
    assert search.points[5][1] == [1.0] * 4


def test_the_charts_by_step_have_a_series_for_each_set_and_tool(run):
    measure(run)
    inside, outside = summaries.report(run).groups
    f1, searched = inside.charts
    assert ([each.label for each in f1.series], list(f1.points)) == (
        ["PopQA, searching wiki", "PopQA, searching stones"],
        ["start", "1", "2", "3"],
    )
    assert [mark.estimate["mean"] for mark in searched.series[0].marks] == pytest.approx([0.9, 0.7, 0.5, 0.3])
    assert searched.ends == (0, 1)
    assert [chart.number for chart in outside.charts] == ["F1"], "nobody can search there"


def test_the_rule_of_the_start_is_stated(run, page):
    # searching for the last half gains half of all answers
    make_calibration(run, 0, (calibration_rows(searches=0.5), True), (calibration_rows("Known", knows=1.0), True))
    shown = " ".join(Text(page(run)).text.split())
    assert "The prompted model gains 0.50 [0.34, 0.66] F1 over never searching: with this tool the set counts" in shown
    assert "with this tool the set does not count. A set counts from 0.05 on" in shown
    later = make_run(run.owner, game="qa_society")
    make_calibration(later, 2, (calibration_rows(), True))
    assert "prompted model gains" not in page(later)


def test_scales_of_f1_are_round_and_never_flat():
    assert summaries.scale([0.31, 0.48]) == (0.3, 0.5)
    assert summaries.scale([0.3, 0.3]) == (0.25, 0.35)
    assert summaries.scale([0.0]) == (0.0, 0.05)
    assert summaries.scale([1.0]) == (0.95, 1.0)
    assert summaries.scale([0.15, 0.35]) == (0.15, 0.35)


def test_many_evaluations_show_the_first_and_the_newest(run, page):
    measure(run, range(15), saved=False)
    shown = page(run)
    rows = Text(shown).tables["F1 and actions, NQ, without a search"]
    assert [row[0] for row in rows[1:]] == ["start", *map(str, range(4, 15))]
    assert "Show 3 earlier evaluations" in shown
    assert len(Text(page(run, "?all=1")).tables["F1 and actions, NQ, without a search"]) == 16
    [curves, _] = summaries.report(run).groups[0].panels[0].charts
    assert [curve.label for curve in curves.curves] == ["start", "12", "13", "14"]


def test_weights_that_are_gone_are_left_out_and_a_step_counts_once(run):
    measure(run, (0, 1, 2))
    measure(run, (1, 2), attempt=2, started=1)
    assert [each.step for each in summaries.evaluations(run)] == [0, 1, 2]
    assert summaries.row_files(run)[2].endswith("0002/calibration/step_000002.jsonl")


def test_the_empty_page_names_the_next_step(researcher, page):
    bare = make_run(researcher, game="qa_society", config={**CONFIG})
    shown = page(bare)
    assert "This run has no question sets" in shown
    assert f"clone={bare.pk}&amp;section=calibration#section-calibration" in shown
    section = {**CONFIG["calibration"], "sets": [{"label": "PopQA"}]}
    asked = {"game": "negotiation", "config": {**CONFIG, "calibration": section}}
    assert "the run ended before the first one" in page(make_run(researcher, **asked))
    assert "the starting model is measured before the first step" in page(
        make_run(researcher, state="running", **asked)
    )
    assert "no question sets" in page(
        make_run(researcher, config={k: v for k, v in CONFIG.items() if k != "calibration"})
    )


def test_the_tab_is_there_for_societies_and_for_runs_with_sets(researcher, client_of):
    client = client_of(researcher)

    def tab(**fields):
        run = make_run(researcher, **fields)
        shown = client.get(reverse("runs:configuration", args=[run.pk])).content.decode()
        return reverse("runs:calibration", args=[run.pk]) in shown

    assert tab(game="qa_society")
    assert not tab(game="negotiation")
    assert not tab(game="qa_society", kind="eval")
    sets = {**CONFIG["calibration"], "sets": [{"label": "PopQA"}]}
    assert tab(game="negotiation", config={**CONFIG, "calibration": sets})


def test_labels_are_text(run, page):
    make_calibration(run, 0, (calibration_rows("<b>Set</b>"), True))
    assert "<b>Set</b>" not in page(run)
    assert "&lt;b&gt;Set&lt;/b&gt;, searching wiki" in page(run)


def test_the_rows_are_a_file_for_each_step(run, researcher, client_of):
    client = client_of(researcher)
    address = reverse("runs:calibration-rows", args=[run.pk])
    assert client.get(address).status_code == 404
    measure(run, (0, 1))
    with zipfile.ZipFile(io.BytesIO(b"".join(client.get(address).streaming_content))) as archive:
        names = archive.namelist()
        lines = archive.read(names[1]).decode().splitlines()
    assert names == [f"attempts/0001/calibration/step_00000{step}.jsonl" for step in (0, 1)]
    assert len(lines) == 40 + 40 + 20
    assert json.loads(lines[0])["question"] == "q0-wiki"


def test_players_see_nothing_of_it(run, player, client_of):
    client = client_of(player)
    for name in ("runs:calibration", "runs:calibration-rows"):
        assert client.get(reverse(name, args=[run.pk])).status_code in (403, 404)


def test_the_api_has_the_evaluations_by_step(run, researcher, client):
    measure(run, (0, 1))
    _, token = create_key(user=researcher, name="test")
    answer = client.get(f"/api/v1/runs/{run.pk}/calibration", headers={"Authorization": f"Bearer {token}"})
    assert [Evaluation.from_dict(each) for each in answer.json()] == summaries.evaluations(run)
