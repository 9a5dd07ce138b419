"""Tags and filters that every template has: times, numbers, intervals, lists' filters, links that keep the query."""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.template import Context
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime
from markdown_it import MarkdownIt

from webapp.core.keys import KEYS, Key

register = template.Library()


@register.simple_tag
def keys() -> tuple[Key, ...]:
    """The keys of all pages."""
    return KEYS


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """A relative time with the exact one on hover; a dash for none."""
    if moment is None:
        return "—"
    exact = localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S %Z"),
        naturaltime(moment),
    )


@register.filter
def markdown(text: str) -> SafeString:
    """A person's Markdown as HTML, without HTML of its own and without images."""
    return mark_safe(MarkdownIt("commonmark", {"html": False}).disable(["image"]).render(text))  # noqa: S308  (the renderer escapes, and refuses links to scripts)


@register.filter
def figure(value: float | str | None, digits: int = 3) -> str:
    """A number with so many significant digits; a dash for none (an empty text is what a template has for none)."""
    if value is None or isinstance(value, str):
        return value or "—"
    if isinstance(value, int):
        return str(value)
    short = f"{value:z.{digits}g}"
    return short if abs(float(short)) < 10**digits else f"{value:.0f}"


@register.filter
def to_width(value: float, interval: Any) -> str:
    """A number with as many decimals as make two digits of the width of an interval, four at most: `0.25`, `71`."""
    low, high = (interval[end] if isinstance(interval, dict) else getattr(interval, end) for end in ("low", "high"))
    width = high - low
    if not math.isfinite(width) or width <= 0:
        return figure(value)
    exponent = int(f"{width:.1e}".partition("e")[2])
    shown = f"{value:.{min(4, max(0, 1 - exponent))}f}"
    return shown if float(shown) else shown.removeprefix("-")


@register.filter
def item(mapping: Mapping[Any, Any], key: Any) -> Any:
    """The value of a key; None without one."""
    return mapping.get(key)


@register.filter
def percent(share: float, sign: str = "") -> str:
    """A share in whole per cent; with the sign "+", a difference of shares in percentage points."""
    return f"{round(100 * share):{sign}d}"


@register.filter
def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign: `+0.15`; `0.00` has none."""
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


@register.filter
def plain(text: str) -> str:
    """Text without markup, its list items as sentences after one another."""
    return " ".join(strip_tags(str(text).replace("</li>", "</li> ")).split())


@register.filter
def as_json(value: Any) -> str:
    """JSON with indentation, for people to read; escaped like all text."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.simple_tag
def interval(mean: float | None, half: float | None, digits: int = 2) -> str:
    """A mean with the half width of its interval: `0.62 ± 0.04`; a dash for none."""
    if mean is None:
        return "—"
    return f"{mean:.{digits}f}" if half is None else f"{mean:.{digits}f} ± {half:.{digits}f}"


@register.filter
def duration(seconds: float | None) -> str:
    """A span of time in its two largest units: `2 h 5 min`."""
    if seconds is None:
        return "—"
    whole = max(0, int(seconds))
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


@register.filter
def roughly(seconds: float | None) -> str:
    """An estimated span of time: `about 40 s`, `about 12 min`, `about 3 h`; empty for none."""
    if seconds is None:
        return ""
    size = next((size for below, size in ((60, 10), (3600, 60), (86400, 3600)) if seconds < below), 86400)
    return f"about {duration(max(size, round(seconds / size) * size))}"


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: Any) -> str:
    """The current query string with some values replaced (None removes one), with its question mark."""
    values = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = str(value)
    return "?" + urlencode(list(values.lists()), doseq=True)


@register.simple_block_tag(takes_context=True)
def filters(context: Context, content: str, target: str = "results", sort: str | None = None) -> SafeString:
    """The form above a list, around its fields: it requests this page again on every input, and fills `target`.

    `sort`: the order that stays, where the list's heads choose it.
    """
    hidden = "" if sort is None else format_html('<input type="hidden" name="sort" value="{}">', sort)
    return format_html(
        '<form class="filters" method="get" action="{0}" hx-get="{0}" hx-target="#{1}" hx-push-url="true"'
        ' hx-trigger="submit, input delay:300ms">{2}{3}<button class="small secondary">Filter</button></form>',
        context["request"].path,
        target,
        content,
        hidden,
    )


@register.simple_tag
def options(choices: Iterable[object], selected: object, everything: str = "all") -> SafeString:
    """The options of a filter: `everything` (unless it is empty) for the empty value, then the choices.

    A choice is a pair of value and title, or both in one.
    """
    pairs = [choice if isinstance(choice, tuple) else (choice, choice) for choice in choices]
    listed = [("", everything), *pairs] if everything else pairs
    return format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        ((value, mark_safe(" selected") if str(value) == str(selected) else "", title) for value, title in listed),
    )


@register.filter
def sparkline(values: list[float], height: float = 16.0, width: float = 60.0) -> str:
    """The points of an SVG polyline for `[stride, v1, v2, …]`, scaled to fill the box."""
    line = [float(value) for value in values[1:]]
    low, high = min(line), max(line)
    spread = (high - low) or 1.0
    across = width / max(1, len(line) - 1)
    points = ((n * across, height - 1 - (value - low) / spread * (height - 2)) for n, value in enumerate(line))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
