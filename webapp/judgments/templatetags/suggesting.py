"""The section of a queue's page about suggestions."""

from __future__ import annotations

from typing import Any

from django.template import Context, Library

from webapp.judgments.models import Queue
from webapp.judgments.suggesting.views import section

register = Library()


@register.inclusion_tag("judgments/suggestions.html", takes_context=True)
def suggestions(context: Context, queue: Queue) -> dict[str, Any]:
    """Return the section for whoever may change the queue; its template needs the request's token."""
    return {**section(queue), "csrf_token": context.get("csrf_token")}
