"""Chat messages as HTML, for the page and for frames of the socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from webapp.accounts.models import User
from webapp.arena import access
from webapp.arena.models import Match
from webapp.arena.watching import services
from webapp.arena.watching.models import LONGEST, ChatMessage
from webapp.core.visible import reveal


def context(match: Match, user: User, *, problem: str = "", draft: str = "") -> Mapping[str, object] | None:
    """What the template `arena/watching/chat.html` reads; None for users who may not read the messages."""
    if not access.may_read_chat(match, user):
        return None
    newest = services.messages(match)
    return {
        "match": match,
        "messages_html": [message_html(message, match, user) for message in newest],
        "last": newest[-1].pk if newest else 0,
        "writes": match.state == Match.State.RUNNING and not access.is_muted(match, user),
        "longest": LONGEST,
        "problem": problem,
        "draft": draft,
    }


def message_html(message: ChatMessage, match: Match, reader: User, *, swap: bool = False) -> SafeString:
    """One message as a list item; `swap` marks it for htmx to replace the one on the page."""
    values = {
        "message": message,
        "match": match,
        "moderates": access.may_moderate_chat(match, reader),
        "reported": message.reported_by(reader),
        "by_reader": message.author_id == reader.pk,
        "swap": swap,
    }
    html = render_to_string("arena/watching/message.html", values).strip()
    return mark_safe(html)  # noqa: S308 (the template escapes)


def frame(new: Sequence[ChatMessage], changed: Sequence[ChatMessage], match: Match, reader: User) -> str:
    """One frame with new messages and with those that were deleted or reported; empty if there are none."""
    pieces = [message_html(message, match, reader, swap=True) for message in changed]
    if new:
        items = format_html_join("", "{}", ((message_html(message, match, reader),) for message in new))
        pieces.append(format_html('<ol hx-swap-oob="beforeend:#chat-messages">{}</ol>', items))
    return reveal("\n".join(pieces)) if pieces else ""
