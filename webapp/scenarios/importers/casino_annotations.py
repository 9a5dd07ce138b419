"""The strategy annotations of CaSiNo, aligned with the turns of their dialogues.

A dialogue's `annotations` are pairs of an utterance and its labels, separated by commas, in the order of the dialogue.
Deals (`Submit-Deal`, …) have none, and in a few dialogues neither have single utterances. Source: Chawla et al.,
"CaSiNo", NAACL 2021.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, NamedTuple

from training.errors import BadInput
from training.labels.codebooks import CODEBOOKS
from training.records import Judgment, Label
from webapp.scenarios.importers.reading import need

CODEBOOK = CODEBOOKS["negotiation-moves"]
MOVES = {
    "small-talk": "small_talk",
    "showing-empathy": "empathy",
    "promote-coordination": "promote_coordination",
    "no-need": "no_need",
    "elicit-pref": "elicit_preference",
    "uv-part": "undervalue_partner",
    "vouch-fair": "vouch_fairness",
    "self-need": "self_need",
    "other-need": "other_need",
    "non-strategic": "non_strategic",
}
"""CaSiNo's labels, nine strategies and one for none, and the label types of the codebook `negotiation-moves`."""
STRATEGIES = tuple(MOVES)
AUTHOR = "CaSiNo"
"""The author of the annotations, which the file does not tell apart."""


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


def judgment_of(aligned: Aligned) -> Judgment | None:
    """Return the labels of a dialogue's turns as a judgment of the whole dialogue; None without any."""
    labels = tuple(
        Label(label=MOVES[name], value=True, turn=turn) for turn, names in aligned.labels.items() for name in names
    )
    if not labels:
        return None
    return Judgment(codebook=CODEBOOK.name, codebook_version=CODEBOOK.version, episode="", author=AUTHOR, labels=labels)


def _annotation(pair: Any, where: str) -> tuple[str, tuple[str, ...]]:
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
        raise BadInput("expected a pair of texts, an utterance and its labels", where)
    labels = tuple(dict.fromkeys(label.strip() for label in pair[1].split(",")))
    if unknown := [label for label in labels if label not in STRATEGIES]:
        raise BadInput(f"unknown strategy {unknown[0]!r}; expected one of {', '.join(STRATEGIES)}", where)
    return pair[0], labels
