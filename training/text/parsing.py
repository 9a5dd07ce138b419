"""Converts replies to moves and back, for any declared actions: `parse` and `write`.

A reply performs an action by its tag, `<name>…</name>`, `<name/>` or `<name>`, by its command, `take mug 1 from shelf
2`, and the bare action without either. Text in `<think>…</think>` is private. A reply that cannot be parsed raises
`ParseError` with a line that says how to write it; the line is shown to the seat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from training.errors import IllegalMove, ParseError
from training.games.actions import (
    TAG,
    canonical,
    clean,
    how_to,
    plain,
    read_args,
    tag,
    tag_name,
    too_long,
    unmark,
    write,
)
from training.records import Action, ArgValue, Move, Observation

__all__ = ["parse", "plain", "split_private", "write"]

_AROUND = " .!>`'\"*"
"""What is ignored around a command."""
_THINK = re.compile(r"<\s*+(/?)\s*+think(?:ing)?\s*>", re.IGNORECASE)


def split_private(reply: str) -> tuple[str, str]:
    """Return (public, private) parts of a reply; the text inside think tags is private.

    After an unclosed tag, all following text is private. Before a closing tag without an opening one, all preceding
    text is private, because some templates open the tag in the prompt.
    """
    public: list[str] = []
    private: list[str] = []
    depth, position = 0, 0
    for match in _THINK.finditer(reply):
        piece = reply[position : match.start()]
        position = match.end()
        if match.group(1):
            if depth == 0:
                private.extend([*public, piece])
                public = []
            else:
                private.append(piece)
            depth = max(0, depth - 1)
        else:
            (private if depth else public).append(piece)
            depth += 1
    (private if depth else public).append(reply[position:])
    return " ".join(public), "\n".join(piece.strip() for piece in private if piece.strip())


def parse(reply: str, observation: Observation) -> tuple[Move, str]:
    """Return the move that a reply performs and its private part; `Move.text` is canonical and parses to itself.

    Raises `ParseError` for an empty or over-long reply, an unknown or second action, and wrong arguments.
    """
    public, private = split_private(reply)
    actions = observation.actions
    if not actions:
        raise ParseError("It is not your turn.")
    text = unmark(clean(public), actions)
    if not text:
        raise ParseError(f"Your reply is empty. {_ways(actions)}")
    move, beside = _with_tag(text, actions) if TAG.search(text) else (_bare(text, actions), "")
    action = next(action for action in actions if action.name == move.action)
    if problem := too_long(action, move, observation.max_chars, observation.max_words):
        raise ParseError(f"{problem[:1].upper()}{problem[1:]}. Write it again, shorter.")
    return move, "\n".join(part for part in (private, beside) if part)


def _ways(actions: Sequence[Action]) -> str:
    return f"Write one of these:\n{how_to(actions)}"


def _bare(text: str, actions: Sequence[Action]) -> Move:
    """Parse a reply without a tag: a command, or the bare action."""
    if command := _command(text, actions):
        return command
    action = next((action for action in actions if action.bare), None)
    if action is None:
        raise ParseError(f"Your reply contains no action that is possible now. {_ways(actions)}")
    if not action.args:
        return Move(action=action.name, text=text)
    try:
        return Move(action=action.name, args=read_args(action, text), text=text)
    except IllegalMove as error:
        raise ParseError(f"{error}. {_ways(actions)}") from error


def _command(text: str, actions: Sequence[Action]) -> Move | None:
    """Return the move of a reply that begins with a verb, the longest one; None if there is none."""
    written = text.strip(_AROUND)
    verbs = [(verb, action) for action in actions for verb in action.verbs]
    for verb, action in sorted(verbs, key=lambda pair: -len(pair[0])):
        begins = written[: len(verb)].lower() == verb and written[len(verb) : len(verb) + 1] in ("", " ")
        if not begins or bool(written[len(verb) :]) > bool(action.args):
            continue
        try:
            args = read_args(action, written[len(verb) :]) if action.args else {}
        except IllegalMove as error:
            raise ParseError(f"{str(error)[:1].upper()}{str(error)[1:]}. {_ways([action])}") from error
        return Move(action=action.name, args=args, text=canonical(action, args))
    return None


def _with_tag(text: str, actions: Sequence[Action]) -> tuple[Move, str]:
    """Parse a reply with exactly one tag, of a declared action; return the move and the private text."""
    by_name = {tag_name(action.name): action for action in actions}
    tags = list(TAG.finditer(text))
    for match in tags:
        if tag_name(match.group(2)) not in by_name:
            raise ParseError(f"{match.group(0)} is not an action that is possible now. {_ways(actions)}")
    first = tags[0]
    action = by_name[tag_name(first.group(2))]
    content, end = _content(text, tags, action)
    try:
        return _assemble(text[: first.start()], action, content, text[end:])
    except IllegalMove as error:
        raise ParseError(f"{str(error)[:1].upper()}{str(error)[1:]}. {_ways([action])}") from error


def _content(text: str, tags: Sequence[re.Match[str]], action: Action) -> tuple[str, int]:
    """Return the content of the single tag, and the position of its end."""
    first, rest = tags[0], tags[1:]
    if first.group(1):
        raise ParseError(f"{first.group(0)} closes a tag that was not opened. {_ways([action])}")
    if first.group(3) or not rest:
        if rest:
            raise ParseError("Your reply contains more than one action. Write exactly one.")
        if action.args and not first.group(3):
            raise ParseError(f"{first.group(0)} is not closed. {_ways([action])}")
        return "", first.end()
    second = rest[0]
    if len(rest) > 1 or not second.group(1) or tag_name(second.group(2)) != tag_name(first.group(2)):
        raise ParseError("Your reply contains more than one action. Write exactly one.")
    return clean(text[first.end() : second.start()]), second.end()


def _assemble(before: str, action: Action, content: str, after: str) -> tuple[Move, str]:
    """Return the move with its canonical text (speech, tag, speech), and the text that is private to the seat."""
    args: dict[str, ArgValue] = {}
    inside = ""
    if action.args:
        args = read_args(action, content)
    else:
        inside = content  # <accept>with pleasure</accept>: text inside a tag without arguments is speech
    parts = [part for part in (before.strip(), inside) if part]
    if action.text == "private":
        beside = " ".join(part for part in (*parts, after.strip()) if part)
        return Move(action=action.name, args=args, text=canonical(action, args)), beside
    if action.bare and not action.args:
        text = " ".join([*parts, after.strip()]).strip()
        spoken = bool(text)
    else:
        text = " ".join(part for part in (*parts, tag(action, args), after.strip()) if part)
        spoken = bool(parts or after.strip())
    if action.text == "none" and spoken:
        raise IllegalMove(f"{action.name} must stand alone, without other text")
    if action.text == "required" and not spoken:
        raise IllegalMove(f"{action.name} needs some text")
    return Move(action=action.name, args=args, text=text), ""
