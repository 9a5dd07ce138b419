"""The keys of the pages, which the help of the keyboard lists.

`static/js` handles them. `when` is a CSS selector: the help of a page lists a key where something matches it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One key or combination, each of `keys` as it is written on the keyboard."""

    keys: tuple[str, ...]
    what: str
    when: str = "body"
    script: str = "palette.js"
    single: bool = False


KEYS = (
    Key(("Ctrl", "K"), "Search, or go to any page (on a Mac: ⌘ K)", "#palette"),
    Key(("/",), "The same", "#palette", single=True),
    Key(("?",), "This list", single=True),
    Key(("Esc",), "Close what is open"),
    Key(("↑", "↓"), "Choose a result of the search", "#palette"),
    Key(("Enter",), "Go to the chosen result", "#palette"),
    Key(("Enter",), "Say it, or make the move beside the field", "#table #move", "table.js"),
    Key(("Shift", "Enter"), "A new line in what you say", "#say", "table.js"),
    Key(("0–9",), "Give this value in the row that has the focus", "[data-scale]", "scale.js"),
    Key(("←", "→"), "The next value of the row that has the focus", "[data-scale]", "scale.js"),
    Key(("←", "→"), "The next step of a replay", "#scrub", "replay.js"),
    Key(("←", "→"), "The token before the chosen one, the next one", "#token-bar", "tokens.js"),
    Key(("Shift", "←", "→"), "The start of a turn before the chosen token, after it", "#token-bar", "tokens.js"),
    Key(("J", "K"), "The next turn, the turn before", ".specimen", "annotatable.js"),
    Key(("Enter",), "Take the value that is written for a label", "[data-annotatable]", "label-tools.js"),
    Key(("Esc",), "Close what puts something aside", "#judging", "judging.js"),
    Key(
        ("0–9",),
        "Take this annotator's label in the row that has the focus; 0: decide otherwise",
        "[data-decide]",
        "decide.js",
    ),
    Key(("Ctrl", "Enter"), "Decide and go on", "[data-decide]", "decide.js"),
    Key(("any key",), "Becomes the key of the action whose field has the focus", "[data-key-fields]", "key-fields.js"),
    Key(("Space",), "Press the button that has the focus", script="parley.js"),
)
"""All keys, in the order of the list. `single` ones can be switched off: speech input may write them by mistake."""
