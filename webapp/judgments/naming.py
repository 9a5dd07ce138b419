"""Names of authors of judgments, wherever judgments appear: people are numbers of a queue, never accounts.

An annotator has the number of their first judgment in the queue, also after a game was withdrawn. Numbers of different
queues are unrelated. Who may change a queue reads its annotators' usernames where they manage them: they invited them.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Min

from webapp.judgments.models import Judgment

ADJUDICATOR = "the adjudicator"


def numbers_in(queue_id: int) -> dict[int, int]:
    """Return the number of every annotator who has judged in a queue, by account."""
    judged = Judgment.everything.filter(queue=queue_id, author__isnull=False, decides=False)
    first = judged.order_by().values("author").annotate(first=Min("pk")).order_by("first")
    return {author: number for number, author in enumerate(first.values_list("author", flat=True), 1)}


class Names:
    """The names of authors; each queue is counted once. `queue_id`: the one queue that the reader looks at, `numbers`
    its annotators' numbers if they are known.
    """

    def __init__(self, queue_id: int | None = None, numbers: Mapping[int, int] | None = None) -> None:
        self._queue_id = queue_id
        self._numbers: dict[int, Mapping[int, int]] = {queue_id: numbers} if queue_id and numbers else {}

    def _number(self, row: Judgment, queue_id: int) -> int:
        if queue_id not in self._numbers:
            self._numbers[queue_id] = numbers_in(queue_id)
        return self._numbers[queue_id][row.author_id or 0]

    def shown(self, row: Judgment) -> str:
        """Return the author's name on pages, for a judgment loaded `with_authors` and with its target."""
        if row.author_seat is not None:
            return f"{row.author_seat.name}, at the table"
        if row.author_id is None or row.target is None:
            return row.shown_author
        if row.decides:
            return ADJUDICATOR
        name = f"annotator {self._number(row, row.target.queue_id)}"
        return name if row.target.queue_id == self._queue_id else f"{name} of queue {row.target.queue_id}"

    def for_programs(self, row: Judgment) -> str:
        """Return the author for programs: `annotator:` with the number in the queue, `seat:` with the seat from which a
        player rated, `adjudicator`, `model:` or `rule:` with its name, or an outside name.
        """
        if row.author_seat is not None:
            return f"seat:{row.author_seat.seat}"
        if row.author_id is None or row.target is None:
            return row.by
        return "adjudicator" if row.decides else f"annotator:{self._number(row, row.target.queue_id)}"
