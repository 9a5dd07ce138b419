"""The pages about the site name what its pages name, and every button of a page is in the list of tasks."""

import re
from html import unescape
from pathlib import Path

import pytest

from tools.docs.pages import DOCS, ROOT

TEXT = (DOCS / "how-to.md").read_text("utf-8")
ABOUT = (
    "how-to",
    "tutorial",
    "table",
    "judgments",
    "experiments",
    "sweeps",
    "alerts",
    "registry",
    "report-pages",
    "ratings",
)
OTHER = {"admin", "parallel coordinates", "j", "werewolf of 6", "sample-negotiation"}
"""Italics that name nothing on a page: a mark, terms, symbols, and names of data."""


def names(page: str) -> list[str]:
    """What a page of the documentation has in italics, without code."""
    text = re.sub(r"```.*?```|`[^`]*`", "", (DOCS / f"{page}.md").read_text("utf-8"), flags=re.DOTALL)
    italics = re.findall(r"(?<![*\w])\*([^*]+)\*(?![*\w])", text)
    return sorted({" ".join(name.split()) for name in italics} - OTHER)


PAGES = [path for path in (ROOT / "templates").rglob("*.html") if "styleguide" not in path.parts]
SELF_EVIDENT = {"Menu", "×", "↑", "↓", "Keep it", "Keep them", "Go", "Cancel", "Save", "Add", "Preview again"}
"""Controls whose page is named already, or that only close or move something."""
ZONES = "zones"
"""Buttons of a game's table are the game's moves, which its own rules name."""


def without_code(source: str) -> str:
    """A template's text with a mark in place of every tag, of HTML or of the template language."""
    source = re.sub(r"{#.*?#}|{% comment %}.*?{% endcomment %}", "", source, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>|{%.*?%}|{{.*?}}", "\0", source, flags=re.DOTALL))


def shown() -> set[str]:
    """Every text between two tags of the templates, and every literal of the site's code and scripts.

    A form shows the name of a model's field with a capital letter.
    """
    texts = {part for path in PAGES for part in without_code(path.read_text("utf-8")).split("\0")}
    for path in (*(ROOT / "webapp").rglob("*.py"), *(ROOT / "static" / "js").glob("*.js")):
        literals = re.findall(r'"([^"\n]*)"', path.read_text("utf-8"))
        texts |= {*literals, *(literal[:1].upper() + literal[1:] for literal in literals)}
    return {" ".join(text.split()).rstrip(":") for text in texts}


SHOWN = shown()


@pytest.mark.parametrize("page, name", [(page, name) for page in ABOUT for name in names(page)])
def test_every_name_in_italics_is_one_of_a_page(page, name):
    assert name in SHOWN or any(
        text.startswith((f"{name}: ", f"{name} ")) or text.endswith(f" {name}") for text in SHOWN
    )


def buttons(path: Path) -> set[str]:
    """The labels of a template's buttons; of one that depends on what is shown, its parts that begin a label."""
    labels = re.findall(r"<button\b[^>]*>(.*?)</button>", path.read_text("utf-8"), flags=re.DOTALL)
    parts = {" ".join(part.split()).rstrip(":") for label in labels for part in without_code(label).split("\0")}
    return {part for part in parts if part[:1].isupper() or part in {"×", "↑", "↓"}}


@pytest.mark.parametrize("path", [path for path in PAGES if ZONES not in path.parts], ids=lambda path: path.name)
def test_every_button_is_in_the_list_of_tasks(path):
    missing = {label for label in buttons(path) - SELF_EVIDENT if f"*{label}" not in TEXT}
    assert not missing


def test_buttons_are_found_and_the_names_are_many():
    assert buttons(ROOT / "templates" / "serving" / "list.html") == {"Serve", "Stop", "Remove", "Add it"}
    assert len(names("how-to")) > 100
