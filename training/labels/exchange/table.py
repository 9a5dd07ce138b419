"""Labels as a table: a row per label, or per judgment without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from training import tables
from training.dataset import Conversation, episode_hash
from training.labels.codebooks import Codebook
from training.labels.exchange.base import LabelledScenario
from training.records import Judgment, Label
from training.store import dumps

COLUMNS = (
    "scenario", "source", "episode_sha256", "game", "judgment", "author", "codebook", "codebook_version", "judged_at",
    "seconds", "suggestions_shown", "unsure", "decides", "scored", "comment", "label", "value", "seat", "turn", "start",
    "end", "other_turn", "words", "reason",
)  # fmt: skip
"""The columns in order; new ones are added at the end."""


def write(codebook: Codebook, scenarios: Iterable[LabelledScenario]) -> Iterator[str]:
    """Yield the table in pieces."""
    return tables.written(COLUMNS, rows(scenarios))


def rows(scenarios: Iterable[LabelledScenario]) -> Iterator[Sequence[object]]:
    """Yield the rows of the table, with values as the columns name them."""
    for labelled in scenarios:
        for conversation in labelled.conversations:
            yield from _rows(labelled.scenario.id, conversation)


def _rows(scenario: str, conversation: Conversation) -> Iterator[Sequence[object]]:
    episode = conversation.episode
    game = (scenario, conversation.source, episode_hash(episode.to_dict()), episode.scenario.game)
    for number, judgment in enumerate(conversation.judgments):
        head = (*game, number, *_head(judgment))
        if not judgment.labels:
            yield (*head, None, None, judgment.seat, *(None,) * 6)
        for label in judgment.labels or ():
            text = "" if label.turn is None else episode.moves[label.turn].move.text
            yield (*head, *_label(label, text))


def _head(judgment: Judgment) -> tuple[object, ...]:
    return (
        judgment.author, judgment.codebook, judgment.codebook_version, judgment.judged_at, judgment.seconds,
        _yes(judgment.suggestions_shown), _yes(judgment.unsure), _yes(judgment.decides),
        _yes(judgment.labels is not None), judgment.reason,
    )  # fmt: skip


def _label(label: Label, text: str) -> tuple[object, ...]:
    value = label.value
    if isinstance(value, bool):
        value = _yes(value)
    elif isinstance(value, tuple):
        value = dumps(value)
    words = None if label.start is None else text[label.start : label.end]
    place = (label.seat, label.turn, label.start, label.end, label.other_turn)
    return (label.label, value, *place, words, label.reason)


def _yes(value: bool) -> str:
    return "true" if value else "false"
