"""Imports: read by a worker, stored on a yes by a worker, and whatever fails leaves nothing."""

import json

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.storage.filesystem import FileSystemStorage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import DatabaseError
from django.urls import reverse
from django.utils import timezone

from tests.webapp.scenarios import files
from training.errors import BadInput
from webapp.core import queue
from webapp.scenarios import imports, services
from webapp.scenarios.clock import forget_unfinished, resend_imports
from webapp.scenarios.importers import reading
from webapp.scenarios.models import Dataset, Import, StoredScenario

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"
    return settings.MEDIA_ROOT


@pytest.fixture
def sent(monkeypatch):
    hints = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **options: hints.append((task.name, args)))
    return hints


def casino_import(owner, content=None, name="camp"):
    file = SimpleUploadedFile("casino.json", (content or files.casino()).encode())
    return imports.upload(owner=owner, format="casino", name=name, files=[file])


def kept(folder):
    """The files below a folder, hidden ones included; empty folders do not count, but an import's own must be gone."""
    return sorted(str(path.relative_to(folder)) for path in folder.glob("imports/**/*"))


def test_an_upload_is_read_by_a_worker_and_stored_by_one_on_a_yes(
    researcher, sent, media, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        made = casino_import(researcher)
    assert sent == [("scenarios.read_import", (made.pk,))]
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert (made.state, made.report["scenarios"], made.report["conversations"]) == ("waiting", 1, 1)
    assert imports.store_import(pk=made.pk) is None  # nobody has said yes
    with django_capture_on_commit_callbacks(execute=True):
        imports.accept_import(pk=made.pk)
        imports.accept_import(pk=made.pk)
    assert sent[1:] == [("scenarios.store_import", (made.pk,))]
    assert Dataset.objects.count() == 0
    with django_capture_on_commit_callbacks(execute=True):
        version = imports.store_import(pk=made.pk)
    assert (version.scenario_count, version.conversation_count, version.dataset.licence) == (1, 1, "CC BY 4.0")
    made.refresh_from_db()
    assert (made.state, made.version) == ("stored", version)
    assert imports.store_import(pk=made.pk) is None
    assert Dataset.objects.count() == 1
    assert kept(media) == []


def test_a_yes_reads_nothing_itself(client_of, researcher, monkeypatch):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    monkeypatch.setattr(imports.importers, "read", lambda *args: pytest.fail("the request read the upload"))
    response = client_of(researcher).post(reverse("scenarios:import-store", args=[made.pk]))
    assert (response.status_code, Import.objects.get().state) == (302, "storing")


def test_a_name_taken_meanwhile_is_reported_at_confirmation(researcher):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    services.create_dataset(name="camp", owner=researcher, lines=[])
    with pytest.raises(BadInput, match="exists already"):
        imports.accept_import(pk=made.pk)
    assert Import.objects.get().state == "waiting"


def test_a_name_taken_after_confirmation_is_reported_on_the_page(researcher, client_of):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    imports.accept_import(pk=made.pk)
    services.create_dataset(name="camp", owner=researcher, lines=[])
    assert imports.store_import(pk=made.pk) is None
    assert (Import.objects.get().state, StoredScenario.objects.count()) == ("waiting", 0)
    page = client_of(researcher).get(reverse("scenarios:import", args=[made.pk])).content.decode()
    assert "exists already; choose another name. Nothing was stored." in page


def test_a_file_that_fails_leaves_no_row_and_no_file(researcher, media, monkeypatch):
    write = FileSystemStorage._save

    def second_fails(storage, name, content):
        if name.endswith("b.jsonl"):
            raise OSError("No space left on device")
        return write(storage, name, content)

    monkeypatch.setattr(FileSystemStorage, "_save", second_fails)
    monkeypatch.setattr(imports.importers, "check_upload", lambda *args: None)
    uploads = [SimpleUploadedFile(name, b"{}") for name in ("a.jsonl", "b.jsonl")]
    with pytest.raises(OSError, match="No space left"):
        imports.upload(owner=researcher, format="jsonl", name="camp", files=uploads)
    assert (Import.objects.count(), kept(media)) == (0, [])


def test_a_transaction_that_fails_leaves_no_row_and_no_file(researcher, media, monkeypatch):
    def fails(*args):
        raise DatabaseError("the connection is lost")

    monkeypatch.setattr(queue, "send", fails)
    with pytest.raises(DatabaseError):
        casino_import(researcher)
    assert (Import.objects.count(), kept(media)) == (0, [])


def test_an_upload_whose_request_died_is_forgotten_after_an_hour(researcher, media):
    folder = "imports/0123"
    default_storage.save(f"{folder}/half.json", ContentFile(b"[{"))
    Import.objects.create(owner=researcher, format="casino", dataset_name="camp", folder=folder, state="uploading")
    assert (forget_unfinished(), len(kept(media))) == (0, 2)  # the folder and its file
    Import.objects.update(created_at="2020-01-01T00:00:00Z")
    assert (forget_unfinished(), Import.objects.count(), kept(media)) == (1, 0, [])


def test_a_missing_upload_is_reported_and_not_retried(researcher, sent):
    made = casino_import(researcher)
    default_storage.delete(f"{made.folder}/casino.json")
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert (made.state, made.report["errors"][0]["where"]) == ("refused", "casino.json")
    assert resend_imports() == 0


@pytest.mark.parametrize(
    "failure, why",
    [
        (OverflowError("too large"), "its importer failed: OverflowError: too large"),
        (BadInput("no such option", "x"), "its importer failed: BadInput: x: no such option"),
    ],
)
def test_an_importer_that_fails_is_reported_and_not_tried_again(researcher, sent, monkeypatch, failure, why):
    made = casino_import(researcher)

    def fail(*_):
        raise failure

    monkeypatch.setattr(imports.importers, "read", fail)
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert (made.state, made.report["errors"]) == ("refused", [{"where": "casino.json", "why": why}])
    sent.clear()
    resend_imports()
    assert sent == []


def test_an_import_that_lost_the_database_is_read_again(researcher, monkeypatch):
    made = casino_import(researcher)

    def fail(*_):
        raise DatabaseError("gone")

    with monkeypatch.context() as away:
        away.setattr(imports.importers, "read", fail)
        with pytest.raises(DatabaseError):
            imports.read_import(pk=made.pk)
    Import.objects.update(claimed_until=timezone.now() - imports.LEASE)
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert made.state == "waiting"


def test_two_files_of_one_name_are_refused(researcher):
    uploads = [SimpleUploadedFile("agent_profiles.jsonl", b"{}") for _ in range(2)]
    with pytest.raises(BadInput, match=r"two files are called agent_profiles\.jsonl"):
        imports.upload(owner=researcher, format="sotopia-jsonl", name="camp", files=uploads)


def test_the_progress_is_the_part_that_has_been_read(researcher, monkeypatch):
    made = casino_import(researcher, files.casino(*[lambda d: None] * 120))
    seen, updates = [], Import.objects.none().__class__.update

    def watched(rows, **values):
        seen.extend([values["progress"]] if "claimed_until" in values else [])
        return updates(rows, **values)

    monkeypatch.setattr(Import.objects.none().__class__, "update", watched)
    imports.read_import(pk=made.pk)
    assert seen == pytest.approx([50 / 120, 100 / 120, 1])
    assert Import.objects.get().progress == 1


def test_a_wrong_file_is_refused_whole(researcher):
    def wrong(dialogue):
        dialogue["chat_logs"][0]["id"] = "x"

    made = casino_import(researcher, files.casino(lambda d: None, wrong))
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert made.state == "refused"
    with pytest.raises(BadInput, match="refused"):
        imports.accept_import(pk=made.pk)
    assert imports.store_import(pk=made.pk) is None
    assert (Dataset.objects.count(), StoredScenario.objects.count()) == (0, 0)


def too_long_for_its_column():
    """A line in our own form, with a source that is longer than the column."""
    settings = {"deal": {"kind": "items", "items": [{"name": "pen", "count": 1}],
                         "sides": [{"values": {"pen": 1}}, {"values": {"pen": 2}}]}}  # fmt: skip
    scenario = {"id": "a", "game": "negotiation", "seats": ["A", "B"], "settings": settings}
    episode = {"scenario": scenario, "moves": [], "returns": {}, "metrics": {}}
    return json.dumps({"scenario": scenario, "conversations": [{"source": "s" * 201, "episode": episode}]})


@pytest.fixture
def unchecked(monkeypatch):
    """Lengths that nobody checks before the database does."""
    monkeypatch.setattr(reading, "LONGEST_SOURCE", 1000)


def test_what_the_database_cannot_hold_is_refused_and_not_tried_again(researcher, sent, unchecked, client_of):
    file = SimpleUploadedFile("own.jsonl", too_long_for_its_column().encode())
    made = imports.upload(owner=researcher, format="jsonl", name="long", files=[file])
    imports.read_import(pk=made.pk)
    imports.accept_import(pk=made.pk)
    assert imports.store_import(pk=made.pk) is None
    made.refresh_from_db()
    assert (made.state, Dataset.objects.count(), resend_imports()) == ("refused", 0, 0)
    page = client_of(researcher).get(reverse("scenarios:import", args=[made.pk])).content.decode()
    assert "the database cannot hold it: value too long" in page


def test_a_source_that_is_too_long_is_refused_when_it_is_read(researcher):
    file = SimpleUploadedFile("own.jsonl", too_long_for_its_column().encode())
    made = imports.upload(owner=researcher, format="jsonl", name="long", files=[file])
    imports.read_import(pk=made.pk)
    made.refresh_from_db()
    assert (made.state, made.report["errors"][0]["where"]) == ("refused", "own.jsonl line 1, conversations.0.source")


def test_a_dropped_upload_stores_nothing(researcher, media, django_capture_on_commit_callbacks):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    with django_capture_on_commit_callbacks(execute=True):
        imports.drop_import(pk=made.pk)
    with pytest.raises(BadInput, match="dropped"):
        imports.accept_import(pk=made.pk)
    assert kept(media) == []


def test_an_import_is_read_once_while_its_lease_holds(researcher):
    made = casino_import(researcher)
    assert imports.claim_import(pk=made.pk) is not None
    assert imports.claim_import(pk=made.pk) is None
    Import.objects.update(claimed_until="2020-01-01T00:00:00Z")
    assert imports.claim_import(pk=made.pk) is not None


def test_one_that_is_dropped_while_it_is_stored_is_not_stored(researcher, monkeypatch):
    made = casino_import(researcher)
    imports.read_import(pk=made.pk)
    imports.accept_import(pk=made.pk)
    read = imports.importers.read

    def dropped_meanwhile(*args):
        imports.drop_import(pk=made.pk)
        return read(*args)

    monkeypatch.setattr(imports.importers, "read", dropped_meanwhile)
    assert imports.store_import(pk=made.pk) is None
    assert (Import.objects.get().state, Dataset.objects.count()) == ("dropped", 0)


def test_the_clock_sends_what_waits_for_a_worker_again(researcher, sent):
    made = casino_import(researcher)
    assert resend_imports() == 1
    assert sent == [("scenarios.read_import", (made.pk,))]
    imports.read_import(pk=made.pk)
    assert resend_imports() == 0
    imports.accept_import(pk=made.pk)
    assert resend_imports() == 1
    assert sent[1:] == [("scenarios.store_import", (made.pk,))]


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
    counts = {"scenarios": 1, "conversations": 1, "judgments": 0, "labels": 0}
    assert (code, printed) == (0, {**counts, "errors": [], "notices": []})
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


def test_the_command_exits_2_for_what_the_database_cannot_hold(admin, tmp_path, capsys, unchecked):
    path = tmp_path / "own.jsonl"
    path.write_text(too_long_for_its_column())
    code, printed = run_import(capsys, "jsonl", str(path), "--name", "long")
    assert (code, Dataset.objects.count()) == (2, 0)
    assert "the database cannot hold it" in printed["errors"][0]["why"]
