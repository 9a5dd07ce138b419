"""A table's page in parts, each rendered as a whole from one `ClientState`; a socket sends the parts that changed.

Rows of the log are appended and parts are replaced, so that a page after any number of frames equals a reloaded page.
A part's version is a hash of its content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from webapp.arena.live import controls
from webapp.arena.live.client_state import ClientState
from webapp.core.stage import Stage
from webapp.core.visible import reveal
from webapp.runs.episodes.viewer import LogRow

PARTS = ("status", "stage", "waiting", "ending", "brief", "seats", "typing", "rules", "side", "act", "coach", "advice")
OF_A_SEAT = ("act", "coach", "advice")
"""The parts that only a player has."""


def contents(state: ClientState) -> dict[str, str]:
    """The inner HTML of every part; spectators have only those that are not of a seat."""
    offered, view = state.observation.actions, state.view
    thinking = {chair.number for chair in state.acting}
    context = {
        "state": state,
        "match": state.match,
        "view": view,
        "stage": Stage(
            names=state.scenario.seats,
            viewer=state.viewer,
            presses=controls.presses(offered),
            forms={action.name: action for action in offered},
            thinking=thinking,
        ),
        "actions": controls.controls(offered, set(view.choices()), view.edited()),
    }
    names = PARTS if state.yours is not None else [name for name in PARTS if name not in OF_A_SEAT]
    return {name: render_to_string(f"arena/parts/{name}.html", context).strip() for name in names}


@dataclass(frozen=True)
class RenderedParts:
    """The rendered parts of one state, and the version of each."""

    contents: Mapping[str, str]
    versions: Mapping[str, str]


def render_parts(state: ClientState) -> RenderedParts:
    """Render every part with its version."""
    inner = contents(state)
    return RenderedParts(inner, {name: version(content) for name, content in inner.items()})


def version(content: str) -> str:
    """A hash of a part's content."""
    return blake2b(content.encode(), digest_size=8).hexdigest()


def wrap(name: str, content: str, *, swap: bool = False) -> SafeString:
    """A part in its element; `swap` marks it for htmx to replace the one on the page."""
    attribute = mark_safe(' hx-swap-oob="true"') if swap else ""
    inner = mark_safe(content)  # noqa: S308  (comes from the templates above, which escape)
    return format_html('<div id="{0}" data-part="{1}"{2}>{3}</div>', f"part-{name}", version(content), attribute, inner)


def page(state: ClientState) -> dict[str, SafeString]:
    """Every part, ready for the page."""
    return {name: wrap(name, content) for name, content in contents(state).items()}


def marker(last: int, now: str, *, swap: bool = False) -> SafeString:
    """The hidden input that holds the last row's number and the server's time."""
    attribute = mark_safe(' hx-swap-oob="true"') if swap else ""
    pattern = '<input type="hidden" id="last" autocomplete="off" value="{}" data-now="{}"{}>'
    return format_html(pattern, last, now, attribute)


def row_html(state: ClientState, row: LogRow) -> SafeString:
    """A row of the log as a list item; rows that only models need are hidden."""
    context = {"row": row, "names": state.scenario.seats, "you": state.viewer}
    return mark_safe(render_to_string("arena/parts/row.html", context).strip())  # noqa: S308  (from the template)


def rows_html(state: ClientState, rows: Sequence[LogRow]) -> SafeString:
    """Rows of the log as list items."""
    return format_html_join("", "{}", ((row_html(state, row),) for row in rows))


def frame(parts: RenderedParts, rows: SafeString, last: int, clock: str, versions: Mapping[str, str]) -> str:
    """One socket frame: the HTML of new rows, and every part that is not in `versions`; empty without either."""
    changed = [name for name in parts.contents if versions.get(name) != parts.versions[name]]
    if not rows and not changed:
        return ""
    pieces = [wrap(name, parts.contents[name], swap=True) for name in changed]
    if rows:
        pieces.append(format_html('<ol hx-swap-oob="beforeend:#log">{}</ol>', rows))
    pieces.append(marker(last, clock, swap=True))
    return reveal("\n".join(pieces))


def refusal(text: str, *, of: str = "refusal") -> str:
    """The frame with the reason why what the sender asked for was refused (empty: clears the last refusal).

    `of` is the element with the reason: `refusal` for a move, `coach-refusal` for a coach.
    """
    return reveal(format_html('<p id="{}" class="refusal" role="alert" hx-swap-oob="true">{}</p>', of, text))
