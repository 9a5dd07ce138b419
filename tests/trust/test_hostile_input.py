"""Input that is no honest request: it is refused in words, never with a server error, and it changes nothing."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests.trust.matrix.arena import seated
from tests.trust.matrix.runs import run as made_run
from tests.trust.matrix.scenarios import SCENARIO, version
from tests.webapp.scenarios.files import write_sotopia_jsonl
from training.errors import BadInput, IllegalMove
from webapp.accounts.services import create_key
from webapp.arena.play import human_moves, model_seats
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios import imports, services
from webapp.scenarios.models import Dataset, Import

NUL, LONG, PADDED = "\x00", "9" * 30, "0" * 13 + "9" * 5000
PAGES = [
    ("scenarios:list", "q", NUL),
    ("scenarios:list", "game", NUL),
    ("scenarios:list", "page", PADDED),
    ("scenarios:version", "q", NUL),
    ("corpora:list", "q", NUL),
    ("corpora:list", "page", PADDED),
    ("runs:list", "q", NUL),
    ("runs:list", "state", NUL),
    ("runs:checkpoints", "kind", NUL),
    ("runs:checkpoints", "page", PADDED),
    ("runs:compare", "run", LONG),
    ("runs:compare", "run", PADDED),
    ("runs:conversations", "outcome", NUL),
    ("runs:metrics", "since", PADDED),
    ("arena:new", "scenario", PADDED),
]
API = [
    ("matches", {"limit": LONG}),
    ("matches", {"offset": LONG}),
    ("matches", {"state": NUL}),
    ("runs", {"kind": NUL}),
    ("datasets", {"q": NUL}),
    ("datasets", {"game": NUL}),
    ("datasets/%00", {}),
]


@pytest.mark.parametrize("name, parameter, value", PAGES, ids=[f"{n}-{p}-{v[:3]!r}" for n, p, v in PAGES])
def test_a_page_refuses_what_no_field_can_hold(name, parameter, value, researcher, client_of):
    kwargs = version(researcher) if name == "scenarios:version" else {}
    kwargs = made_run(researcher) if name in {"runs:conversations", "runs:metrics"} else kwargs
    assert client_of(researcher).get(reverse(name, kwargs=kwargs), {parameter: value}).status_code < 500


@pytest.mark.parametrize("path, query", API, ids=[f"{path}-{[*query]}" for path, query in API])
def test_the_api_refuses_what_no_field_can_hold(path, query, researcher, client):
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    assert 400 <= client.get(f"/api/v1/{path}", query, headers=key).status_code < 500


def test_the_api_gives_no_more_than_a_thousand_rows_at_once(researcher, client):
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    assert client.get("/api/v1/runs", {"limit": 1000}, headers=key).status_code == 200
    assert client.get("/api/v1/runs", {"limit": 1001}, headers=key).status_code == 422


@pytest.mark.parametrize(
    "config",
    [
        {"name": "a\x00b"},
        {"learn": {"steps": 10**12}},
        {"game": {"name": "negotiation", "settings": {"a": NUL}}},
    ],
    ids=["name", "steps", "settings"],
)
def test_a_run_that_cannot_be_stored_is_refused(config, researcher, client):
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    response = client.post("/api/v1/runs", json.dumps({"config": config}), "application/json", headers=key)
    assert response.status_code == 422
    assert response.json()["why"]
    path = {"name": "config.name", "learn": "learn.steps", "game": "game.settings"}
    assert response.json()["where"] == path[next(iter(config))]
    assert not Run.objects.exists()


def uploaded(owner, *lines, name="hostile"):
    file = SimpleUploadedFile("own.jsonl", "\n".join(lines).encode("utf-8"))
    made = imports.upload(owner=owner, format="jsonl", name=name, files=[file])
    imports.read_import(pk=made.pk)
    return Import.objects.get(pk=made.pk)


def line_with(**changes):
    return json.dumps({"scenario": {**SCENARIO.to_dict(), **changes}})


@pytest.mark.parametrize("id", ["a\nb", "..", "a/../b", "a//b", "/a", "a/edit", "a\x00b", "a\ud800b"])
def test_a_scenario_whose_id_makes_no_address_is_refused(id, researcher):
    made = uploaded(researcher, line_with(id=id))
    assert made.state == "refused"
    assert "line 1" in made.report["errors"][0]["where"]


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "half a pair"])
def test_text_that_no_database_can_hold_refuses_the_import_and_does_not_stick(text, researcher):
    settings = {**SCENARIO.settings, "deal": {**SCENARIO.settings["deal"], "story": text}}
    made = uploaded(researcher, line_with(settings=settings))
    assert made.state == "refused"
    assert "line 1" in made.report["errors"][0]["where"]
    assert not Dataset.objects.exists()


def test_hostile_words_in_a_refusal_do_not_break_the_report(researcher):
    made = uploaded(researcher, line_with(game="a\x00b\ud800"))
    assert made.state == "refused"


def test_every_scenario_of_an_upload_with_odd_ids_can_be_opened(researcher, client_of):
    ids = ["a b", "a/b", "a?b#c", "a%2F..%2Fb", '"><script>', "édit", "..."]
    made = uploaded(researcher, *(line_with(id=key) for key in ids))
    assert made.state == "waiting", made.report
    imports.accept_import(pk=made.pk)
    stored = imports.store_import(pk=made.pk)
    client = client_of(researcher)
    page = client.get(reverse("scenarios:version", args=[stored.dataset.name, stored.number]))
    assert page.status_code == 200
    for key in ids:
        response = client.get(reverse("scenarios:scenario", args=[stored.dataset.name, stored.number, key]))
        assert response.status_code == 200


def test_a_guest_has_no_password_to_change(guest, client_of):
    guest.set_unusable_password()
    guest.save()
    assert client_of(guest).get(reverse("account_change_password")).status_code == 404


def test_a_file_with_a_very_long_name_is_refused(researcher, client_of):
    file = SimpleUploadedFile("é" * 200 + ".jsonl", line_with().encode())
    body = {"format": "jsonl", "name": "long", "chosen": file}
    response = client_of(researcher).post(reverse("scenarios:upload"), body)
    assert response.status_code == 400
    assert not Import.objects.exists()


def test_many_files_in_one_upload_can_still_be_stored(researcher, tmp_path):
    write_sotopia_jsonl(tmp_path)
    files = [SimpleUploadedFile(path.name, path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    files += [SimpleUploadedFile("z" * 100 + str(number), b"x") for number in range(20)]
    made = imports.upload(owner=researcher, format="sotopia-jsonl", name="many", files=files)
    imports.read_import(pk=made.pk)
    imports.accept_import(pk=made.pk)
    assert len(imports.store_import(pk=made.pk).note) <= 400


@pytest.mark.parametrize("name", ['a"; filename="evil.exe', "a\r\nX-Evil: 1", "../..", "é"])
def test_a_download_is_one_plain_file_whatever_the_checkpoint_is_called(name, researcher, client_of, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    made = Checkpoint.objects.create(name=name, kind="base", base="b", path=str(tmp_path))
    response = client_of(researcher).get(reverse("runs:download", args=[made.pk]))
    assert response.status_code == 200
    header = response.headers["Content-Disposition"]
    assert header.count(";") == 1
    assert header.count('"') in {0, 2}
    assert "/" not in header
    assert "X-Evil" not in response.headers


MOVES = [
    {"turn": "0", "action": "talk", "text": "half \ud800 a pair"},
    {"turn": "0", "action": "talk", "text": "a NUL \x00"},
    {"turn": "0", "action": "propose", "propose.food": "9" * 6000},
    {"turn": "0", "action": "\ud800"},
    {"turn": "\ud800"},
    {"turn": "0", "action": "talk", "text": ["x"]},
]


@pytest.mark.parametrize("data", MOVES, ids=range(len(MOVES)))
def test_a_move_that_is_no_text_or_number_is_refused_in_words(data, player):
    match = seated(player)
    with pytest.raises((BadInput, IllegalMove)) as refused:
        human_moves.play(match_id=match.pk, user=player, data=data)
    assert len(human_moves.explain(refused.value)) < 300
    assert not match.moves.exists()


def test_a_models_reply_with_a_nul_is_a_move_like_any_other(player):
    match = seated(player)
    match.seats.filter(user=player).update(kind="scripted", user=None, scripted="scripted")
    claimed = model_seats.claim(due_id=match.due.get().pk)
    model_seats.answer(answering=model_seats.Answering(claimed).answered("good \x00 morning"))
    assert match.moves.get().move["text"] == "good \ufffd morning"


@pytest.mark.parametrize("page", ["upload", "fork"])
def test_a_name_that_is_taken_between_check_and_use_is_refused_in_the_form(page, researcher, client_of, monkeypatch):
    dataset_version, checked = version(researcher), services.check_name

    def taken_right_after(name):
        checked(name)
        Dataset.objects.create(name=name, owner=researcher)

    monkeypatch.setattr(services, "check_name", taken_right_after)
    file = SimpleUploadedFile("own.jsonl", line_with().encode())
    body = {"format": "jsonl", "chosen": file, "name": "wanted"}
    address = reverse("scenarios:upload") if page == "upload" else reverse("scenarios:fork", kwargs=dataset_version)
    response = client_of(researcher).post(address, body)
    assert response.status_code == 400
    assert "exists already" in response.content.decode()
