"""The REST API: what it gives, what it refuses and how it says so."""

import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.games import test_shop_files as shop_files
from tests.labelled import sent
from tests.question_sets import files as questions
from tests.trust.matrix.scenarios import SCENARIO, stored_version
from tests.webapp.api.calling import Caller, refusal
from tests.webapp.judgments.make import finished_match, judged_by_a_model, people_queue, rated, version
from tests.webapp.runs.making import make_league, make_run
from tests.webapp.scenarios import files
from training.games.shop import webshop
from training.labels.codebooks import CONDUCT
from webapp.accounts.services import revoke_key
from webapp.arena.models import Match
from webapp.arena.setup import waiting_room
from webapp.judgments.models import Judgment, Queue
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios import imports
from webapp.scenarios.models import Dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def call(researcher):
    return Caller(researcher)


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer parley_wrong"}, {"Authorization": "Basic x"}])
def test_without_a_key_nothing_answers(db, header):
    assert Client(headers=header).get("/api/v1/runs").status_code == 401


def test_every_refusal_has_the_same_shape(call, researcher):
    assert refusal(Client().get("/api/v1/runs")) == (401, "Authorization")
    assert refusal(call.get("runs/999")) == (404, "")
    assert refusal(call.get("datasets/nowhere/versions/1/export")) == (404, "")
    assert refusal(call.client.post("/api/v1/runs", "{", "application/json")) == (400, "")
    assert refusal(call.get("runs/999/metrics?since=x")) == (422, "since")
    assert refusal(call.post("runs", config={"colour": 1})) == (422, "colour")
    pk = finished_match(researcher).pk
    assert refusal(call.post(f"matches/{pk}/moves", turn=9, action="talk", text="hi")) == (409, "move")
    guess = Client(REMOTE_ADDR="10.9.8.7", headers={"Authorization": "Bearer parley_wrong"})
    tries = [refusal(guess.get("/api/v1/runs")) for _ in range(21)]
    assert tries == [(401, "Authorization")] * 20 + [(429, "")]
    assert guess.get("/api/v1/runs").headers["Retry-After"] == "60"


def test_the_description_says_how_everything_is_refused(db):
    described = Client().get("/api/v1/openapi.json").json()
    assert set(described["components"]["schemas"]["Problem"]["properties"]) == {"where", "why"}
    for path, operations in described["paths"].items():
        for operation in operations.values():
            answers = operation["responses"]
            assert {"400", "401", "404", "409", "422", "429"} < set(answers), path
            assert answers["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_a_session_is_no_key_and_a_revoked_key_opens_nothing(client_of, researcher, call):
    assert client_of(researcher).get("/api/v1/runs").status_code == 401
    assert call.get("runs").status_code == 200
    revoke_key(key=call.key)
    assert call.get("runs").status_code == 401


def test_the_description_lists_every_route(db):
    from tests.trust.matrix.api import ROUTES

    described = json.dumps(Client().get("/api/v1/openapi.json").json()["paths"])
    for route in ROUTES:
        if route.kind == "api":
            assert route.name.removeprefix("api:") in described


def test_datasets_are_listed_imported_and_exported(call):
    file = SimpleUploadedFile("casino.json", files.casino().encode())
    made = call.client.post("/api/v1/datasets", {"format": "casino", "name": "camp", "files": file})
    assert (made.status_code, made.json()["scenarios"], made.json()["version"]) == (201, 1, 1)
    listed = call.get("datasets").json()
    assert [(d["name"], d["versions"][0]["conversation_count"]) for d in listed["items"]] == [("camp", 1)]
    exported = b"".join(call.get("datasets/camp/versions/1/export").streaming_content)
    assert json.loads(exported)["scenario"]["id"] == "casino-7"


def test_a_format_of_one_file_or_a_folder_takes_one_file(call):
    file = SimpleUploadedFile("log.jsonl", json.dumps(files.episode_log()).encode())
    made = call.client.post("/api/v1/datasets", {"format": "sotopia-episodes", "name": "played", "files": file})
    assert (made.status_code, made.json()["errors"], made.json()["conversations"]) == (201, [], 1)


def test_an_import_takes_options_as_json(call):
    def sent(options):
        file = SimpleUploadedFile("pop.csv", questions.table(*questions.ROWS).encode())
        fields = {"format": "popqa", "name": "rare", "files": file, "options": options}
        return call.client.post("/api/v1/datasets", fields)

    for wrong in ("[1]", "{", '{"popularity": 2}', '{"views": 1}'):
        assert sent(wrong).status_code == 422, wrong
    made = sent('{"popularity": 1, "tools": "wiki"}')
    assert (made.status_code, made.json()["scenarios"]) == (201, 5)


def test_a_request_reads_no_larger_catalogue_than_an_upload_may_be(call, tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    catalogue = shop_files.write(tmp_path / "catalogues" / "small")
    instructions = (catalogue / "items_human_ins.json").read_bytes()
    settings = {"catalogue": "small", "sha256": webshop.read(catalogue).sha256}
    line = {"scenario": {"version": 1, "id": "a", "game": "shop", "settings": settings, "seats": ["Ada"]}}

    def sent(format, name, text, **options):
        fields = {"format": format, "name": name, "files": SimpleUploadedFile("a.json", text)}
        return call.client.post("/api/v1/datasets", fields | {"options": json.dumps(options)})

    for most, status in ((sum(file.stat().st_size for file in catalogue.iterdir()), 201), (100, 422)):
        monkeypatch.setattr(imports, "REQUEST_BYTES", most)
        made = sent("webshop", f"shop-{status}", instructions, catalogue="small")
        of_lines = sent("jsonl", f"lines-{status}", json.dumps(line).encode())
        assert (made.status_code, of_lines.status_code) == (status, status)
    assert "the page of datasets" in made.json()["errors"][0]["why"]
    assert "the page of datasets" in of_lines.json()["errors"][0]["why"]
    assert Dataset.objects.count() == 2


def test_datasets_come_in_pages(call, researcher, django_assert_max_num_queries):
    names = [stored_version(researcher).dataset.name for _ in range(5)]
    with django_assert_max_num_queries(8):
        first = call.get("datasets?limit=2").json()
    assert ([d["name"] for d in first["items"]], first["count"]) == (names[:-3:-1], 5)
    assert [d["name"] for d in call.get("datasets?limit=2&offset=4").json()["items"]] == names[:1]


def test_a_wrong_import_says_where_and_stores_nothing(call):
    def wrong(dialogue):
        dialogue["chat_logs"][0]["id"] = "x"

    file = SimpleUploadedFile("casino.json", files.casino(wrong).encode())
    made = call.client.post("/api/v1/datasets", {"format": "casino", "name": "camp", "files": file})
    assert made.status_code == 422
    assert "chat_logs.0, id" in made.json()["errors"][0]["where"]
    assert Dataset.objects.count() == 0


def test_the_tables_of_a_league_are_those_of_the_page(call, researcher):
    run = make_run(researcher)
    assert call.get(f"runs/{run.pk}/league").json() == []
    [table] = call.get(f"runs/{make_league(run).pk}/league").json()
    assert (table["checkpoints"], table["opponents"]) == ([0, 10], ["past 0", "past 10", "scripted"])
    means = {(cell["step"], cell["opponent"]): cell["result"]["mean"] for cell in table["cells"]}
    assert means == pytest.approx(
        {(0, "past 10"): 0.2, (0, "scripted"): 0.2, (10, "past 0"): 0.8, (10, "scripted"): 0.6}
    )
    assert table["meta"]["nash"]["checkpoints"] == pytest.approx([0, 1], abs=1e-2)


CONFIG = {"kind": "train", "name": "by api", "model": {"base": "tiny"}, "game": {"name": "negotiation"}}


def test_a_run_is_queued_stopped_and_deleted(call, researcher):
    version = stored_version(researcher)
    made = call.post("runs", config=CONFIG, dataset=version.dataset.name)
    assert made.status_code == 201
    run = made.json()
    assert (run["state"], run["dataset"], run["owner"]) == ("queued", str(version), "rosa")
    assert call.post(f"runs/{run['id']}/stop").json()["state"] == "stopped"
    assert call.get(f"runs/{run['id']}/metrics").json() == []
    assert [row["id"] for row in call.get("runs", state="stopped").json()["items"]] == [run["id"]]
    assert call.delete(f"runs/{run['id']}").status_code == 204
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    "body, where",
    [
        ({"config": {**CONFIG, "learn": {"lr": -1}}}, "learn.lr"),
        ({"config": {**CONFIG, "colour": 1}}, "colour"),
        ({"config": CONFIG, "dataset": "nowhere"}, "dataset"),
        ({"config": CONFIG, "start_checkpoint": 999}, "start_checkpoint"),
        ({"config": {**CONFIG, "game": {"name": "chess"}}}, "game.name"),
        ({"config": {**CONFIG, "model": {"base": "nobodys"}}}, "model.base"),
    ],
)
def test_a_wrong_run_is_refused_by_field(call, body, where):
    refused = call.post("runs", **body)
    assert refused.status_code == 422
    assert where in refused.json()["where"]
    assert Run.objects.count() == 0


def test_a_configuration_that_is_too_large_is_refused_before_it_is_read(call, monkeypatch):
    monkeypatch.setattr("webapp.api.runs.parse", lambda config: pytest.fail("it was read"))
    refused = call.post("runs", config={**CONFIG, "opponents": [{"source": "past"}] * 4000})
    assert (refused.status_code, refused.json()["where"]) == (422, "config")
    assert "more than 65536" in refused.json()["why"]


def test_a_run_from_a_base_that_was_added_here_finds_its_files(call, tmp_path):
    from training.rundir import RunDir
    from worker.kinds import filled_in

    folder = tmp_path / "weights"
    folder.mkdir()
    added = Checkpoint.objects.create(name="mine", kind="base", base="mine", path=str(folder))
    made = call.post("runs", config={**CONFIG, "model": {"base": "mine"}})
    assert made.status_code == 201
    run = Run.objects.get(pk=made.json()["id"])
    assert (run.start_checkpoint, run.base) == (added, "mine")
    assert filled_in(run, RunDir(tmp_path / "run"))["model"]["base"] == str(folder)


def test_the_head_to_head_of_a_run_of_several_games_has_the_starts_of_its_own_game(call, tmp_path):
    from training import dataset
    from training.rundir import RunDir
    from worker.kinds import filled_in

    mixture = [{"game": "tic_tac_toe"}, {"game": "werewolf"}]
    made = call.post("runs", config={**CONFIG, "mixture": mixture, "evaluate": {"every": 2}})
    assert made.status_code == 201
    run = Run.objects.get(pk=made.json()["id"])
    filled = filled_in(run, RunDir(tmp_path / "run"))
    assert run.game == "tic_tac_toe"
    paths = [(filled["game"]["name"], filled["data"]["path"])]
    paths += [(part["game"], part["path"]) for part in filled["mixture"]]
    assert [name for name, _ in paths] == ["negotiation", "tic_tac_toe", "werewolf"]
    for name, path in paths:
        assert {line.scenario.game for line in dataset.read(Path(path))} == {name}


def table(call, **changes):
    body = {"game": "negotiation", "places": [{"me": True}, {}], "consent": True, **changes}
    return call.post("matches", **body)


def test_a_match_is_set_up_and_played(call, player, researcher):
    version = stored_version(researcher)
    made = table(call, scenario=f"stored:{version.scenarios.get().pk}")
    assert made.status_code == 201
    pk = made.json()["id"]
    other = Caller(player)
    match = Match.objects.get(pk=pk)
    waiting_room.take_seat(match=match, user=player)
    waiting_room.answer_consent(match=match, user=player, agreed=True)
    state = call.get(f"matches/{pk}").json()
    assert (state["state"], state["returns"]) == ("running", None)
    assert {action["name"] for action in state["actions"]} == {"talk", "propose", "walk_away"}
    assert other.get(f"matches/{pk}").json()["actions"] == []
    turn = state["turn"]
    moved = call.post(f"matches/{pk}/moves", turn=turn, action="propose", args={"pen": 1}, text="Deal?")
    assert moved.json()["move"]["text"] == "Deal? <propose>1</propose>"
    again = call.post(f"matches/{pk}/moves", turn=turn, action="walk_away")
    assert again.json() == moved.json()
    other.post(f"matches/{pk}/moves", turn=0, action="accept")
    assert other.get(f"matches/{pk}").json()["returns"] == {"0": pytest.approx(1 / 3), "1": pytest.approx(2 / 3)}


def test_a_seat_is_taken_where_one_is_free_and_by_members(call, player, guest):
    pk = table(call, visibility="open").json()["id"]
    assert refusal(Caller(guest).post(f"matches/{pk}/seat", consent=True)) == (404, "")
    seated = Caller(player).post(f"matches/{pk}/seat", consent=True)
    assert (seated.json()["state"], [seat["you"] for seat in seated.json()["seats"]]) == ("running", [False, True])
    hidden = table(call, places=[{"me": True}, {"scripted": "scripted"}]).json()["id"]
    assert refusal(Caller(player).post(f"matches/{hidden}/seat", consent=True)) == (404, "")


def test_a_seat_sees_only_its_own_side(call, player, researcher):
    secret = {**SCENARIO.settings["deal"], "sides": [
        {"values": {"pen": 1}, "reasons": {"pen": "CANARY-0"}}, {"values": {"pen": 2}, "reasons": {"pen": "CANARY-1"}},
    ]}  # fmt: skip
    from training.dataset import DatasetLine
    from webapp.scenarios.services import create_dataset

    scenario = SCENARIO.model_copy(update={"settings": {"deal": secret}})
    version = create_dataset(name="secret", owner=researcher, lines=[DatasetLine(scenario=scenario)])
    pk = table(call, scenario=f"stored:{version.scenarios.get().pk}").json()["id"]
    waiting_room.take_seat(match=Match.objects.get(pk=pk), user=player)
    waiting_room.answer_consent(match=Match.objects.get(pk=pk), user=player, agreed=True)
    mine, theirs = call.get(f"matches/{pk}").content.decode(), Caller(player).get(f"matches/{pk}").content.decode()
    assert ("CANARY-0" in mine, "CANARY-1" in mine) == (True, False)
    assert ("CANARY-0" in theirs, "CANARY-1" in theirs) == (False, True)


@pytest.mark.parametrize(
    "changes, where",
    [
        ({"game": "chess"}, "game"),
        ({"scenario": "other"}, "scenario"),
        ({"scenario": "stored:²"}, "scenario"),
        ({"scenario": "version:" + "9" * 5000}, "scenario"),
        ({"consent": "perhaps"}, "consent"),
        ({"places": [{"me": True}, {"checkpoint": "x"}]}, "places"),
        ({"places": [{"me": True}]}, "seats"),
        ({"places": [{"me": True, "scripted": "random"}, {}]}, "places"),
        ({"places": [{"scripted": "wizard"}, {}]}, "places"),
        ({"places": [{"scripted": "nash"}, {}]}, "places"),
        ({"places": [{"checkpoint": 9}, {}]}, "places"),
        ({"deadline_s": 1}, "deadline_s"),
        ({"rules": {"deal": {}}}, "rules.deal"),
        ({"rules": {"turn_limit": 0}}, "rules.turn_limit"),
        ({"rules": []}, "rules"),
        ({"shuffled": True}, "shuffled"),
        ({"game": "werewolf", "places": [{}] * 6, "rules": {"fixed": []}}, "rules.fixed"),
        ({"game": "werewolf", "places": [{}] * 6, "rules": {"rounds": "many"}}, "rules.rounds"),
        ({"game": "werewolf", "places": []}, "seats"),
        ({"game": "werewolf", "places": [{}] * 2}, "seats"),
        ({"game": "among_us", "places": [{}] * 13}, "seats"),
    ],
)
def test_a_wrong_table_is_refused_by_field(call, changes, where):
    refused = table(call, **changes)
    assert (refused.status_code, refused.json()["where"]) == (422, where)


def test_players_of_one_game_sit_down_there(call):
    made = table(call, game="kuhn_poker", places=[{"me": True}, {"scripted": "nash"}])
    assert made.status_code == 201, made.content
    assert Match.objects.get().seats.get(seat=1).scripted == "nash"


def test_a_table_has_the_rules_and_the_drawn_seats_that_were_asked_for(call, researcher):
    places = [{"me": True}] + [{"scripted": "scripted"}] * 6
    seats = set()
    for _ in range(12):
        made = table(call, game="werewolf", places=places, rules={"rounds": "02", "reveal": 0}, shuffled=True)
        assert made.status_code == 201, made.content
        match = Match.objects.get(pk=made.json()["id"])
        assert (match.scenario["settings"]["rounds"], match.scenario["settings"]["reveal"]) == (2, False)
        seats.add(match.seats.get(user=researcher).seat)
    assert (match.shuffled, match.rules) == (True, {"rounds": 2, "reveal": False})
    assert len(seats) > 1


def test_a_stored_start_is_played_as_its_own_game_only(call, researcher):
    key = f"stored:{stored_version(researcher).scenarios.get().pk}"
    for game in ("werewolf", "kuhn_poker"):
        refused = table(call, game=game, scenario=key)
        assert (refused.status_code, refused.json()["where"]) == (422, "scenario")


def test_an_impossible_move_changes_nothing(call, researcher):
    pk = finished_match(researcher).pk
    refused = call.post(f"matches/{pk}/moves", turn=1, action="talk", text="hi")
    assert refused.status_code == 409
    assert "not running" in refused.json()["why"]


def test_a_judgment_is_added_by_the_assigned_annotator(call, researcher, annotator):
    queue = people_queue(researcher, rated(finished_match(researcher), researcher), [annotator])
    target = queue.targets.first()
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    assert call.post("judgments", target=target.pk, labels=sent(values)).status_code == 404
    added = Caller(annotator).post("judgments", target=target.pk, labels=sent(values))
    assert (added.status_code, added.json()["queue"]) == (201, queue.pk)
    assert {label["label"]: (label["value"], label["seat"]) for label in added.json()["labels"]} == dict.fromkeys(
        values, (6.0, target.seat)
    )
    assert [row["id"] for row in call.get("judgments", queue=queue.pk).json()["items"]] == [added.json()["id"]]


def test_what_is_assigned_and_open_is_listed(call, researcher, annotator, person, player):
    match = finished_match(researcher)
    queue, other = (people_queue(researcher, match, [annotator]) for _ in range(2))
    caller = Caller(annotator)
    listed = caller.get("judgments/targets").json()
    assert [(row["queue"], row["seat"]) for row in listed["items"]] == [
        (made.pk, seat) for made in (queue, other) for seat in (0, 1)
    ]  # fmt: skip
    assert {row["codebook"] for row in listed["items"]} == {"fine-grained v2"}
    assert [d["name"] for d in listed["items"][0]["label_types"]] == [d.name for d in CONDUCT.labels]
    page = caller.get("judgments/targets", limit=1, offset=1).json()
    assert (page["count"], [row["seat"] for row in page["items"]]) == (4, [1])
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    caller.post("judgments", target=listed["items"][0]["id"], labels=sent(values))
    assert [row["id"] for row in caller.get("judgments/targets", queue=queue.pk).json()["items"]] == [
        listed["items"][1]["id"]
    ]
    assert caller.get("judgments/targets").json()["count"] == 3
    assert call.get("judgments/targets").json()["count"] == 0, "a researcher's own list, not everybody's"
    assert Caller(person("annotator", "someone")).get("judgments/targets").json()["items"] == []
    assert Caller(player).get("judgments/targets").status_code == 404
    match.seats.filter(seat=0).update(consent=False)
    assert caller.get("judgments/targets").json()["count"] == 0, "without consent a game leaves its queues"


@pytest.mark.parametrize(
    "role, shows_hidden, named", [("annotator", False, False), ("annotator", True, True), ("researcher", False, True)]
)
def test_a_blind_queue_does_not_tell_annotators_which_game_they_judge(
    researcher, player, person, role, shows_hidden, named
):
    match, author = finished_match(player), person(role, "author")
    queue, caller = people_queue(researcher, match, [author]), Caller(author)
    Queue.objects.update(shows_hidden=shows_hidden)
    waiting = caller.get("judgments/targets").json()["items"]
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    added = [caller.post("judgments", target=target.pk, labels=sent(values)).json() for target in queue.targets.all()]
    listed = caller.get("judgments").json()["items"]
    assert [len(rows) for rows in (waiting, added, listed)] == [2, 2, 2]
    for row in (*waiting, *added, *listed):
        assert (row["match"], row["episode"], row["conversation"]) == (match.pk if named else None, None, None)
    assert caller.get("judgments", match=match.pk).json()["count"] == (2 if named else 0), "nor by asking for a match"


def test_others_values_are_read_after_ones_own_judgment(call, researcher, annotator):
    match = rated(finished_match(researcher), researcher)
    queue = people_queue(researcher, match, [researcher, annotator])
    target = queue.targets.first()
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    Caller(annotator).post("judgments", target=target.pk, labels=sent(values))
    assert call.get("judgments", queue=queue.pk).json()["items"] == []
    call.post("judgments", target=target.pk, labels=sent(values))
    assert len(call.get("judgments", queue=queue.pk).json()["items"]) == 2
    assert len(Caller(annotator).get("judgments").json()["items"]) == 1


def test_a_judgment_has_its_reasons(call, researcher):
    queue = judged_by_a_model(researcher, rated(finished_match(researcher), researcher))
    rows = call.get("judgments", queue=queue.pk).json()["items"]
    reasons_by_label = [{label["label"]: label["reason"] for label in row["labels"]} for row in rows]
    assert [reasons["mutual_benefit"] for reasons in reasons_by_label] == ["because of mutual_benefit"] * 2


def test_what_the_other_player_said_is_read_after_ones_own_guess(call, researcher, player, other_researcher):
    match = finished_match(researcher, player)
    judged_by_a_model(researcher, match)
    rated(match, player)
    seat = match.seats.get(user=player)
    Judgment.objects.create(codebook_version=version(), match=match, seat=0, author=player, author_seat=seat)

    def authors(who):
        return [row["author"] for row in who.get("judgments", match=match.pk).json()["items"]]

    assert authors(call) == [], "not even that the other is a person"
    assert authors(Caller(other_researcher)) == ["model:m", "model:m", f"seat:{seat.seat}"]
    rated(match, researcher)
    assert authors(call) == ["model:m", "model:m", f"seat:{seat.seat}"]


def test_an_own_judgment_is_readable_before_the_reveal(call, researcher, player):
    queue = people_queue(researcher, finished_match(player), [researcher])
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    added = call.post("judgments", target=queue.targets.first().pk, labels=sent(values))
    assert added.status_code == 201
    assert [row["id"] for row in call.get("judgments", queue=queue.pk).json()["items"]] == [added.json()["id"]]


def test_a_wrong_judgment_is_refused(annotator, researcher):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    refused = Caller(annotator).post("judgments", target=queue.targets.first().pk, labels=sent({"mutual_benefit": 99}))
    assert refused.status_code == 422
    assert Judgment.objects.count() == 0


def test_a_spectator_learns_no_result_of_a_match_that_is_only_open(researcher, player, call):
    pk = finished_match(researcher).pk
    Match.objects.filter(pk=pk).update(visibility="open")
    seen = Caller(player).get(f"matches/{pk}").json()
    assert (seen["returns"], {seat["who"] for seat in seen["seats"]}) == (None, {None})
    mine = call.get(f"matches/{pk}").json()
    assert mine["returns"] is not None
    assert [seat["kind"] for seat in mine["seats"]] == ["person", None], "who it was is revealed after the guess"
    assert call.get("matches").json()["items"] == [
        {"id": pk, "game": "negotiation", "state": "finished", "visibility": "open"}
    ]


def test_where_a_checkpoint_comes_from_and_what_it_scores_is_for_researchers(call, player, researcher):
    run = Run.objects.create(kind="train", name="r", owner=researcher, queue="train-cpu", config={}, state="stopped")
    base = Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="x", open_to_players=True)
    made = Checkpoint.objects.create(
        name="a", kind="full", base="tiny", path="x", step=5, run=run, parent=base, sha256="e" * 64,
        metrics={"reward": 0.5}, open_to_players=True,
    )  # fmt: skip
    shown = {"id": made.pk, "name": "a", "kind": "full", "base": "tiny", "step": 5, "open_to_players": True}
    hidden = {"run_id": run.pk, "parent_id": base.pk, "sha256": "e" * 64, "metrics": {"reward": 0.5}, "aliases": []}
    hidden["withdrawn_data"] = []
    for who, more in ((call, hidden), (Caller(player), dict.fromkeys(hidden))):
        detail, listed = who.get(f"checkpoints/{made.pk}").json(), who.get("checkpoints").json()["items"]
        assert detail == listed[0]
        assert (detail.pop("created_at") is None) == (who is not call)
        assert detail == shown | more
