"""The information-provision game: which equilibria exist around two players' accuracies, and those of any group."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.errors import BadInput
from training.evaluate.provision import ProvisionGame, exact
from webapp.accounts.permissions import members
from webapp.core.http import render_page, wants_fragment
from webapp.runs.summaries import provision as summaries

EXAMPLE = {"p1": "0.7", "p2": "0.5", "guess": "0.45", "cost": "0.05", "others": ""}


class Slider(forms.NumberInput):
    """A range input from 0 to 1."""

    input_type = "range"

    def __init__(self) -> None:
        super().__init__({"min": "0", "max": "1", "step": "0.01"})


class ShareField(forms.CharField):
    """A number from 0 to 1, read as an exact fraction."""

    def __init__(self, label: str) -> None:
        super().__init__(max_length=40, label=label, widget=Slider())

    def clean(self, value: Any) -> Any:
        """Return the fraction."""
        return _share(super().clean(value))

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Return none: the length of a range input has no meaning."""
        return {}


class OthersField(forms.CharField):
    """Numbers from 0 to 1, separated by commas or spaces."""

    def clean(self, value: Any) -> Any:
        """Return the fractions."""
        return [_share(text) for text in re.split(r"[\s,;]+", super().clean(value)) if text]


def _share(text: str) -> Fraction:
    try:
        return exact(text, "", 1)
    except BadInput as error:
        raise ValidationError(error.why) from error


class ProvisionForm(forms.Form):
    """Two players by sliders, and further ones by text."""

    p1 = ShareField("Player 1’s accuracy, p₁")
    p2 = ShareField("Player 2’s accuracy, p₂")
    guess = ShareField("Guess accuracy, ḡ")
    cost = ShareField("Cost of a search, c")
    others = OthersField(
        required=False,
        max_length=200,
        label="Accuracies of further players",
        help_text="Up to ten, separated by commas, such as 0.5, 0.4. With them there is no map.",
    )

    def game(self) -> ProvisionGame | None:
        """Return the game, None if a field is wrong."""
        if not self.is_valid():
            return None
        chosen = self.cleaned_data
        try:
            return ProvisionGame.read([chosen["p1"], chosen["p2"], *chosen["others"]], chosen["guess"], chosen["cost"])
        except BadInput as error:
            self.add_error("others", error.why)
            return None


@require_GET
@members
def provision(request: HttpRequest) -> HttpResponse:
    """The form, filled with an example at first, and what follows from it."""
    form = ProvisionForm(EXAMPLE | request.GET.dict())
    game, fragment = form.game(), wants_fragment(request)
    context: dict[str, Any] = {"form": form, "game": game, "fragment": fragment}
    if game is not None:
        two = len(game.accuracies) == 2
        context |= {
            "map": summaries.region_map(game) if two else None,
            "equilibria": summaries.profiles_text(game) if two else "",
            "number": len(game.equilibria()),
            "rows": summaries.profile_rows(game),
            "players": range(1, len(game.accuracies) + 1),
        }
    return render_page(request, "runs/provision.html", context, "results", 200 if game or fragment else 400)
