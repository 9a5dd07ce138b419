"""The lines of watchers as HTML, for the page and for frames of the socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.watching import access, services
from webapp.arena.watching.models import LONGEST, WatcherLine
from webapp.core.visible import reveal


def context(match: Match, user: User, *, problem: str = "", draft: str = "") -> Mapping[str, object] | None:
    """What the template `arena/watching/lines.html` reads; None for users who may not read the lines."""
    if not access.may_read(match, user):
        return None
    newest = services.lines(match)
    return {
        "match": match,
        "lines": newest,
        "last": newest[-1].pk if newest else 0,
        "moderates": access.may_moderate(match, user),
        "writes": match.state == Match.State.RUNNING and not access.is_muted(match, user),
        "longest": LONGEST,
        "problem": problem,
        "draft": draft,
    }


def line_html(line: WatcherLine, match: Match, *, moderates: bool, swap: bool = False) -> SafeString:
    """One line as a list item; `swap` marks it for htmx to replace the one on the page."""
    values = {"line": line, "match": match, "moderates": moderates, "swap": swap}
    return mark_safe(render_to_string("arena/watching/line.html", values).strip())  # noqa: S308 (the template escapes)


def frame(new: Sequence[WatcherLine], deleted: Sequence[WatcherLine], match: Match, *, moderates: bool) -> str:
    """One frame with new lines and with those that were deleted; empty if there are none."""
    pieces = [line_html(line, match, moderates=moderates, swap=True) for line in deleted]
    if new:
        items = mark_safe("".join(line_html(line, match, moderates=moderates) for line in new))  # noqa: S308 (as above)
        pieces.append(format_html('<ol hx-swap-oob="beforeend:#watcher-lines">{}</ol>', items))
    return reveal("\n".join(pieces)) if pieces else ""
