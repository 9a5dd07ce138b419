"""The client against a real server: datasets, runs, checkpoints, matches and judgments."""

import json
import zipfile

import pytest

from parley_client import Conflict, Invalid, NotFound, RunFailed, TimedOut, Unauthorised
from parley_client import runs as waiting
from parley_client.models import LabelShape
from tests.webapp.experiments import making
from tests.webapp.judgments.make import finished_match, people_queue, rated
from tests.webapp.runs.making import make_checkpoint
from tests.webapp.runs.making import make_run as stored_run
from tests.webapp.scenarios import files
from tools import client as models
from training.labels.codebooks import CONDUCT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]
CONFIG = {"kind": "train", "name": "by the client", "model": {"base": "tiny"}, "game": {"name": "negotiation"}}


def test_the_models_are_those_of_the_present_api():
    assert not models.differs()


def test_a_wrong_key_is_reported(client_for, researcher):
    client = client_for(researcher)
    client._transport._http.headers["Authorization"] = "Bearer parley_wrong"
    with pytest.raises(Unauthorised, match="Authorization: send a key"):
        client.runs.get(1)


def test_a_dataset_goes_there_and_back(client_for, researcher, tmp_path):
    client = client_for(researcher)
    (tmp_path / "casino.json").write_text(files.casino())
    stored = client.datasets.upload("camp", [tmp_path / "casino.json"], format="casino")
    assert (stored.version, stored.scenarios, stored.errors) == (1, 1, [])
    assert [dataset.name for dataset in client.datasets.list(game="negotiation")] == ["camp"]
    lines = client.datasets.download("camp", tmp_path / "camp.jsonl").read_text()
    again = client.datasets.upload("copy", [tmp_path / "camp.jsonl"])
    assert (again.version, again.conversations) == (1, 1)
    assert client.datasets.download("copy", tmp_path / "copy.jsonl", version=1).read_text() == lines
    with pytest.raises(NotFound):
        client.datasets.download("nowhere", tmp_path / "x")


def test_a_wrong_file_is_refused_with_its_place(client_for, researcher, tmp_path):
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(Invalid, match=r"broken\.jsonl"):
        client_for(researcher).datasets.upload("broken", [tmp_path / "broken.jsonl"])


def test_a_run_is_awaited_and_its_checkpoint_downloaded(working, client_for, researcher, tmp_path):
    client, seen = client_for(researcher), []
    run = client.runs.start({**CONFIG, "learn": {"steps": 3, "critic_warmup": 0}})
    done = client.runs.wait(run.id, every=0.05, timeout=60, progress=lambda run: seen.append((run.state, run.step)))
    assert (done.state, done.step, seen[-1]) == ("succeeded", 3, ("succeeded", 3))
    assert len(set(seen)) == len(seen), "progress is reported once"
    assert [row.values["reward"] for row in client.runs.metrics(run.id)] == pytest.approx([0.1, 0.2, 0.3])
    [checkpoint] = client.checkpoints.list(run=run.id)
    assert (checkpoint.run_id, client.checkpoints.get(checkpoint.id)) == (run.id, checkpoint)
    target = client.checkpoints.download(checkpoint.id, tmp_path / "weights.zip")
    assert zipfile.ZipFile(target).read("model.safetensors") == b"weights 3"
    client.runs.delete(run.id)
    with pytest.raises(NotFound):
        client.runs.get(run.id)


def test_a_wrong_configuration_is_refused_by_field(client_for, researcher):
    with pytest.raises(Invalid) as error:
        client_for(researcher).runs.start({**CONFIG, "learn": {"lr": -1}})
    assert "learn.lr" in error.value.where


def test_waiting_ends_where_the_run_or_the_patience_does(client_for, researcher, monkeypatch):
    client = client_for(researcher)
    failed = stored_run(researcher, state="failed", error="the loss is not a number")
    with pytest.raises(RunFailed, match="the loss is not a number"):
        client.runs.wait(failed.pk)
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)
    alive = stored_run(researcher, state="running")
    with pytest.raises(TimedOut, match="it is running"):
        client.runs.wait(alive.pk, timeout=0.0)
    stopped = stored_run(researcher, state="stopped")
    assert client.runs.resume(stopped.pk).state == "queued"
    assert client.runs.stop(stopped.pk).state == "stopped"
    assert [run.id for run in client.runs.list(state="failed")] == [failed.pk]


def test_two_clients_play_each_other(client_for, researcher, player):
    host, other = client_for(researcher), client_for(player)
    match = host.matches.create("negotiation", [{"me": True}, {}], consent=True, visibility="open")
    assert [row.id for row in other.matches.list(state="open")] == [match.id]
    seated = other.matches.take_seat(match.id, consent=True)
    assert (seated.state, [seat.you for seat in seated.seats]) == ("running", [False, True])
    turns = [host.matches.get(match.id), other.matches.get(match.id)]
    clients = {0: host, 1: other}
    [first] = [index for index, seen in enumerate(turns) if seen.actions]
    assert clients[first].matches.move(match.id, 0, "talk", text="Hello").move["text"] == "Hello"
    with pytest.raises(Conflict):
        clients[first].matches.move(match.id, 1, "talk", text="And again")
    clients[1 - first].matches.move(match.id, 0, "walk_away")
    assert list(host.matches.turns(match.id)) == []
    assert other.matches.get(match.id).state == "finished"


def test_a_client_plays_a_script_to_the_end(working, client_for, researcher):
    client = client_for(researcher)
    match = client.matches.create("tic_tac_toe", [{"me": True}, {"scripted": "random"}], consent=True)
    for turn in client.matches.turns(match.id, every=0.05, timeout=30):
        action = turn.actions[0]
        assert {seat.you for seat in turn.seats} == {True, False}
        client.matches.move(match.id, turn.turn, action.name, {arg.name: arg.choices[0] for arg in action.args})
    assert client.matches.get(match.id).state == "finished"


def test_a_table_of_several_waits_until_everybody_is_ready(client_for, researcher, player):
    host, other = client_for(researcher), client_for(player)
    places = [{"me": True}, {}] + [{"scripted": "scripted"}] * 4
    match = host.matches.create("werewolf", places, consent=True, visibility="open")
    with pytest.raises(NotFound):
        other.matches.ready(match.id)
    assert other.matches.take_seat(match.id, consent=True).state == "open"
    assert other.matches.ready(match.id).state == "open"
    assert host.matches.ready(match.id).state == "running"
    with pytest.raises(Invalid, match="already begun"):
        client_for(researcher).matches.take_seat(match.id, consent=True)


def test_an_experiment_is_read_and_downloaded(client_for, researcher, tmp_path):
    made = making.opened(researcher, arms=1)
    making.completed(made)
    client = client_for(researcher)
    (line,) = client.experiments.list(state="open")
    assert (line.id, client.experiments.get(line.id).completed) == (made.pk, 1)
    assert client.experiments.results(made.pk).arms[0].participants == 1
    table = client.experiments.download(made.pk, tmp_path / "study.csv", form="csv")
    assert table.read_text().startswith("participant,external_id")
    assert json.loads(client.experiments.download(made.pk, tmp_path / "study.jsonl").read_text())["analysed"] is True


def test_what_is_assigned_is_judged(client_for, researcher, annotator, tmp_path):
    queue = people_queue(researcher, rated(finished_match(researcher), researcher), [annotator])
    client = client_for(annotator)
    first, second = client.judgments.targets(queue=queue.pk)
    values = {label_type.name: 6.0 for label_type in CONDUCT.labels}
    added = client.judgments.add(first.id, values)
    assert {label.label: label.value for label in added.labels} == values
    assert (added.author, added.queue) == ("annotator:1", queue.pk)
    assert client.judgments.add(second.id, None, "too short").labels is None
    assert [row.id for row in client.judgments.list(queue=queue.pk)] == [added.id, added.id + 1]
    with pytest.raises(Invalid, match="mutual_benefit"):
        client.judgments.add(first.id, {**values, "mutual_benefit": 99})
    again = [LabelShape(label=name, value=7.0, seat=first.seat) for name in values]
    assert {label.value for label in client.judgments.add(first.id, again).labels} == {7.0}
    table = client_for(researcher).judgments.download(queue.pk, tmp_path / "labels.csv", format="csv")
    assert table.read_text().count("person:1,fine-grained") == len(CONDUCT.labels) + 1


def test_a_checkpoint_without_files_is_a_conflict(client_for, researcher, player, settings, tmp_path):
    from webapp.core import files as storage

    settings.MEDIA_ROOT = tmp_path
    checkpoint = make_checkpoint(stored_run(researcher), open_to_players=True)
    with pytest.raises(NotFound):
        client_for(player).checkpoints.download(checkpoint.pk, tmp_path / "a.zip")
    assert list(client_for(player).checkpoints.list(run=checkpoint.run_id)) == []
    storage.delete_folder(checkpoint.path)
    with pytest.raises(Conflict, match="its files are gone"):
        client_for(researcher).checkpoints.download(checkpoint.pk, tmp_path / "a.zip")
