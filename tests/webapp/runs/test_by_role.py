"""A run's page by role: means and intervals by hand, iterations from stored games, empty states, what is not shown."""

import pytest
from django.urls import reverse

from tests.webapp.runs.making import in_turns, make_game, make_run
from tests.webapp.runs.making import make_summary as stored
from training.config import RunConfig
from training.evaluate.iterations import of_games
from training.games import REGISTRY
from webapp.runs.models import Metric
from webapp.runs.summaries import by_role as summaries

PHASES = [
    {"name": "imposter", "steps": 2, "opponents": [{"source": "start", "learner": ["imposter"]}]},
    {"name": "crew", "steps": 2, "opponents": [{"source": "phase imposter", "learner": ["crewmate"]}]},
]


def effect(mean, speaker="imposter", listener="crewmate", n=1):
    return {"speaker": speaker, "listener": listener, "n": n, "mean": mean}


@pytest.fixture
def run(researcher):
    return make_run(researcher, game="among_us", method="listen_speak")


@pytest.fixture
def page(researcher, client_of):
    client = client_of(researcher)

    def get(run):
        response = client.get(reverse("runs:by-role", args=[run.pk]))
        assert response.status_code == 200
        return response

    return get


def text(response):
    return response.content.decode()


def test_games_of_deduction_have_roles_and_others_have_none():
    assert {name for name in REGISTRY if summaries.has_roles(name)} == {"among_us", "werewolf"}
    assert not summaries.has_roles("none")


@pytest.mark.django_db
def test_the_mean_is_over_games_and_its_interval_student_s(run):
    """Games with means -.1, -.3 and -.2: the mean is -.2, its standard error .1 / sqrt(3), and t(2) = 4.303."""
    stored(run, 1, 0, message_effects=[effect(-0.1, n=4), effect(0.5, "crewmate", "itself")])
    stored(run, 1, 1, message_effects=[effect(-0.3)])
    stored(run, 2, 0, message_effects=[effect(-0.2)])
    stored(run, 2, 1, message_effects=[])
    stored(run, 2, 2)  # of an earlier release
    persuasion, doubt = summaries.persuasion(run)
    assert (doubt.speaker, doubt.listener, doubt.messages, doubt.change.n) == ("imposter", "crewmate", 6, 3)
    assert (doubt.metric, persuasion.metric) == ("belief_change/imposter", "belief_change/crewmate")
    assert doubt.change.mean == pytest.approx(-0.2)
    assert doubt.change.high == pytest.approx(-0.2 + 4.303 * 0.1 / 3**0.5, abs=1e-4)
    assert doubt.verdict == "no change shown"
    assert (persuasion.listener, persuasion.change.mean) == ("itself", 0.5)


@pytest.mark.django_db
def test_games_of_one_start_are_one_value(run):
    """Starts with means -.1 and (-.2 - .4) / 2: the mean is -.2, its standard error .1, and t(1) = 12.706."""
    for number, (seed, mean) in enumerate(((5, -0.1), (6, -0.2), (6, -0.4))):
        stored(run, 1, number, seed=seed, message_effects=[effect(mean)])
    [row] = summaries.persuasion(run)
    assert (row.change.n, row.messages, row.change.mean) == (2, 3, pytest.approx(-0.2))
    assert row.change.low == pytest.approx(-0.2 - 1.2706, abs=1e-4)


@pytest.mark.django_db
def test_only_the_ends_of_a_long_phase_are_read(researcher):
    steps = 3 * summaries.EDGE
    run = in_turns(researcher, [{**PHASES[0], "steps": steps}, PHASES[1]])
    for step in range(1, steps + 3):
        learner = "imposter" if step <= steps else "crewmate"
        facts = {"policies": ["nobody", "learner", "nobody"]} if step == steps // 2 else {}
        game = make_game(run, step, 0, crew_won=step % 3 == 0, learner=learner)
        game.summary |= facts
        game.save()
    every = [(row.step, row.number, row.summary) for row in run.episodes.order_by("step")]
    exact = of_games(RunConfig.from_dict(run.config), every)
    assert len(exact) == 3
    iterations = [mark.iteration for mark in summaries.exploitability(run).marks]
    assert iterations == [entry for entry in exact if entry.opponent != "nobody"]
    assert [entry.step for entry in iterations] == [steps, steps + 2]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "means, verdict", [((0.2, 0.3), "no change shown"), ((0.2, 0.21), "towards the truth"),
                       ((-0.2, -0.21), "away from the truth")]
)  # fmt: skip
def test_a_verdict_is_that_of_the_interval(run, means, verdict):
    # t(1) = 12.71: half the difference of two values times 12.71 on either side of their mean
    for number, mean in enumerate(means):
        stored(run, 1, number, message_effects=[effect(mean)])
    assert [row.verdict for row in summaries.persuasion(run)] == [verdict]


@pytest.mark.django_db
def test_the_page_has_a_row_and_a_curve_for_each_role(run, page):
    stored(run, 1, 0, message_effects=[effect(-0.125), effect(0.25, "crewmate"), effect(0.5, "crewmate", "itself")])
    Metric.objects.create(run=run, step=1, fence=1, at="2026-01-01T00:00:00Z", values={"reward": 1.0})
    response = page(run)
    shown = text(response)
    assert "-0.125" in shown
    assert "the speaker itself" in shown
    assert "In some rows n is fewer than 30" in shown
    [group] = response.context["curves"]["groups"]
    assert [metric["name"] for metric in group["metrics"]] == ["belief_change/crewmate", "belief_change/imposter"]
    assert response.context["curves"]["fixed"]
    assert reverse("runs:by-role", args=[run.pk]) in shown, "its tab"


@pytest.mark.django_db
def test_iterations_have_both_ends_of_every_phase(researcher, page):
    run = in_turns(researcher, PHASES)
    for step, learner, wins in ((1, "imposter", (1, 1)), (2, "imposter", (0, 1)), (3, "crewmate", (0, 0))):
        for number, won in enumerate(wins):
            make_game(run, step, 10 * number, crew_won=bool(won), learner=learner)
    stored(run, 3, 7)  # of an earlier release: nobody knows who played
    first, second = summaries.exploitability(run).marks
    assert (first.iteration.phase, first.side, first.iteration.opponent) == ("imposter", "imposter", "start")
    assert (first.begin[1], first.end[1], first.change) == (0.0, 50.0, -0.5), "at the top all is won"
    assert (first.iteration.complete, second.iteration.complete) == (True, False)
    assert (first.x, second.x) == ((30, 70), (130, 170))
    assert [line[:2] for line in summaries.exploitability(run).lines] == [
        ("imposter", "70,50"),
        ("crewmate", "170,100"),
    ]
    shown = text(page(run))
    assert "after imposter learned" in shown
    assert "(running)" in shown
    assert "-0.50" in shown


@pytest.mark.django_db
def test_what_is_missing_names_the_next_step(run, researcher, page):
    shown = text(page(run))
    assert "clone this run with probes" in shown
    assert "section=phases" in shown
    assert "they appear when a phase" in text(page(in_turns(researcher, PHASES)))
    without = make_run(researcher)
    tab = f'href="{reverse("runs:by-role", args=[without.pk])}"'
    assert tab not in text(page(without)), "no tab in a game without roles"
    assert "The crew over iterations" not in text(page(make_run(researcher, kind="eval", game="werewolf")))


@pytest.mark.django_db
def test_names_of_opponents_are_no_markup(researcher, page):
    run = in_turns(researcher, PHASES)
    make_game(run, 1, 0, crew_won=True, learner="crewmate")
    for episode in run.episodes.all():
        episode.summary["policies"] = ["learner", "<b>x</b>", "learner"]
        episode.save()
    assert "&lt;b&gt;x" in text(page(run))
