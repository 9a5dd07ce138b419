"""Question sets and WebShop's instructions: imports with options, by importer, page, command and API."""

import html
import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from tests.games import test_shop_files as shop_files
from tests.question_sets import files
from training.errors import BadInput
from training.games import make
from training.games.shop import webshop
from webapp.scenarios import importers, imports
from webapp.scenarios.models import Dataset, DatasetVersion, Import

TABLE = files.table(*files.ROWS)


def read(format, path, **options):
    return importers.read(format, path, lambda done, total: None, options)


def read_text(format, tmp_path, text, name="data.json", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read(format, path, **options)


def ids(reading):
    return [line.scenario.id for line in reading.lines]


def test_popqa_becomes_societies_about_rare_subjects(tmp_path):
    reading = read_text("popqa", tmp_path, TABLE, "pop.csv")
    assert reading.errors == []
    assert ids(reading) == ["popqa-12", "popqa-13", "popqa-14"]
    assert reading.notices == [{"where": "pop.csv", "why": "the options leave out 2 questions"}]
    settings = make(reading.lines[1].scenario).settings
    assert (settings.tools, settings.answers) == (("wiki", "pubmed"), ("Linz", "Linz, Austria"))
    assert len(read_text("popqa", tmp_path, TABLE, popularity=1, tools="wiki").lines) == 5


def test_every_broken_line_is_listed_and_nothing_is_read(tmp_path):
    broken = files.lines(files.OPEN[0], {"question": "who"}) + "{\n" + files.lines({"question": "", "answer": ["x"]})
    reading = read_text("nq-open", tmp_path, broken, "nq.jsonl")
    assert reading.lines == []
    assert [error["where"] for error in reading.errors] == [
        "nq.jsonl line 2, answer",
        "nq.jsonl line 3",
        "nq.jsonl line 4, question",
    ]


def test_questions_that_cannot_be_scored_are_notices(tmp_path):
    reading = read_text("nq-open", tmp_path, files.lines(*files.OPEN), "nq.jsonl")
    assert ids(reading) == ["nq-open-1"]
    assert [notice["where"] for notice in reading.notices] == ["nq.jsonl line 2"]


def test_relations_of_entity_questions_are_a_folder_or_one_file(tmp_path):
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("P19.dev.json", "P50.dev.json"):
        (folder / name).write_text(json.dumps(files.RELATION[:1]))
    assert ids(read("entityquestions", folder)) == ["entityquestions-P19.dev-0", "entityquestions-P50.dev-0"]
    assert ids(read("entityquestions", folder / "P50.dev.json")) == ["entityquestions-P50.dev-0"]


def test_an_empty_file_has_no_question(tmp_path):
    for name, text in {"pubmedqa": "{}", "nq-open": "", "entityquestions": "[]", "popqa": files.table()}.items():
        assert read_text(name, tmp_path, text).errors == [{"where": "data.json", "why": "there is no question"}]


@pytest.mark.parametrize(
    "format, options, where",
    [
        ("popqa", {"popularity": 0}, "popularity"),
        ("popqa", {"popularity": "much"}, "popularity"),
        ("nq-open", {"popularity": 0.5}, "popularity"),
        ("pubmedqa", {"gold": "maybe"}, "gold"),
        ("casino", {"gold": "decision"}, "gold"),
        ("webshop", {"catalogue": "/etc"}, "catalogue"),
        ("webshop", {"catalogue": "../models"}, "catalogue"),
        ("webshop", {"catalogue": "small\n"}, "catalogue"),
    ],
)
def test_options_that_do_not_fit_are_named(format, options, where):
    with pytest.raises(BadInput) as raised:
        importers.options_of(format, options)
    assert raised.value.where == where


# --- the shop --------------------------------------------------------------------------------------------------------


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    folder = tmp_path / "catalogues" / "small"
    folder.mkdir(parents=True)
    return shop_files.write(folder)


def test_instructions_of_people_become_visits_to_their_catalogue(catalogue):
    reading = read("webshop", catalogue / "items_human_ins.json", catalogue="small")
    assert reading.errors == []
    whole = webshop.read(catalogue)
    goals = [make(line.scenario).settings.goal for line in reading.lines]
    assert goals == list(whole.goals)
    assert ids(reading)[0] == f"webshop-{goals[0].product}-0"
    assert {line.scenario.settings["sha256"] for line in reading.lines} == {whole.sha256}


def test_instructions_made_from_attributes_are_read_too(catalogue):
    reading = read("webshop", catalogue / "items_ins_v2_1000.json", catalogue="small")
    (catalogue / "items_human_ins.json").unlink()
    assert [line.scenario.settings["goal"]["instruction"] for line in reading.lines] == [
        goal.instruction for goal in webshop.read(catalogue).goals
    ]


def test_products_that_the_catalogue_lacks_are_notices(catalogue, tmp_path):
    instructed = {"B0NOWHERE0": shop_files.HUMAN["B01MUG0001"], **shop_files.HUMAN}
    reading = read_text("webshop", tmp_path, json.dumps(instructed), "more.json", catalogue="small")
    assert "more.json, B0NOWHERE0" in [notice["where"] for notice in reading.notices]
    assert ids(reading) == ids(read("webshop", catalogue / "items_human_ins.json", catalogue="small"))
    only = {"B0NOWHERE0": []}
    assert read_text("webshop", tmp_path, json.dumps(only), catalogue="small").errors[0]["where"] == "data.json"


def test_instructions_with_too_many_combinations_are_refused(catalogue, tmp_path):
    """One product with 8 options of 10 values each: 10⁸ combinations."""
    options = {f"option {number}": [{"value": f"value {value}"} for value in range(10)] for number in range(8)}
    large = catalogue.parent / "large"
    large.mkdir()
    shop_files.write(large, [{**shop_files.PRODUCTS[0], "customization_options": options}])
    instructed = {shop_files.PRODUCTS[0]["asin"]: {"instruction": "a mug", "instruction_attributes": ["blue"]}}
    (error,) = read_text("webshop", tmp_path, json.dumps(instructed), catalogue="large").errors
    assert error["where"] == "data.json"
    assert "more than 100000 goals" in error["why"]


def test_wrong_instructions_and_catalogues_are_named(catalogue, tmp_path):
    text = json.dumps({"B01MUG0001": [{"instruction_attributes": []}]})
    (error,) = read_text("webshop", tmp_path, text, catalogue="small").errors
    assert error == {"where": "data.json, entry B01MUG0001.0, instruction", "why": "missing"}
    assert read_text("webshop", tmp_path, text).errors[0]["where"] == "catalogue"
    assert "no catalogue 'none'" in read_text("webshop", tmp_path, text, catalogue="none").errors[0]["why"]


# --- page, command, API ----------------------------------------------------------------------------------------------


@pytest.fixture
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"


def send(client, **more):
    file = SimpleUploadedFile("pop.csv", TABLE.encode())
    return client.post(reverse("scenarios:upload"), {"format": "popqa", "chosen": file, "name": "rare", **more})


@pytest.mark.django_db
def test_the_options_of_an_upload_are_kept_until_it_is_stored(client_of, researcher, media):
    client = client_of(researcher)
    page = client.get(reverse("scenarios:upload")).content.decode()
    assert 'data-formats="popqa"' in page
    assert "Of the formats: popqa, entityquestions, nq-open, pubmedqa." in page
    address = send(client, **{"option-popularity": "0.1", "option-tools": "wiki"})["Location"]
    made = Import.objects.get()
    assert made.options == {"tools": "wiki", "popularity": 0.1}
    imports.read_import(pk=made.pk)
    page = html.unescape(client.get(address).content.decode())
    assert "<strong>1</strong> scenario " in page
    assert "Option: popularity</dt><dd>0.1" in page
    client.post(reverse("scenarios:import-store", args=[made.pk]))
    imports.store_import(pk=made.pk)
    version = DatasetVersion.objects.get()
    assert version.note == "imported from pop.csv with tools: wiki, popularity: 0.1"
    assert (version.scenarios.get().data["settings"]["tools"], Dataset.objects.get().licence) == (["wiki"], "MIT")


@pytest.mark.django_db
def test_a_wrong_option_stands_beside_its_field_and_an_empty_one_has_its_default(client_of, researcher, media):
    client = client_of(researcher)
    refused = send(client, **{"option-popularity": "2"})
    assert refused.status_code == 400
    assert "id_option-popularity_error" in refused.content.decode()
    assert not Import.objects.exists()
    assert send(client, **{"option-popularity": "", "option-tools": ""}).status_code == 302
    assert Import.objects.get().options == {"tools": "", "popularity": 0.5}


@pytest.mark.django_db
def test_the_command_takes_options(tmp_path):
    path, out = tmp_path / "pop.csv", io.StringIO()
    path.write_text(TABLE)
    arguments = ["import_dataset", "popqa", str(path), "--json", "--option"]
    call_command(*arguments, "popularity=1", "--option", "tools=wiki", "--name", "all", stdout=out)
    assert json.loads(out.getvalue())["scenarios"] == 5
    for wrong, where in (("views=1", "views"), ("popularity", "--option popularity"), ("popularity=", "popularity")):
        out = io.StringIO()
        with pytest.raises(SystemExit, match="2"):
            call_command(*arguments, wrong, "--name", "none", stdout=out)
        assert json.loads(out.getvalue())["errors"][0]["where"] == where
    assert Dataset.objects.count() == 1
