"""Writes of judgments: codebooks, queues, people's and models' values, ratings, exports."""

import gzip
import json
import math

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.urls import reverse

from tests.elsewhere import begin, until_somebody_waits
from tests.labelled import reasons
from tests.stub import Status
from tests.trust.matrix.scenarios import SCENARIO
from tests.webapp.judgments.make import FIVES, annotate, finished_match, judged_by_a_model, people_queue, rated, version
from tests.webapp.runs.making import make_episode, make_run
from training.dataset import DatasetLine
from training.engines.remote import chat
from training.errors import BadInput
from training.labels.codebooks import CODEBOOKS
from webapp.arena.models import Match
from webapp.core import files
from webapp.core import queue as hints
from webapp.judgments import games, judging
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.datasets import export
from webapp.judgments.models import Codebook, CodebookVersion, GameRating, Guess, Judgment, Queue, Target
from webapp.judgments.queues import services as queues
from webapp.judgments.rating import services as rating
from webapp.judgments.results import estimates
from webapp.scenarios.models import Dataset
from webapp.scenarios.services import lines_of
from webapp.serving.models import Deployment, RemoteModel

pytestmark = pytest.mark.django_db


def test_the_shipped_codebooks_are_there_once():
    codebooks.load_codebooks()
    assert Codebook.objects.count() == len(CODEBOOKS)
    for name, record in CODEBOOKS.items():
        assert version(name).record() == record


WARMTH = {
    "name": "warmth", "title": "Warmth", "kind": "scale", "about": "seat", "low": 0, "high": 4,
    "definition": "How warm?", "anchors": [],
}  # fmt: skip


def test_a_changed_codebook_is_a_new_version(researcher):
    first = codebooks.save_codebook(name="mine", title="Mine", labels=[WARMTH], by=researcher)
    same = codebooks.save_codebook(name="mine", title="Mine", labels=[WARMTH], by=researcher)
    second = codebooks.save_codebook(name="mine", title="Mine", labels=[{**WARMTH, "high": 5}], by=researcher)
    assert (same, second.number) == (first, 2)
    assert first.record().labels[0].high == 4


@pytest.mark.parametrize(
    "change, where",
    [({"low": 4}, "labels.0"), ({"name": "Bad Name"}, "labels.0.name"), ({"definition": ""}, "definition")],
)
def test_a_wrong_codebook_is_refused(researcher, change, where):
    with pytest.raises(BadInput) as refused:
        codebooks.save_codebook(name="mine", title="Mine", labels=[{**WARMTH, **change}], by=researcher)
    assert where in refused.value.where
    assert not Codebook.objects.filter(name="mine").exists()


def test_somebody_elses_codebook_stays_theirs(researcher, other_researcher):
    codebooks.save_codebook(name="mine", title="Mine", labels=[WARMTH], by=researcher)
    with pytest.raises(BadInput, match="somebody else's"):
        codebooks.save_codebook(name="mine", title="X", labels=[WARMTH], by=other_researcher)
    with pytest.raises(BadInput, match="somebody else's"):
        codebooks.save_codebook(name="sotopia", title="X", labels=[WARMTH], by=researcher)


def test_a_queue_needs_games_and_either_a_judge_or_people(researcher):
    common = {"name": "q", "owner": researcher, "codebook_version": version()}
    with pytest.raises(BadInput, match="no finished game"):
        queues.create_queue(**common, annotators=[researcher])
    with pytest.raises(BadInput, match="either a judge"):
        queues.create_queue(**common, matches=[finished_match(researcher)])
    assert Queue.objects.count() == 0


def test_a_person_judges_once_and_may_correct_it(researcher, annotator):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    target = queue.targets.open_for(annotator).first()
    annotate(target=target, by=annotator, values=FIVES)
    annotate(target=target, by=annotator, values={**FIVES, "mutual_benefit": 9})
    assert [j.numbers["mutual_benefit"] for j in target.judgments.all()] == [9]
    assert queue.targets.open_for(annotator).count() == queue.targets.count() - 1 == 1


@pytest.mark.parametrize(
    "values, where",
    [({**FIVES, "mutual_benefit": 11}, "mutual_benefit"), ({"mutual_benefit": 3}, "compromise_seeking"),
     ({**FIVES, "luck": 3}, "luck")],
)  # fmt: skip
def test_values_outside_the_codebook_are_refused(researcher, values, where):
    target = people_queue(researcher, finished_match(researcher)).targets.first()
    with pytest.raises(BadInput) as refused:
        annotate(target=target, by=researcher, values=values)
    assert refused.value.where == where
    assert Judgment.objects.count() == 0


def test_could_not_score_is_a_state_with_a_reason(researcher):
    queue = people_queue(researcher, finished_match(researcher))
    target = queue.targets.first()
    with pytest.raises(BadInput, match="why"):
        annotate(target=target, by=researcher, values=None)
    annotate(target=target, by=researcher, values=None, reason="empty talk")
    target.refresh_from_db()
    assert target.state == Target.State.UNSCORED
    assert estimates.of_queue(queue) == {}


@pytest.fixture
def judge(admin, stub):
    remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub-1", added_by=admin)
    Deployment.objects.create(remote=remote)
    return codebooks.add_judge(name="stub judge", remote=remote, temperature=0)


def answer(body, value=7):
    """What an honest judge would say: the asked target and seat, one value for every label type."""
    system, user = (message["content"] for message in body["messages"][:2])
    target = user.split("Target ")[1].split(",")[0]
    seat = int(system.split("seat ")[1].split(",")[0])
    values = {d.name: {"value": value, "reason": "so"} for d in version().record().labels}
    return json.dumps({"target": target, "seat": seat, "values": values})


def judged_queue(owner, judge, match):
    return queues.create_queue(name="m", owner=owner, codebook_version=version(), matches=[match], judge=judge)


def test_a_judge_model_scores_every_seat_once(researcher, judge, stub, monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr(hints, "publish", lambda task, *args, **options: sent.append((task.name, args)))
    stub.answer = answer
    with django_capture_on_commit_callbacks(execute=True):
        queue = judged_queue(researcher, judge, finished_match(researcher))
    asked = [args[0] for name, args in sent if name == "judgments.judge_target"]
    assert asked == list(queue.targets.order_by("pk").values_list("pk", flat=True))
    for pk in (*asked, *asked):
        judging.judge_target(pk)
    assert len(stub.requests) == 2
    rows = Judgment.objects.order_by("seat")
    assert [(row.seat, set(row.numbers.values()), row.cost["calls"]) for row in rows] == [(0, {7.0}, 1), (1, {7.0}, 1)]
    assert all(len(row.prompt_sha256) == 64 for row in rows)


def test_an_unreachable_judge_is_an_error_and_never_a_zero(researcher, judge, stub):
    stub.answer = Status(500)
    queue = judged_queue(researcher, judge, finished_match(researcher))
    for target in queue.targets.all():
        judging.judge_target(target.pk)
    assert {target.state for target in queue.targets.all()} == {"unscored"}
    assert {row.numbers for row in Judgment.objects.all()} == {None}
    assert len(stub.requests) == 2 * 3
    assert estimates.of_queue(queue) == {}
    stub.answer = answer
    assert queues.retry(queue=queue) == 2
    for target in queue.targets.all():
        judging.judge_target(target.pk)
    assert Judgment.objects.scored().count() == Judgment.objects.count() == 2


@pytest.mark.parametrize("says", [answer, Status(500)], ids=["scores", "fails"])
def test_the_connection_to_a_judge_is_closed(researcher, judge, stub, monkeypatch, says):
    closed = []
    close = chat.RemoteModel.close

    async def counted(self):
        closed.append(self)
        await close(self)

    monkeypatch.setattr(chat.RemoteModel, "close", counted)
    stub.answer = says
    judging.judge_target(judged_queue(researcher, judge, finished_match(researcher)).targets.first().pk)
    assert len(closed) == 1


def test_an_address_that_is_no_longer_allowed_could_not_score(researcher, judge, stub, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "")
    queue = judged_queue(researcher, judge, finished_match(researcher))
    judging.judge_target(queue.targets.first().pk)
    assert stub.requests == []
    assert Judgment.objects.get().numbers is None


def test_results_are_means_over_games_with_students_interval(researcher, other_researcher):
    matches = [finished_match(researcher) for _ in range(3)]
    queue = queues.create_queue(
        name="q",
        owner=researcher,
        codebook_version=version(),
        matches=matches,
        annotators=[researcher, other_researcher],
    )
    mine = queue.targets.filter(seat=0).order_by("position")
    for target, value in zip(mine, (2, 4, 6), strict=True):
        annotate(target=target, by=researcher, values=dict.fromkeys(FIVES, value - 1))
        annotate(target=target, by=other_researcher, values=dict.fromkeys(FIVES, value + 1))
    (estimate, *_rest) = estimates.of_queue(queue)["person"]
    # By hand: game means 2, 4, 6; mean 4, standard error 2/√3, t(0.975, 2) = 4.30265.
    assert estimate.mean == pytest.approx(4)
    assert estimate.half == pytest.approx(4.30265 * 2 / math.sqrt(3), rel=1e-5)
    assert (estimate.games, estimate.share) == (3, pytest.approx(0.4))


def test_results_cost_the_same_however_many_games(researcher, django_assert_num_queries):
    for amount in (1, 4):
        matches = [finished_match(researcher) for _ in range(amount)]
        queue = queues.create_queue(
            name="q", owner=researcher, codebook_version=version(), matches=matches, annotators=[researcher]
        )
        for target in queue.targets.all():
            annotate(target=target, by=researcher, values=FIVES)
        queue = Queue.objects.select_related("codebook_version__codebook").get(pk=queue.pk)
        with django_assert_num_queries(4):
            by_player = estimates.of_queue(queue)
        assert {player: rows[0].games for player, rows in by_player.items()} == {
            "a scripted player": amount, "person": amount,
        }  # fmt: skip


def test_an_episode_is_read_once_for_its_players(researcher, monkeypatch):
    read, asked = files.read_member, []
    monkeypatch.setattr(files, "read_member", lambda *where: asked.append(where) or read(*where))
    episode = make_episode(make_run(researcher, name="self-play"))
    queue = episodes_queue(researcher, episode)
    assert (estimates.of_queue(queue), asked) == ({}, []), "nothing is scored yet"
    scored(queue, researcher)
    games._seats.cache_clear()
    asked.clear()
    judged = [(target.pk, target.seat) for target in queue.targets.all()]
    assert set(estimates.players_of(queue, judged).values()) == {"self-play: learner", "self-play"}
    assert set(estimates.players_of(queue, judged).values()) == {"self-play: learner", "self-play"}
    assert len(asked) == 1
    default_storage.delete(episode.file)
    assert "unknown" not in estimates.players_of(queue, judged).values()


def episodes_queue(owner, episode):
    return queues.create_queue(
        name="q", owner=owner, codebook_version=version(), episodes=[episode], annotators=[owner]
    )


def scored(queue, user):
    for target in queue.targets.all():
        annotate(target=target, by=user, values=FIVES)


DAMAGES = {
    "gone": None,
    "empty": lambda member: b"",
    "cut": lambda member: member[:-20],
    "corrupt": lambda member: member[:12] + bytes(byte ^ 255 for byte in member[12:]),
    "no json": lambda member: gzip.compress(b"{"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_episode_that_cannot_be_read_has_unknown_players_and_no_page(researcher, client_of, damage):
    episode = make_episode(make_run(researcher))
    queue = episodes_queue(researcher, episode)
    scored(queue, researcher)
    games._seats.cache_clear()  # what another process has read is not known here
    with default_storage.open(episode.file) as file:
        member = file.read()
    default_storage.delete(episode.file)
    if change := DAMAGES[damage]:
        assert default_storage.save(episode.file, ContentFile(change(member))) == episode.file
    assert list(estimates.of_queue(queue)) == ["unknown"]
    client = client_of(researcher)
    assert client.get(reverse("judgments:queue", args=[queue.pk])).status_code == 200
    for name in ("conversation", "tokens"):
        address = reverse(f"runs:{name}", args=[episode.run_id, episode.step, episode.number])
        assert client.get(address).status_code == 404


def test_one_game_has_no_interval():
    assert estimates.interval([3.0], (1, 5)) == (3.0, None, None)
    assert estimates.interval([]) == (None, None, None)


def test_a_share_of_games_has_an_exact_interval_also_where_all_are_alike():
    # Clopper and Pearson: of 10 games without a yes the upper end is 1 - 0.025 ** (1 / 10).
    unseen = 1 - 0.025**0.1
    assert estimates.interval([0.0] * 10, (0, 1)) == pytest.approx((0, 0, unseen))
    assert estimates.interval([1.0] * 10, (0, 1)) == pytest.approx((1, 1 - unseen, 1))
    # on a longer scale the unseen games may lie at either end
    assert estimates.interval([4.0] * 10, (1, 5)) == pytest.approx((4, 4 - 3 * unseen, 4 + unseen))
    assert estimates.interval([1.0] * 10, (1, 5)) == pytest.approx((1, 1, 1 + 4 * unseen))
    mean, low, high = estimates.interval([0.5, 1.0], (0, 1))
    assert (mean, high - mean) == (0.75, pytest.approx(12.7062 * 0.25, rel=1e-5)), "seats of a game may differ"
    assert low == pytest.approx(mean - 12.7062 * 0.25, rel=1e-5)


def seat_of(match, user):
    return match.seats.get(user=user)


def test_players_rate_each_other_once(researcher, player):
    match = finished_match(researcher, player)
    rating.rate(
        by=seat_of(match, player), version=version(), values={0: FIVES}, guesses={0: rating.Answer(person=False)}
    )
    assert (Judgment.objects.get().seat, Guess.objects.get().person) == (0, False)
    with pytest.raises(BadInput, match="already"):
        rating.rate(
            by=seat_of(match, player), version=version(), values={0: FIVES}, guesses={0: rating.Answer(person=True)}
        )
    assert (Judgment.objects.count(), Guess.objects.count()) == (1, 1)


def test_a_rating_is_about_the_others_and_whole(researcher, player):
    match = finished_match(researcher, player)
    for values, guesses in (({1: FIVES}, {0: True}), ({0: FIVES}, {}), ({0: FIVES}, {0: True, 1: True})):
        with pytest.raises(BadInput):
            rating.rate(by=seat_of(match, player), version=version(), values=values, guesses=guesses)
    with pytest.raises(BadInput, match="choose a value"):
        rating.rate(
            by=seat_of(match, player),
            version=version(),
            values={0: {"mutual_benefit": 11}},
            guesses={0: rating.Answer(person=True)},
        )
    assert (Judgment.objects.count(), Guess.objects.count(), GameRating.objects.count()) == (0, 0, 0)


def test_after_the_guess_the_rest_is_optional(researcher, player):
    match = finished_match(researcher, player)
    rating.rate(by=seat_of(match, player), version=version(), values={0: {}}, guesses={0: rating.Answer(person=True)})
    assert (Judgment.objects.count(), Guess.objects.count()) == (0, 1)
    values = {1: {"mutual_benefit": 4, "persuasion_skill": None}}
    rating.rate(
        by=seat_of(match, researcher), version=version(), values=values, guesses={1: rating.Answer(person=True)}
    )
    assert Judgment.objects.get().numbers == {"mutual_benefit": 4}


def test_revealing_without_rating_excludes_a_later_vote(researcher, player):
    match = finished_match(researcher, player)
    assert Match.objects.unrevealed_to(player).exists()
    rating.reveal_unrated(by=seat_of(match, player))
    assert not Match.objects.unrevealed_to(player).exists()
    for work in (
        rating.reveal_unrated,
        lambda by: rating.rate(by=by, version=None, values={}, guesses={0: rating.Answer(person=True)}),
    ):
        with pytest.raises(BadInput, match="without rating"):
            work(by=seat_of(match, player))
    assert (Guess.objects.count(), GameRating.objects.get().voted) == (0, False)
    rating.rate(by=seat_of(match, researcher), version=None, values={}, guesses={1: rating.Answer(person=True)})
    with pytest.raises(BadInput, match="rated this game already"):
        rating.reveal_unrated(by=seat_of(match, researcher))


@pytest.mark.django_db(transaction=True)
def test_of_two_votes_in_the_same_moment_one_counts(researcher, player):
    seat = seat_of(finished_match(researcher, player), player)
    vote = {"by": seat, "version": version(), "values": {0: FIVES}}
    with transaction.atomic():
        rating.rate(**vote, guesses={0: rating.Answer(person=True)})
        others = [
            begin(lambda: rating.rate(**vote, guesses={0: rating.Answer(person=False)})),
            begin(lambda: rating.reveal_unrated(by=seat)),
        ]
        until_somebody_waits()
    for other in others:
        with pytest.raises(BadInput, match="rated this game already"):
            other.result(20)
    assert (Guess.objects.get().person, Judgment.objects.count(), GameRating.objects.count()) == (True, 1, 1)


def test_a_judgment_is_changed_a_bounded_number_of_times(researcher):
    queue = people_queue(researcher, finished_match(researcher))
    target = queue.targets.first()
    annotate(target=target, by=researcher, values=FIVES)
    Judgment.objects.update(history=[{"values": None, "reason": "x", "at": ""}] * 99)
    annotate(target=target, by=researcher, values=FIVES, reason="the hundredth change")
    with pytest.raises(BadInput, match="it was changed 100 times and stays as it is"):
        annotate(target=target, by=researcher, values=FIVES, reason="one more")
    assert Judgment.objects.get().reason == "the hundredth change"


def test_judged_games_become_a_dataset_version(researcher, player):
    match = rated(finished_match(researcher, player), researcher)
    rating.rate(
        by=seat_of(match, player), version=version(), values={0: FIVES}, guesses={0: rating.Answer(person=True)}
    )
    queue = people_queue(researcher, match)
    for target in queue.targets.order_by("position"):
        annotate(target=target, by=researcher, values=FIVES)
    stored, left_out = export.store(queue=queue, name="judged", by=researcher)
    assert (left_out, stored.scenario_count, stored.conversation_count) == ([], 1, 1)
    (line,) = lines_of(stored)
    (conversation,) = line.conversations
    assert conversation.source == f"match:{match.pk}"
    assert [(j.seat, j.author) for j in conversation.judgments] == [
        (0, "person:2"), (1, "person:2"), (0, "person:1"),
    ]  # fmt: skip
    # By hand: seat 0 keeps one of three pens at 1 point each, seat 1 gets two of three at 2 points each.
    assert conversation.episode.returns == {0: 1 / 3, 1: 2 / 3}
    again, _ = export.store(queue=queue, name="judged", by=researcher)
    assert (again.number, again.sha256) == (2, stored.sha256)
    assert DatasetLine.from_dict(line.to_dict()) == line


def test_a_judges_reasons_travel_with_its_values(researcher):
    match = rated(finished_match(researcher), researcher)
    queue = judged_by_a_model(researcher, match, reason="because of {}")
    stored, _ = export.store(queue=queue, name="judged", by=researcher)
    judgments = next(iter(lines_of(stored))).conversations[0].judgments
    assert [reasons(j) for j in judgments] == [{name: f"because of {name}" for name in FIVES}] * 2


def test_a_no_keeps_a_match_out_of_its_queue_and_the_export(researcher, player, client_of):
    from webapp.arena.setup import waiting_room

    match = rated(finished_match(researcher, player), researcher)
    queue = people_queue(researcher, match)
    for target in queue.targets.all():
        annotate(target=target, by=researcher, values=FIVES)
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk]))
    assert "<strong>0 of 0 scored</strong>" in page.text, "its two seats count no longer"
    with pytest.raises(BadInput, match="the queue is empty"):
        export.store(queue=queue, name="judged", by=researcher)
    with pytest.raises(BadInput, match="did not agree"):
        people_queue(researcher, match)
    assert Dataset.objects.count() == 0


def test_unscored_games_stay_out_and_are_named(researcher, annotator):
    scored, unscored = (rated(finished_match(researcher), researcher) for _ in range(2))
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version(), matches=[scored, unscored], annotators=[annotator]
    )
    annotate(target=queue.targets.get(match=scored, seat=0), by=annotator, values=FIVES)
    stored, left_out = export.store(queue=queue, name="judged", by=researcher)
    assert stored.conversation_count == 1
    assert left_out == [f"match {unscored.pk}, Negotiation: not scored"]


def test_two_games_of_one_long_name_have_ids_that_fit(researcher):
    long = SCENARIO.model_copy(update={"id": "s" * 200})
    other = long.model_copy(update={"seats": ("Ann", "Bob")})
    matches = [rated(finished_match(researcher, scenario=played), researcher) for played in (long, other)]
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version(), matches=matches, annotators=[researcher]
    )
    scored(queue, researcher)
    stored, _ = export.store(queue=queue, name="judged", by=researcher)
    names = [line.scenario.id for line in lines_of(stored)]
    assert (names[0], len(names[1])) == (long.id, 200)
    assert names[1].startswith("s" * 191 + "-")


def test_a_target_that_was_cancelled_takes_no_judgment(researcher, judge, stub, monkeypatch):
    stub.answer = answer
    target = judged_queue(researcher, judge, finished_match(researcher)).targets.with_games().first()
    monkeypatch.setattr(queues, "claim", lambda pk: queues.cancel(queue=target.queue) and target)
    judging.judge_target(target.pk)
    queues.record_verdict(target=target, verdict=None, why="too late")
    with pytest.raises(BadInput, match="removed from the queue"):
        annotate(target=target, by=researcher, values=FIVES)
    assert (stub.requests, Judgment.objects.count()) == ([], 0)


@pytest.mark.django_db(transaction=True)
def test_two_simultaneous_judgments_of_a_seat_are_both_kept(researcher, annotator):
    target = people_queue(researcher, finished_match(researcher), [researcher, annotator]).targets.first()
    with transaction.atomic():
        annotate(target=target, by=researcher, values=FIVES)
        other = begin(lambda: annotate(target=target, by=annotator, values=None, reason="too short"))
        until_somebody_waits()
    other.result(20)
    target.refresh_from_db()
    assert (target.state, Judgment.objects.count()) == ("scored", 2)


def test_versions_of_codebooks_load_after_migrate():
    assert CodebookVersion.objects.filter(created_by=None).count() == len(CODEBOOKS)


def test_a_newer_shipped_version_stands_beside_the_one_that_was_judged_under(researcher, monkeypatch):
    before = CODEBOOKS["sotopia"]
    older = version("sotopia")
    queue = queues.create_queue(
        name="q",
        owner=researcher,
        codebook_version=older,
        matches=[finished_match(researcher)],
        annotators=[researcher],
    )
    shipped = before.model_copy(update={"version": older.number + 1, "title": "Reworded"})
    monkeypatch.setitem(CODEBOOKS, "sotopia", shipped)
    codebooks.load_codebooks()
    codebooks.load_codebooks()
    assert version("sotopia").record() == shipped
    queue.refresh_from_db()
    assert queue.codebook_version.record() == before
