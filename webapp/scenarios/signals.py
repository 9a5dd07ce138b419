"""Signals of the datasets."""

from __future__ import annotations

from typing import NamedTuple

from django.dispatch import Signal


class WaitingQueue(NamedTuple):
    """A queue in which somebody has yet to judge a seat."""

    pk: int
    name: str


version_stored = Signal()
"""Sent by `DatasetVersion` with `version`, once its scenarios and conversations are stored.

Receivers run inside the transaction that stores the version: an exception in one of them undoes the version.
"""

version_closed = Signal()
"""Sent by `DatasetVersion` with `version`, once consent to some of its conversations was withdrawn.

Receivers run inside the transaction that closes the version.
"""

awaited = Signal()
"""Sent before judgments on conversations are shown, with `conversations`, a query set, and the reader, `user`.

Receivers return those of which this person has yet to judge a seat, as copies of a game or as the game itself: by
primary key, a `WaitingQueue` that asks for it.
"""

codebook_wanted = Signal()
"""Sent by importers of labels, with `name` and `number`; None: the newest version.

Receivers return its `training.labels.codebooks.Codebook`, or raise `BadInput` if there is none.
"""
