"""Writes of datasets: versions, edits, forks; and that bad input changes nothing."""

import errno
import json
import os

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from tests.trust.matrix.scenarios import SCENARIO, stored_version
from tests.webapp.runs.making import make_run
from tests.webapp.scenarios import files
from training.dataset import DatasetLine
from training.errors import BadInput
from webapp.scenarios import imports, services
from webapp.scenarios.models import Dataset, DatasetVersion, StoredConversation, StoredScenario
from webapp.scenarios.signals import version_stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"


def imported(owner):
    """A dataset named camp, of one dialogue with its conversation."""
    file = SimpleUploadedFile("casino.json", files.casino().encode())
    made = imports.upload(owner=owner, format="casino", name="camp", files=[file])
    imports.read_import(pk=made.pk)
    imports.accept_import(pk=made.pk)
    return imports.store_import(pk=made.pk)


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
    first = imported(researcher)
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


def test_an_edit_that_would_drop_a_later_one_changes_nothing(researcher):
    first = stored_version(researcher)
    stored = first.scenarios.get()
    services.change_scenario(stored=stored, scenario=SCENARIO.with_seed(1), by=researcher)
    with pytest.raises(BadInput, match="v2 has been created since"):
        services.change_scenario(stored=stored, scenario=SCENARIO.with_seed(2), by=researcher)
    assert [line.scenario.seed for line in services.lines_of(first.dataset.newest())] == [1]


def test_a_fork_has_the_same_hash_and_names_its_origin(researcher, other_researcher):
    version = stored_version(researcher)
    copy = services.fork(version=version, name="mine", by=other_researcher)
    assert (copy.sha256, copy.dataset.forked_from, copy.dataset.owner) == (version.sha256, version, other_researcher)


def test_a_stored_version_is_announced_inside_its_transaction(researcher):
    announced = []

    def receive(sender, version, **_):
        announced.append((sender, version.scenario_count, version.scenarios.count(), version.sha256 != ""))
        raise ZeroDivisionError

    version_stored.connect(receive)
    try:
        with pytest.raises(ZeroDivisionError):
            stored_version(researcher)
    finally:
        version_stored.disconnect(receive)
    assert announced == [(DatasetVersion, 1, 1, True)]
    assert not DatasetVersion.objects.exists()


def test_the_hash_is_that_of_the_export(researcher, tmp_path):
    import hashlib

    version = imported(researcher)
    path = tmp_path / "out.jsonl"
    call_command("export_dataset", "camp", "--output", str(path))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == version.sha256


def test_the_command_writes_to_standard_output_what_it_writes_to_a_file(researcher, tmp_path, capsys):
    version = imported(researcher)
    services.change_scenario(stored=version.scenarios.get(), scenario=SCENARIO, by=researcher)
    for options, number in (([], 2), (["--number", "1"], 1)):
        path = tmp_path / f"v{number}.jsonl"
        call_command("export_dataset", "camp", "--number", str(number), "--output", str(path))
        capsys.readouterr()
        call_command("export_dataset", "camp", *options)
        written = capsys.readouterr()
        assert written.out == path.read_text()
        assert written.err == ""
        lines = [DatasetLine.from_dict(json.loads(line)) for line in written.out.splitlines()]
        assert [line.scenario.id for line in lines] == [{1: "casino-7", 2: SCENARIO.id}[number]]


@pytest.mark.parametrize("arguments", [["nope"], ["camp", "--number", "9"]])
def test_an_empty_export_is_reported_and_exits_2(researcher, capsys, arguments):
    imported(researcher)
    with pytest.raises(CommandError) as refused:
        call_command("export_dataset", *arguments)
    assert refused.value.returncode == 2
    assert capsys.readouterr().out == ""


def test_an_export_replaces_a_file_only_when_it_is_forced(researcher, tmp_path):
    imported(researcher)
    path = tmp_path / "out.jsonl"
    path.write_text("mine")
    with pytest.raises(CommandError, match="exists already; --force replaces it") as refused:
        call_command("export_dataset", "camp", "--output", str(path))
    assert (refused.value.returncode, path.read_text()) == (2, "mine")
    call_command("export_dataset", "camp", "--output", str(path), "--force")
    assert "casino-7" in path.read_text()
    assert [left.name for left in tmp_path.iterdir() if left.is_file()] == ["out.jsonl"]


def test_an_export_that_fails_leaves_the_old_file(researcher, tmp_path, monkeypatch):
    imported(researcher)
    path = tmp_path / "out.jsonl"
    path.write_text("mine")

    def full(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(DatasetLine, "dumps", full)
    with pytest.raises(CommandError, match="cannot be written: No space left on device") as refused:
        call_command("export_dataset", "camp", "--output", str(path), "--force")
    assert (refused.value.returncode, path.read_text()) == (2, "mine")
    assert [left.name for left in tmp_path.iterdir() if left.is_file()] == ["out.jsonl"]


@pytest.mark.parametrize("output, why", [("/dev/null", "is not a file"), ("nowhere/out.jsonl", "No such file")])
def test_an_export_to_where_no_file_can_be_is_refused(researcher, tmp_path, monkeypatch, output, why):
    imported(researcher)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=why) as refused:
        call_command("export_dataset", "camp", "--output", output, "--force")
    assert refused.value.returncode == 2


def test_exporting_takes_a_fixed_number_of_queries(researcher, django_assert_num_queries):
    lines = [DatasetLine(scenario=SCENARIO.model_copy(update={"id": f"s{n}"})) for n in range(40)]
    version = services.create_dataset(name="many", owner=researcher, lines=lines)
    with django_assert_num_queries(2):
        assert len(list(services.lines_of(version))) == 40
