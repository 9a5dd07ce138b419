"""What the claim checker finds, as labels of a codebook.

Three forms of label types can be filled: words marked as `true_claim`, `false_claim` or `unknowable_claim`; a choice
with the options true, false and unknowable about words that another type marks; and such a choice about a turn, which
gets false if one of its claims is false, else unknowable if one is, else true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from training.labels.claims import Claim
from training.labels.codebooks import Codebook, LabelType
from training.records import Label

VERDICTS = ("false", "unknowable", "true")
"""The worst first: a turn with several claims has the verdict of the worst."""


def filled(codebook: Codebook) -> set[str]:
    """Return the names of the label types that claims can fill."""
    return {label_type.name for label_type in codebook.labels if _form(label_type)}


def labels_of(codebook: Codebook, claims: Sequence[Claim]) -> list[Label]:
    """Return the labels of a codebook for the claims of a game, in the order of its types."""
    return [label for label_type in codebook.labels for label in _filled(label_type, claims)]


def _form(label_type: LabelType) -> str:
    if label_type.kind == "span":
        return "span" if label_type.name in {f"{verdict}_claim" for verdict in VERDICTS} else ""
    if label_type.kind == "one_of" and {*VERDICTS} <= {option.name for option in label_type.options}:
        of_words = label_type.about == "span" and label_type.when is not None
        return "words" if of_words else "turn" if label_type.about == "turn" else ""
    return ""


def _filled(label_type: LabelType, claims: Sequence[Claim]) -> Iterator[Label]:
    name = label_type.name
    match _form(label_type):
        case "span":
            yield from _marked(name, [each for each in claims if f"{each.verdict}_claim" == name], label_type.overlap)
        case "words":
            assert label_type.when is not None, "its form"
            marks = list(_marked(label_type.when.label, claims, overlap=False))
            kept = {label.place for label in marks}
            yield from marks
            values = [_label(name, each, each.verdict) for each in claims]
            yield from {label.place: label for label in reversed(values) if label.place in kept}.values()
        case "turn":
            for turn in sorted({each.move for each in claims}):
                verdicts = {each.verdict for each in claims if each.move == turn}
                verdict = next(verdict for verdict in VERDICTS if verdict in verdicts)
                why = "; ".join(each.why for each in claims if each.move == turn and each.verdict == verdict)
                yield Label(label=name, value=verdict, turn=turn, reason=why)


def _marked(name: str, claims: Sequence[Claim], overlap: bool) -> Iterator[Label]:
    """Yield the words of claims; of equal places one, and where spans may not overlap, the first of those that do."""
    places: set[tuple[int, int, int]] = set()
    for each in sorted(claims, key=lambda claim: (claim.move, claim.start, claim.end)):
        clash = any(each.move == move and each.start < end and start < each.end for move, start, end in places)
        if (each.move, each.start, each.end) in places or (clash and not overlap) or each.start == each.end:
            continue
        places.add((each.move, each.start, each.end))
        yield _label(name, each, None)


def _label(name: str, claim: Claim, value: str | None) -> Label:
    reason = f"{claim.statement}: {claim.why}"
    return Label(label=name, value=value, turn=claim.move, start=claim.start, end=claim.end, reason=reason)
