"""Characters that reorder or hide text, shown as what they are in every page.

Text of people and models may change the direction of the text around it, or have characters that are not seen at all,
so that a line reads otherwise than it was written, or one name looks like another. Finished HTML goes through `reveal`,
so that no template can forget it; `static/js/visible.js` does the same for text that scripts write.
"""

from __future__ import annotations

import re
import unicodedata

HIDDEN = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, directional marks and overrides, zero-width characters, blank letters, variation selectors, tags, and the
format controls of shorthand and music.
"""
JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*>")
ATTRIBUTE = re.compile(r'(\s(?!value=)[\w:.-]+=)("[^"]*")')
KEPT = frozenset({"script", "style", "textarea"})
"""Elements whose text is data: fields that are sent back, and JSON, in which such characters are escaped."""
TEXT_ONLY = frozenset({"title", "option", "text"})
"""Elements that take no other elements."""


def _is_symbol(character: str) -> bool:
    return character > "\u007f" and unicodedata.category(character) in {"So", "Sk", "Sm"}


def _belongs(text: str, at: int) -> bool:
    """Whether the hidden character at this place is part of an emoji: its style, or between two of them."""
    before = text[at - 1 : at] if text[at - 1 : at] != EMOJI_STYLE else text[at - 2 : at - 1]
    after = text[at + 1 : at + 2]
    if text[at] == EMOJI_STYLE:
        return text[at - 1 : at] != EMOJI_STYLE and (_is_symbol(before) or after == "\u20e3")
    return text[at] == JOINER and _is_symbol(before) and _is_symbol(after)


def _replace(text: str, form: str) -> str:
    def number(match: re.Match[str]) -> str:
        return match[0] if _belongs(text, match.start()) else form.format(f"U+{ord(match[0]):04X}")

    return HIDDEN.sub(number, text)


def visible(text: str) -> str:
    """Return text with each hidden character as its number, `U+202E`."""
    return _replace(text, "{}")


def reveal(html: str) -> str:
    """Return HTML with the hidden characters of its text in small boxes, and those of attributes as plain numbers.

    Values of form fields stay, so that what is sent back is what was stored.
    """
    if not HIDDEN.search(html):
        return html
    pieces: list[str] = []
    at, element = 0, ""
    for tag in TAG.finditer(html):
        pieces.append(_shown(html[at : tag.start()], element))
        pieces.append(ATTRIBUTE.sub(lambda match: match[1] + visible(match[2]), tag[0]))
        at, element = tag.end(), "" if tag[1] else tag[2].lower()
    pieces.append(_shown(html[at:], element))
    return "".join(pieces)


def _shown(text: str, element: str) -> str:
    """The text behind the start tag of an element, or behind any end tag."""
    if element in KEPT:
        return text
    # Without quotes: wherever this is put, it cannot end an attribute.
    return visible(text) if element in TEXT_ONLY else _replace(text, "<span class=code-point>{}</span>")
