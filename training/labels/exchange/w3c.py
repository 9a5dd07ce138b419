"""Labels as W3C Web Annotations (JSON-LD): one collection, an annotation per label, and one per comment.

A turn is the resource `urn:parley:episode:SHA256#turn-N`, where the hash is `training.dataset.episode_hash` and N the
index of the move. Words have a position in code points, as the recommendation counts them, and a quote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from training.dataset import Conversation, episode_hash
from training.labels.codebooks import Codebook
from training.labels.exchange.base import LabelledScenario
from training.records import Judgment, Label
from training.store import dumps

CONTEXT = [
    "http://www.w3.org/ns/anno.jsonld",
    {
        "parley": "urn:parley:terms:",
        "labelValue": {"@id": "parley:labelValue", "@type": "@json"},
        **{
            name: f"parley:{name}"
            for name in (
                "scenario", "gameSource", "judgment", "codebook", "codebookVersion", "seconds", "suggestionsShown",
                "unsure", "decides", "scored", "labelType",
            )
        },
    },
]  # fmt: skip
"""The recommendation's terms, and those of Parley."""
GENERATOR = {"type": "Software", "name": "Parley"}
AROUND = 32
"""Characters of a quote's prefix and suffix."""


def write(codebook: Codebook, scenarios: Iterable[LabelledScenario]) -> Iterator[str]:
    """Yield the collection in pieces of one annotation; what is known at the end comes last.

    The recommendation asks for an IRI of the collection and of its page: they follow from the annotations.
    """
    name = f"{codebook.name} v{codebook.version}"
    head = dumps({"@context": CONTEXT, "type": "AnnotationCollection", "label": f"Labels under {name}"})
    yield f'{head[:-1]},"first":{{"type":"AnnotationPage","startIndex":0,"items":['
    total, content = 0, hashlib.sha256(head.encode())
    for annotation in _all(scenarios):
        content.update(annotation["id"].encode())
        yield f"{',' if total else ''}\n{dumps(annotation)}"
        total += 1
    collection = uuid5(NAMESPACE_URL, content.hexdigest())
    yield f'\n],"id":"urn:uuid:{uuid5(collection, "page")}"}},"id":"urn:uuid:{collection}","total":{total}}}\n'


def _all(scenarios: Iterable[LabelledScenario]) -> Iterator[dict[str, Any]]:
    """Yield the annotations of all judgments."""
    for labelled in scenarios:
        for conversation in labelled.conversations:
            sha256 = episode_hash(conversation.episode.to_dict())
            for number, judgment in enumerate(conversation.judgments):
                head = {
                    "scenario": labelled.scenario.id,
                    "gameSource": conversation.source,
                    "judgment": number,
                    **_head(judgment),
                }
                yield from _annotations(conversation, judgment, f"urn:parley:episode:{sha256}", head)


def _annotations(
    conversation: Conversation, judgment: Judgment, episode: str, head: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    texts = [entry.move.text for entry in conversation.episode.moves]
    if judgment.reason or not judgment.labels:
        seat = "" if judgment.seat is None else f"#seat-{judgment.seat}"
        comment = {"type": "TextualBody", "value": judgment.reason, "purpose": "commenting"}
        body = {"body": comment} if judgment.reason else {}
        yield _annotation({"motivation": "commenting" if body else "assessing", **body}, f"{episode}{seat}", head)
    for label in judgment.labels or ():
        yield _annotation(_of_label(label), _target(label, episode, texts), head)


def _annotation(content: dict[str, Any], target: Any, head: dict[str, Any]) -> dict[str, Any]:
    annotation = {"type": "Annotation", **content, "target": target, **head, "generator": GENERATOR}
    return {"id": f"urn:uuid:{uuid5(NAMESPACE_URL, dumps(annotation))}", **annotation}


def _head(judgment: Judgment) -> dict[str, Any]:
    kind = "Software" if judgment.author.startswith(("model:", "rule:")) else "Person"
    return {
        "creator": {"type": kind, "nickname": judgment.author},
        **({"created": judgment.judged_at} if judgment.judged_at else {}),
        "codebook": judgment.codebook,
        "codebookVersion": judgment.codebook_version,
        **({} if judgment.seconds is None else {"seconds": judgment.seconds}),
        "suggestionsShown": judgment.suggestions_shown,
        "unsure": judgment.unsure,
        "decides": judgment.decides,
        "scored": judgment.labels is not None,
    }


def _of_label(label: Label) -> dict[str, Any]:
    if label.other_turn is not None:
        motivation = "linking"
    elif label.value is None:
        motivation = "highlighting"
    else:
        motivation = "assessing" if isinstance(label.value, int | float) else "classifying"
    bodies: list[dict[str, Any]] = [{"type": "TextualBody", "value": label.label, "purpose": "tagging"}]
    if label.value is not None:
        bodies.append({"type": "TextualBody", "value": label.words, "purpose": "classifying"})
    if label.reason:
        bodies.append({"type": "TextualBody", "value": label.reason, "purpose": "commenting"})
    return {"motivation": motivation, "body": bodies, "labelType": label.label, "labelValue": label.value}


def _target(label: Label, episode: str, texts: Sequence[str]) -> Any:
    if label.turn is None:
        return episode if label.seat is None else f"{episode}#seat-{label.seat}"
    source = f"{episode}#turn-{label.turn}"
    if label.other_turn is not None:
        return [source, f"{episode}#turn-{label.other_turn}"]
    if label.start is None or label.end is None:
        return source
    text = texts[label.turn]
    position = {"type": "TextPositionSelector", "start": label.start, "end": label.end}
    quote = {
        "type": "TextQuoteSelector",
        "exact": text[label.start : label.end],
        "prefix": text[max(0, label.start - AROUND) : label.start],
        "suffix": text[label.end : label.end + AROUND],
    }
    return {"source": source, "selector": [position, quote]}
