"""Characters that reorder or hide text, shown as what they are.

Text of people and models goes through the filter `visible` where it is rendered: what changes the direction of the text
around it, or is not seen at all, would make a line read otherwise than it was written, or one name look like another.
"""

import re

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Controls, directional marks and overrides, zero-width characters, blank letters, tags. The emoji selector U+FE0F and
the joiner inside an emoji sequence are left alone."""
_JOINER = "\u200d"


def _is_emoji(character: str) -> bool:
    return character >= "\u2190" and not character.isalpha()


def _sign(text: str, match: re.Match[str]) -> str:
    before, after = text[: match.start()].rstrip("\ufe0f"), text[match.end() :]
    if match[0] == _JOINER and before and after and _is_emoji(before[-1]) and _is_emoji(after[0]):
        return match[0]
    return format_html('<span class="code-point">U+{}</span>', f"{ord(match[0]):04X}")


@register.filter
def visible(text: str) -> SafeString:
    """Text, escaped, with each hidden character as its number in a small box; markup that is safe stays markup."""
    escaped = str(conditional_escape(text))
    return mark_safe(HIDDEN.sub(lambda match: _sign(escaped, match), escaped))  # noqa: S308  (escaped above)
