"""A copy of everything that the site stores about one person, as JSON files.

It contains what the person said, chose and was asked for. It contains nothing that others said or that a seat may not
know: of games the person's own seat alone, and of those that are not over only their moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from allauth.account.models import EmailAddress
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.arena.models import Advice, Match, MatchMove, MatchSeat
from webapp.arena.watching.models import ChatReport, FormerPlayer
from webapp.experiments.models import Participant
from webapp.judgments.models import AnnotatorSettings, Classifier, GameRating, Guess, Invitation, Judgment
from webapp.ladder.models import Standing
from webapp.scenarios.models import Withdrawal

Rows = Iterable[Mapping[str, Any]]
CHUNK = 500


def contents(user: User) -> dict[str, Iterable[bytes]]:
    """Return the files of the copy by name, each in pieces."""
    files: dict[str, Rows] = {
        "account": _account(user),
        "settings": _settings(user),
        "games": _games(user),
        "ratings": _ratings(user),
        "judgments": _judgments(user),
        "annotating": _annotating(user),
        "experiments": _experiments(user),
        "chat": _chat(user),
        "owned": _owned(user),
    }
    return {f"{name}.json": _json(rows) for name, rows in files.items()}


def _json(rows: Rows) -> Iterator[bytes]:
    """The rows as a JSON array, one at a time."""
    encoder = DjangoJSONEncoder(ensure_ascii=False)
    yield b"["
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n").encode() + encoder.encode(row).encode()
    yield b"\n]\n"


def _values(kind: str, rows: QuerySet[Any], *columns: str) -> Rows:
    for row in rows.order_by("pk").values(*columns).iterator(chunk_size=CHUNK):
        yield {"kind": kind, **row}


def _account(user: User) -> Rows:
    """Names, addresses, role and keys; a key itself is stored nowhere."""
    yield {
        "kind": "account", "username": user.username, "name": user.first_name, "last_name": user.last_name,
        "email": user.email, "role": user.role, "joined": user.date_joined, "member_since": user.member_since,
        "last_sign_in": user.last_login,
    }  # fmt: skip
    yield from _values("email address", EmailAddress.objects.filter(user=user), "email", "verified", "primary")
    yield from _values("api key", user.api_keys.all(), "name", "hint", "created_at", "used_at", "revoked_at")


def _settings(user: User) -> Rows:
    yield from _values("annotating", AnnotatorSettings.objects.filter(user=user), "keys", "break_minutes")
    yield from _values("lists of runs", user.run_preferences.all())
    yield from _values("pinned run", user.pinned_runs.all(), "run")
    yield from _values("alert", user.alert_rules.all(), "run", "events", "channel", "address", "created_at")
    yield from _values("saved search", user.label_searches.all(), "name", "query", "created_at")


def _games(user: User) -> Rows:
    """The seats of a person with their consent, their own moves and the advice that they got."""
    for match in Match.objects.filter(host=user).order_by("pk").iterator(chunk_size=CHUNK):
        yield {
            "kind": "table", "match": match.pk, "game": match.game, "state": match.state, "rules": match.rules,
            "visibility": match.visibility, "created_at": match.created_at,
        }  # fmt: skip
    for seat in MatchSeat.objects.filter(user=user).select_related("match").order_by("pk").iterator(chunk_size=CHUNK):
        yield _game(seat)
    yield from _values("removed from a game", FormerPlayer.objects.filter(user=user), "match")
    yield from _values("ladder", Standing.objects.filter(user=user), "fit__game", "rating", "games", "won")


def _game(seat: MatchSeat) -> Mapping[str, Any]:
    match = seat.match
    moves = MatchMove.objects.filter(match=match, seat=seat.seat)
    data = {
        "kind": "game", "match": match.pk, "game": match.game, "state": match.state, "seat": seat.seat,
        "name": seat.name, "consent": seat.consent, "consent_at": seat.consented_at, "started_at": match.started_at,
        "ended_at": match.ended_at,
        "moves": list(moves.order_by("number").values("step", "move", "took_s", "received_at")),
        "advice": list(
            Advice.objects.filter(match=match, seat=seat.seat).order_by("step").values("step", "text", "asked_at")
        ),
    }  # fmt: skip
    if match.state == Match.State.FINISHED:
        data["role"] = match.roles[seat.seat] if seat.seat < len(match.roles) else ""
        data["return"] = match.returns.get(str(seat.seat))
    return data


def _ratings(user: User) -> Rows:
    """What a person thought of the others after a game; others are numbers of seats."""
    guesses = Guess.objects.filter(by__user=user)
    yield from _values("guess", guesses, "by__match", "about__seat", "person", "sure", "created_at")
    yield from _values("rated", GameRating.objects.filter(by__user=user), "by__match", "voted", "created_at")


def _judgments(user: User) -> Rows:
    """The judgments of a person, also of games to whose use somebody withdrew consent; not what they are about.

    Only researchers read which game it was where the queue hides what some players did not know.
    """
    rows = Judgment.everything.filter(author=user).select_related("codebook_version__codebook", "target__queue")
    for row in rows.with_labels().order_by("pk").iterator(chunk_size=CHUNK):
        labels = row.records()
        named = user.is_researcher or row.target is None or row.target.queue.shows_hidden
        yield {
            "kind": "judgment", "queue": row.target.queue.name if row.target else None,
            "match": row.match_id if named else None, "episode": row.episode_id if named else None,
            "conversation": row.conversation_id if named else None, "seat": row.seat,
            "codebook": str(row.codebook_version), "unscored": row.unscored, "comment": row.reason,
            "labels": None if labels is None else [label.to_dict() for label in labels], "decision": row.decides,
            "unsure": row.unsure, "seconds": row.seconds, "earlier": row.history, "created_at": row.created_at,
            "updated_at": row.updated_at,
        }  # fmt: skip


def _annotating(user: User) -> Rows:
    yield from _values("queue", user.annotation_queues.all(), "name", "created_at")
    yield from _values(
        "assignment", user.assignments.all(), "target__queue__name", "target", "skipped", "expires_at", "created_at"
    )
    yield from _values(
        "qualification", user.qualifications.all(), "queue__name", "passed", "right", "items", "decided_at"
    )
    invitations = Invitation.objects.filter(accepted_by=user)
    yield from _values("invitation", invitations, "queue__name", "created_at", "expires_at")


def _experiments(user: User) -> Rows:
    """What a person answered; not the arm, which their consent may keep from them until the debriefing."""
    rows = Participant.objects.filter(user=user)
    yield from _values(
        "experiment", rows, "experiment__title", "experiment__consent_text", "stage", "outcome", "may_reuse", "answers",
        "times", "code", "external_id", "study_id", "session_id", "created_at",
    )  # fmt: skip


def _chat(user: User) -> Rows:
    yield from _values("message", user.chat_messages.all(), "match", "text", "step", "created_at", "deleted_at")
    yield from _values("report", ChatReport.objects.filter(reporter=user), "message", "created_at")


def _owned(user: User) -> Rows:
    """What a person made for their work, by name: its content is downloaded where it is."""
    yield from _values("dataset", user.datasets.all(), "name", "created_at")
    yield from _values("upload", user.imports.all(), "dataset_name", "files", "state", "created_at")
    yield from _values("corpus", user.corpora.all(), "name", "created_at")
    yield from _values("run", user.runs.all(), "name", "kind", "note", "tags", "created_at")
    yield from _values("sweep", user.sweeps.all(), "name")
    yield from _values("report", user.run_reports.all(), "title")
    yield from _values("queue", user.queues.all(), "name", "created_at")
    yield from _values("codebook", user.codebooks.all(), "name")
    yield from _values("classifier", Classifier.objects.filter(owner=user), "name", "created_at")
    yield from _values("experiment", user.experiments.all(), "title", "created_at")
    yield from _values("withdrawal", Withdrawal.objects.filter(by=user), "source", "dataset_name", "created_at")
