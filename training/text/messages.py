"""Converts observations to chat messages: pure text without a tokenizer; raises nothing.

The first message (rules and private brief) becomes the system message, the seat's own messages become assistant
messages, and all messages between two of those one user message. Every text of a person, model or dataset is
neutralised, so that no tokenizer finds a special token in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypedDict

from training.games import REGISTRY
from training.games.actions import clean, how_to
from training.records import Message, Observation, Viewer

__all__ = ["Chat", "chat", "how_to", "kept", "line", "neutralise", "news", "talk"]

_SQUARE = re.compile(r"\[(?=[^\s\[\]]+\])")
_BAR = re.compile(r"\|(?=[|>])|(?<=<)\|")


@cache
def kept() -> frozenset[str]:
    """Return the tags and marks of the games' actions, which are not neutralised.

    Players must read them, and no tokenizer has them as special tokens. The games include those of plugins, which may
    import this module; so nothing here asks for them at import.
    """
    return frozenset(name for spec in REGISTRY.values() for name in (*spec.actions, *spec.marks))


@cache
def _angle() -> re.Pattern[str]:
    """Return the pattern of an opening angle bracket that is neutralised."""
    tags = "|".join(rf"/?{re.escape(name)}/?>" for name in sorted(kept()))
    return re.compile(rf"<(?!{tags})(?=[^\s\d=]|\d[^\s<]*>)")


class Chat(TypedDict):
    """One message of a chat, in the format of chat templates and OpenAI-compatible servers."""

    role: Literal["system", "user", "assistant"]
    content: str


def neutralise(text: str) -> str:
    """Return `text` without any tokenizer's special tokens; the function is idempotent.

    Special tokens have no space after their opening mark (`<|im_start|>`, `</s>`, `[INST]`, `<<SYS>>`, `|||EMAIL|||`,
    `>>TITLE<<`). A space inserted there, which no normalisation removes, splits them. The tags of the games' actions
    are left unchanged.
    """
    if "<" in text:
        text = _angle().sub("< ", text)
    if "[" in text:
        text = _SQUARE.sub("[ ", text)
    return _BAR.sub("| ", text) if "|" in text else text


def line(message: Message, names: Sequence[str]) -> str:
    """Return one message as other seats read it: `Alice: …`, or the game's line.

    A seat's message is put on one line, so that it cannot contain a line that looks like another seat's or the game's.
    """
    if message.author is None:
        return neutralise(message.text)
    return neutralise(f"{clean(names[message.author])}: {clean(message.text)}")


def chat(observation: Observation, seat: Viewer, names: Sequence[str]) -> list[Chat]:
    """Return the chat of `seat`; for a viewer that is not a player, all messages are user messages.

    The chat of a later observation starts with the same messages once the last user message has been answered.
    """
    rules, *rest = observation.messages
    return [Chat(role="system", content=neutralise(rules.text)), *talk(rest, seat, names)]


def talk(messages: Sequence[Message], seat: Viewer, names: Sequence[str]) -> list[Chat]:
    """Return the messages after the rules as a chat of `seat`."""
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
    """Return the messages that `seat` has not read yet, without its own answer to the last observation.

    `heard` is the number of messages in the observation that it last answered; 0 means that it has answered none, and
    returns the whole chat. The answer is the first message of `seat` among the new ones.
    """
    if heard == 0:
        return chat(observation, seat, names)
    new = observation.messages[heard:]
    answered = next((at for at, message in enumerate(new) if message.author == seat), len(new))
    return talk([*new[:answered], *new[answered + 1 :]], seat, names)
