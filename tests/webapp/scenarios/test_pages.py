"""Pages of the datasets, as a researcher uses them."""

import html
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.html import escape

from tests.trust.matrix.scenarios import SCENARIO, stored_version
from tests.webapp.judgments.make import FIVES, annotate, conversation, conversation_queue, imported, outside
from tests.webapp.runs.making import make_run
from tests.webapp.scenarios import files
from training.dataset import DatasetLine
from training.records import Scenario
from webapp.scenarios import importers, imports, services
from webapp.scenarios.models import Dataset, Import, StoredScenario

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"


@pytest.fixture
def client(client_of, researcher):
    return client_of(researcher)


def post_upload(client, name="camp", content=None):
    file = SimpleUploadedFile("casino.json", (content or files.casino()).encode())
    return client.post(reverse("scenarios:upload"), {"format": "casino", "chosen": file, "name": name})


def test_an_empty_list_names_the_next_step(client):
    page = client.get(reverse("scenarios:list")).content.decode()
    assert "There is no dataset yet" in page
    assert reverse("scenarios:upload") in page


def test_the_whole_way_of_an_upload(client):
    address = post_upload(client)["Location"]
    made = Import.objects.get()
    assert "Waiting for a worker" in client.get(address).content.decode()
    imports.read_import(pk=made.pk)
    page = client.get(address).content.decode()
    assert "<strong>1</strong> scenario and <strong>1</strong> conversation" in page
    said_yes = client.post(reverse("scenarios:import-store", args=[made.pk]), follow=True)
    assert "Storing it as camp" in said_yes.content.decode()
    imports.store_import(pk=made.pk)
    watched = client.get(address, headers={"HX-Request": "true"})
    assert watched["HX-Redirect"] == reverse("scenarios:version", args=["camp", 1])
    assert "HX-Redirect" not in client.get(address)
    assert watched["HX-Redirect"] in client.get(address).content.decode()
    assert "casino-7" in client.get(watched["HX-Redirect"]).content.decode()


def test_a_watched_import_reports_each_state_once(client):
    address = post_upload(client)["Location"]
    made = Import.objects.get()

    def asked_by(page):
        """What a page that stands asks for, and gets."""
        asked = re.search(rf'hx-get="({address}[^"]+)"', page)[1]
        return client.get(html.unescape(asked), headers={"HX-Request": "true"})

    page = client.get(address).content.decode()
    assert asked_by(page).status_code == 204, "nothing is new"
    Import.objects.filter(pk=made.pk).update(state="reading", progress=0.25)
    reading = asked_by(page).content.decode()
    assert '<p id="import-status" hx-swap-oob="innerHTML">' in reading
    assert "Reading and checking" in reading
    Import.objects.filter(pk=made.pk).update(progress=0.5)
    further = asked_by(reading).content.decode()
    assert 'value="0.5"' in further
    assert "Reading and checking" not in further, "it was said"
    Import.objects.filter(pk=made.pk).update(state="queued")
    imports.read_import(pk=made.pk)
    done = asked_by(further).content.decode()
    assert "<strong>1</strong> conversation were read" in done
    assert "Store it" in done
    assert "hx-get" not in done


def test_a_refused_upload_shows_every_error_with_its_place(client):
    def wrong(dialogue):
        dialogue["chat_logs"][0]["id"] = "<b>nobody</b>"

    address = post_upload(client, content=files.casino(wrong))["Location"]
    imports.read_import(pk=Import.objects.get().pk)
    page = client.get(address).content.decode()
    assert "casino.json, dialogue 0, chat_logs.0, id" in page
    assert "&lt;b&gt;nobody&lt;/b&gt;" in page
    assert "Store it" not in page


TALK = Scenario.from_dict(
    {
        "id": "talk",
        "game": "dialogue",
        "seats": ["Ann", "Ben"],
        "settings": {
            "scenario": "Two neighbours meet.",
            "relationship": 2,
            "participants": [{"goal": "Borrow a ladder.", "profile": {"moral_values": []}}, {"goal": "Chat."}],
        },
    }
)


PRIORITIES = ("Camper 1: food 5, firewood 4, water 3", "Camper 2: water 5, food 4, firewood 3")
"""Of the one dialogue in `files`, by hand."""


def test_scenarios_of_one_title_are_distinguished_in_the_preview_and_the_dataset(client, player, client_of):
    def swapped(dialogue):
        info = dialogue["participant_info"]
        values = info["mturk_agent_1"]["value2issue"]
        values["Medium"], values["Low"] = values["Low"], values["Medium"]

    address = post_upload(client, content=files.casino(lambda d: None, swapped))["Location"]
    pk = Import.objects.get().pk
    imports.read_import(pk=pk)
    pages = [client.get(address).content.decode()]
    imports.accept_import(pk=pk)
    imports.store_import(pk=pk)
    pages.append(client.get(reverse("scenarios:version", args=["camp", 1])).content.decode())
    for page in pages:
        assert page.count("<strong>food 3, water 3, firewood 3</strong>") == 2
        assert page.count(PRIORITIES[0]) == 1
        assert page.count(PRIORITIES[1]) == 2
        assert page.count("Camper 1: food 5, water 4, firewood 3") == 1
    stored = StoredScenario.objects.first()
    shown = client.get(reverse("arena:new"), {"scenario": stored.pk}).content.decode()
    assert f"food 3, water 3, firewood 3 ({stored.key})" in shown  # who plays it chooses by the id alone
    assert "food 5" not in shown
    assert client_of(player).get(reverse("scenarios:version", args=["camp", 1])).status_code == 404


@pytest.mark.parametrize("count, is_open, listed", [(3, True, 3), (28, False, 28), (450, False, 200)])
def test_notices_are_listed_with_their_place_however_many_they_are(client, count, is_open, listed):
    spare = {f"{files.PREFIX}EnvironmentProfile:x{n}": {**files.ENVIRONMENT, "pk": f"x{n}"} for n in range(count - 1)}
    stray = {f"{files.PREFIX}Stray:1": {}}
    file = SimpleUploadedFile("dump.json", json.dumps(files.redis_dump(**stray, **spare)).encode())
    form = {"format": "sotopia-redis", "chosen": file, "name": "social"}
    address = client.post(reverse("scenarios:upload"), form)["Location"]
    imports.read_import(pk=Import.objects.get().pk)
    page = client.get(address).content.decode()
    section = page[page.index('<details id="notices"') :]
    assert f"{count} notices: left out, and why" in section
    assert section.startswith('<details id="notices" open>') == is_open
    assert section.count("<tr><td") == listed
    assert f"dump.json, {files.PREFIX}EnvironmentProfile:x0" in section
    assert "a record of another class (Stray)" in section
    assert (f"the first 200 of {count}" in section) == (count > 200)
    assert "Nora Lind: Get the big shelf (Extra information: you bake)" in page


@pytest.mark.parametrize(
    "data, message",
    [
        ({"format": "casino", "name": "camp"}, "This field is required"),
        ({"format": "nope", "name": "camp"}, "Select a valid choice"),
        ({"format": "sotopia-jsonl", "name": "camp"}, "missing agent_profiles.jsonl"),
        ({"format": "casino", "name": "import"}, "not import or imports"),
    ],
)
def test_a_wrong_form_says_what_is_wrong_and_stores_nothing(client, data, message):
    if message != "This field is required":
        data = {**data, "chosen": SimpleUploadedFile("casino.json", b"[]")}
    response = client.post(reverse("scenarios:upload"), data)
    assert response.status_code == 400
    assert message in response.content.decode()
    assert Import.objects.count() == 0


def test_a_recorded_village_shows_its_roles_beside_the_conversation(client, researcher, tmp_path):
    (tmp_path / "six.jsonl").write_text(files.six(files.SIX_SAVED, files.VILLAGE))
    reading = importers.read("werewolf6", tmp_path / "six.jsonl", lambda done, total: None)
    services.create_dataset(name="villages", owner=researcher, lines=reading.lines)
    page = client.get("/datasets/villages/v1/scenarios/werewolf6-1/").content.decode()
    roles = "Ana: villager, Bo: werewolf, Cy: seer, Di: werewolf, Ed: witch, Flo: villager"
    assert page.index("What chance decides") < page.index("Conversation") < page.index(roles)


def test_the_list_filters_and_takes_a_fixed_number_of_queries(client, researcher, django_assert_max_num_queries):
    for _ in range(6):
        stored_version(researcher)
    services.create_dataset(name="other", owner=researcher, lines=[DatasetLine(scenario=SCENARIO)], source="Mars")
    with django_assert_max_num_queries(8):
        client.get(reverse("scenarios:list"))
    page = client.get(reverse("scenarios:list"), {"q": "mars"}).content.decode()
    assert "other" in page
    assert "pens-" not in page


@pytest.mark.parametrize(
    "order, names", [("", ["b", "a"]), ("latest", ["a", "b"]), ("name", ["a", "b"]), ("-name", ["b", "a"])]
)
def test_the_list_has_the_orders_that_it_offers(client, researcher, order, names):
    for name in ("a", "b"):
        services.create_dataset(name=name, owner=researcher, lines=[])
    answer = client.get(reverse("scenarios:list"), {"order": order})
    assert [row.name for row in answer.context["page"]] == names
    selected = re.findall(r'<option value="([^"]*)" selected>(?:newest|oldest|by)', answer.content.decode())
    assert selected == [order if order in {"latest", "name"} else "-latest"]


def test_the_list_says_when_a_dataset_was_last_used(client, researcher):
    used, unused = stored_version(researcher), stored_version(researcher)
    runs = [make_run(researcher, dataset_version=used) for _ in range(2)]
    rows = {row.name: row.used for row in client.get(reverse("scenarios:list")).context["page"]}
    assert rows == {used.dataset.name: runs[-1].created_at, unused.dataset.name: None}


def test_a_fragment_is_only_the_results(client, researcher):
    stored_version(researcher)
    part = client.get(reverse("scenarios:list"), headers={"HX-Request": "true"}).content.decode()
    assert "<table>" in part
    assert "<html" not in part


def test_a_scenario_page_shows_what_each_seat_sees(client, researcher):
    version = stored_version(researcher)
    address = reverse("scenarios:scenario", args=[version.dataset.name, 1, "pens"])
    page = client.get(address).content.decode()
    assert "Ann sees" in page
    assert "Ben sees" in page


def refused_moves(stored):
    row = stored.conversations.get(position=0)
    row.data["moves"].reverse()
    row.save()


def refused_settings(stored):
    stored.data["settings"] = {**stored.data["settings"], "of an earlier release": 1}
    stored.save()


@pytest.mark.parametrize(
    "refuse, why",
    [
        (refused_moves, "The present rules do not allow its moves: seat 1 is not to act."),
        (refused_settings, "The present rules do not play this scenario: settings.of an earlier release: "),
    ],
)
def test_what_the_present_rules_refuse_is_shown_with_the_reason(client, researcher, refuse, why):
    version = imported(researcher, conversation(0), conversation(1))
    stored = version.scenarios.get()
    refuse(stored)
    for name, *rest in (("version",), ("edit", stored.key), ("scenario", stored.key)):
        response = client.get(reverse(f"scenarios:{name}", args=["imported", 1, *rest]), follow=True)
        assert response.status_code == 200, name
    page = html.unescape(response.content.decode())
    assert why in page
    assert "One pen is enough for me." in page, "the other conversation"


def test_what_others_said_of_a_conversation_is_hidden_until_ones_own_judgment(client, client_of, researcher, admin):
    record = outside("gpt-4", 0, dict.fromkeys(FIVES, 4.0))
    version = imported(researcher, conversation(0, (record,)), conversation(1, (record,)))
    queue = conversation_queue(researcher, version)
    address = reverse("scenarios:scenario", args=["imported", 1, version.scenarios.get().key])
    judge = reverse("judgments:annotate", args=[queue.pk])
    shown = []
    for target in queue.targets.order_by("position"):
        page = client.get(address).content.decode()
        shown.append((page.count("gpt-4"), page.count(f'href="{judge}"')))
        annotate(target=target, by=researcher, values=dict.fromkeys(FIVES, 5.0))
    assert shown == [(0, 2), (0, 2), (1, 1), (1, 1)]
    assert client.get(address).content.decode().count("gpt-4") == 2
    assert client_of(admin).get(address).content.decode().count("gpt-4") == 2, "nothing waits for them"


def form_data(page_form, **changes):
    data = {}
    for field in page_form:
        value = field.value()
        if value is not None and value is not False:
            data[field.html_name] = value
    return {**data, **changes}


def edit_address(version):
    return reverse("scenarios:edit", args=[version.dataset.name, version.number, "pens"])


def test_an_edit_saves_the_next_version(client, researcher):
    version = stored_version(researcher)
    form = client.get(edit_address(version)).context["form"]
    name = form.add_prefix('["deal", "items", 0, "count"]')
    response = client.post(edit_address(version), form_data(form, **{name: "5"}), follow=True)
    assert "Saved as" in response.content.decode()
    newest = Dataset.objects.get().newest()
    assert newest.number == 2
    assert newest.scenarios.get().data["settings"]["deal"]["items"][0]["count"] == 5


def test_an_edit_that_cannot_be_played_blames_the_field(client, researcher):
    version = stored_version(researcher)
    form = client.get(edit_address(version)).context["form"]
    name = form.add_prefix('["turn_limit"]')
    response = client.post(edit_address(version), form_data(form, **{name: "1"}))
    assert response.status_code == 400
    assert "Must be at least 2." in response.content.decode()
    assert Dataset.objects.get().versions.count() == 1


@pytest.mark.parametrize(
    "typed, why",
    [
        ('["\\u0000"]', "contains a NUL character"),
        ('["\\ud800"]', "unpaired surrogate"),
        ("[" * 100_000, "Enter a valid JSON"),
        ("9" * 5000, "Enter a valid JSON"),
        ("[NaN]", "Enter a valid JSON"),
    ],
    ids=["nul", "surrogate", "deep", "digits", "nan"],
)
def test_json_that_cannot_be_stored_is_refused_and_stays_as_it_was_typed(client, researcher, typed, why):
    services.create_dataset(name="talks", owner=researcher, lines=[DatasetLine(scenario=TALK)])
    address = reverse("scenarios:edit", args=["talks", 1, "talk"])
    form = client.get(address).context["form"]
    name = form.add_prefix('["participants", 0, "profile", "moral_values"]')
    response = client.post(address, form_data(form, **{name: typed}))
    page = response.content.decode()
    assert response.status_code == 400
    assert why in page
    assert escape(typed) in page
    assert Dataset.objects.get().versions.count() == 1


def test_an_edit_of_an_older_version_is_refused_and_kept(client, researcher):
    version = stored_version(researcher)
    form = client.get(edit_address(version)).context["form"]
    data = form_data(form, note="three pens are too few")
    first = form.add_prefix('["deal", "items", 0, "count"]')
    assert client.post(edit_address(version), {**data, first: "5"}).status_code == 302
    refused = client.post(edit_address(version), {**data, form.add_prefix('["turn_limit"]'): "37"})
    page = refused.content.decode()
    assert refused.status_code == 409
    assert f"{version.dataset.name} v2 has been created since" in page
    assert reverse("scenarios:newest", args=[version.dataset.name]) in page
    assert 'value="37"' in page
    assert 'value="three pens are too few"' in page
    newest = Dataset.objects.get().newest()
    assert (newest.number, newest.scenarios.get().data["settings"]["deal"]["items"][0]["count"]) == (2, 5)
    assert "v2 has been created since" in client.get(edit_address(version)).content.decode(), "said before it is tried"


def test_a_preview_shows_the_new_rules_and_saves_nothing(client, researcher):
    version = stored_version(researcher)
    form = client.get(edit_address(version)).context["form"]
    data = form_data(form, **{form.add_prefix('["turn_limit"]'): "37", "preview": "1"})
    page = client.post(edit_address(version), data, headers={"HX-Request": "true"}).content.decode()
    assert "37" in page
    assert Dataset.objects.get().versions.count() == 1


def test_deleting_asks_for_unused_versions_only(client, researcher):
    from webapp.runs.models import Run

    version = stored_version(researcher)
    run = Run.objects.create(
        kind="train", name="r", owner=researcher, queue="train-cpu", config={}, dataset_version=version
    )
    address = reverse("scenarios:delete", args=[version.dataset.name])
    assert "still used by run r: delete that first" in client.post(address, follow=True).content.decode()
    run.delete()
    client.post(address)
    assert Dataset.objects.count() == 0


def test_an_export_is_the_lines_with_their_hash(client, researcher):
    import hashlib

    version = stored_version(researcher)
    response = client.get(reverse("scenarios:export", args=[version.dataset.name, 1]))
    body = b"".join(response.streaming_content)
    assert hashlib.sha256(body).hexdigest() == response["X-Content-SHA256"]
    assert response["Content-Disposition"].endswith('-v1.jsonl"')
