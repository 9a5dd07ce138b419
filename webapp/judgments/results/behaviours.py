"""The behaviour table of a queue: how the answers to its yes-or-no questions differ between surviving and eliminated
players.

It needs no game to be played again: roles and who survived are stored with matches, episodes and conversations. Games
that do not tell them, such as those without roles, have no part in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from training.evaluate.behaviours import JudgedGame, Table, report
from training.labels.codebooks import Codebook
from training.records import Judgment as JudgmentRecord
from webapp.judgments.games import GAME_ID, GameId
from webapp.judgments.models import Judgment, Queue
from webapp.judgments.results.withheld import NOTHING, Withheld
from webapp.judgments.search.games import facts_in, survived


def of_queue(queue: Queue, withheld: Withheld = NOTHING) -> Table | None:
    """Return the table, or None for a codebook without such a question and for games that do not tell who survived."""
    codebook = queue.codebook_version.record()
    if not any(label_type.yes_no for label_type in codebook.labels):
        return None
    judgments = _judgments(queue, codebook, withheld)
    games: dict[GameId, JudgedGame] = {}
    for game, facts in _facts(queue):
        roles = facts.get("roles") or ()
        outcomes = survived(facts, len(roles))
        if game not in games and outcomes:
            games[game] = JudgedGame(roles, outcomes, judgments[game])
    tables = report(list(games.values()), codebook).tables
    return tables[0] if tables else None


def _facts(queue: Queue) -> Iterator[tuple[GameId, Mapping[str, Any]]]:
    """Yield every target's game with its roles and its seats' metrics, in the order of the queue."""
    columns = ("match__roles", "match__seat_metrics", "episode__summary", "conversation__data")
    for match, episode, conversation, *stored in queue.targets.order_by("position").values_list(*GAME_ID, *columns):
        roles, metrics, summary, data = stored
        of_match = {"roles": roles, "seat_metrics": metrics}
        yield (match, episode, conversation), of_match if match else facts_in((summary if episode else data) or {})


def _judgments(queue: Queue, codebook: Codebook, withheld: Withheld) -> dict[GameId, list[JudgmentRecord]]:
    """Return the scored judgments of a queue by game, but for those that are withheld."""
    judgments: dict[GameId, list[JudgmentRecord]] = defaultdict(list)
    rows = Judgment.objects.scored().deciding().filter(queue=queue).exclude(pk__in=withheld.judgments)
    for row in rows.select_related("judge__remote").with_labels():
        game = (row.match_id, row.episode_id, row.conversation_id)
        record = JudgmentRecord(
            codebook=codebook.name, codebook_version=codebook.version, episode=str(game), seat=row.seat, author=row.by,
            labels=row.records(),
        )  # fmt: skip
        judgments[game].append(record)
    return judgments
