"""Actions as text: their canonical form, their explanation, and the legality of arguments.

`write` raises `ValueError` for a text that could not be parsed back; `check_move` raises `IllegalMove`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from training.errors import IllegalMove
from training.records import Action, Argument, ArgValue, Move

TAG = re.compile(r"<\s*+(/?)\s*+([A-Za-z][^<>]{0,300}?)\s*+(/?)\s*+>")
"""Anything that looks like a tag: (slash if closing, name, slash if self-closing)."""
_INTEGER = re.compile(r"[^\w\s+-]?\s*([+-]?\d{1,3}(?:,\d{3})+|[+-]?\d+)(?:\.0+)?\s*\.?")
_VALUE_FIRST = re.compile(r"([+-]?\d+)\s*x?\s+(.+)")


def clean(text: str) -> str:
    """Return `text` on one line with single spaces, the canonical form of all public text."""
    return " ".join(text.split())


def tag_name(name: str) -> str:
    """Return the form in which tag names are compared: lower case, spaces and hyphens as underscores."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def plain(text: str) -> str:
    """Return `text` as speech without tags; imported lines may contain any."""
    text = clean(text)
    while TAG.search(text):  # removing an inner tag may produce a new one
        text = TAG.sub(lambda match: f"({clean(match.group(1) + match.group(2))})", text)
    return text


# --- writing ---------------------------------------------------------------------------------------------------------


def body(action: Action, args: Mapping[str, ArgValue]) -> str:
    """Return the arguments as text: `food 2, water 1`, the bare value of a single argument, `mug 1 from shelf 2`."""
    if action.verbs:
        return " ".join(part for arg in action.args for part in (*arg.prepositions[:1], _value(arg, args)))
    if len(action.args) == 1:
        return _value(action.args[0], args)
    return ", ".join(f"{arg.name} {_value(arg, args)}" for arg in action.args)


def _value(arg: Argument, args: Mapping[str, ArgValue]) -> str:
    written = clean(str(args[arg.name]))
    return f"<{written}>" if arg.marked else written


def tag(action: Action, args: Mapping[str, ArgValue]) -> str:
    """Return the tag that performs `action`."""
    if not action.args:
        return f"<{action.name}/>"
    return f"<{action.name}>{body(action, args)}</{action.name}>"


def canonical(action: Action, args: Mapping[str, ArgValue]) -> str:
    """Return the text that performs `action` alone: its command, or its tag if it has no verbs."""
    return clean(f"{action.verbs[0]} {body(action, args)}") if action.verbs else tag(action, args)


def write(action: Action, args: Mapping[str, ArgValue] | None = None, speech: str = "") -> str:
    """Return the canonical reply that performs `action`; parsing it gives the same action and arguments.

    Raises `ValueError` where that cannot be: speech with tags in it, missing or unreadable arguments.
    """
    speech = clean(speech)
    arguments = dict(args or {})
    if TAG.search(speech):
        raise ValueError(f"speech must not contain tags: {speech!r}")
    if set(arguments) != {arg.name for arg in action.args}:
        raise ValueError(f"{action.name} takes exactly: {', '.join(a.name for a in action.args) or 'no arguments'}")
    if (action.text == "none" and speech) or (action.text == "required" and not speech):
        raise ValueError(f"{action.name} takes {'no' if action.text == 'none' else 'some'} text beside it")
    if action.bare and not action.args:
        return speech
    if action.args and not _readable(action, arguments):
        raise ValueError(f"the arguments of {action.name} cannot be written so that they are read back: {arguments}")
    return f"{speech} {tag(action, arguments)}" if speech else canonical(action, arguments)


def _readable(action: Action, args: Mapping[str, ArgValue]) -> bool:
    """Return whether the arguments, once written, are read as the same."""
    content = body(action, args)
    try:
        return not TAG.search(unmark(content, [action])) and read_args(action, content) == args
    except IllegalMove:
        return False


_ANGLED = re.compile(r"<\s*([^<>]*?)\s*>")


def unmark(text: str, actions: Iterable[Action]) -> str:
    """Return `text` with the angle brackets around marked choices of `actions` removed, because they are not tags."""
    if "<" not in text:
        return text
    marked = {choice.lower() for action in actions for arg in action.args if arg.marked for choice in arg.choices}
    return _ANGLED.sub(lambda match: match[1] if match[1].lower() in marked else match[0], text) if marked else text


# --- reading ---------------------------------------------------------------------------------------------------------


def read_args(action: Action, content: str) -> dict[str, ArgValue]:
    """Return the arguments written in a tag's content; raise `IllegalMove` naming the one that is wrong."""
    content = clean(content)
    if len(action.args) == 1:
        only = action.args[0]
        if content.lower().startswith(f"{only.name.lower()} ") or content.lower().startswith(f"{only.name.lower()}:"):
            content = _without_name(only, content)
        return {only.name: read_value(only, content)}
    pieces = _pieces(action, content)
    missing = [arg.name for arg in action.args if arg.name not in pieces]
    if missing:
        raise IllegalMove(f"{action.name} lacks: {', '.join(missing)}")
    return {arg.name: read_value(arg, pieces[arg.name]) for arg in action.args}


def _without_name(arg: Argument, content: str) -> str:
    """Drop a leading `name` or `name:` from a single argument, unless the whole is itself a legal text or choice."""
    if arg.kind == "text" and content[len(arg.name)] != ":":
        return content
    if arg.kind == "choice" and any(choice.lower() == content.lower() for choice in arg.choices):
        return content
    return content[len(arg.name) :].lstrip(" :=")


@lru_cache(maxsize=1024)
def _names(names: tuple[str, ...], prepositions: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds arguments: their names as words, and prepositions between spaces, not `in` within `in/on`."""
    patterns = {name: rf"(?<!\w){re.escape(name)}(?!\w)" for name in names}
    patterns |= {word: rf"(?<!\S){re.escape(word)}(?!\S)" for word in prepositions}
    longest_first = sorted(patterns, key=len, reverse=True)
    return re.compile(f"({'|'.join(patterns[each] for each in longest_first)})", re.IGNORECASE)


def _pieces(action: Action, content: str) -> dict[str, str]:
    """Split `food 2, water 1` (or `2 food, 1 water`) into texts by the arguments' names or prepositions."""
    by_name = {word.lower(): arg for arg in action.args for word in (arg.name, *arg.prepositions)}
    if content[:1].isdigit():
        content = _name_first(content, by_name)
    prepositions = tuple(word for arg in action.args for word in arg.prepositions)
    names = _names(tuple(arg.name for arg in action.args), prepositions)
    if action.verbs and content and not names.match(content):
        content = f"{action.args[0].name} {content}"  # the first argument of a command needs no name
    pieces: dict[str, str] = {}
    name, start, text_last = "", 0, False
    for match in names.finditer(content):
        if text_last:
            break
        before = content[start : match.start()].strip(" ,;:=")
        if not name and before:
            raise IllegalMove(f"{action.name} has no {before!r}")
        if name:
            pieces[name] = before.removesuffix(" and").rstrip(" ,;")
        arg = by_name[match.group(1).lower()]
        if arg.name in pieces or arg.name == name:
            raise IllegalMove(f"{action.name} names {arg.name} twice")
        name, start, text_last = arg.name, match.end(), arg.kind == "text"
    if name:
        pieces[name] = content[start:].strip(" ,;:=")
    elif content:
        raise IllegalMove(f"{action.name} has no {content!r}")
    return pieces


def _name_first(content: str, by_name: Mapping[str, Argument]) -> str:
    """Turn `2 food, 1 water` into `food 2, water 1`; leave alone what does not look like it."""
    turned = []
    for part in re.split(r"\s*(?:[,;]|\band\b)\s*", content):
        match = _VALUE_FIRST.fullmatch(part)
        if not match or match.group(2).lower() not in by_name:
            return content
        turned.append(f"{match.group(2)} {match.group(1)}")
    return ", ".join(turned)


LONGEST_NUMBER = 40
"""Characters of a number that is looked at; Python refuses to read one of many thousand digits."""


def read_value(arg: Argument, written: str) -> ArgValue:
    """Return one argument's value; raise `IllegalMove` saying what would be legal."""
    if arg.kind == "integer":
        match = _INTEGER.fullmatch(written) if len(written) <= LONGEST_NUMBER else None
        value = int(match.group(1).replace(",", "")) if match else None
        if value is None or not arg.low <= value <= arg.high:
            raise IllegalMove(f"{arg.name} must be a whole number from {arg.low} to {arg.high}, not {_short(written)}")
        return value
    if arg.kind == "choice":
        bare = written[1:-1].strip() if arg.marked and written[:1] == "<" and written[-1:] == ">" else written
        for choice in arg.choices:
            if choice.lower() == bare.lower():
                return choice
        if arg.open and bare:
            return bare
        if arg.open:
            raise IllegalMove(f"{arg.name} must not be empty")
        raise IllegalMove(f"{arg.name} must be one of {', '.join(arg.choices)}, not {_short(written)}")
    if not written:
        raise IllegalMove(f"{arg.name} must not be empty")
    return written


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


# --- checking --------------------------------------------------------------------------------------------------------


def check_move(move: Move, actions: Iterable[Action], max_chars: int, max_words: int = 0) -> Action:
    """Return the declared action that `move` performs; raise `IllegalMove` if there is none, or it is out of bounds.

    Moves that nobody chose (`default`, `timeout`) may lack the text that a chosen move must have.
    """
    offered = tuple(actions)
    action = next((action for action in offered if action.name == move.action), None)
    if action is None:
        allowed = ", ".join(action.name for action in offered)
        raise IllegalMove(f"{move.action!r} is not possible now; possible: {allowed or 'nothing'}")
    if set(move.args) != {arg.name for arg in action.args}:
        needed = ", ".join(arg.name for arg in action.args) or "no arguments"
        raise IllegalMove(f"{action.name} needs exactly: {needed}")
    for arg in action.args:
        _check_value(arg, move.args[arg.name])
    if problem := too_long(action, move, max_chars, max_words):
        raise IllegalMove(problem)
    if action.text == "private" and move.text.strip() not in {"", own_tag(action, move)}:
        raise IllegalMove(f"{action.name} must stand alone, without other text")
    if move.origin == "seat" and action.text == "required" and not move.text.strip():
        raise IllegalMove(f"{action.name} needs some text")
    return action


def own_tag(action: Action, move: Move) -> str:
    """Return the tag or command that performs a move, as its text holds it; nothing for the bare action."""
    return "" if action.bare and not action.args else canonical(action, move.args)


def beside(action: Action, move: Move) -> str:
    """Return what a seat says beside the tag or command that performs its move."""
    performed = own_tag(action, move)
    return clean(move.text.replace(performed, "", 1)) if performed else move.text


def too_long(action: Action, move: Move, max_chars: int, max_words: int) -> str:
    """Return why a move holds too much free text, or nothing; a bound of 0 is none.

    Free text is what stands beside the tag, text arguments, and what an open choice does not list.
    """
    values = [(arg, str(move.args[arg.name])) for arg in action.args]
    texts = [
        beside(action, move),
        *(value for arg, value in values if arg.kind == "text" or (arg.open and value not in arg.choices)),
    ]
    characters, words = sum(map(len, texts)), sum(len(text.split()) for text in texts)
    if max_chars and characters > max_chars:
        return f"your text has {characters} characters; at most {max_chars} are allowed"
    if max_words and words > max_words:
        return f"your text has {words} words; at most {max_words} are allowed"
    return ""


def _check_value(arg: Argument, value: ArgValue) -> None:
    if arg.kind == "integer":
        if not isinstance(value, int) or not arg.low <= value <= arg.high:
            raise IllegalMove(f"{arg.name} must be a whole number from {arg.low} to {arg.high}, not {value!r}")
    elif not isinstance(value, str) or not value.strip() or (_listed(arg) and value not in arg.choices):
        expected = f"one of {', '.join(arg.choices)}" if _listed(arg) else "some text"
        raise IllegalMove(f"{arg.name} must be {expected}, not {value!r}")


def _listed(arg: Argument) -> bool:
    """Return whether the choices of an argument are all its values."""
    return arg.kind == "choice" and not arg.open


# --- explaining ------------------------------------------------------------------------------------------------------


MOST_SHOWN = 5
"""Choices of an open argument in an explanation."""


def how_to(actions: Iterable[Action]) -> str:
    """Return one line an action that tells a player how to write it; generated from the declaration alone."""
    return "\n".join(_how_line(action) for action in actions)


def _how_line(action: Action) -> str:
    label = action.label or action.name.replace("_", " ")
    if action.bare and not action.args:
        return f"- {label}: just write it, without a tag."
    example = canonical(action, {arg.name: _example(arg) for arg in action.args})
    bounds = "; ".join(filter(None, map(_bounds, action.args)))
    if action.verbs:
        return f"- {label}: `{example}`{f' ({bounds})' if bounds else ''}."
    beside = {
        "none": " Write nothing else.",
        "optional": "",
        "required": " Write a sentence beside it.",
        "private": " What you write beside it is your own reasoning; nobody else reads it.",
    }[action.text]
    return f"- {label}: {example}{f' ({bounds})' if bounds else ''}.{beside}"


def _example(arg: Argument) -> ArgValue:
    if arg.kind == "integer":
        return (arg.low + arg.high) // 2
    return arg.choices[0] if arg.choices else "..."


def _bounds(arg: Argument) -> str:
    """Return the values of an argument; of an open choice the first few, unless the example shows all."""
    if arg.kind == "integer":
        return f"{arg.name} {arg.low} to {arg.high}"
    if arg.open and len(arg.choices) <= 1:
        return ""
    shown = arg.choices[:MOST_SHOWN] if arg.open else arg.choices
    return f"{arg.name}: {', '.join(shown)}{', …' if len(shown) < len(arg.choices) else ''}" if shown else ""
