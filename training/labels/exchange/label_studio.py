"""Labels as Label Studio's JSON: a list of tasks with annotations, and the labeling configuration that opens it.

A task is a game: its moves are the paragraphs, in the same order, and `data.episode` is the whole game. Labels are
results whose control is named after the label type, with the seat at its end. Offsets in a paragraph are UTF-16 code
units, as Label Studio counts there. A project has one configuration, so only judgments under the codebook of the queue
are written. `judgment` in an annotation is what Label Studio has no field for; it drops that when it imports a file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from training.dataset import Conversation, episode_hash
from training.labels.codebooks import Codebook, LabelType
from training.labels.exchange.base import LabelledScenario, Utf16
from training.records import Judgment, Label
from training.store import dumps

OBJECT, LIST = "dialogue", "turns"
"""The names of the objects: paragraphs, and turns to rank."""
TURN, COMMENT, UNSURE = "turn-marker", "judgment-comment", "judgment-unsure"
"""Controls beside the label types, whose names have no hyphen."""
SEAT = "-seat"
"""Before the number of a seat in the name of a control."""
VALUE = "="
"""Between the label type and the value of a label about a pair of turns, which Label Studio holds in a relation."""


def write(codebook: Codebook, scenarios: Iterable[LabelledScenario]) -> Iterator[str]:
    """Yield the list of tasks in pieces of one task."""
    yield "["
    number = annotation = 0
    authors: dict[str, int] = {}
    for labelled in scenarios:
        for conversation in labelled.conversations:
            judgments = [each for each in conversation.judgments if _is_under(each, codebook)]
            texts = [Utf16(entry.move.text) for entry in conversation.episode.moves]
            annotations = []
            for judgment in judgments:
                annotation += 1
                author = authors.setdefault(judgment.author, len(authors) + 1)
                annotations.append(_annotation(judgment, codebook, texts, annotation, author))
            data = _data(conversation, codebook)
            yield f"{',' if number else ''}\n{dumps({'id': number + 1, 'data': data, 'annotations': annotations})}"
            number += 1
    yield "\n]\n"


def _is_under(judgment: Judgment, codebook: Codebook) -> bool:
    return (judgment.codebook, judgment.codebook_version) == (codebook.name, codebook.version)


def _data(conversation: Conversation, codebook: Codebook) -> dict[str, Any]:
    episode = conversation.episode.to_dict()
    seats = conversation.episode.scenario.seats
    paragraphs = [
        {"author": seats[entry.seat] if entry.seat < len(seats) else "tool", "text": entry.move.text}
        for entry in conversation.episode.moves
    ]
    data = {
        OBJECT: paragraphs,
        "source": conversation.source,
        "codebook": codebook.name,
        "codebook_version": codebook.version,
        "episode_sha256": episode_hash(episode),
        "episode": episode,
    }
    if any(label_type.kind == "ranking" for label_type in codebook.labels):
        data[LIST] = [
            {"id": str(number), "title": paragraph["author"], "body": paragraph["text"]}
            for number, paragraph in enumerate(paragraphs)
        ]
    return data


def _annotation(
    judgment: Judgment, codebook: Codebook, texts: Sequence[Utf16], number: int, author: int
) -> dict[str, Any]:
    head = {name: value for name, value in judgment.to_dict().items() if name not in ("labels", "version", "episode")}
    time = {"created_at": judgment.judged_at, "updated_at": judgment.judged_at} if judgment.judged_at else {}
    return {
        "id": number,
        "completed_by": author,
        "was_cancelled": judgment.labels is None,
        "ground_truth": judgment.decides,
        **({} if judgment.seconds is None else {"lead_time": judgment.seconds}),
        **time,
        "result": list(_results(judgment, codebook, texts)),
        "judgment": head,
    }


def _results(judgment: Judgment, codebook: Codebook, texts: Sequence[Utf16]) -> Iterator[dict[str, Any]]:
    """Yield the results: the turns that are labelled as regions, the labels, the relations, and what is said of all."""
    labels = judgment.labels or ()
    ends = {
        turn for label in labels if label.start is None for turn in (label.turn, label.other_turn) if turn is not None
    }
    for turn in sorted(ends):
        value = {**_region(Label(label="", turn=turn), texts), "paragraphlabels": ["turn"]}
        yield _result(TURN, "paragraphlabels", value, f"turn{turn}")
    for number, label in enumerate(labels):
        if label.other_turn is not None:
            yield _relation(label)
        else:
            yield _labelled(label, codebook.type_of(label.label), texts, number)
    if judgment.reason:
        yield _result(COMMENT, "textarea", {"text": [judgment.reason]}, "comment")
    if judgment.unsure:
        yield _result(UNSURE, "choices", {"choices": ["unsure"]}, "unsure")


def _result(control: str, kind: str, value: dict[str, Any], region: str, to: str = OBJECT) -> dict[str, Any]:
    return {"id": region, "from_name": control, "to_name": to, "type": kind, "value": value}


def _labelled(label: Label, label_type: LabelType, texts: Sequence[Utf16], number: int) -> dict[str, Any]:
    control = label.label if label.seat is None else f"{label.label}{SEAT}{label.seat}"
    if label.turn is None:
        region = f"label{number}"
    else:
        region = f"turn{label.turn}" if label.start is None else f"words{label.turn}-{label.start}-{label.end}"
    kind, value = _value(label, label_type, control)
    place = {} if label.turn is None else _region(label, texts)
    to = LIST if kind == "ranker" else OBJECT
    return {**_result(control, kind, place | value, region, to), **_meta(label)}


def _meta(label: Label) -> dict[str, Any]:
    return {"meta": {"text": [label.reason]}} if label.reason else {}


def _value(label: Label, label_type: LabelType, control: str) -> tuple[str, dict[str, Any]]:
    """Return a result's type, and its value without the place."""
    value: Any = label.value
    match label_type.kind:
        case "yes_no":
            return "choices", {"choices": ["yes" if value else "no"]}
        case "one_of":
            return "choices", {"choices": [value]}
        case "many_of":
            return "choices", {"choices": list(value)}
        case "scale":
            return "number", {"number": value}
        case "ranking":
            return "ranker", {"ranker": {control: [str(turn) for turn in value]}}
        case "text":
            return "textarea", {"text": [value]}
        case "span" | "relation":
            return "paragraphlabels", {"paragraphlabels": [label.label]}


def _region(label: Label, texts: Sequence[Utf16]) -> dict[str, Any]:
    assert label.turn is not None, "a region is in a turn"
    text = texts[label.turn]
    start = 0 if label.start is None else text.units(label.start)
    end = text.length if label.end is None else text.units(label.end)
    paragraph = str(label.turn)
    return {"start": paragraph, "end": paragraph, "startOffset": start, "endOffset": end}


def _relation(label: Label) -> dict[str, Any]:
    name = label.label if label.value is None else f"{label.label}{VALUE}{dumps(label.value)}"
    return {
        "type": "relation", "from_id": f"turn{label.turn}", "to_id": f"turn{label.other_turn}", "direction": "right",
        "labels": [name], **_meta(label),
    }  # fmt: skip


# --- the labeling configuration --------------------------------------------------------------------------------------


def config(codebook: Codebook, seats: int) -> str:
    """Return the labeling configuration of a codebook in XML, for games of at most this number of seats."""
    view = ET.Element("View")
    pairs = [label_type for label_type in codebook.labels if label_type.about == "pair"]
    if pairs:
        relations = ET.SubElement(view, "Relations")
        for label_type in pairs:
            for name in _relation_names(label_type):
                ET.SubElement(relations, "Relation", value=name)
    _labels(view, TURN, "turn")
    for label_type in codebook.labels:
        if label_type.kind == "span":
            _labels(view, label_type.name, label_type.name, label_type.title)
    ET.SubElement(view, "Paragraphs", name=OBJECT, value=f"${OBJECT}", layout="dialogue")
    if any(label_type.kind == "ranking" for label_type in codebook.labels):
        ET.SubElement(view, "List", name=LIST, value=f"${LIST}", title="Turns")
    for label_type in codebook.labels:
        if label_type.kind == "span" or label_type.about == "pair":
            continue
        for seat in range(seats) if label_type.about == "seat" else [None]:
            _control(view, label_type, seat)
    ET.SubElement(view, "TextArea", name=COMMENT, toName=OBJECT, placeholder="Comment")
    unsure = ET.SubElement(view, "Choices", name=UNSURE, toName=OBJECT, choice="multiple")
    ET.SubElement(unsure, "Choice", value="unsure")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _relation_names(label_type: LabelType) -> list[str]:
    """Return the names of relations that stand for a label about a pair, as far as they can be listed."""
    if label_type.kind == "relation":
        return [label_type.name]
    values: list[Any] = [True, False] if label_type.yes_no else [option.name for option in label_type.options]
    if label_type.kind == "many_of":
        values = [[value] for value in values]
    return [f"{label_type.name}{VALUE}{dumps(value)}" for value in values]


def _labels(view: ET.Element, control: str, label: str, title: str = "") -> None:
    labels = ET.SubElement(view, "ParagraphLabels", name=control, toName=OBJECT)
    ET.SubElement(labels, "Label", {"value": label} | ({"hint": title} if title else {}))


def _control(view: ET.Element, label_type: LabelType, seat: int | None) -> None:
    title = label_type.title if seat is None else f"{label_type.title}: seat {seat + 1}"
    ET.SubElement(view, "Header", value=title, size="5")
    name = label_type.name if seat is None else f"{label_type.name}{SEAT}{seat}"
    about = {"name": name, "toName": OBJECT}
    if label_type.about == "turn":
        about |= {"perRegion": "true", "whenTagName": TURN}
    elif label_type.about == "span":
        about |= {"perRegion": "true", **({"whenTagName": label_type.when.label} if label_type.when else {})}
    match label_type.kind:
        case "scale":
            ET.SubElement(view, "Number", about, min=f"{label_type.low:g}", max=f"{label_type.high:g}")
        case "ranking":
            ET.SubElement(view, "Ranker", {"name": name, "toName": LIST})
        case "text":
            ET.SubElement(view, "TextArea", about)
        case "yes_no" | "one_of" | "many_of":
            choice = "multiple" if label_type.kind == "many_of" else "single-radio"
            choices = ET.SubElement(view, "Choices", about, choice=choice)
            pairs = [(option.name, option.title) for option in label_type.options] or [("yes", ""), ("no", "")]
            for value, hint in pairs:
                ET.SubElement(choices, "Choice", {"value": value} | ({"hint": hint} if hint else {}))
