"""The whole way of files where the storage is a bucket: there are no local paths, and no node sees another's disk."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests import bucket
from tests.webapp.runs.making import make_checkpoint
from tests.webapp.scenarios import files as sample
from training import bases
from training.errors import BadInput
from training.rundir import AttemptDir, RunDir
from training.store import append_line, verify_directory
from webapp.core import files
from webapp.runs import attempts, services
from webapp.runs.models import Run
from webapp.scenarios import imports
from worker import kinds, lifecycle, publishing
from worker.supervise import supervise
from worker.tail import Tail

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture(autouse=True)
def stored(settings):
    settings.STORAGES = bucket.SETTINGS
    with pytest.raises(NotImplementedError):
        default_storage.path("x")
    return default_storage.objects


@pytest.fixture
def signed_in(client_of, researcher):
    return client_of(researcher)


def test_the_storage_of_a_bucket_loads_and_asks_nobody_yet():
    code = "import django; django.setup(); from django.core.files.storage import default_storage as s; print(s.bucket)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.settings", "PARLEY_BUCKET": "parley-files"}
    environment |= {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}
    environment |= {"AWS_DEFAULT_REGION": "nowhere-1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "s3.Bucket(name='parley-files')"


def import_by_page(client):
    file = SimpleUploadedFile("casino.json", sample.casino().encode())
    sent = client.post(reverse("scenarios:upload"), {"format": "casino", "chosen": file, "name": "camp"})
    pk = int(sent["Location"].rstrip("/").split("/")[-1])
    imports.read_import(pk=pk)
    client.post(reverse("scenarios:import-store", args=[pk]))
    version = imports.store_import(pk=pk)
    assert version is not None
    return version


def test_a_dataset_is_imported_exported_and_given_to_a_run(signed_in, researcher, stored, tmp_path):
    version = import_by_page(signed_in)
    assert list(stored) == []  # the upload is forgotten
    response = signed_in.get(reverse("scenarios:export", args=["camp", 1]))
    exported = b"".join(response.streaming_content)
    assert json.loads(exported)["scenario"]["id"] == "casino-7"
    assert kinds.put_dataset(version, RunDir(tmp_path)).read_bytes() == exported


def test_a_dropped_upload_is_gone(signed_in, stored):
    file = SimpleUploadedFile("casino.json", sample.casino().encode())
    signed_in.post(reverse("scenarios:upload"), {"format": "casino", "chosen": file, "name": "camp"})
    assert len(stored) == 1
    signed_in.post(reverse("scenarios:import-drop", args=[imports.Import.objects.get().pk]))
    assert list(stored) == []


def test_a_run_is_given_its_checkpoints_as_local_folders(make_run, quick, tmp_path):
    run = make_run()
    run.start_checkpoint = make_checkpoint(None, name="start", base="tiny")
    run.opponent_checkpoint = make_checkpoint(None, name="rival", base="tiny")
    filled = kinds.filled_in(run, RunDir(tmp_path))
    for path, name in ((filled["model"]["base"], "start"), (filled["evaluate"]["opponent"], "rival")):
        assert path == str(tmp_path / "inputs" / name)
        assert (tmp_path / "inputs" / name / "model.safetensors").read_bytes() == b"weights"


def test_a_checkpoint_with_missing_files_is_reported(make_run, quick, tmp_path, stored):
    run = make_run()
    run.start_checkpoint = make_checkpoint(None, name="start", base="tiny")
    stored.clear()
    with pytest.raises(BadInput, match="its files are gone"):
        kinds.filled_in(run, RunDir(tmp_path))


def test_a_checkpoint_is_downloaded_and_deleted(signed_in, make_run, stored):
    run = make_run()
    checkpoint = make_checkpoint(run)
    address = reverse("runs:download", args=[checkpoint.pk])
    with zipfile.ZipFile(io.BytesIO(b"".join(signed_in.get(address).streaming_content))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "config.json": b"{}",
            "model.safetensors": b"weights",
        }
    kept = dict(stored)
    stored.clear()
    assert signed_in.get(address).status_code == 404
    stored.update(kept)
    services.delete_checkpoint(checkpoint=checkpoint)
    assert list(stored) == []


def test_a_run_leaves_its_episodes_and_checkpoints_in_the_bucket(make_run, quick, stored):
    run = make_run(steps=5)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("succeeded", "")
    quick.RUNS_ROOT.rename(quick.RUNS_ROOT.with_name("elsewhere"))  # the site is another machine
    episode = run.episodes.get(step=3, number=1)
    assert files.read_member(episode.file, episode.offset, episode.length)["episode"] == {"scenario": "s1"}
    assert f"{run.checkpoints.get().path}/manifest.json" in stored
    quick.RUNS_ROOT.with_name("elsewhere").rename(quick.RUNS_ROOT)
    services.delete_run(run=run)
    assert list(stored) == []
    assert list(quick.RUNS_ROOT.iterdir()) == []


def test_episodes_can_be_read_during_the_run(make_run, quick, monkeypatch):
    run = make_run(steps=5)
    readable = []
    record = attempts.record

    def recorded(**batch_fields):
        record(**batch_fields)
        episodes = batch_fields["batch"].episodes
        records = [files.read_member(line["file"], line["offset"], line["length"]) for line in episodes]
        readable.extend(record["episode"]["scenario"] for record in records)

    monkeypatch.setattr(attempts, "record", recorded)
    supervise(run.pk)
    assert readable == ["s0", "s1"] * 5


def test_a_download_that_was_cut_off_is_no_checkpoint(make_run, quick, tmp_path, monkeypatch):
    run = make_run(steps=5)
    supervise(run.pk)
    opened = bucket.Bucket._open
    target = RunDir(tmp_path).attempt(1).checkpoint(5)

    def cut_off(storage, name, mode="rb"):
        if name.endswith("model.safetensors"):
            raise OSError("connection reset")
        return opened(storage, name, mode)

    monkeypatch.setattr(bucket.Bucket, "_open", cut_off)
    with pytest.raises(files.StorageError, match="connection reset"):
        files.fetch_folder(run.checkpoints.get().path, target)
    assert not (target / "manifest.json").exists()


def test_a_folder_is_fetched_once_and_without_what_is_not_needed(make_run, quick, tmp_path, monkeypatch):
    run = make_run(steps=5)
    supervise(run.pk)
    stored, target = run.checkpoints.get().path, tmp_path / "model"
    with default_storage.open(f"{stored}/manifest.json") as file:
        manifest = json.loads(file.read())
    manifest["files"]["trainer/state.json"] = {"bytes": 2, "sha256": hashlib.sha256(b"{}").hexdigest()}
    default_storage.save(f"{stored}/trainer/state.json", ContentFile(b"{}"))
    default_storage.delete(f"{stored}/manifest.json")
    default_storage.save(f"{stored}/manifest.json", ContentFile(json.dumps(manifest).encode()))
    opened, opening = [], bucket.Bucket._open

    def recorded(storage, name, mode="rb"):
        opened.append(name.removeprefix(f"{stored}/"))
        return opening(storage, name, mode)

    monkeypatch.setattr(bucket.Bucket, "_open", recorded)

    def fetched(**options):
        opened.clear()
        assert files.fetch_folder(stored, target, **options) == target
        return opened

    assert {*fetched(without="trainer")} == {*manifest["files"], "manifest.json"} - {"trainer/state.json"}
    assert bases.verified(target) == target
    assert fetched(without="trainer") == ["manifest.json"]
    assert "trainer/state.json" in fetched()
    verify_directory(target)
    (target / "model.safetensors").write_bytes(b"half")
    assert "model.safetensors" in fetched(), "what is torn is fetched again"
    verify_directory(target)


def test_another_node_resumes_from_the_checkpoint_in_the_bucket(make_run, quick, monkeypatch):
    run = make_run(steps=12, crash_at=7)
    supervise(run.pk)
    assert Run.objects.get().state == "queued"
    shutil.rmtree(quick.RUNS_ROOT)
    monkeypatch.setattr(lifecycle, "identity", lambda: "other:1:1.0")
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempts.get(number=2).start_step) == ("succeeded", 5)
    assert list(run.metrics.order_by("step").values_list("step", flat=True)) == list(range(1, 13))


def test_another_node_gets_the_past_selves_that_the_run_plays_against(make_run, quick, monkeypatch):
    run = make_run(steps=12, crash_at=11)
    learn = {**run.config.get("learn", {}), "save_every": 5}
    Run.objects.filter(pk=run.pk).update(config={**run.config, "learn": learn, "opponents": [{"source": "past"}]})
    supervise(run.pk)
    shutil.rmtree(quick.RUNS_ROOT)
    monkeypatch.setattr(lifecycle, "identity", lambda: "other:1:1.0")
    supervise(run.pk)
    here = RunDir(quick.RUNS_ROOT / str(run.pk))
    assert [step for step, _ in here.attempt(1).checkpoints()] == [5, 10]
    assert here.checkpoint_of(5) == here.attempt(1).checkpoint(5)


def test_the_rows_of_a_calibration_are_published_before_their_event_is_stored(tmp_path, stored):
    attempt = AttemptDir(tmp_path / "0001")
    rows = attempt.calibration(2).with_suffix(".jsonl")
    rows.parent.mkdir(parents=True)
    rows.write_text('{"question": "q1"}\n')
    append_line(attempt.events, {"at": 1.0, "kind": "calibration", "step": 2, "rows": rows.name})
    tail = Tail(attempt, "runs/7/attempts/0001", 7, {})
    batch = tail.read()
    files = publishing.unreadable(batch, tail)
    assert files == {"runs/7/attempts/0001/calibration/step_000002.jsonl": rows}
    publishing.publish(batch, files)
    assert stored["runs/7/attempts/0001/calibration/step_000002.jsonl"] == rows.read_bytes()
