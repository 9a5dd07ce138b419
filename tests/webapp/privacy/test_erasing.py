"""Trust 29: an account is deleted with all that is personal, and what others played and read stays as it was."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import make_password
from django.db import connection
from django.urls import reverse

from tests.trust.matrix.scenarios import SCENARIO
from tests.trust.withdrawn import JUDGED, SAID, canary_match, reveal
from tests.webapp.judgments.make import FIVES, annotate, finished_match, people_queue
from tests.webapp.privacy.test_own_data import COPIED, LEFT_OUT
from tests.webapp.runs.making import make_run
from training.errors import BadInput
from webapp.accounts.models import FORMER, User
from webapp.accounts.services import create_key
from webapp.arena.setup import tables, waiting_room
from webapp.experiments.models import Experiment, Participant
from webapp.judgments.datasets import export
from webapp.judgments.models import AnnotatorSettings, Invitation, Judgment, SavedSearch
from webapp.judgments.naming import numbers_in
from webapp.judgments.queues import invitations
from webapp.privacy.erasing import PERSONAL, erase
from webapp.runs.models import Run
from webapp.scenarios.models import Withdrawal
from webapp.scenarios.services import lines_of

pytestmark = pytest.mark.django_db
NAME = "Quillwyrm"
KEPT = {
    "accounts.User_groups", "accounts.User_user_permissions",  # not used
    "scenarios.Dataset", "scenarios.DatasetVersion", "scenarios.Withdrawal", "corpora.Corpus",
    "runs.Report", "runs.Sweep", "runs.Run", "runs.AliasMove", "serving.RemoteModel", "serving.Deployment",
    "arena.Match", "arena.MatchSeat", "ladder.Standing", "experiments.Experiment", "experiments.Participant",
    "judgments.Codebook", "judgments.CodebookVersion", "judgments.Queue", "judgments.Classifier",
    "judgments.Judgment",
}  # fmt: skip
"""Tables whose rows go on naming the row of a deleted account, which says nothing of its person."""
ELSEWHERE = {"account.EmailAddress", "accounts.ApiKey", "judgments.Queue_annotators"}


@pytest.fixture
def quill(db):
    """A player and annotator with an unmistakable name."""
    user = User(username=NAME, email=f"{NAME}@example.org", first_name=NAME, role="annotator")
    user.set_password("correct horse")
    user.save()
    EmailAddress.objects.create(user=user, email=user.email)
    return user


def rows_that_say(text):
    """The tables of the database in which a row contains a text, whatever its case."""
    with connection.cursor() as cursor:
        tables = set()
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s', [f"%{text}%"])  # noqa: S608
            if cursor.fetchone()[0]:
                tables.add(table)
    return tables


def test_every_table_that_names_a_person_is_deleted_or_kept():
    deleted = {model._meta.label for model, _ in PERSONAL}
    assert not deleted & KEPT
    assert deleted | KEPT | ELSEWHERE == COPIED | LEFT_OUT.keys()


def test_nothing_personal_is_left_in_any_table(quill, researcher):
    create_key(user=quill, name="notebook")
    SavedSearch.objects.create(owner=quill, name="mine", query="")
    AnnotatorSettings.objects.create(user=quill)
    queue = people_queue(researcher, finished_match(researcher), annotators=[researcher])
    invitations.accept(token=invitations.invite(queue=queue, by=researcher), user=quill)
    assert rows_that_say(NAME) == {"accounts_user", "account_emailaddress"}
    erase(user=quill)
    assert rows_that_say(NAME) == set()
    for model, columns in PERSONAL:
        for column in columns:
            assert not model._default_manager.filter(**{column: quill}).exists()
    assert not quill.api_keys.exists()
    assert not Invitation.objects.exists()
    assert list(queue.annotators.all()) == [researcher]
    quill.refresh_from_db()
    assert (quill.is_active, quill.has_usable_password(), quill.shown_name) == (False, False, FORMER)


def test_games_of_others_are_byte_equal(quill, researcher, client_of):
    """A replay and its export say the same before and after; who sat there is a former player."""
    match = canary_match(researcher, quill)
    reveal(match, researcher)
    client = client_of(researcher)
    pages = [reverse("arena:replay", args=[match.pk]), reverse("arena:result", args=[match.pk])]
    tokens = ("csrf", "nonce")

    def read(page):
        lines = client.get(page).content.decode().splitlines()
        return [line for line in lines if not any(token in line.lower() for token in tokens)]

    before = [read(page) for page in pages]
    moves = list(match.moves.order_by("number").values())
    assert any(NAME in line for page in before for line in page)
    erase(user=quill)
    for page, earlier in zip(pages, before, strict=True):
        changed = [(now, line) for now, line in zip(read(page), earlier, strict=True) if now != line]
        assert [now for now, _ in changed] == [line.replace(NAME, FORMER) for _, line in changed]
    assert list(match.moves.order_by("number").values()) == moves
    assert SAID in "".join(read(pages[0]))


def test_judgments_and_exports_stay_under_the_same_number(quill, researcher, client_of):
    match = finished_match(researcher)
    reveal(match, researcher)
    queue = people_queue(researcher, match, annotators=[quill, researcher])
    for user in (quill, researcher):
        for target in queue.targets.all():
            annotate(target=target, by=user, values=FIVES, reason=JUDGED)
    first, _ = export.store(queue=queue, name="before", by=researcher)
    numbers = numbers_in(queue.pk)
    erase(user=quill)
    second, _ = export.store(queue=queue, name="after", by=researcher)
    assert first.sha256 == second.sha256
    assert numbers_in(queue.pk) == numbers == {quill.pk: 1, researcher.pk: 2}
    assert NAME not in "".join(line.dumps() for line in lines_of(second))
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "annotator 1" in page
    assert NAME not in page
    assert Judgment.objects.filter(author=quill).count() == 2


def test_tables_are_left_first(quill, researcher, player):
    """One's own open table is closed, a seat of another becomes open, and a stand-in plays on in a running game."""
    hosted, open_table, running = (
        tables.create(host=host, start=tables.Start(SCENARIO), places=places, consent=True)
        for host, places in (
            (quill, [tables.Place(user=quill), tables.Place()]),
            (researcher, [tables.Place(user=researcher), tables.Place()]),
            (researcher, [tables.Place(user=researcher), tables.Place(user=quill)]),
        )
    )
    waiting_room.take_seat(match=open_table, user=quill)
    waiting_room.answer_consent(match=running, user=quill, agreed=True)
    running.refresh_from_db()
    assert running.state == "running"
    erase(user=quill)
    states = []
    for match in (hosted, open_table, running):
        match.refresh_from_db()
        states.append((match.state, [seat.kind for seat in match.seats.order_by("seat")]))
    assert states[0][0] == "aborted"
    assert states[1] == ("open", ["person", "open"])
    assert states[2] == ("running", ["person", "person"])
    seat = running.seats.get(seat=1)
    assert (seat.stand_in, seat.who) == (True, f"{FORMER}, then a stand-in")


def test_games_are_withdrawn_with_the_account_if_the_person_wants_it(quill, researcher):
    refused, others = finished_match(researcher, quill), finished_match(researcher)
    assert not Withdrawal.objects.exists()
    erase(user=quill, withdraw=True)
    assert Withdrawal.objects.count() == 1
    assert refused.seats.get(user=quill).consent is False
    assert not others.seats.filter(consent=False).exists()


def test_the_last_administrator_stays(admin):
    with pytest.raises(BadInput, match="last administrator"):
        erase(user=admin)
    admin.refresh_from_db()
    assert admin.deleted_at is None
    assert not admin.username.startswith("former")


def test_people_delete_their_own_account_with_their_password(quill, client):
    address = reverse("privacy:delete")
    client.login(username=NAME, password="correct horse")
    wrong = client.post(address, {"password": "wrong"})
    assert (wrong.status_code, b"This is not your password" in wrong.content) == (400, True)
    quill.refresh_from_db()
    assert quill.deleted_at is None
    assert client.post(address, {"password": "correct horse"}, follow=True).redirect_chain[0][0] == reverse(
        "account_login"
    )
    assert not client.login(username=NAME, password="correct horse")
    assert client.get(address).status_code == 302
    again = User(username=NAME, password=make_password("x"))
    again.save()  # the name is free again


def test_other_sessions_and_keys_end(quill, client, client_of):
    other, (_, token) = client_of(quill), create_key(user=quill, name="k")
    assert other.get(reverse("accounts:account")).status_code == 200
    erase(user=quill)
    assert other.get(reverse("accounts:account")).status_code == 302
    key = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/judgments", headers=key).status_code == 401


def test_an_admin_deletes_an_account_by_its_name(quill, admin, client_of):
    client, address = client_of(admin), reverse("privacy:delete-person", args=[quill.pk])
    assert client.post(address, {"username": "somebody"}).status_code == 400
    assert client.post(address, {"username": NAME}).status_code == 302
    assert NAME not in client.get(reverse("accounts:people")).content.decode().replace("was deleted", "")
    assert client.get(address).status_code == 404
    response = client.post(reverse("privacy:delete-person", args=[admin.pk]), {"username": admin.username})
    assert response.url == reverse("privacy:delete")


def test_work_of_a_researcher_stays_for_administrators(other_researcher, researcher, admin, client_of):
    run = make_run(other_researcher, name="kept")
    erase(user=other_researcher)
    run.refresh_from_db()
    assert run.owner == other_researcher
    for user in (researcher, admin):
        page = client_of(user).get(reverse("runs:detail", args=[run.pk]))
        assert page.status_code == 200
        assert "otto" not in page.content.decode()
    assert Run.objects.changeable_by(admin).filter(pk=run.pk).exists()


def test_a_participant_under_way_ends_the_experiment_first(quill, researcher):
    experiment = Experiment.objects.create(title="e", owner=researcher)
    participant = Participant.objects.create(experiment=experiment, user=quill, external_id=NAME)
    with pytest.raises(BadInput, match="you take part in an experiment"):
        erase(user=quill)
    Participant.objects.filter(pk=participant.pk).update(outcome=Participant.Outcome.LEFT)
    erase(user=quill)
    participant.refresh_from_db()
    assert (participant.user, participant.external_id) == (quill, "")
