"""Writes of datasets: versions, edits, forks, imports; and that bad input changes nothing."""

import json

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from tests.trust.matrix.scenarios import SCENARIO, stored_version
from tests.webapp.runs.making import make_run
from tests.webapp.scenarios import files
from training.dataset import DatasetLine
from training.errors import BadInput
from webapp.core import queue
from webapp.scenarios import imports, services
from webapp.scenarios.models import Dataset, Import, StoredConversation, StoredScenario

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"


@pytest.fixture
def sent(monkeypatch):
    hints = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **options: hints.append((task.name, args)))
    return hints


def casino_import(owner, content=None, name="camp"):
    file = SimpleUploadedFile("casino.json", (content or files.casino()).encode())
    return imports.upload(owner=owner, format="casino", name=name, files=[file])


def test_an_upload_is_read_by_a_worker_and_stored_on_a_yes(researcher, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        made = casino_import(researcher)
    assert sent == [("scenarios.read_import", (made.pk,))]
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert (made.state, made.report["scenarios"], made.report["conversations"]) == ("waiting", 1, 1)
    assert Dataset.objects.count() == 0
    with django_capture_on_commit_callbacks(execute=True):
        version = imports.store_import(pk=made.pk)
    assert (version.scenario_count, version.conversation_count, version.dataset.licence) == (1, 1, "CC BY 4.0")
    assert imports.store_import(pk=made.pk) == version
    assert not default_storage.exists(f"{made.folder}/casino.json")


def test_a_wrong_file_is_refused_whole(researcher):
    def wrong(dialogue):
        dialogue["chat_logs"][0]["id"] = "x"

    made = casino_import(researcher, files.casino(lambda d: None, wrong))
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert made.state == "refused"
    with pytest.raises(BadInput, match="refused"):
        imports.store_import(pk=made.pk)
    assert (Dataset.objects.count(), StoredScenario.objects.count()) == (0, 0)


def test_a_dropped_upload_stores_nothing(researcher, django_capture_on_commit_callbacks):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    with django_capture_on_commit_callbacks(execute=True):
        imports.drop_import(pk=made.pk)
    with pytest.raises(BadInput):
        imports.store_import(pk=made.pk)
    assert not default_storage.exists(f"{made.folder}/casino.json")


def test_an_import_is_read_once_while_its_lease_holds(researcher):
    made = casino_import(researcher)
    assert imports.claim_import(pk=made.pk) is not None
    assert imports.claim_import(pk=made.pk) is None
    Import.objects.update(claimed_until="2020-01-01T00:00:00Z")
    assert imports.claim_import(pk=made.pk) is not None


def test_the_clock_sends_unread_uploads_again(researcher, sent):
    from webapp.scenarios.clock import resend_imports

    made = casino_import(researcher)
    assert resend_imports() == 1
    assert sent == [("scenarios.read_import", (made.pk,))]
    imports.read_import(pk=made.pk)
    assert resend_imports() == 0


def test_a_dataset_that_a_run_needs_stays(researcher):
    version = stored_version(researcher)
    run = make_run(researcher, name="needs it", dataset_version=version)
    with pytest.raises(BadInput, match="still used by run needs it") as refused:
        services.delete_dataset(dataset=version.dataset)
    assert refused.value.where == version.dataset.name
    assert StoredScenario.objects.filter(version=version).exists()
    run.delete()
    services.delete_dataset(dataset=version.dataset)
    assert (Dataset.objects.count(), StoredScenario.objects.count()) == (0, 0)


def test_a_name_is_given_once(researcher, other_researcher):
    name = stored_version(researcher).dataset.name
    with pytest.raises(BadInput, match="exists already"):
        services.create_dataset(name=name, owner=other_researcher, lines=[])
    assert Dataset.objects.count() == 1


@pytest.mark.parametrize("name", ["", "a b", "import", "x" * 81, "../etc"])
def test_a_name_must_be_an_address(researcher, name):
    with pytest.raises(BadInput, match="letters, digits"):
        services.create_dataset(name=name, owner=researcher, lines=[])


def test_an_edit_makes_the_next_version_and_leaves_the_old_one(researcher):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    first = imports.store_import(pk=made.pk)
    stored = first.scenarios.get()
    changed = SCENARIO.model_copy(update={"id": stored.key})
    second = services.change_scenario(stored=stored, scenario=changed, by=researcher)
    assert (second.number, second.scenario_count, second.conversation_count) == (2, 1, 0)
    assert [line.scenario for line in services.lines_of(second)] == [changed]
    assert (first.scenarios.count(), StoredConversation.objects.count()) == (1, 1)


def test_an_unplayable_edit_changes_nothing(researcher):
    version = stored_version(researcher)
    wrong = SCENARIO.model_copy(update={"settings": {**SCENARIO.settings, "turn_limit": 1}})
    with pytest.raises(BadInput, match="turn_limit"):
        services.change_scenario(stored=version.scenarios.get(), scenario=wrong, by=researcher)
    assert version.dataset.versions.count() == 1


def test_a_fork_has_the_same_hash_and_names_its_origin(researcher, other_researcher):
    version = stored_version(researcher)
    copy = services.fork(version=version, name="mine", by=other_researcher)
    assert (copy.sha256, copy.dataset.forked_from, copy.dataset.owner) == (version.sha256, version, other_researcher)


def test_the_hash_is_that_of_the_export(researcher, tmp_path):
    import hashlib

    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    version = imports.store_import(pk=made.pk)
    path = tmp_path / "out.jsonl"
    call_command("export_dataset", "camp", "--output", str(path))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == version.sha256


def test_exporting_takes_a_fixed_number_of_queries(researcher, django_assert_num_queries):
    lines = [DatasetLine(scenario=SCENARIO.model_copy(update={"id": f"s{n}"})) for n in range(40)]
    version = services.create_dataset(name="many", owner=researcher, lines=lines)
    with django_assert_num_queries(2):
        assert len(list(services.lines_of(version))) == 40


def run_import(capsys, *args):
    try:
        call_command("import_dataset", *args, "--json")
        code = 0
    except SystemExit as stopped:
        code = stopped.code
    return code, json.loads(capsys.readouterr().out)


def test_the_command_stores_and_prints_one_object(admin, tmp_path, capsys):
    path = tmp_path / "casino.json"
    path.write_text(files.casino())
    code, printed = run_import(capsys, "casino", str(path), "--name", "camp")
    assert (code, printed) == (0, {"scenarios": 1, "conversations": 1, "errors": [], "notices": []})
    assert Dataset.objects.get().owner == admin


@pytest.mark.parametrize(
    "name, path, where",
    [("camp", "missing.json", "missing.json"), ("a b", "casino.json", "name"), ("camp", ".", "")],
)
def test_the_command_exits_2_and_stores_nothing(admin, tmp_path, capsys, name, path, where):
    (tmp_path / "casino.json").write_text(files.casino())
    code, printed = run_import(capsys, "casino", str(tmp_path / path), "--name", name)
    assert code == 2
    assert where in printed["errors"][0]["where"]
    assert Dataset.objects.count() == 0
