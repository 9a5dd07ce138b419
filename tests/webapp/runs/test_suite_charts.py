"""Suites beside each other: what is one series, which numbers stand where, and the pages that show them."""

import pytest
from django.urls import reverse

from tests.webapp.runs.making import estimate, make_checkpoint, make_run, suite_row
from webapp.runs.summaries import suite_charts

POINTS = {"1 × 3": [["Rooms", "1 × 3"]], "2 × 2": [["Rooms", "2 × 2"], ["Tasks", "4"]], "ten": [["Tasks", "10"]]}


def result(title, *rates, **row):
    """A suite with a task for each rate of games won."""
    rows = [
        suite_row(
            task=place, title=name, seat=None, side=["crewmate"], partner="scripted", charts=charts, step=place + 1,
            won=estimate(rate, rate - 0.1, rate + 0.1), normalised=None, **row,
        )
        for place, ((name, charts), rate) in enumerate(zip(POINTS.items(), rates, strict=True))
    ]  # fmt: skip
    return {"rows": rows, "conditions": {"model": {"title": title}, "intervals": "95 %"}}


@pytest.fixture
def suite(researcher):
    """A suite of a checkpoint of a run with this configuration."""

    def make(title, *rates, seed=None, variant="RL", **fields):
        if seed is not None:
            trained = make_run(researcher, config={"seed": seed, "name": f"{seed}", "method": {"variant": variant}})
            fields["start_checkpoint"] = make_checkpoint(trained)
        facts = {"kind": "suite", "state": "succeeded", **fields}
        return make_run(researcher, result=result(title, *rates), **facts)

    return make


@pytest.mark.django_db
def test_a_chart_has_the_points_that_name_it(suite):
    [rooms, tasks] = suite_charts.side_by_side([suite("one", 0.2, 0.5, 0.3)]).charts
    assert (rooms.title, rooms.number, rooms.points, rooms.width) == ("Rooms", "Games won", ["1 × 3", "2 × 2"], 200)
    assert tasks.points == ["4", "10"], "by size, not by letters"
    [series] = rooms.series
    # by hand: one series stands in the middle of each point's width of 100; the height is 100 (1 - rate)
    assert series.path == "50,80 150,50"
    assert [(mark.low, mark.high) for mark in series.marks] == [(90.0, 70.0), (60.0, 40.0)]
    assert [(point, cell["mean"]) for point, [cell] in tasks.table] == [("4", 0.5), ("10", 0.3)]


@pytest.mark.django_db
def test_seeds_of_one_training_are_one_series_with_the_least_and_the_largest(suite):
    runs = [suite(f"seed {seed}", rate, 0.5, 0.5, seed=seed) for seed, rate in enumerate((0.2, 0.6, 0.4))]
    other = suite("other", 0.1, 0.1, 0.1, seed=0, variant="L")
    charts = suite_charts.side_by_side([*runs, other])
    assert [model.label for model in charts.series] == ["seed 0 and 2 more seeds", "other"]
    first = charts.charts[0].series[0].marks[0]
    assert first.estimate == {"mean": pytest.approx(0.4), "low": 0.2, "high": 0.6}
    assert (charts.charts[0].series[0].path, charts.seeds) == ("37.5,60 137.5,50", True)
    assert charts.charts[0].series[1].marks[0].x == 62.5, "two series stand beside each other"
    assert charts.tasks[0][:2] == ("1 × 3 against mcts:100, crewmate", "Games won")


@pytest.mark.django_db
def test_two_suites_of_one_checkpoint_are_no_seeds(suite):
    """One checkpoint against two opponents: the mean of both is no number of the model."""
    first = suite("crew", 0.2, 0.5, 0.5, seed=0)
    second = suite("crew", 0.6, 0.5, 0.5, start_checkpoint=first.start_checkpoint)
    for row in second.result["rows"]:
        row["opponent"] = "another imposter"
    charts = suite_charts.side_by_side([first, second])
    assert [model.label for model in charts.series] == [f"crew, #{first.pk}", f"crew, #{second.pk}"]
    assert not charts.seeds
    title, _, cells = charts.tasks[0]
    assert [cell["mean"] for cell in cells] == [0.2, 0.6]
    assert title == "1 × 3 against opponents of their own, crewmate"


@pytest.mark.django_db
@pytest.mark.parametrize("start, series", [("variant", [1, 1]), ("seed", [2])])
def test_trainings_that_began_from_other_weights_are_other_models(suite, researcher, start, series):
    runs = [suite(f"seed {seed}", 0.2, 0.2, 0.2, seed=seed) for seed in (0, 1)]
    for place, run in enumerate(runs):
        cold_start = make_run(researcher, kind="sft", config={start: place})
        run.start_checkpoint.run.start_checkpoint = make_checkpoint(cold_start)
    assert [len(model.runs) for model in suite_charts.side_by_side(runs).series] == series


@pytest.mark.django_db
def test_models_without_a_training_run_stand_alone(suite):
    runs = [suite("base", 0.2, 0.2, 0.2), suite("base", 0.2, 0.2, 0.2)]
    assert [len(model.runs) for model in suite_charts.side_by_side(runs).series] == [1, 1]


@pytest.mark.django_db
def test_a_number_that_only_some_have_is_missing_for_the_others(suite, researcher):
    less = suite("less", 0.3, 0.3, 0.3)
    less.result["rows"][0]["won"] = less.result["rows"][0]["raw"] = None
    less.result["rows"].pop()
    charts = suite_charts.side_by_side([suite("full", 0.5, 0.5, 0.5), less])
    assert charts.charts[0].number == "Games won"
    assert [mark and mark.estimate["mean"] for mark in charts.charts[0].series[1].marks] == [None, 0.3]
    assert [cells[1] for _, _, cells in charts.tasks][2] is None
    assert suite_charts.side_by_side([make_run(researcher)]) is None
    assert suite_charts.side_by_side([make_run(researcher, kind="suite")]) is None


@pytest.mark.django_db
def test_the_comparison_shows_suites_with_their_tables(suite, researcher, client_of):
    runs = [suite("RL step 5", 0.2, 0.5, 0.3), suite("<b>L</b>", 0.1, 0.4, 0.2)]
    client = client_of(researcher)
    page = client.get(reverse("runs:compare"), {"run": [run.pk for run in runs]}).content.decode()
    assert page.count('<section class="suite-chart"') == 2
    assert "0.50 <small" in page
    assert "These runs wrote no metrics" not in page, "suites have none"
    assert "&lt;b&gt;L" in page
    assert "<b>L" not in page
    other = make_run(researcher)
    page = client.get(reverse("runs:compare"), {"run": [runs[0].pk, other.pk]}).content.decode()
    assert "<h2>Evaluation suites</h2>" in page
    page = client.get(reverse("runs:compare"), {"run": [other.pk, make_run(researcher).pk]}).content.decode()
    assert "<h2>Evaluation suites</h2>" not in page


@pytest.mark.django_db
def test_more_suites_need_no_more_queries(suite, researcher, client_of, django_assert_max_num_queries):
    runs = [suite(f"seed {seed}", 0.2, 0.5, 0.3, seed=seed) for seed in range(12)]
    for run in runs:
        trained = run.start_checkpoint.run
        trained.start_checkpoint = make_checkpoint(make_run(researcher, kind="sft"))
        trained.save()
    client = client_of(researcher)
    with django_assert_max_num_queries(8):
        assert client.get(reverse("runs:compare"), {"run": [run.pk for run in runs]}).status_code == 200


@pytest.mark.django_db
def test_a_suite_has_its_charts_and_offers_others_with_its_tasks(suite, researcher, client_of):
    def tasks(opponent, rooms=2):
        game = {"game": "among_us", "settings": {"width": rooms}, "side": ["crewmate"], "opponent": opponent}
        return {"suite": {"tasks": [game]}}

    run = suite("one", 0.2, 0.5, 0.3, config=tasks("scripted"))
    alike = suite("two", 0.1, 0.1, 0.1, name="alike", config=tasks("random"))
    suite("three", 0.1, 0.1, 0.1, name="in other rooms", config=tasks("scripted", rooms=3))
    page = client_of(researcher).get(reverse("runs:evaluation", args=[run.pk])).content.decode()
    assert page.count('<section class="suite-chart"') == 2
    assert '?step=1">crewmate<span class="unseen">: games of 1 × 3</span></a>' in page
    assert "beside scripted" in page
    assert f'<input type="checkbox" name="run" value="{alike.pk}"> alike' in page
    assert "in other rooms" not in page


@pytest.mark.django_db
def test_a_run_shows_the_suites_of_its_checkpoints(suite, researcher, client_of):
    run, client = make_run(researcher, game="among_us"), client_of(researcher)
    address = reverse("runs:by-role", args=[run.pk])
    assert "it has none yet" in client.get(address).content.decode()
    first, second = make_checkpoint(run, step=5), make_checkpoint(run, step=10)
    assert reverse("runs:suite", args=[second.pk]) in client.get(address).content.decode()
    measured = [suite("early", 0.2, 0.2, 0.2, start_checkpoint=first), suite("late", 0.3, 0.3, 0.3)]
    measured[1].start_checkpoint = second
    measured[1].save()
    suite("another run's", 0.9, 0.9, 0.9, seed=3)
    page = client.get(address).content.decode()
    assert page.count('<section class="suite-chart"') == 2
    assert f"?run={measured[0].pk}&amp;run={measured[1].pk}" in page
    assert "another run" not in page
