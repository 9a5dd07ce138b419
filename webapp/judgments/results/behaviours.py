"""The behaviour table of a queue: how the answers to its yes-or-no questions differ between surviving and eliminated
players.

It needs no game to be played again: roles and who survived are stored with matches, episodes and conversations. Games
that do not tell them, such as those without roles, have no part in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from training.evaluate.behaviours import JudgedGame, Table, report
from training.labels.codebooks import Codebook
from training.reading import split_seat_metrics
from training.records import Judgment as JudgmentRecord
from webapp.accounts.models import User
from webapp.judgments.games import GAME_ID, GameId
from webapp.judgments.models import Judgment, Queue


def of_queue(queue: Queue, user: User | None = None) -> Table | None:
    """Return the table, or None for a codebook without such a question and for games that do not tell who survived."""
    codebook = queue.codebook_version.record()
    if not any(label_type.yes_no for label_type in codebook.labels):
        return None
    judgments = _judgments(queue, codebook, user)
    games: dict[GameId, JudgedGame] = {}
    for game, roles, metrics in _facts(queue):
        survived = _survived(roles, metrics)
        if game not in games and survived is not None:
            games[game] = JudgedGame(roles, survived, judgments[game])
    tables = report(list(games.values()), codebook).tables
    return tables[0] if tables else None


def _facts(queue: Queue) -> Iterator[tuple[GameId, Sequence[str], Mapping[str, Any]]]:
    """Yield every target's game with its roles and its seats' metrics, in the order of the queue."""
    columns = ("match__roles", "match__seat_metrics", "episode__summary", "conversation__data")
    for match, episode, conversation, *facts in queue.targets.order_by("position").values_list(*GAME_ID, *columns):
        roles, metrics, summary, data = facts
        if not match:
            record = (summary if episode else data) or {}
            roles, metrics = record.get("roles"), _seat_metrics(record)
        yield (match, episode, conversation), roles or (), metrics or {}


def _seat_metrics(record: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    """Return the seats' metrics of an episode; older records name them `survived_0` among the game's."""
    if "seat_metrics" in record:
        return record["seat_metrics"]
    _, by_seat = split_seat_metrics(record.get("metrics") or {}, len(record.get("roles") or ()))
    return {str(seat): metrics for seat, metrics in by_seat.items()}


def _survived(roles: Sequence[str], metrics: Mapping[str, Mapping[str, float]]) -> list[bool] | None:
    survived = [metrics.get(str(seat), {}).get("survived") for seat in range(len(roles))]
    return [bool(value) for value in survived] if survived and None not in survived else None


def _judgments(queue: Queue, codebook: Codebook, user: User | None) -> dict[GameId, list[JudgmentRecord]]:
    """Return the scored judgments of a queue by game, without others' of seats that `user` has yet to judge."""
    judgments: dict[GameId, list[JudgmentRecord]] = defaultdict(list)
    rows = Judgment.objects.scored().deciding().not_awaited_by(user).filter(target__queue=queue)
    for row in rows.select_related("judge__remote").with_labels():
        game = (row.match_id, row.episode_id, row.conversation_id)
        record = JudgmentRecord(
            codebook=codebook.name, codebook_version=codebook.version, episode=str(game), seat=row.seat, author=row.by,
            labels=row.records(),
        )  # fmt: skip
        judgments[game].append(record)
    return judgments
