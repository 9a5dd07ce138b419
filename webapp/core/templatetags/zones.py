"""Tags that draw a table: its zones, seats and cards. The zones' templates stand in `templates/zones`, one a kind."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from training.records import Action, Argument, Seat
from training.views import Zone
from webapp.core.stage import Stage

register = template.Library()

AVATARS = 12
"""Drawings of seats."""


@register.simple_tag
def draw(zone: Zone, stage: Stage) -> SafeString:
    """One zone by the template of its kind."""
    return render_to_string(f"zones/{zone.kind}.html", {"zone": zone, "stage": stage})


@register.filter
def press(stage: Stage, choice: str) -> str:
    """The value of the button of a choice; empty if it cannot be pressed."""
    return stage.press(choice) if choice else ""


@register.filter
def named(stage: Stage, seat: Seat | None) -> str:
    """The name of a seat; empty for none."""
    return "" if seat is None else stage.name(seat)


@register.filter
def other_name(stage: Stage) -> str:
    """The name of the other seat at a table for two."""
    return stage.name(1 - stage.viewer) if stage.viewer in (0, 1) else ""


PIECES = {"food": "food", "water": "water", "firewood": "wood", "book": "book", "hat": "hat", "ball": "ball"}
"""Drawings of items that are often divided, by the item's name without the ending of its plural."""


@register.filter
def piece(name: str) -> str:
    """The icon of an item; a plain piece for one without a drawing."""
    return PIECES.get(name.lower().removesuffix("s"), PIECES.get(name.lower(), "piece"))


@register.filter
def argument(action: Action, name: str) -> Argument | None:
    """The argument of an action by its name."""
    return next((argument for argument in action.args if argument.name == name), None)


@register.simple_tag
def avatar(seat: Seat) -> SafeString:
    """The drawing of a seat: a shape and a colour of its own. Its name stands beside it."""
    return format_html(
        '<svg class="avatar seat-{}" viewBox="0 0 24 24" aria-hidden="true"><use href="{}#seat-{}"/></svg>',
        seat,
        static("avatars.svg"),
        seat % AVATARS,
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """A small drawing of `static/icons.svg`, which says nothing that the text beside it does not say."""
    return format_html(
        '<svg class="icon icon-{0}" viewBox="0 0 24 24" aria-hidden="true"><use href="{1}#{0}"/></svg>',
        name,
        static("icons.svg"),
    )
