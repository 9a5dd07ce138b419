"""The page run × opponent: results, meta-strategy, the way to a game and its tokens; and exploiters of a checkpoint."""

import re

import pytest
from django.urls import reverse
from django.utils.timezone import now
from scipy import stats

from tests.webapp.runs.making import (
    CONFIG,
    league_cell,
    make_checkpoint,
    make_episode,
    make_league,
    make_league_game,
    make_run,
    untouched,
)
from training.config import parse
from training.errors import BadInput
from training.rundir import RunDir
from training.store import write_json
from webapp.runs import presets, services
from webapp.runs.models import Attempt, Checkpoint, Event, Run
from webapp.runs.summaries import league
from worker.kinds import KINDS, filled_in, put_opponent

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher, client_of):
    return client_of(researcher)


@pytest.fixture
def run(researcher):
    return make_run(researcher)


def get(client, name, *args, query=""):
    response = client.get(reverse(f"runs:{name}", args=args) + query)
    assert response.status_code == 200
    return response.content.decode()


def rows(page):
    """The body of the first table, as the texts of its cells."""
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL).group(1)
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in body.split("</tr>")[:-1]
    ]


def test_the_table_has_a_row_for_each_checkpoint_and_a_column_for_each_opponent(client, run):
    make_league(run)
    page = get(client, "league", run.pk)
    assert re.findall(r'<th scope="col" class="number">([^<]+)</th>', page)[:3] == ["past 0", "past 10", "scripted"]
    table = rows(page)
    assert [row[0] for row in table] == ["Step 0", "Step 10"]
    half = stats.t.ppf(0.975, 1) * 0.05  # two values 0.1 apart
    assert table[1][1] == f"0.8 of step 10 against past 0 [{0.8 - half:.3g}, {0.8 + half:.3g}]"
    assert table[0][1] == "— itself"
    assert "the number of starts is fewer than 30" in page


def test_shades_follow_the_result_on_the_games_own_scale(run):
    # Kuhn poker pays from -2 to 2: 0 is even, -2 all is lost
    scale = {"low": -2.0, "high": 2.0}
    make_league(
        run, [league_cell(5, name, mean, **scale) for name, mean in (("a", 0.0), ("b", -2.0), ("c", 2.0), ("d", 1.0))]
    )
    [grid] = league.grids(run)
    assert {name: cell.css for name, cell in grid.lines[0].cells} == {
        "a": "even", "b": "down-4", "c": "up-4", "d": "up-2",
    }  # fmt: skip


def test_the_meta_strategy_stands_beside(client, run):
    make_league(run)
    page = get(client, "league", run.pk)
    [grid] = league.grids(run)
    checkpoints, opponents = grid.weights
    assert [weight.name for weight in checkpoints[1]] == ["step 0", "step 10"]
    assert [weight.name for weight in opponents[1]] == ["past 0", "past 10", "scripted"]
    # step 10 is better against everybody, and its later self is the hardest opponent of the three
    assert [weight.nash for weight in checkpoints[1]] == pytest.approx([0, 1], abs=1e-2)
    assert [weight.nash for weight in opponents[1]] == pytest.approx([0, 1, 0], abs=1e-2)
    assert "α-rank" in page
    assert "step 10" in page


def test_a_cell_opens_its_games_a_game_its_turns_and_a_turn_its_tokens(client, run):
    make_league(run)
    make_league_game(run, 10, 16384, (10, "past 0"), (0, 1))
    make_league_game(run, 10, 16385, (10, "past 0"), (1, 0))
    make_league_game(run, 10, 16388, (10, "scripted"), (0, 1))
    make_checkpoint(run, step=10)
    page = get(client, "league", run.pk)
    address = f"/runs/{run.pk}/league/games/?checkpoint=10&amp;opponent=past+0&amp;learner=one"
    assert address in page
    games = get(client, "league-games", run.pk, query="?checkpoint=10&opponent=past+0&learner=one")
    assert [(row[0], row[3], row[4]) for row in rows(games)] == [
        ("Step 10, no. 16384", "1", "0.25"), ("Step 10, no. 16385", "0.25", "1"),
    ]  # fmt: skip
    # the same games from the other side
    back = get(client, "league-games", run.pk, query="?checkpoint=0&opponent=past+10&learner=one")
    assert [(row[3], row[4]) for row in rows(back)] == [("0.25", "1"), ("1", "0.25")]
    game = get(client, "conversation", run.pk, 10, 16384)
    assert "step 10 at Ann against past 0" in game
    assert address in game
    assert "hello" in game
    assert "token by token" in get(client, "tokens", run.pk, 10, 16384)
    missing = client.get(reverse("runs:league-games", args=[run.pk]) + "?checkpoint=5&opponent=past+0")
    assert missing.status_code == 404


def test_an_added_base_model_is_called_as_the_site_calls_it(client, researcher):
    """A run knows it by its folder, which a hub model has by its commit."""
    Checkpoint.objects.create(name="Rival one", kind="base", base="Rival one", path="/hub/snapshots/0ab1")
    run = make_run(researcher, config={**CONFIG, "opponents": [{"source": "Rival one"}, {"source": "scripted"}]})
    make_league(run, [league_cell(10, "0ab1", 0.5, 0.75), league_cell(10, "scripted", 0.5)])
    make_league_game(run, 10, 16384, (10, "0ab1"), (0, 1))
    page = get(client, "league", run.pk)
    assert re.findall(r'<th scope="col" class="number">([^<]+)</th>', page)[:2] == ["Rival one", "scripted"]
    assert "0ab1" not in page
    address = f"/runs/{run.pk}/league/games/?checkpoint=10&amp;opponent=Rival+one&amp;learner=one"
    assert address in page
    games = get(client, "league-games", run.pk, query="?checkpoint=10&opponent=Rival+one&learner=one")
    assert [(row[3], row[4]) for row in rows(games)] == [("1", "0.25")]
    assert "The opponent is <a" in games
    game = get(client, "conversation", run.pk, 10, 16384)
    assert "against Rival one" in game
    assert address in game


def test_the_conversations_of_training_do_not_have_them(client, run):
    make_episode(run, 10, 3)
    make_league_game(run, 10, 16384, (10, "past 0"), (0, 1))
    make_league_game(run, 0, 16384, (0, "scripted"), (0, 1))
    page = get(client, "conversations", run.pk)
    assert "no. 3" in page
    assert "16384" not in page
    assert list(run.episodes.of_training().steps()) == [10]


def test_a_long_run_shows_its_newest_checkpoints_and_offers_the_others(client, run):
    make_league(run, [league_cell(step, name, 0.5) for step in range(30) for name in (f"past {step - 1}", "scripted")])
    page = get(client, "league", run.pk)
    assert [row[0] for row in rows(page)] == [f"Step {step}" for step in range(6, 30)]
    assert "past 4<" not in page
    assert "Show 6 earlier checkpoints" in page
    assert len(rows(get(client, "league", run.pk, query="?all=1"))) == 30


def test_results_above_the_step_from_which_an_attempt_began_are_gone(run):
    make_league(run)
    Attempt.objects.create(run=run, number=2, fence=2, state="ended", lease_until=now(), pid=1, start_step=5)
    assert {entry.step for table in league.tables(run) for entry in table.cells} == {0}
    # what is played again replaces it
    again = league_cell(10, "scripted", 0.4)
    Event.objects.create(
        run=run, attempt=run.attempts.get(number=2), at=now(), kind="league", data={"step": 10, "cells": [again]}
    )
    assert league.find(run, 10, "scripted", "one").result.mean == 0.4


def test_a_run_without_a_league_says_what_to_set(client, run, researcher):
    page = get(client, "league", run.pk)
    assert "“league · every”" in page
    assert f"clone={run.pk}&amp;section=league#section-league" in page
    waiting = make_run(researcher, config={**CONFIG, "league": {"every": 10}}, state="running")
    assert "follows step 10" in get(client, "league", waiting.pk)
    assert reverse("runs:league", args=[run.pk]) in get(client, "conversations", run.pk)


def test_names_of_opponents_are_no_markup(client, run):
    make_league(run, [league_cell(5, "<b>bold</b>", 0.5)])
    page = get(client, "league", run.pk)
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold" not in page


# --- exploiters ---

VILLAGE = ["doctor", "guard", "hunter", "seer", "villager", "witch"]


@pytest.fixture
def base(db):
    return Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/models/tiny")


def form_of(client, query):
    response = client.get(reverse("runs:new") + query)
    assert response.status_code == 200
    return response.context["form"], response.content.decode()


def test_one_click_from_a_checkpoint_opens_a_run_against_it_alone(client, base, researcher):
    trained = presets.PRESETS["quick"].config()
    checkpoint = make_checkpoint(make_run(researcher, config=trained, name="teacher"), step=20)
    page = get(client, "checkpoint", checkpoint.pk)
    [address] = re.findall(r'href="([^"]+)">Find its weakness', page)
    query = address.replace("&amp;", "&").partition("?")[2]
    form, shown = form_of(client, f"?{query}")
    assert f"Find the weakness of {checkpoint}" in shown
    assert 'class="presets"' not in shown, "a preset would replace the opponent"
    response = client.post(reverse("runs:new") + f"?{query}", untouched(form))
    assert response.status_code == 302, {
        **response.context["form"].start.errors,
        **response.context["form"].rest.errors,
    }
    run = Run.objects.latest("pk")
    assert run.name == f"Weakness of {checkpoint}"
    assert (run.start_checkpoint, run.opponent_checkpoint) == (checkpoint, checkpoint)
    entry = {"source": checkpoint.name, "weight": 1.0, "learner": "one", "partner": "", "ally": ""}
    assert run.config["opponents"] == [entry]
    assert run.config["league"]["every"] == run.config["learn"]["save_every"]
    assert run.config["game"] == trained["game"]
    assert run.config["method"] == trained["method"]


def test_a_model_of_a_cooperative_game_has_no_weakness_to_find(client, base, researcher):
    """Against such a model an opponent can only win together with it."""
    offered = {}
    for name in ("mars-hanabi", "mars-kuhn-poker", "mars-generalist"):
        run = make_run(researcher, config=presets.PRESETS[name].config(), game="hanabi")
        checkpoint = make_checkpoint(run, name=name)
        offered[name] = "Find its weakness" in get(client, "checkpoint", checkpoint.pk)
        address = reverse("runs:new") + f"?exploit={checkpoint.pk}"
        assert (client.get(address).status_code == 200) == offered[name]
    assert offered == {"mars-hanabi": False, "mars-kuhn-poker": True, "mars-generalist": True}
    tiny = Checkpoint.objects.get(name="tiny")
    statuses = {
        query: client.get(f"{reverse('runs:new')}?exploit={tiny.pk}&{query}").status_code
        for query in ("preset=eval", "preset=sft", "preset=mars-hanabi", "preset=mars-kuhn-poker")
    }
    assert statuses.pop("preset=mars-kuhn-poker") == 200
    assert {*statuses.values()} == {404}
    cold_start = make_run(researcher, kind="sft", game="hanabi")
    assert "Find its weakness" not in get(client, "checkpoint", make_checkpoint(cold_start).pk)
    gone = make_run(researcher, config={**CONFIG, "game": {"name": "uninstalled"}}, game="uninstalled")
    assert "Find its weakness" not in get(client, "checkpoint", make_checkpoint(gone).pk)
    several = presets.against(presets.PRESETS["mars-generalist"].config(), "x")
    assert [entry["game"] for entry in several["mixture"]] == ["tic_tac_toe", "kuhn_poker"]


def test_an_exploiter_has_the_roles_that_meet_the_trained_side(base):
    werewolf = presets.against(presets.PRESETS["werewolf"].config(), "run-1-step-20")
    exploiter = {"source": "run-1-step-20", "weight": 1.0, "learner": VILLAGE, "partner": "", "ally": ""}
    assert werewolf["opponents"] == [exploiter]
    in_phases = presets.against(presets.PRESETS["werewolf-phases"].config(), "run-1-step-20")
    assert (in_phases["opponents"], in_phases["phases"]) == ([exploiter], [])
    drawn = {**presets.PRESETS["werewolf"].config(), "rollout": {"random_moves": True}}
    assert presets.against(drawn, "run-1-step-20")["rollout"]["random_moves"] is False  # it learns to win by its moves
    village = {**presets.PRESETS["werewolf"].config(), "opponents": [{"source": "start", "learner": VILLAGE}]}
    assert presets.against(village, "x")["opponents"][0]["learner"] == ["werewolf"]
    everybody = {**village, "opponents": [{"source": "start", "learner": [*VILLAGE, "werewolf"]}]}
    assert presets.against(everybody, "x")["opponents"][0]["learner"] == [*VILLAGE, "werewolf"]
    # that run freezes the village at its start by saving no step: an exploiter saves five at least
    assert 5 * werewolf["learn"]["save_every"] <= werewolf["learn"]["steps"]
    assert presets.against(presets.PRESETS["dialogue"].config(), "x")["league"]["every"] == 0  # only a judge scores it


def test_the_worker_finds_the_opponent_by_its_name_and_says_which_one_was_deleted(base, researcher, tmp_path, settings):
    checkpoint = make_checkpoint(make_run(researcher), step=20)
    config = {**CONFIG, "opponents": [{"source": "mirror"}, {"source": checkpoint.name}]}
    run = make_run(researcher, config=config)
    folder = RunDir(tmp_path)
    sources = [entry["source"] for entry in filled_in(run, folder)["opponents"]]
    assert sources[0] == "mirror"
    assert sources[1].endswith(f"/{checkpoint.path}")
    partner = {"source": "start", "learner": ["werewolf"], "partner": checkpoint.name}
    phases = [{"name": "first", "steps": 1, "opponents": None}, {"name": "second", "steps": 1, "opponents": [partner]}]
    phased = make_run(researcher, config={**CONFIG, "opponents": [], "phases": phases})
    first, second = filled_in(phased, folder)["phases"]
    assert (first, second["opponents"][0]["source"]) == (phases[0], "start")
    assert second["opponents"][0]["partner"].endswith(f"/{checkpoint.path}")
    name = checkpoint.name
    checkpoint.delete()
    with pytest.raises(BadInput, match=f"the checkpoint {name}, which has been deleted") as caught:
        filled_in(phased, folder)
    assert caught.value.where == "phases.1.opponents.0.partner"
    with pytest.raises(BadInput, match=f"the checkpoint {name}, which has been deleted") as caught:
        filled_in(run, folder)
    assert caught.value.where == "opponents.1.source"
    assert put_opponent("mcts:100", "opponents.0.source", folder) == "mcts:100"


def test_a_resumed_run_asks_again_whether_its_opponent_is_there(base, researcher, tmp_path):
    checkpoint = make_checkpoint(make_run(researcher), step=20)
    run = make_run(researcher, config={**CONFIG, "opponents": [{"source": checkpoint.name}]})
    folder = RunDir(tmp_path)
    write_json(folder.config, {**CONFIG, "opponents": [{"source": f"/files/checkpoints/{checkpoint.name}"}]})
    name = checkpoint.name
    checkpoint.delete()
    with pytest.raises(BadInput, match=f"the checkpoint {name}, which has been deleted"):
        KINDS["train"].prepare(run, folder, 2)


def test_the_games_of_a_league_count_for_the_quota(researcher, settings):
    # after steps 0, 5 and 10: 8 games against the script; one past self before step 5 and two before 10, in both
    # directions, and itself each time: 1, 3 and 5 pairs
    config = {
        "opponents": [{"source": "past"}, {"source": "scripted"}],
        "league": {"every": 5, "games": 8},
        "learn": {"steps": 10, "save_every": 5, "critic_warmup": 1},
        "rollout": {"scenarios": 1, "games": 1},
    }
    made = parse(config | {"model": {"base": "tiny"}})
    assert made.league_games == 8 * (3 + 1 + 3 + 5)
    settings.QUOTAS = {**settings.QUOTAS, "games_per_run": {"researcher": 105}}
    with pytest.raises(BadInput, match="106"):
        services.create_run(owner=researcher, config=made)


def test_an_opponent_that_is_no_checkpoint_is_refused(client, base):
    form, _ = form_of(client, "?preset=quick&opponents=1")
    data = untouched(form) | {'config-["opponents", 0, "source"]': "run-99-step-1"}
    response = client.post(reverse("runs:new") + "?preset=quick&opponents=1", data)
    assert response.status_code == 400
    assert "is no player, checkpoint, base model or address" in response.content.decode()
    assert Run.objects.count() == 0
