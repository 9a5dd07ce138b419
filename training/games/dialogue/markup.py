"""SOTOPIA's markup in goals and scenes: who may read which part.

`<extra_info>`, `<strategy_hint>` and `<clarification_hint>` mark parts of a text; any tag may carry
`viewer='agent_0'` or `viewer='agent_1'`, which hides its content from everybody else. Real files leave tags unclosed:
what is never closed ends with the tag around it. Nothing here fails, and no text takes long.
"""

from __future__ import annotations

import re

from training.records import ALL, Viewer

HINTS = frozenset({"strategy_hint", "clarification_hint"})
_TAG = re.compile(r"<\s*+(/?)\s*+(extra_info|strategy_hint|clarification_hint|root|p)\b([^<>]*)>", re.IGNORECASE)
_VIEWER = re.compile(r"viewer\s*+=\s*+['\"]?\s*+agent_([0-9]{1,3})(?![0-9])", re.IGNORECASE)


def render(text: str, viewer: Viewer, *, hints: bool = True) -> str:
    """Return what `viewer` reads of `text`, without the markup; ALL reads everything, hints included."""
    pieces: list[str] = []
    open_tags: list[tuple[str, bool]] = [("", True)]  # (name, whether its content is visible)
    position = 0
    for match in _TAG.finditer(text):
        if open_tags[-1][1]:
            pieces.append(text[position : match.start()])
        position = match.end()
        closing, name, rest = match.group(1), match.group(2).lower(), match.group(3)
        if not closing:
            open_tags.append((name, open_tags[-1][1] and _visible(name, rest, viewer, hints=hints)))
        elif any(name == open_name for open_name, _ in open_tags):
            while open_tags.pop()[0] != name:
                pass
    if open_tags[-1][1]:
        pieces.append(text[position:])
    return _tidy(" ".join(pieces))


def _tidy(text: str) -> str:
    """Return `text` without traces of removed tags: double spaces, empty brackets, a space before a full stop."""
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r"\( ", "(", text)
    return re.sub(r" ?\( ?\)", "", re.sub(r" ([).,;:!?])", r"\1", text)).strip()


def _visible(name: str, rest: str, viewer: Viewer, *, hints: bool) -> bool:
    if viewer == ALL:
        return True
    if name in HINTS and not hints:
        return False
    if "viewer" not in rest.lower():
        return True
    only = _VIEWER.search(rest)  # a viewer that is not one of the two seats is nobody who plays
    return only is not None and int(only.group(1)) == viewer
