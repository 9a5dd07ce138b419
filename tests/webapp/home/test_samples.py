"""The sample runs: real recordings, shown as such on every page of a run, nobody's to change, gone with one command."""

import json
import threading
from contextlib import suppress

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.labelled import labels, reasons
from training.labels.codebooks import CONDUCT
from training.store import read_lines
from webapp.accounts.models import User
from webapp.core import files
from webapp.home import samples
from webapp.home.models import Sample
from webapp.judgments.annotating.services import annotate
from webapp.judgments.codebooks.services import load_codebooks
from webapp.judgments.models import Codebook, CodebookVersion, Judgment, Queue
from webapp.judgments.queues.services import create_queue
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db
MOST_BYTES = 2 * 1024 * 1024


@pytest.fixture
def stored(home, django_capture_on_commit_callbacks) -> list[Run]:
    with django_capture_on_commit_callbacks(execute=True):
        return samples.install()


def test_the_samples_are_small_and_say_where_they_come_from() -> None:
    assert samples.names()
    assert sum(path.stat().st_size for path in samples.FOLDER.rglob("*") if path.is_file()) < MOST_BYTES
    for name in samples.names():
        facts = json.loads((samples.FOLDER / name / "provenance.json").read_text("utf-8"))
        config = json.loads((samples.FOLDER / name / "config.json").read_text("utf-8"))
        assert facts["title"].startswith("Sample: ")
        assert facts["seed"] == config["seed"]
        assert facts["command"].startswith("python -m training run ")
        assert len(facts["commit"]) >= 7


def test_every_page_of_a_sample_has_its_recording(stored: list[Run], client_of, researcher: User) -> None:
    client = client_of(researcher)
    for run in stored:
        folder = samples.FOLDER / run.sample.name
        metrics = [line for line, _ in read_lines(folder / "metrics.jsonl")]
        assert run.metrics.count() == len(metrics) == run.steps
        last = run.metrics.get(step=run.steps).values
        assert last["reward"] == metrics[-1]["reward"]
        assert run.episodes.count() == sum(1 for _ in read_lines(folder / "index.jsonl"))
        page = client.get(reverse("runs:detail", args=[run.pk])).content.decode()
        assert "<strong>Sample.</strong>" in page
        assert run.sample.command in page
        shown = client.get(reverse("runs:evaluation", args=[run.pk])).content.decode()
        assert "144" in shown
        for row in run.episodes.order_by("step", "number")[::17]:
            assert (
                files.read_member(row.file, row.offset, row.length)["episode"]["scenario"]["id"]
                == row.summary["scenario"]
            )
            for view in ("conversation", "replay", "tokens"):
                address = reverse(f"runs:{view}", args=[run.pk, row.step, row.number])
                assert client.get(address).status_code == 200


def test_nobody_changes_a_sample_and_researchers_remove_all(
    stored: list[Run], client_of, researcher: User, player: User
) -> None:
    run = stored[0]
    client = client_of(researcher)
    for route in ("stop", "resume", "delete"):
        assert client.post(reverse(f"runs:{route}", args=[run.pk])).status_code == 404
    for route in ("store-samples", "remove-samples"):
        assert client_of(player).post(reverse(f"home:{route}")).status_code == 404
    assert not run.owner.is_active
    assert not run.owner.has_usable_password()
    assert "Remove all samples" in client.get(reverse("runs:detail", args=[run.pk])).content.decode()
    client.post(reverse("home:remove-samples"))
    assert not Run.objects.exists()
    assert not User.objects.filter(username=samples.OWNER).exists()


def test_an_empty_list_of_runs_stores_the_samples_with_one_press(
    home, client_of, researcher: User, django_capture_on_commit_callbacks
) -> None:
    client = client_of(researcher)
    address = reverse("home:store-samples")
    assert f'action="{address}"' in client.get(reverse("runs:list")).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        page = client.post(address, follow=True).content.decode()
    assert f"{len(samples.names())} sample run" in page
    assert f'action="{address}"' not in page
    assert Run.objects.count() == len(samples.names())
    row = Run.objects.latest("pk").episodes.order_by("pk")[0]
    assert files.read_member(row.file, row.offset, row.length)["episode"]
    assert "All samples are stored already." in client.post(address, follow=True).content.decode()


def test_samples_are_stored_once_and_stay_removed(stored: list[Run], capsys) -> None:
    assert samples.install() == []
    count = len(stored)
    call_command("sample_runs", "--remove")
    assert capsys.readouterr().out == f"{count} sample runs were removed.\n"
    assert samples.install() == []  # as the next start of the demo does
    assert set(Sample.objects.values_list("run", flat=True)) == {None}
    call_command("sample_runs")
    assert capsys.readouterr().out == f"{count} sample runs were stored.\n"
    assert Run.objects.count() == count


def test_a_rule_judges_the_conversations_of_every_sample(stored: list[Run], client_of, researcher: User) -> None:
    client = client_of(researcher)
    for run in stored:
        queue = Queue.objects.get(owner=run.owner, targets__episode__run=run, targets__position=0)
        assert queue.targets.count() == 2 * run.episodes.count()
        row = run.episodes.latest("step", "number")
        turns = files.read_member(row.file, row.offset, row.length)["episode"]["turns"]
        for judgment in Judgment.objects.filter(episode=row):
            readable = [turn["passed"] for turn in turns if turn["seat"] == judgment.seat]
            assert judgment.numbers["readable"] == readable.count(True) / len(readable)
            assert reasons(judgment)["readable"] == f"{readable.count(True)} of {len(readable)} replies."
        page = client.get(reverse("judgments:queue", args=[queue.pk])).content.decode()
        assert "<strong>Sample.</strong>" in page
        assert "the rule reply-form" in page
        assert f"{2 * run.episodes.count()} of {2 * run.episodes.count()} scored" in page
    names = [queue.name for queue in Queue.objects.all()]
    for by, shown in (("rule", True), ("people", False), ("model", False)):
        listed = client.get(reverse("judgments:list"), {"by": by}).content.decode()
        assert [name in listed for name in names] == [shown] * len(stored)


def test_storing_the_samples_again_adds_what_they_lack_and_nothing_twice(
    stored: list[Run], client_of, researcher: User, django_capture_on_commit_callbacks
) -> None:
    run, others = stored[0], stored[1:]
    judged = run.episodes.count() * 2
    everything = Judgment.objects.count()
    row = run.episodes.earliest("pk")
    Queue.objects.filter(targets__episode__run=run).delete()  # as a release without rules has stored it
    files.delete_folder(run.directory)
    Run.objects.filter(pk=run.pk).update(result=None)
    assert Judgment.objects.count() == everything - judged
    for changed in ([run], []):
        with django_capture_on_commit_callbacks(execute=True):
            assert samples.install() == changed
        assert Judgment.objects.filter(episode__run=run, rule="reply-form").count() == judged
        assert Judgment.objects.count() == everything
        assert Queue.objects.count() == len(stored)
    assert files.read_member(row.file, row.offset, row.length)["episode"]
    run.refresh_from_db()
    assert run.result["summary"]["conversations"] == 144
    Queue.objects.filter(targets__episode__run=run).delete()
    page = client_of(researcher).post(reverse("home:store-samples"), follow=True).content.decode()
    assert "1 sample run stored" in page
    assert Run.objects.count() == len([run, *others])


def test_a_sample_of_another_recording_stays_as_it_is(stored: list[Run]) -> None:
    Sample.objects.filter(run=stored[0]).update(commit="0000000")
    Queue.objects.filter(targets__episode__run=stored[0]).delete()
    assert samples.install() == []
    assert not Judgment.objects.filter(episode__run=stored[0]).exists()


def test_the_samples_fill_the_matrix_with_their_recorded_evaluations(
    stored: list[Run], client_of, researcher: User
) -> None:
    client = client_of(researcher)
    page = client.get(reverse("runs:matrix"), {"game": "negotiation", "number": "points"}).content.decode()
    for run in stored:
        recorded = json.loads((samples.FOLDER / run.sample.name / "evaluation.json").read_text("utf-8"))
        points = recorded["summary"]["a"]["points"]
        assert f'<a href="{reverse("runs:detail", args=[run.pk])}">{run.name}</a>' in page
        cell = page.split(f'href="{reverse("runs:evaluation", args=[run.pk])}">')[1].split("</a>")[0]
        assert float(cell.split(" ± ")[0]) == pytest.approx(points["mean"], abs=0.05)
        assert float(cell.split(" ± ")[1]) == pytest.approx((points["high"] - points["low"]) / 2, abs=0.05)
    assert page.count('<th scope="col" class="number">') == 1, "one opponent, the tiny model from which both began"


def test_judgments_of_people_keep_a_sample_and_are_kept(stored: list[Run], researcher: User) -> None:
    load_codebooks()
    queue = create_queue(
        name="mine", owner=researcher, codebook_version=CodebookVersion.objects.get(codebook__name=CONDUCT.name),
        episodes=stored[0].episodes.all()[:1], annotators=[researcher],
    )  # fmt: skip
    values = {label_type.name: 5 for label_type in CONDUCT.labels}
    first = queue.targets.with_games()[0]
    judged = annotate(target=first, by=researcher, labels=labels(first.seat, values))
    counted = Judgment.objects.count()
    with pytest.raises(CommandError, match="other people have judged 1"):
        call_command("sample_runs", "--remove")
    assert Judgment.objects.count() == counted  # the rule's are there, too
    judged.delete()
    call_command("sample_runs", "--remove")
    assert not Judgment.objects.exists()
    assert list(Queue.objects.all()) == [queue]
    assert not Codebook.objects.filter(name="reply-form").exists()
    assert Codebook.objects.filter(name=CONDUCT.name).exists()
    call_command("sample_runs")
    assert Judgment.objects.filter(rule="reply-form").count() == counted - 1
    assert Queue.objects.filter(rule="reply-form").count() == len(stored)


def test_the_name_of_their_owner_is_not_taken_from_anybody(person) -> None:
    person("player", samples.OWNER)
    with pytest.raises(CommandError, match="somebody has the name parley-samples"):
        call_command("sample_runs")
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_the_same_time_store_a_sample_once(
    home, client_of, researcher: User, person, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, store, both = samples.names()[0], samples._store, threading.Barrier(2)

    def store_together(name: str) -> Run:
        with suppress(threading.BrokenBarrierError):  # whoever is alone goes on
            both.wait(1.0)
        return store(name)

    monkeypatch.setattr(samples, "names", lambda: [name])
    monkeypatch.setattr(samples, "_store", store_together)

    def press(client: Client) -> None:
        client.post(reverse("home:store-samples"))
        connection.close()

    pressing = [
        threading.Thread(target=press, args=[client_of(user)]) for user in (researcher, person("researcher", "otto"))
    ]
    for thread in pressing:
        thread.start()
    for thread in pressing:
        thread.join()
    assert (Run.objects.count(), Sample.objects.count()) == (1, 1)
