"""Trust 28 and 29: consent that is withdrawn after the game reaches everything that was made of it."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.urls import reverse
from django.utils.timezone import now

from tests.trust.withdrawn import SAID, addresses, canary_match, readable, reveal, world
from tests.webapp.judgments.make import FIVES, annotate, conversation, imported, people_queue, version
from tests.webapp.judgments.test_suggesting import INFO
from tests.webapp.runs.making import CONFIG, make_checkpoint, make_run
from training.config import RunConfig
from training.errors import BadInput
from training.rundir import RunDir
from training.store import write_json
from webapp.accounts.services import create_key
from webapp.arena.models import Match
from webapp.arena.setup import waiting_room
from webapp.judgments.clock import withdraw_refused
from webapp.judgments.datasets import export
from webapp.judgments.models import Classifier, Judgment, LabelledGame, Suggestion, Target
from webapp.judgments.queues import services as queues
from webapp.judgments.rating import services as rating
from webapp.judgments.results import comparison, decisions, estimates
from webapp.judgments.suggesting import services as suggesting
from webapp.judgments.suggesting import training_data
from webapp.judgments.suggesting.withdrawn import has_withdrawn
from webapp.runs.local_files import delete_leftovers
from webapp.runs.models import Run
from webapp.runs.services import create_run, resume_run
from webapp.runs.withdrawn import notice
from webapp.scenarios import services as datasets
from webapp.scenarios import withdrawing
from webapp.scenarios.models import DatasetVersion, StoredConversation, Withdrawal
from webapp.serving.models import Deployment
from worker.kinds import Training, put_dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(researcher, player, annotator, other_researcher):
    return world(researcher=researcher, player=player, annotator=annotator, other_researcher=other_researcher)


def withdrawn(match, user):
    """Withdraw consent and let a worker do what follows."""
    waiting_room.answer_consent(match=match, user=user, agreed=False)
    for pk in Withdrawal.objects.unfinished().values_list("pk", flat=True):
        assert withdrawing.work(pk=pk)


def test_nobody_reads_a_game_after_its_player_withdrew(
    made, researcher, other_researcher, annotator, player, admin, client_of
):
    """Before, the canaries are found in these places, so that the search after it can fail."""
    Judgment.everything.filter(match=made.other).update(reason="an ordinary reason")
    places = addresses(made)
    people = [researcher, other_researcher, annotator, player, admin]
    before = {user.username: readable(user, client_of(user), places) for user in people}
    assert before["anna"] >= {"own judgments", "api judgments of queue", "search"}, "not by match: its queue is blind"
    assert before["otto"] >= {
        "queue", "search", "api judgments", "api judgments of queue", "export of judged v1",
        "scenario pens of judged v1", "export of copied v1", "api export of judged v1", "api export of copied v1",
    }  # fmt: skip
    assert before["pia"] == set()
    waiting_room.answer_consent(match=made.match, user=player, agreed=False)
    for user in people:
        assert readable(user, client_of(user), places) == set(), user
    assert "an ordinary reason" in client_of(annotator).get(places["own judgments"]).content.decode()


def test_the_players_still_read_their_own_game(made, researcher, player, client_of):
    withdrawn(made.match, player)
    for user in (researcher, player):
        assert SAID in client_of(user).get(reverse("arena:replay", args=[made.match.pk])).content.decode()


def test_every_version_with_the_game_is_closed_and_replaced(made, player):
    withdrawn(made.match, player)
    for closed in (made.version, made.fork):
        closed.refresh_from_db()
        new = closed.replacement
        assert closed.closed_at is not None
        assert (new.number, new.stands_for, new.conversation_count) == (2, 1, 1)
        assert new.dataset == closed.dataset
        assert new.dataset.newest() == new
        assert new.sha256 != closed.sha256
        lines = [line.dumps() for line in datasets.lines_of(new)]
        assert not any(SAID in line for line in lines)
        assert any("an ordinary word" in line for line in lines)


def test_nothing_that_was_said_remains_in_the_tables_of_datasets(made, player):
    withdrawn(made.match, player)
    with connection.cursor() as cursor:
        for table in ("scenarios_storedconversation", "scenarios_storedscenario", "scenarios_datasetversion",
                      "scenarios_withdrawal", "judgments_suggestion"):  # fmt: skip
            cursor.execute(f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s", [f"%{SAID}%"])  # noqa: S608
            assert cursor.fetchone() == (0 if table != "judgments_suggestion" else 2,), table
    assert Suggestion.objects.filter(target__match=made.other).count() == 2


def test_results_and_agreement_no_longer_count_it(made, annotator, player):
    (author,) = comparison.of_queue(made.queue).authors
    assert author.scored == 4
    assert estimates.of_queue(made.queue)["person"][0].games == 2
    withdrawn(made.match, player)
    (author,) = comparison.of_queue(made.queue).authors
    assert author.scored == 2
    assert estimates.of_queue(made.queue)["person"][0].games == 1
    assert Judgment.everything.filter(match=made.match).count() == 2


def test_withdrawing_twice_changes_nothing(made, player):
    withdrawn(made.match, player)
    before = [list(rows.order_by("pk").values()) for rows in (DatasetVersion.objects, Withdrawal.objects)]
    withdrawn(made.match, player)
    withdrawing.work(pk=Withdrawal.objects.get().pk)
    assert [list(rows.order_by("pk").values()) for rows in (DatasetVersion.objects, Withdrawal.objects)] == before


def test_an_export_is_rebuilt_equal_and_after_a_withdrawal_without_the_game(made, researcher, player):
    """Trust 28."""
    second, _ = export.store(queue=made.queue, name="judged", by=researcher)
    assert second.sha256 == made.version.sha256
    withdrawn(made.match, player)
    third, _ = export.store(queue=made.queue, name="judged", by=researcher)
    assert third.sha256 not in {second.sha256, made.version.sha256}
    assert third.conversation_count == 1
    assert third.sha256 == second.dataset.versions.get(stands_for=2).sha256
    made.version.refresh_from_db()
    with pytest.raises(BadInput, match=r"judged v1 is closed: consent .* choose judged v3"):
        datasets.check_exportable(made.version, researcher)


def test_a_closed_version_cannot_be_forked_or_changed(made, researcher, player, client_of):
    withdrawn(made.match, player)
    made.version.refresh_from_db()
    with pytest.raises(BadInput, match="choose judged v2"):
        datasets.fork(version=made.version, name="again", by=researcher)
    page = client_of(researcher).get(reverse("scenarios:version", args=["judged", 1])).content.decode()
    assert "Its content can no longer be read" in page
    assert reverse("scenarios:version", args=["judged", 2]) in page
    assert made.version.sha256 in page
    assert "Export JSONL" not in page


def test_a_file_with_the_game_is_not_stored_again(made, researcher, player):
    lines = list(datasets.lines_of(made.version))
    withdrawn(made.match, player)
    with pytest.raises(BadInput, match="was withdrawn: leave it out"):
        datasets.create_dataset(name="back", owner=researcher, lines=lines)
    renamed = [
        line.model_copy(
            update={"conversations": tuple(c.model_copy(update={"source": "x"}) for c in line.conversations)}
        )
        for line in lines
    ]
    with pytest.raises(BadInput, match="was withdrawn"):
        datasets.create_dataset(name="back", owner=researcher, lines=renamed)


def test_the_newest_content_stays_the_newest(researcher, player, annotator):
    """An older version that is replaced later gets the highest number, and is not the one that changes start from."""
    match = canary_match(researcher, player)
    queue = people_queue(researcher, match, annotators=[annotator])
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=FIVES)
    reveal(match, researcher)
    first, _ = export.store(queue=queue, name="line", by=researcher)
    second = datasets.add_version(dataset=first.dataset, by=researcher, lines=[])
    withdrawn(match, player)
    third = first.dataset.versions.get(number=3)
    assert third.stands_for == 1
    assert first.dataset.newest() == second
    assert DatasetVersion.objects.named("line") == second


GONE = "Consent to the use of the game that you just judged was withdrawn. Your answer was not stored."


@pytest.mark.parametrize("scripts", [False, True])
def test_an_annotator_who_has_it_open_reads_why_it_is_gone(researcher, player, annotator, client_of, scripts):
    """The next game is shown with the reason; with scripts, in the response that brings it."""
    match, other = canary_match(researcher, player), canary_match(researcher, player, "an ordinary word")
    queue = people_queue(researcher, match, annotators=[annotator])
    queue.targets.create(match=other, seat=0, position=2)
    target, client = queue.targets.first(), client_of(annotator)
    address = reverse("judgments:annotate", args=[queue.pk])
    withdrawn(match, player)
    headers = {"HX-Request": "true"} if scripts else {}
    sent = {"target": target.pk, "unscored": "1", "reason": "too late"}
    page = client.post(address, sent, headers=headers, follow=True).content.decode()
    assert page.count(GONE) == 1
    assert "an ordinary word" in page
    assert SAID not in page
    assert GONE not in client.get(address).content.decode()
    assert not Judgment.everything.exists()


def test_an_annotator_reads_why_the_last_game_is_gone(researcher, player, annotator, client_of):
    """Nothing follows, so a page with scripts loads itself anew, and says it there."""
    match = canary_match(researcher, player)
    queue = people_queue(researcher, match, annotators=[annotator])
    target, client = queue.targets.first(), client_of(annotator)
    address = reverse("judgments:annotate", args=[queue.pk])
    withdrawn(match, player)
    sent = {"target": target.pk, "unscored": "1", "reason": "too late", "shown": ""}
    assert GONE not in client.post(address, sent, headers={"HX-Request": "true"}).content.decode()
    page = client.get(address).content.decode()
    assert page.count(GONE) == 1
    assert "Nothing is left for you to judge" in page
    assert not Judgment.everything.exists()


def by_a_person(target, annotator):
    annotate(target=target, by=annotator, values=FIVES)


def by_a_judge_model(target, annotator):
    queues.record_verdict(target=target, verdict=None, why="no answer")


def by_an_adjudicator(target, annotator):
    decisions.decide(target=target, by=target.queue.owner, labels=None, note="cut off")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("judge", [by_a_person, by_a_judge_model, by_an_adjudicator])
def test_what_waits_for_a_withdrawal_stores_nothing_about_the_game(researcher, player, annotator, judge):
    """The withdrawal holds the target, and commits while the judgment waits for it."""
    match = canary_match(researcher, player)
    reveal(match, researcher)
    queue = people_queue(researcher, match, annotators=[annotator])
    target = queue.targets.with_games().first()
    if judge is by_an_adjudicator:
        Judgment.objects.create(
            target=target, author=annotator, codebook_version=queue.codebook_version, match=match, seat=target.seat
        )
    before = Judgment.everything.count()

    def late():
        try:
            judge(target, annotator)
        except BadInput:
            pass
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            waiting_room.answer_consent(match=match, user=player, agreed=False)
            work = pool.submit(late)
            wait_until_blocked()
        work.result(30)
    assert Judgment.everything.count() == before
    assert not LabelledGame.objects.exists()


def wait_until_blocked():
    """Return once another connection waits for a lock of this one."""
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(blocked)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.05)
    raise AssertionError("nothing waits")


def test_a_rating_of_a_withdrawn_game_leaves_nothing_for_searches(researcher, player):
    match = canary_match(researcher, player)
    withdrawn(match, player)
    seats = {match.seats.get(user=player).seat: rating.Answer(person=True)}
    rating.rate(
        by=match.seats.get(user=researcher), version=version(), values=dict.fromkeys(seats, FIVES), guesses=seats
    )
    assert Judgment.everything.filter(match=match).exists()
    assert not LabelledGame.objects.exists()


def test_a_queue_with_judgments_of_a_withdrawn_game_is_not_deleted(researcher, player, annotator):
    match = canary_match(researcher, player)
    queue = people_queue(researcher, match, annotators=[annotator])
    annotate(target=queue.targets.with_games().first(), by=annotator, values=FIVES)
    withdrawn(match, player)
    with pytest.raises(BadInput, match="it has judgments"):
        queues.delete_queue(queue=queue)
    assert Judgment.everything.count() == 1


def test_the_api_says_why_it_takes_no_judgment(researcher, player, annotator, client):
    match = canary_match(researcher, player)
    target = people_queue(researcher, match, annotators=[annotator]).targets.first()
    withdrawn(match, player)
    key = {"Authorization": f"Bearer {create_key(user=annotator, name='k')[1]}"}
    body = json.dumps({"target": target.pk, "labels": None, "reason": "x"})
    answer = client.post("/api/v1/judgments", body, "application/json", headers=key)
    assert answer.status_code in (400, 409, 422)
    assert "consent was withdrawn" in answer.content.decode()


def test_a_conversation_of_a_dataset_is_withdrawn_by_its_owner(researcher, other_researcher, admin, client_of):
    stored = imported(researcher, conversation(0), conversation(1))
    copy = datasets.fork(version=stored, name="copied", by=other_researcher)
    row = StoredConversation.objects.get(scenario__version=stored, position=0)
    address = reverse("scenarios:withdraw", args=["imported", 1, row.scenario.key])
    assert client_of(other_researcher).post(address, {"conversation": row.pk}).status_code == 404
    assert client_of(researcher).post(address, {"conversation": row.pk}).status_code == 302
    assert withdrawing.work(pk=Withdrawal.objects.get().pk)
    assert Withdrawal.objects.get().by == researcher
    for closed in (stored, copy):
        closed.refresh_from_db()
        kept = [c.source for line in datasets.lines_of(closed.replacement) for c in line.conversations]
        assert (closed.closed_at is None, kept) == (False, ["file:1"])


def test_a_second_withdrawal_closes_the_version_in_the_place_of_the_first(researcher):
    stored = imported(researcher, conversation(0), conversation(1), conversation(2))
    for position in (0, 0):
        newest = stored.dataset.newest()
        row = StoredConversation.objects.get(scenario__version=newest, position=position)
        withdrawal = withdrawing.withdraw_conversation(conversation=row, by=researcher)
        assert withdrawing.work(pk=withdrawal.pk)
    versions = [(v.number, v.stands_for, v.closed_at is None) for v in stored.dataset.versions.order_by("number")]
    assert versions == [(1, None, False), (2, 1, False), (3, 1, True)]
    kept = [c.source for line in datasets.lines_of(stored.dataset.newest()) for c in line.conversations]
    assert kept == ["file:2"]
    stored.refresh_from_db()
    assert stored.replacement.number == 3


def test_work_that_stopped_halfway_is_done_later(made, player, monkeypatch):
    """A worker that dies leaves a claim; once it lapses, the next one does the rest, and makes nothing twice."""
    waiting_room.answer_consent(match=made.match, user=player, agreed=False)
    pk = Withdrawal.objects.get().pk
    replace, calls = withdrawing.replace, []

    def dies(*, version):
        if calls:
            raise KeyboardInterrupt
        calls.append(replace(version=version))

    monkeypatch.setattr(withdrawing, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        withdrawing.work(pk=pk)
    monkeypatch.undo()
    assert not withdrawing.work(pk=pk)  # the claim holds
    Withdrawal.objects.update(claimed_until="2020-01-01T00:00Z")
    assert withdrawing.work(pk=pk)
    assert [each.dataset.versions.count() for each in (made.version, made.fork)] == [2, 2]
    assert Withdrawal.objects.get().done_at is not None


def test_an_annotator_is_not_kept_from_a_rematch_by_a_game_that_is_no_longer_judged(researcher, player, annotator):
    match = canary_match(researcher, player)
    people_queue(researcher, match, annotators=[annotator])
    assert Match.objects.unrevealed_to(annotator).filter(pk=match.pk).exists()
    withdrawn(match, player)
    assert not Match.objects.unrevealed_to(annotator).filter(pk=match.pk).exists()
    assert not Target.objects.exists()


@pytest.fixture
def trained(made, researcher):
    """A cold start on the export, its checkpoint, a run from that checkpoint with one, and a deployment."""
    first = make_run(researcher, kind="sft", name="cold", dataset_version=made.version, state="succeeded")
    first.attempts.create(number=1, fence=1, lease_until=now(), state="ended")
    start = make_checkpoint(first, name="cold-1")
    second = make_run(researcher, name="goes on", start_checkpoint=start)
    last = make_checkpoint(second, name="on-1")
    Deployment.objects.create(checkpoint=last)
    return first, second, start, last


def test_runs_and_checkpoints_that_learned_from_it_say_so_and_those_derived_from_them(
    made, trained, researcher, player, client_of
):
    first, second, start, last = trained
    client = client_of(researcher)
    pages = [
        *(reverse("runs:detail", args=[run.pk]) for run in (first, second)),
        *(reverse("runs:checkpoint", args=[row.pk]) for row in (start, last)),
    ]
    lists = [reverse("runs:checkpoints"), reverse("serving:list")]
    assert not any("was withdrawn" in client.get(page).content.decode() for page in pages)
    assert not any("withdrawn data" in client.get(page).content.decode() for page in lists)
    withdrawn(made.match, player)
    assert all("Consent to conversations of" in client.get(page).content.decode() for page in pages)
    assert all("withdrawn data" in client.get(page).content.decode() for page in lists)
    assert [(row.version, row.start) for row in second.withdrawn_data.all()] == [(made.version, first)]
    assert "judged v1" in notice(last)
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    for address in (f"/api/v1/runs/{second.pk}", f"/api/v1/checkpoints/{last.pk}"):
        assert [row["dataset"] for row in client.get(address, headers=key).json()["withdrawn_data"]] == ["judged v1"]


def test_a_run_is_refused_a_closed_version_and_told_which_to_choose(made, researcher, player, tmp_path, settings):
    settings.RUNS_ROOT = tmp_path
    waiting = make_run(researcher, kind="sft", dataset_version=made.version, state="queued")
    began = make_run(researcher, kind="sft", dataset_version=made.version, state="running")
    began.attempts.create(number=1, fence=1, lease_until=now(), state="running")
    copy = put_dataset(made.version, RunDir(tmp_path / str(began.pk)))
    withdrawn(made.match, player)
    waiting.refresh_from_db()
    with pytest.raises(BadInput, match="choose judged v2"):
        Training().prepare(Run.objects.get(pk=waiting.pk), RunDir(tmp_path / "waiting"), 1)
    assert not waiting.withdrawn_data.exists()
    with pytest.raises(BadInput, match="choose judged v2"):
        create_run(
            owner=researcher,
            config=RunConfig(kind="sft", model={"base": "tiny"}),
            dataset_version=DatasetVersion.objects.get(pk=made.version.pk),
        )
    delete_leftovers()
    assert copy.exists()  # it still runs
    Run.objects.filter(pk=began.pk).update(state="stopped")
    delete_leftovers()
    assert not copy.exists()
    with pytest.raises(BadInput, match="choose judged v2"):
        resume_run(run=began)


def test_a_run_that_began_before_its_question_set_was_closed_does_not_go_on(
    made, researcher, player, tmp_path, settings
):
    settings.RUNS_ROOT = tmp_path
    calibration = {"sets": [{"path": "", "tools": []}, {"path": str(made.version), "tools": []}]}
    run = make_run(researcher, config={**CONFIG, "calibration": calibration}, state="stopped")
    run.attempts.create(number=1, fence=1, lease_until=now(), state="ended")
    folder = RunDir(tmp_path / str(run.pk))
    write_json(folder.config, run.config)
    withdrawn(made.match, player)
    for go_on in (lambda: resume_run(run=run), lambda: Training().prepare(run, folder, 2)):
        with pytest.raises(BadInput, match="choose judged v2") as caught:
            go_on()
        assert caught.value.where == "calibration.sets.1.path"


def test_every_machine_deletes_its_own_copy(made, researcher, player, tmp_path, settings):
    """A run that another machine went on with has a copy on both."""
    run = make_run(researcher, kind="sft", dataset_version=made.version, state="running")
    run.attempts.create(number=1, fence=1, lease_until=now(), state="running")
    copies = []
    for machine in ("clock", "worker"):
        settings.RUNS_ROOT = tmp_path / machine
        copies.append(put_dataset(made.version, RunDir(settings.RUNS_ROOT / str(run.pk))))
    withdrawn(made.match, player)
    assert delete_leftovers() == 0  # it still runs
    Run.objects.filter(pk=run.pk).update(state="stopped")
    settings.RUNS_ROOT = tmp_path / "clock"
    assert (delete_leftovers(), delete_leftovers()) == (1, 0)
    assert [copy.exists() for copy in copies] == [False, True]
    settings.RUNS_ROOT = tmp_path / "worker"  # what its worker does every now and then
    assert (delete_leftovers(), delete_leftovers()) == (1, 0)
    assert not copies[1].exists()


def test_a_copy_that_cannot_be_deleted_keeps_no_other_and_is_tried_again(
    made, researcher, player, tmp_path, settings, monkeypatch, caplog
):
    settings.RUNS_ROOT = tmp_path
    runs = [make_run(researcher, kind="sft", dataset_version=made.version, state="stopped") for _ in range(3)]
    copies = [put_dataset(made.version, RunDir(tmp_path / str(run.pk))) for run in runs]
    withdrawn(made.match, player)
    unlink = Path.unlink

    def refuse(path, missing_ok=False):
        if path == copies[0]:
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert (delete_leftovers(), delete_leftovers()) == (2, 0)
    assert [copy.exists() for copy in copies] == [True, False, False]
    reports = [record.message for record in caplog.records if str(copies[0]) in record.message]
    assert len(reports) == 1
    assert all(text in reports[0] for text in (socket.gethostname(), "Permission denied"))
    monkeypatch.undo()
    assert delete_leftovers() == 1
    assert not copies[0].exists()


def test_copies_of_question_sets_and_of_interrupted_workers_are_deleted_too(
    made, researcher, player, tmp_path, settings
):
    settings.RUNS_ROOT = tmp_path
    section = {"sets": [{"path": str(made.version), "tools": ["wiki"]}, {"path": "", "tools": []}]}
    measured = make_run(researcher, config={**CONFIG, "calibration": section}, state="succeeded")
    queued = make_run(researcher, kind="sft", dataset_version=made.version, state="queued")
    copy = put_dataset(made.version, RunDir(tmp_path / str(measured.pk)))
    part = tmp_path / str(queued.pk) / "inputs" / f"{made.version.sha256}.part"
    part.parent.mkdir(parents=True)
    part.write_text(SAID)
    other = copy.with_name("other.jsonl")
    other.write_text("{}")
    assert delete_leftovers() == 0
    withdrawn(made.match, player)
    assert delete_leftovers() == 2
    assert (copy.exists(), part.exists(), other.exists()) == (False, False, True)


def test_a_refusal_of_an_earlier_release_reaches_the_datasets(made, player):
    seat = made.match.seats.get(user=player)
    seat.consent = False
    seat.save()  # as that release did
    assert withdraw_refused() == 1
    assert withdraw_refused() == 0
    made.version.refresh_from_db()
    assert made.version.closed_at is not None


def test_a_classifier_that_learned_from_it_says_so_and_is_trained_again_without_it(
    made, researcher, player, client_of, tmp_path
):
    """By the queue of matches, and by the dataset version that has copies of them."""
    folder = tmp_path / "first"
    folder.mkdir()
    trained = Classifier.objects.create(
        name="moves", owner=researcher, codebook_version=made.queue.codebook_version, state="ready",
        trained_on={"base": "tiny", "queues": [made.queue.pk], "versions": [made.version.pk], "sources": []},
        accuracy=INFO.to_dict(),
    )  # fmt: skip
    page, again_button = reverse("judgments:classifier", args=["moves"]), "Train it again without the game"
    trained.trained_on["sources"] = training_data.write(trained, folder)
    trained.save()
    assert not has_withdrawn(trained)
    assert again_button not in client_of(researcher).get(page).content.decode()
    with pytest.raises(BadInput, match="has not failed"):
        suggesting.retry_classifier(classifier=trained)
    warned = (
        (reverse("judgments:classifiers"), "withdrawn data"),
        (
            reverse("runs:new") + "?labels=1&label=offers&classifier=moves",
            "Consent to a game was withdrawn after moves had learned from it",
        ),
    )
    assert not any(text in client_of(researcher).get(each).content.decode() for each, text in warned)
    withdrawn(made.match, player)
    assert has_withdrawn(trained)
    assert again_button in client_of(researcher).get(page).content.decode()
    assert all(text in client_of(researcher).get(each).content.decode() for each, text in warned)
    for kind in (0, 1):  # each source alone is enough
        only = Classifier(trained_on={"sources": [trained.trained_on["sources"][kind]]})
        assert has_withdrawn(only)
    suggesting.retry_classifier(classifier=trained)
    trained.refresh_from_db()
    assert trained.state == "queued"
    again = training_data.write(trained, folder)
    assert [source["games"] for source in again] == [1, 1]
    assert not any(SAID in file.read_text() for file in folder.iterdir())
    assert not has_withdrawn(Classifier(trained_on={"sources": again}))
