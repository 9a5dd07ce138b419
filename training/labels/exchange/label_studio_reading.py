"""Reads Label Studio's JSON export: tasks of a text or a dialogue, and tasks that Parley exported.

Offsets in a paragraph are UTF-16 code units. Offsets in a text are code points; releases before 1.5 counted UTF-16
there, too, which shows where `text`, the words of the region, fits only then. A control has the name of a label type,
or its choices and labels have.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.dataset import Conversation, episode_hash
from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType
from training.labels.exchange.base import Answer, Mark, Task, Utf16, find_type, need, option_named, type_named
from training.labels.exchange.external import Document, Split, judgments, marked, number_of, placed, yes_or_no
from training.labels.exchange.label_studio import COMMENT, LIST, OBJECT, SEAT, TURN, UNSURE, VALUE
from training.records import Episode, Judgment, LabelValue
from training.store import check_file, from_json, loads

AUTHORS, TEXTS = ("author", "speaker", "name", "role"), ("text", "content", "utterance", "phrase")
"""The keys of a paragraph that may hold its author and its text."""
REGIONS = frozenset({"labels", "paragraphlabels", "hypertextlabels"})
"""Results whose value lists the labels of a region."""
SKIPPED = "skipped in Label Studio"
_SEAT = re.compile(rf"(.+){SEAT}([0-9]{{1,3}})")
Region = tuple[int, int, int, bool]
"""Turn, start, end, and whether it is the whole turn."""


def read(path: Path, codebook: Codebook, *, text: str = "", split: Split = "text") -> Iterator[Task]:
    """Yield the tasks of a file with their annotations under a codebook.

    `text` names the field of `data` that was labelled; empty: `text`, or the only list of paragraphs or text.
    """
    check_file(path)
    data = from_json(path.read_bytes().removeprefix(BOM_UTF8), path.name)
    if not isinstance(data, list):
        raise BadInput("expected a list of tasks, as Label Studio's JSON export has them", path.name)
    for number, task in enumerate(data):
        key = task.get("id", number) if isinstance(task, Mapping) else number
        yield _task(task, codebook, f"{path.name}, task {key}", str(key)[:60], text, split)


def read_exported(path: Path, codebook: Codebook) -> Iterator[Conversation]:
    """Yield the games of a file that Parley exported, with their judgments; raise `BadInput` for another task."""
    for task in read(path, codebook):
        if task.conversation is None:
            raise BadInput("Parley did not export this task", task.where)
        answers = judgments(task, task.conversation, codebook)
        yield task.conversation.model_copy(update={"judgments": answers})


def _task(task: Any, codebook: Codebook, where: str, key: str, text: str, split: Split) -> Task:
    data = need(task, "data", dict, where)
    exported = _exported(data, codebook, f"{where}, data") if "episode_sha256" in data else None
    document = None if exported else Document(_texts(data, text, f"{where}, data"), split, f"{where}, data")
    answers, units = [], dict[str, Utf16]()
    for number, annotation in enumerate(need(task, "annotations", list, where)):
        at = f"{where}, annotations.{number}"
        answers.append(_Annotation(annotation, codebook, at, exported, document, units).answer())
    notices = []
    if count := len(task.get("predictions") or ()):
        notices.append(f"{count} predictions of models are left out")
    return Task(key, where, document.texts if document else (), tuple(answers), exported, tuple(notices))


def _exported(data: Mapping[str, Any], codebook: Codebook, where: str) -> Conversation:
    """Return the game that a task of ours holds; raise `BadInput` where it was changed or labelled by other rules."""
    name, version = need(data, "codebook", str, where), need(data, "codebook_version", int, where)
    if (name, version) != (codebook.name, codebook.version):
        why = f"labelled under {name} v{version}, not under {codebook.name} v{codebook.version}"
        raise BadInput(why, f"{where}, codebook_version")
    try:
        episode = Episode.from_dict(need(data, "episode", dict, where))
    except BadInput as error:
        raise BadInput(error.why, f"{where}, episode.{error.where}") from error
    if episode_hash(episode.to_dict()) != need(data, "episode_sha256", str, where):
        raise BadInput("the game was changed since it was exported", f"{where}, episode_sha256")
    paragraphs = [need(each, "text", str, f"{where}, {OBJECT}") for each in need(data, OBJECT, list, where)]
    if paragraphs != [entry.move.text for entry in episode.moves]:
        raise BadInput("the paragraphs are not the turns of the game", f"{where}, {OBJECT}")
    return Conversation(source=need(data, "source", str, where), episode=episode)


def _texts(data: Mapping[str, Any], text: str, where: str) -> list[tuple[str, str]]:
    """Return the labelled texts with their authors."""
    fields = {name: value for name, value in data.items() if _is_dialogue(value) or isinstance(value, str)}
    if text and text not in fields:
        raise BadInput(f"there is no text or dialogue of this name; there are {', '.join(fields) or 'none'}", where)
    dialogues = [name for name, value in fields.items() if _is_dialogue(value)]
    name = text or next(iter(dialogues), "") or ("text" if "text" in fields else "")
    if not name and len(fields) == 1:
        name = next(iter(fields))
    if not name or (len(dialogues) > 1 and not text):
        raise BadInput(f"name the labelled field by the option `text`: {', '.join(fields) or 'there is none'}", where)
    value = fields[name]
    if isinstance(value, str):
        return [("", value)]
    return [(str(_first(each, AUTHORS) or ""), _first(each, TEXTS)) for each in value]


def _is_dialogue(value: Any) -> bool:
    paragraphs = isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)
    return paragraphs and all(isinstance(_first(each, TEXTS), str) for each in value)


def _first(paragraph: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((paragraph[name] for name in names if name in paragraph), None)


@dataclass
class _Annotation:
    """One annotation, whose results are read one by one."""

    data: Any
    codebook: Codebook
    where: str
    exported: Conversation | None
    document: Document | None
    units: dict[str, Utf16]
    """The positions in each text of the task, which are counted once for all of its regions."""
    marks: list[Mark] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    comment: str = ""
    unsure: bool = False

    def answer(self) -> Answer:
        """Return the annotation's marks under its author."""
        entries = need(self.data, "result", list, self.where)
        results = [(entry, f"{self.where}, result.{number}") for number, entry in enumerate(entries)]
        for result, at in results:
            if need(result, "type", str, at) != "relation":
                self._register(result, at)
        for result, at in results:
            if result["type"] == "relation":
                self._relation(result, at)
            else:
                self._result(result, at)
        skipped = self.data.get("was_cancelled") is True
        return Answer(self._judgment(skipped=skipped), tuple(self.marks), skipped)

    def _judgment(self, *, skipped: bool) -> Judgment:
        """Return the judgment without its labels: that of our export, or one by a number of Label Studio."""
        reason = self.comment or (SKIPPED if skipped else "")
        if self.exported is not None and "judgment" in self.data:
            head = need(self.data, "judgment", dict, self.where)
            try:
                judgment = Judgment.from_dict({**head, "episode": "", "labels": None})
            except BadInput as error:
                raise BadInput(error.why, f"{self.where}, judgment.{error.where}") from error
            if (judgment.codebook, judgment.codebook_version) != (self.codebook.name, self.codebook.version):
                raise BadInput("not under the codebook of the task", f"{self.where}, judgment.codebook_version")
            return judgment
        number = number_of(self.data.get("completed_by"), f"{self.where}, completed_by")
        time = self.data.get("updated_at") or self.data.get("created_at") or ""
        seconds = self.data.get("lead_time")
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0):
            raise BadInput("expected seconds", f"{self.where}, lead_time")
        return Judgment(
            codebook=self.codebook.name, codebook_version=self.codebook.version, episode="",
            author="label-studio" if number is None else f"label-studio:{number}", reason=reason,
            judged_at=str(time), seconds=seconds, unsure=self.unsure, decides=self.data.get("ground_truth") is True,
        )  # fmt: skip

    # --- results ---

    def _register(self, result: Mapping[str, Any], where: str) -> None:
        """Note the turn of a region, to which relations refer by its id."""
        region = self._region(need(result, "value", dict, where), f"{where}, value")
        if region is not None and isinstance(result.get("id"), str):
            self.turns[result["id"]] = region[0]

    def _result(self, result: Mapping[str, Any], where: str) -> None:
        control, kind = need(result, "from_name", str, where), need(result, "type", str, where)
        value = need(result, "value", dict, where)
        region = self._region(value, f"{where}, value")
        if control in (TURN, COMMENT, UNSURE):
            self._of_all(control, value, f"{where}, value")
            return
        name, seat = control, None
        if match := _SEAT.fullmatch(control):
            name, seat = match[1], int(match[2])
        label_type = find_type(self.codebook, name)
        reason = _reason(result, where)
        for marked_type, answer in self._values(label_type, kind, value, control, where):
            mark = placed(self.document, marked_type, answer, f"{where}, value.{kind}", region, seat, reason)
            self.marks.append(mark)

    def _of_all(self, control: str, value: Mapping[str, Any], where: str) -> None:
        if control == COMMENT:
            self.comment = "\n".join(_texts_of(value, where))
        elif control == UNSURE:
            self.unsure = bool(need(value, "choices", list, where))

    def _values(
        self, label_type: LabelType | None, kind: str, value: Mapping[str, Any], control: str, where: str
    ) -> Iterator[tuple[LabelType, LabelValue]]:
        """Yield the label types that a result gives a value, with the value."""
        at = f"{where}, value"
        if kind in REGIONS or (kind == "choices" and label_type is None):
            for name in _strings(value, kind, at):
                marked_type = type_named(self.codebook, name, f"{at}.{kind}")
                yield marked_type, marked(marked_type, f"{at}.{kind}")
            return
        if label_type is None:
            raise BadInput(f"{self.codebook.name} has no label {control[:80]!r}", f"{where}, from_name")
        if kind == "choices":
            yield label_type, _chosen(label_type, _strings(value, kind, at), f"{at}.choices")
        elif kind in ("number", "rating") and label_type.kind == "scale":
            yield label_type, need(value, kind, (int, float), at)
        elif kind == "textarea" and label_type.kind == "text":
            yield label_type, "\n".join(_texts_of(value, at))
        elif kind == "ranker" and label_type.kind == "ranking":
            yield label_type, _ranking(need(value, "ranker", dict, at), f"{at}.ranker")
        else:
            raise BadInput(f"{kind} is no value of {label_type.name}: {label_type.scale}", f"{where}, type")

    def _region(self, value: Mapping[str, Any], where: str) -> Region | None:
        """Return the place of a result; None for a result without one."""
        if "start" not in value and "end" not in value:
            return None
        start, end = need(value, "start", (int, str), where), need(value, "end", (int, str), where)
        if isinstance(start, str) or isinstance(end, str) or "startOffset" in value:
            first, last = _paragraph(start, f"{where}, start"), _paragraph(end, f"{where}, end")
            if first != last:
                raise BadInput("a region over several paragraphs; a label is about words of one turn", where)
            return self._in_paragraph(first, value, where)
        if self.document is None:
            raise BadInput("a region of a game has paragraphs with offsets", where)
        if not self.document.is_text:
            raise BadInput("a region of a dialogue names its paragraph by text, with offsets", where)
        start, end = self._in_text(start, end, value.get("text"), where)
        turn, begin, stop = self.document.in_text(start, end, where)
        return turn, begin, stop, self.document.in_turn(turn, where).is_whole(begin, stop)

    def _in_paragraph(self, turn: int, value: Mapping[str, Any], where: str) -> Region:
        start, end = need(value, "startOffset", int, where), need(value, "endOffset", int, where)
        if self.exported is not None:
            moves = self.exported.episode.moves
            if turn >= len(moves):
                raise BadInput(f"there is no paragraph {turn}: the game has {len(moves)} moves", f"{where}, start")
            text = moves[turn].move.text
            units = self._counted(text)
            begin = units.position(start, f"{where}, startOffset")
            stop = units.position(end, f"{where}, endOffset")
            return turn, begin, stop, (begin, stop) == (0, len(text))
        assert self.document is not None, "a task that Parley did not export has a document"
        text_of_turn = self.document.in_turn(turn, f"{where}, start")
        units = self._counted(text_of_turn.raw)
        begin = units.position(start, f"{where}, startOffset")
        stop = units.position(end, f"{where}, endOffset")
        begin, stop = text_of_turn.place(begin, stop, where)
        return turn, begin, stop, text_of_turn.is_whole(begin, stop)

    def _in_text(self, start: int, end: int, words: Any, where: str) -> tuple[int, int]:
        """Return code points; UTF-16 is read where only that gives the region's words."""
        assert self.document is not None, "only an external task has a text"
        raw = self.document.raw
        if not isinstance(words, str) or raw[max(start, 0) : max(end, 0)] == words:
            return start, end
        units = self._counted(raw)
        try:
            begin, stop = units.position(start, where), units.position(end, where)
        except BadInput:
            return start, end
        return (begin, stop) if raw[begin:stop] == words else (start, end)

    def _counted(self, text: str) -> Utf16:
        if text not in self.units:
            self.units[text] = Utf16(text)
        return self.units[text]

    def _relation(self, result: Mapping[str, Any], where: str) -> None:
        turns = []
        for end in ("from_id", "to_id"):
            name = need(result, end, str, where)
            if name not in self.turns:
                raise BadInput(f"there is no region {name[:80]!r}", f"{where}, {end}")
            turns.append(self.turns[name])
        direction = result.get("direction", "right")
        if direction not in ("right", "left"):
            raise BadInput(f"a relation leads from one turn to another, not {direction!r}", f"{where}, direction")
        turn, other = turns if direction == "right" else reversed(turns)
        for name in _strings(result, "labels", where):
            bare, separator, value = name.partition(VALUE)
            label_type = type_named(self.codebook, bare, f"{where}, labels")
            if label_type.about != "pair":
                raise BadInput(f"{label_type.name} is about {label_type.about}, not a relation", f"{where}, labels")
            answer = _pair_value(value, f"{where}, labels") if separator else marked(label_type, f"{where}, labels")
            reason = _reason(result, where)
            mark = Mark(label_type, answer, f"{where}, labels", turn=turn, other_turn=other, reason=reason)
            self.marks.append(mark)


def _paragraph(number: int | str, where: str) -> int:
    if isinstance(number, int) and number >= 0:
        return number
    if isinstance(number, str) and re.fullmatch(r"[0-9]{1,6}", number):
        return int(number)
    raise BadInput(f"{str(number)[:80]!r} is no number of a paragraph; regions of HTML are not read", where)


def _strings(data: Mapping[str, Any], key: str, where: str) -> list[str]:
    values: list[str] = need(data, key, list, where)
    if not values or not all(isinstance(value, str) for value in values):
        raise BadInput("expected a list of names", f"{where}.{key}")
    return values


def _texts_of(value: Mapping[str, Any], where: str) -> list[str]:
    return [value["text"]] if isinstance(value.get("text"), str) else _strings(value, "text", where)


def _chosen(label_type: LabelType, names: list[str], where: str) -> LabelValue:
    if label_type.kind == "many_of":
        return tuple(option_named(label_type, name, where) for name in names)
    if label_type.kind not in ("yes_no", "one_of"):
        raise BadInput(f"a choice is no value of {label_type.name}: {label_type.scale}", where)
    if len(names) != 1:
        raise BadInput(f"{label_type.name} has one value, not {len(names)}", where)
    yes_no = label_type.kind == "yes_no"
    return yes_or_no(names[0], label_type, where) if yes_no else option_named(label_type, names[0], where)


def _ranking(buckets: Mapping[str, Any], where: str) -> tuple[int, ...]:
    lists = list(buckets.values())
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise BadInput("expected one list", where)
    if not all(isinstance(item, str) and re.fullmatch(r"[0-9]{1,6}", item) for item in lists[0]):
        raise BadInput(f"expected numbers of turns, the `id` of items in {LIST}", where)
    return tuple(map(int, lists[0]))


def _pair_value(text: str, where: str) -> LabelValue:
    try:
        value = loads(text)
    except ValueError:
        return text
    if isinstance(value, list):
        return tuple(value)
    if value is None or isinstance(value, dict):
        raise BadInput(f"{text[:80]!r} is no value", where)
    return value  # type: ignore[no-any-return]


def _reason(result: Mapping[str, Any], where: str) -> str:
    meta = result.get("meta")
    if not isinstance(meta, Mapping) or not meta.get("text"):
        return ""
    return "\n".join(_strings(meta, "text", f"{where}, meta"))
