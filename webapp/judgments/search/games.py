"""What searches read of a judged game, stored once with its first judgment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from training.errors import BadInput
from training.reading import split_seat_metrics
from webapp.arena.models import Match, MatchSeat
from webapp.judgments import games
from webapp.judgments.models import JudgedGame, Judgment, LabelledGame
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation

MOST_TEXT = 200_000
"""Characters of a game that searches read: PostgreSQL indexes at most a megabyte."""
BATCH = 500
GAME_MODELS: Mapping[str, Any] = {"match": Match, "episode": PlayedEpisode, "conversation": StoredConversation}
"""The models of judged games by the field of a judgment."""


def index_games(judged: Iterable[JudgedGame]) -> None:
    """Store what searches read of these games, where it is not stored yet.

    Games that cannot be read, and those to whose use somebody withdrew consent, are left out.
    """
    batch: list[LabelledGame] = []
    for game in judged:
        if LabelledGame.objects.filter(**games.reference(game)).exists() or _refused(game):
            continue
        if (row := _row(game)) is not None:
            batch.append(row)
        if len(batch) >= BATCH:
            LabelledGame.objects.bulk_create(batch, ignore_conflicts=True)
            batch = []
    LabelledGame.objects.bulk_create(batch, ignore_conflicts=True)


def index_missing() -> None:
    """Store what searches read of the judged games of which it is not stored, such as those of an earlier release."""
    for kind, model in GAME_MODELS.items():
        judged = Judgment.objects.filter(**{f"{kind}__isnull": False, f"{kind}__labelled_game": None})
        index_games(model.objects.filter(pk__in=judged.values(kind)).iterator(chunk_size=BATCH))


def _refused(game: JudgedGame) -> bool:
    """Whether a player, or the person behind a conversation, did not agree to the use of a game."""
    if isinstance(game, Match):
        return MatchSeat.objects.refusing().filter(match=game).exists()
    withdrawn = StoredConversation.objects.withdrawn()
    return isinstance(game, StoredConversation) and withdrawn.filter(pk=game.pk).exists()


def _row(game: JudgedGame) -> LabelledGame | None:
    try:
        record = games.of(game)
    except BadInput:
        return None
    facts = facts_of(game)
    seats = len(record.scenario.seats)
    text = "\n".join(entry.move.text for entry in record.moves).replace("\0", "")
    return LabelledGame(
        **games.reference(game),
        game=record.scenario.game,
        roles=list(facts.get("roles") or ()),
        won=won(facts, seats),
        survived=survived(facts, seats),
        movers=[entry.seat for entry in record.moves],
        text=text[:MOST_TEXT],
    )


def facts_of(game: JudgedGame) -> Mapping[str, Any]:
    """Return roles, returns and the seats' metrics as they are stored with the game."""
    if isinstance(game, Match):
        return {"roles": game.roles, "returns": game.returns, "seat_metrics": game.seat_metrics}
    return facts_in(game.summary if isinstance(game, PlayedEpisode) else game.data)


def facts_in(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the same of the record of an episode or conversation; older ones name `survived_0` among the game's."""
    if "seat_metrics" in facts:
        return facts
    _, by_seat = split_seat_metrics(facts.get("metrics") or {}, len(facts.get("roles") or ()))
    return {**facts, "seat_metrics": {str(seat): metrics for seat, metrics in by_seat.items()}}


def won(facts: Mapping[str, Any], seats: int) -> list[bool]:
    """Return which seats won, or got the highest return in a game without sides; empty where a return is missing or all
    are the same.
    """
    returns, metrics = facts.get("returns") or {}, facts.get("seat_metrics") or {}
    values = [metrics.get(str(seat), {}).get("won", returns.get(str(seat))) for seat in range(seats)]
    known = [value for value in values if value is not None]
    if len(known) < seats or len(set(known)) < 2:
        return []
    return [value == max(known) for value in known]


def survived(facts: Mapping[str, Any], seats: int) -> list[bool]:
    """Return which seats survived the game; empty where the game does not say."""
    metrics = facts.get("seat_metrics") or {}
    values: Sequence[float | None] = [metrics.get(str(seat), {}).get("survived") for seat in range(seats)]
    return [] if None in values else [bool(value) for value in values]
