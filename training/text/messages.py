"""From what a viewer saw to chat messages: pure text, no tokenizer; never fails.

The first message (rules and private brief) becomes the system message, the seat's own messages the assistant's, and
all that stands between two of those one user message. Every text of a person, model or dataset is neutralised: no
tokenizer can read a special token in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypedDict

from training.games import REGISTRY
from training.games.actions import clean, how_to
from training.records import Message, Observation, Viewer

__all__ = ["Chat", "chat", "how_to", "line", "neutralise", "news", "talk"]

KEPT = frozenset(name for spec in REGISTRY.values() for name in (*spec.actions, *spec.marks))
"""Tags and marks of the games' own actions: no tokenizer has one as a special token, and players must read them."""

_KEPT_TAG = "|".join(rf"/?{re.escape(name)}/?>" for name in sorted(KEPT))
_ANGLE = re.compile(rf"<(?!{_KEPT_TAG})(?=[^\s\d=]|\d[^\s<]*>)")
_SQUARE = re.compile(r"\[(?=[^\s\[\]]+\])")
_BAR = re.compile(r"\|(?=[|>])|(?<=<)\|")


class Chat(TypedDict):
    """One message of a chat, as every chat template and every OpenAI-compatible address takes it."""

    role: Literal["system", "user", "assistant"]
    content: str


def neutralise(text: str) -> str:
    """Return `text` in which no special token of any tokenizer can be found; doing it twice changes nothing.

    Special tokens are written without a space after their opening mark (`<|im_start|>`, `</s>`, `[INST]`, `<<SYS>>`,
    `|||EMAIL|||`, `>>TITLE<<`), so one space there, which no normalisation removes, takes them apart. The tags of the
    games' actions stay whole.
    """
    if "<" in text:
        text = _ANGLE.sub("< ", text)
    if "[" in text:
        text = _SQUARE.sub("[ ", text)
    return _BAR.sub("| ", text) if "|" in text else text


def line(message: Message, names: Sequence[str]) -> str:
    """Return one message as others read it: `Alice: …`, or the game's own line.

    What a seat says is put on one line, so that nobody can write a line that looks like another's or the game's.
    """
    if message.author is None:
        return neutralise(message.text)
    return neutralise(f"{clean(names[message.author])}: {clean(message.text)}")


def chat(observation: Observation, seat: Viewer, names: Sequence[str]) -> list[Chat]:
    """Return the chat of `seat`; a viewer that is no player reads everything as user messages.

    The chat of a later observation begins with the same messages, once the last user message has been answered.
    """
    rules, *rest = observation.messages
    return [Chat(role="system", content=neutralise(rules.text)), *talk(rest, seat, names)]


def talk(messages: Sequence[Message], seat: Viewer, names: Sequence[str]) -> list[Chat]:
    """Return what was said after the rules as a chat of `seat`."""
    out: list[Chat] = []
    heard: list[str] = []
    for message in messages:
        if message.author != seat:
            heard.append(line(message, names))
            continue
        if heard:
            out.append(Chat(role="user", content="\n".join(heard)))
            heard = []
        out.append(Chat(role="assistant", content=neutralise(clean(message.text)) or "..."))
    if heard:
        out.append(Chat(role="user", content="\n".join(heard)))
    return out


def news(observation: Observation, heard: int, seat: Viewer, names: Sequence[str]) -> list[Chat]:
    """Return what `seat` has not heard yet, `heard` messages being what it answered last, without that answer itself.

    The answer is the first own message among the new ones; 0 = nothing was answered yet, and all is returned.
    """
    if heard == 0:
        return chat(observation, seat, names)
    new = observation.messages[heard:]
    answered = next((at for at, message in enumerate(new) if message.author == seat), len(new))
    return talk([*new[:answered], *new[answered + 1 :]], seat, names)
