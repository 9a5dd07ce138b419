"""The strategy annotations of CaSiNo, aligned with the turns of their dialogues.

A dialogue's `annotations` are pairs of an utterance and its labels, separated by commas, in the order of the dialogue.
Deals (`Submit-Deal`, …) have none, and in a few dialogues neither have single utterances. Source: Chawla et al.,
"CaSiNo", NAACL 2021.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, NamedTuple

from training.errors import BadInput
from webapp.scenarios.importers.reading import need

STRATEGIES = (
    *("small-talk", "showing-empathy", "promote-coordination", "no-need", "elicit-pref", "uv-part"),
    *("vouch-fair", "self-need", "other-need", "non-strategic"),
)
"""The labels: nine strategies, and `non-strategic` for an utterance without any."""


class Aligned(NamedTuple):
    """`labels` by the number of the turn in `chat_logs`; `unplaced` are the numbers of annotations without a turn."""

    labels: dict[int, tuple[str, ...]]
    unplaced: tuple[int, ...]


def align(record: Any, where: str) -> Aligned:
    """Return the labels of a dialogue's turns, by order and by the same text.

    Raises `BadInput` with the place for annotations of another form, and for labels that CaSiNo does not have.
    """
    logs = need(record, "chat_logs", list, where)
    texts = [need(entry, "text", str, f"{where}, chat_logs.{n}") for n, entry in enumerate(logs)]
    pairs = need(record, "annotations", list, where)
    annotations = [_annotation(pair, f"{where}, annotations.{n}") for n, pair in enumerate(pairs)]
    utterances = [utterance for utterance, _ in annotations]
    matcher = SequenceMatcher(None, texts, utterances, autojunk=False)
    turns = {
        block.b + at: block.a + at for block in matcher.get_matching_blocks() for at in range(block.size)
    }  # annotation -> turn
    labels = {turn: annotations[number][1] for number, turn in sorted(turns.items())}
    return Aligned(labels, tuple(number for number in range(len(annotations)) if number not in turns))


def _annotation(pair: Any, where: str) -> tuple[str, tuple[str, ...]]:
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
        raise BadInput("expected a pair of texts, an utterance and its labels", where)
    labels = tuple(dict.fromkeys(label.strip() for label in pair[1].split(",")))
    if unknown := [label for label in labels if label not in STRATEGIES]:
        raise BadInput(f"unknown strategy {unknown[0]!r}; expected one of {', '.join(STRATEGIES)}", where)
    return pair[0], labels
