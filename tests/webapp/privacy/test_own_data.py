"""Trust 29: a copy of one's own data has all that the site stores about a person, and nothing that others said."""

import io
import json
import zipfile

import pytest
from django.urls import reverse

from tests.trust.withdrawn import JUDGED, SAID, canary_match
from tests.webapp.judgments.make import FIVES, annotate, people_queue
from webapp.accounts.models import User
from webapp.accounts.services import create_key
from webapp.arena.setup import waiting_room
from webapp.judgments.models import Queue, SavedSearch

pytestmark = pytest.mark.django_db
COPIED = {
    "account.EmailAddress", "accounts.ApiKey", "scenarios.Dataset", "scenarios.Import", "corpora.Corpus",
    "runs.AlertRule", "runs.Pin", "runs.Preference", "runs.Report", "runs.Sweep", "runs.Run", "arena.ChatMessage",
    "arena.Match", "arena.MatchSeat", "arena.ChatReport", "arena.FormerPlayer", "ladder.Standing",
    "experiments.Experiment", "experiments.Participant", "judgments.Codebook", "judgments.Queue",
    "judgments.Queue_annotators", "judgments.Assignment", "judgments.Qualification", "judgments.AnnotatorSettings",
    "judgments.Classifier", "judgments.Judgment", "judgments.SavedSearch", "judgments.Invitation",
    "scenarios.Withdrawal",
}  # fmt: skip
"""What `own_data` reads."""
LEFT_OUT = {
    "core.QuotaUse": "times of the last hour, which are deleted after it",
    "accounts.User_groups": "not used",
    "accounts.User_user_permissions": "not used",
    "runs.AliasMove": "who moved an alias: part of the registry's log",
    "scenarios.DatasetVersion": "who saved a version: named with its dataset",
    "serving.RemoteModel": "who added a model of the site",
    "serving.Deployment": "who asked last for a model",
    "arena.ChatMute": "moderation by others",
    "judgments.CodebookVersion": "who saved a version: named with its codebook",
    "home.Tour": "the step of the tour",
}


def copy_of(client):
    answer = client.post(reverse("privacy:data"))
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_every_table_that_names_a_person_is_copied_or_left_out_with_a_reason():
    related = [
        field for field in User._meta.get_fields(include_hidden=True) if field.is_relation and field.auto_created
    ]
    assert {field.related_model._meta.label for field in related} == COPIED | LEFT_OUT.keys()


def test_the_copy_has_what_the_person_said_and_answered(researcher, player, annotator, client_of):
    match = canary_match(player, researcher)
    queue = people_queue(researcher, match, annotators=[annotator])
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=FIVES, reason=JUDGED)
    SavedSearch.objects.create(owner=annotator, name="mine", query="text=pens")
    _, token = create_key(user=annotator, name="notebook")
    players, annotators = copy_of(client_of(player)), copy_of(client_of(annotator))
    (game,) = [row for row in players["games.json"] if row["kind"] == "game"]
    assert (game["match"], game["seat"], game["consent"]) == (match.pk, 0, True)
    assert any(SAID in move["move"]["text"] for move in game["moves"])
    assert [row["comment"] for row in annotators["judgments.json"]] == [JUDGED, JUDGED]
    assert {"kind": "saved search", "name": "mine", "query": "text=pens"}.items() <= annotators["settings.json"][
        -1
    ].items()
    assert token not in json.dumps(annotators)


def test_the_copy_has_nothing_that_others_said(researcher, player, annotator, client_of):
    match = canary_match(researcher, player)
    queue = people_queue(researcher, match, annotators=[annotator])
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=FIVES, reason=JUDGED)
    for user in (player, annotator):
        assert SAID not in json.dumps(copy_of(client_of(user)))
    for user in (player, researcher):
        text = json.dumps(copy_of(client_of(user)))
        assert JUDGED not in text
        assert annotator.username not in text


@pytest.mark.parametrize(
    "role, shows_hidden, named", [("annotator", False, False), ("annotator", True, True), ("researcher", False, True)]
)
def test_a_judgment_names_its_game_to_those_who_may_know_it(
    researcher, player, person, client_of, role, shows_hidden, named
):
    match, author = canary_match(researcher, player), person(role, "author")
    queue = people_queue(researcher, match, annotators=[author])
    Queue.objects.update(shows_hidden=shows_hidden)
    annotate(target=queue.targets.with_games().first(), by=author, values=FIVES)
    (row,) = copy_of(client_of(author))["judgments.json"]
    assert (row["match"], row["episode"], row["conversation"]) == (match.pk if named else None, None, None)


def test_a_judgment_of_a_withdrawn_game_stays_in_its_authors_copy(researcher, player, annotator, client_of):
    match = canary_match(researcher, player)
    target = people_queue(researcher, match, annotators=[annotator]).targets.first()
    annotate(target=target, by=annotator, values=FIVES, reason=JUDGED)
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    assert [row["comment"] for row in copy_of(client_of(annotator))["judgments.json"]] == [JUDGED]


def test_copies_are_limited(player, client_of):
    client = client_of(player)
    for _ in range(5):
        assert copy_of(client)["account.json"][0]["username"] == "pia"
    assert client.post(reverse("privacy:data")).status_code == 302
