"""The keys of the page of a judgment: what each does, which a person has changed, and which are refused.

A key is written as in `static/js/shortcuts.js`: `j`, `Ctrl+Shift+z`, `Alt+Shift+ArrowLeft`. No two actions have the
same.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from training.errors import BadInput
from training.labels.codebooks import Codebook
from webapp.judgments.annotating.marks import offered

MODIFIERS = ("Ctrl", "Alt", "Shift")
NAMED = re.compile(r"Arrow(Up|Down|Left|Right)|Enter|Escape|Delete|Backspace|Home|End|PageUp|PageDown|Tab|F\d\d?")
TAKEN = {
    "/": "the search", "?": "the list of keys", "Ctrl+k": "the search", "Tab": "the browser",
    "Shift+Tab": "the browser", " ": "the browser",
}  # fmt: skip
"""Keys that every page has, and those without which nobody can leave a place or press a button."""
MOST_KEYS = 3
"""Keys of one action."""


@dataclass(frozen=True)
class Action:
    """What a key does. `fixed` ones cannot be changed, because they move in a direction or leave the current mode.

    `place`: `page`, or `turns` for those of the conversation.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    place: str = "turns"
    fixed: bool = False


ACTIONS = (
    Action("save", "Save, and go to the next", ("Ctrl+Enter",), "page"),
    Action("skip", "Skip, with a reason", ("Shift+s",), "page"),
    Action("unscored", "Could not score", ("Shift+n",), "page"),
    Action("unsure", "Mark as unsure, or undo that", ("Shift+u",), "page"),
    Action("comment", "Write a comment", ("Shift+c",), "page"),
    Action("question", "The next unanswered question", ("Shift+q",), "page"),
    Action("conversation", "Go to the conversation", ("Shift+t",), "page"),
    Action("guideline", "The guideline, with all labels", ("Shift+g",), "page"),
    Action("facts", "Show or hide the hidden information", ("Shift+h",), "page"),
    Action("earlier", "Your previous judgment", ("Shift+b",), "page"),
    Action("undo", "Undo", ("Ctrl+z",), "page"),
    Action("redo", "Redo", ("Ctrl+Shift+z", "Ctrl+y"), "page"),
    Action("next", "The next turn", ("j", "ArrowDown")),
    Action("previous", "The previous turn", ("k", "ArrowUp")),
    Action("enter", "Select words of the turn; with an active label, apply it", ("Enter",), fixed=True),
    Action("right", "The word to the right", ("ArrowRight",), fixed=True),
    Action("left", "The word to the left", ("ArrowLeft",), fixed=True),
    Action("extend-right", "Extend the selection to the right", ("Shift+ArrowRight",), fixed=True),
    Action("extend-left", "Extend the selection to the left", ("Shift+ArrowLeft",), fixed=True),
    Action("first", "The first word", ("Home",), fixed=True),
    Action("last", "The last word", ("End",), fixed=True),
    Action("extend-first", "Extend the selection to the first word", ("Shift+Home",), fixed=True),
    Action("extend-last", "Extend the selection to the last word", ("Shift+End",), fixed=True),
    Action("leave", "Leave the words or the label, or deactivate the label", ("Escape",), fixed=True),
    Action("whole-words", "Select whole words, or single characters", ("w",)),
    Action("mark", "Mark the first turn of a relation", ("m",)),
    Action("delete", "Delete the label that has the focus", ("Delete", "Backspace")),
    Action("end-right", "Move the end of the label to the right", ("Alt+Shift+ArrowRight",), fixed=True),
    Action("end-left", "Move the end of the label to the left", ("Alt+Shift+ArrowLeft",), fixed=True),
    Action("start-earlier", "Move the start of the label to an earlier word", ("Alt+Shift+ArrowUp",), fixed=True),
    Action("start-later", "Move the start of the label to a later word", ("Alt+Shift+ArrowDown",), fixed=True),
    Action("suggestion", "The next suggestion", ("Shift+j",)),
    Action("accept", "Accept the suggestion that has the focus", ("Shift+a",)),
    Action("dismiss", "Dismiss the suggestion that has the focus", ("Shift+d",)),
)
"""All actions, in the order of lists. Those of the page have Shift: a codebook's keys are single characters."""
BY_NAME = {action.name: action for action in ACTIONS}


def spelled(written: str) -> str:
    """Return a key in its canonical spelling; raise `BadInput` for text that is no key."""
    text = written.strip()
    plus = text == "+" or text.endswith("++")
    *modifiers, key = [*filter(None, text[:-1].split("+")), "+"] if plus else text.split("+")
    if not key or any(part not in MODIFIERS for part in modifiers) or (len(key) > 1 and not NAMED.fullmatch(key)):
        raise BadInput(f"“{written[:40]}” is no key: write j, Ctrl+z or Shift+ArrowLeft", "keys")
    letter = len(key) == 1 and key.lower() != key.upper()
    kept = [each for each in MODIFIERS if each in modifiers and (each != "Shift" or letter or len(key) > 1)]
    return "+".join([*kept, key.lower() if len(key) == 1 else key])


def checked(chosen: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return a person's own keys by action as they are stored: those that differ from the defaults.

    Label types are named with their codebook: `label:moves:offer`. Raise `BadInput` for text that is no key, and for a
    key that every page or another action uses.
    """
    changed: dict[str, list[str]] = {}
    for name, written in chosen.items():
        action = BY_NAME.get(name)
        if (action is None and not name.startswith("label:")) or (action is not None and action.fixed):
            raise BadInput("the keys of this action cannot be changed", name)
        try:
            keys = list(dict.fromkeys(spelled(key) for key in written))
        except BadInput as error:
            raise BadInput(error.why, name) from error
        if action is not None and not keys:
            raise BadInput(f"“{action.title}” needs a key", name)
        if len(keys) > (MOST_KEYS if action else 1):
            raise BadInput(f"at most {MOST_KEYS if action else 1} keys", name)
        if keys and (action is None or keys != list(action.keys)):
            changed[name] = keys
    _check_clashes(changed)
    return changed


def _check_clashes(custom: Mapping[str, list[str]]) -> None:
    holders = {key: action.name for action in ACTIONS for key in custom.get(action.name, action.keys)}
    for action in ACTIONS:
        for key in custom.get(action.name, action.keys):
            other = TAKEN.get(key) or ("" if holders[key] == action.name else f"“{BY_NAME[holders[key]].title}”")
            if other:
                changed = action.name if action.name in custom else holders.get(key, action.name)
                raise BadInput(f"{key} cannot be the key of “{action.title}”: {other} has it", changed)
    labels: dict[tuple[str, str], str] = {}
    for name, keys in custom.items():
        if not name.startswith("label:"):
            continue
        _, codebook, label = name.split(":", 2)
        other = TAKEN.get(keys[0]) or (f"“{BY_NAME[holders[keys[0]]].title}”" if keys[0] in holders else "")
        other = other or labels.get((codebook, keys[0]), "")
        if other:
            raise BadInput(f"{keys[0]} cannot be the key of this label: {other} has it", name)
        labels[codebook, keys[0]] = f"“{label}”"


def actions_for_page(custom: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Return the actions with this person's keys, as the page reads them."""
    return [{**asdict(action), "keys": list(custom.get(action.name, action.keys))} for action in ACTIONS]


def of_labels(codebook: Codebook, custom: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the key of each label type that is marked in a conversation: the person's, the codebook's, or a free one.

    A codebook's key that one of this person's actions uses is replaced.
    """
    taken = {*TAKEN, *(key for action in ACTIONS for key in custom.get(action.name, action.keys))}
    names = [label_type.name for label_type in offered(codebook)]
    keys = {name: custom[each][0] for name in names if (each := f"label:{codebook.name}:{name}") in custom}
    keys = {name: key for name, key in keys.items() if key not in taken}
    for label_type in offered(codebook):
        if label_type.name not in keys and label_type.key and label_type.key not in {*taken, *keys.values()}:
            keys[label_type.name] = label_type.key
    free = iter([key for key in "1234567890" + string.ascii_lowercase if key not in {*taken, *keys.values()}])
    return keys | {name: next(free, "") for name in names if name not in keys}
