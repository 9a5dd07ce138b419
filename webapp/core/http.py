"""Helpers for views: rendering a page or a block, refusals as messages, integers in query strings, bad texts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.template import RequestContext, loader
from django.template.base import Template
from django.template.loader_tags import BlockNode

from training.errors import BadInput

STOP_ASKING = 286
"""The status with which htmx stops polling."""


def wants_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of a page (and not for the whole, as after a boosted link or going back)."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_block(
    request: HttpRequest, template_name: str, block: str, context: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    """Render one `{% block %}` of a template, as an answer to htmx.

    The block must be written in that very template (not inherited). Raises `LookupError` if it is not.
    """
    template: Template = loader.get_template(template_name).template  # type: ignore[attr-defined]
    nodes = [n for n in template.nodelist.get_nodes_by_type(BlockNode) if n.name == block]  # type: ignore[attr-defined]
    if not nodes:
        raise LookupError(f"{template_name} has no block {block!r}")
    bound = RequestContext(request, dict(context))
    with bound.bind_template(template), bound.render_context.push_state(template):
        return HttpResponse(nodes[0].render(bound), status=status)


def render_page(
    request: HttpRequest, template_name: str, context: Mapping[str, Any], block: str, status: int = 200
) -> HttpResponse:
    """Render the whole page, or only its block when htmx asks for a fragment. The address is the same for both."""
    if wants_fragment(request):
        return render_block(request, template_name, block, context, status)
    return HttpResponse(loader.render_to_string(template_name, dict(context), request), status=status)


def accepted(request: HttpRequest, work: Callable[[], object]) -> bool:
    """Run `work`; on `BadInput` add the reason to the messages and return False."""
    try:
        work()
    except BadInput as error:
        messages.error(request, str(error))
        return False
    return True


def integer(request: HttpRequest, name: str, default: int, low: int = 0, high: int = 2**31 - 1) -> int:
    """A whole number from the query string; anything else than one between `low` and `high` is 404."""
    text = request.GET.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not low <= int(text) <= high:
        raise Http404(f"{name} must be a whole number between {low} and {high}")
    return int(text)


def unstorable(value: Any, path: str = "") -> str:
    """Return the path of the first text, key or number in JSON data that the database cannot hold, as `config.name`;
    empty if all can be held. Those are NUL characters, halves of surrogate pairs and whole numbers above 63 bits.
    """
    if isinstance(value, Mapping):
        if bad := next((key for key in value if unstorable(key, "key")), None):
            return f"{path}.{bad}".lstrip(".")
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    elif isinstance(value, str):
        return path if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value) else ""
    else:
        return path if isinstance(value, int) and abs(value) >= 2**63 else ""
    return next((inner for key, item in items if (inner := unstorable(item, f"{path}.{key}".lstrip(".")))), "")
