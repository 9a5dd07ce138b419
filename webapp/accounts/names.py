"""Names that people can tell apart: refused at sign-up if they mix scripts or look like a name that exists.

After Unicode's UTS 39 (security mechanisms) with a small table of its own: the letters of Latin, Cyrillic, Greek and
Armenian that are drawn alike, accents left out. Names that exist stay valid whatever they look like.
"""

import unicodedata

from training.errors import BadInput

RESERVED = (
    "admin", "administrator", "anonymous", "guest", "moderator", "operator", "owner", "parley", "root", "staff",
    "support", "system",
)  # fmt: skip
"""Names that are refused at sign-up."""
TOGETHER = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    {"LATIN", "CJK", "HANGUL"},
    {"LATIN", "CJK", "BOPOMOFO"},
)
"""Scripts that one name may have together."""
_CAPITALS = str.maketrans("АВЕЅІЈКМНОРСТУХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abesijkmhopctyxabezhikmnoptyx")
_LETTERS = str.maketrans("аеѕіјкморстухԁԛԝһѵαονρικτυχγηωεβօսոհıɑɡłøđħ", "aesijkmopctyxdqwhvaovpiktuxynwebounhiaglodh")
_DRAWN_ALIKE = (("rn", "m"), ("vv", "w"), ("1", "l"), ("i", "l"), ("|", "l"), ("0", "o"))


def skeleton(name: str) -> str:
    """Return a key that is equal for names that look alike, at most 300 characters."""
    text = name.translate(_CAPITALS).casefold().translate(_LETTERS)
    text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    for drawn, like in _DRAWN_ALIKE:
        text = text.replace(drawn, like)
    return text[:300]


def scripts(name: str) -> set[str]:
    """Return the scripts of a name's letters and of its digits other than 0 to 9, as Unicode's names begin."""
    used = {unicodedata.name(letter, "UNKNOWN").split()[0] for letter in name if letter.isalnum()}
    return used - {"DIGIT"}


def check_form(name: str) -> None:
    """Raise `BadInput` for a new name in letters that could be taken for others."""
    if unicodedata.normalize("NFKC", name) != name:
        raise BadInput("write it with ordinary letters: some of these are only other forms of them", "username")
    used = scripts(name)
    if len(used) > 1 and not any(used <= together for together in TOGETHER):
        named = " and ".join(sorted(script.title() for script in used))
        raise BadInput(f"use the letters of one script: this name mixes {named}", "username")
    if skeleton(name) in {skeleton(reserved) for reserved in RESERVED}:
        raise BadInput("this name looks like one that is kept for the site: choose another", "username")
