"""The form after a game: five dimensions for every other seat, and person or model? Then the seats are revealed."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from training.rewards.rubrics import CONDUCT
from webapp.accounts.permissions import current_user, everyone, get_or_404
from webapp.arena.models import Match, MatchSeat
from webapp.judgments import services
from webapp.judgments.forms import ValuesForm
from webapp.judgments.models import Guess, Judgment, Rubric, RubricVersion


class GuessForm(forms.Form):
    """Who was it: a person or a model."""

    person = forms.ChoiceField(
        label="Person or model?", choices=[("yes", "a person"), ("no", "a model")], widget=forms.RadioSelect
    )


@dataclass
class Rated:
    """One other seat with its two forms."""

    seat: MatchSeat
    values: ValuesForm
    guess: GuessForm


@require_http_methods(["GET", "POST"])
@everyone
def rate(request: HttpRequest, pk: int) -> HttpResponseBase:
    user = current_user(request)
    match = get_or_404(Match.objects.visible_to(user), pk=pk)
    mine = match.seats.filter(user=user).first()
    if mine is None or match.state != Match.State.FINISHED:
        raise Http404
    version = get_or_404(Rubric.objects.prefetch_related("versions"), name=CONDUCT.name).newest()
    done = Guess.objects.filter(by=mine).exists() or Judgment.objects.filter(author_seat=mine).exists()
    others = _others(match, mine, version, request)
    if request.method == "POST" and not done:
        checked = [form.is_valid() for other in others for form in (other.values, other.guess)]
        if all(checked):
            try:
                services.rate(
                    by=mine,
                    version=version,
                    values={other.seat.seat: other.values.values() for other in others},
                    guesses={other.seat.seat: other.guess.cleaned_data["person"] == "yes" for other in others},
                )
            except BadInput as error:
                messages.error(request, f"Nothing was stored: {error.why}.")
            else:
                messages.success(request, "Thank you. This is who sat at the table.")
            return redirect("judgments:rate", match.pk)
    context = {"match": match, "others": others, "done": done, "guesses": _guesses(mine) if done else []}
    return render(request, "judgments/rate.html", context, status=400 if request.method == "POST" else 200)


def _others(match: Match, mine: MatchSeat, version: RubricVersion, request: HttpRequest) -> list[Rated]:
    data = request.POST or None
    seats = match.seats.exclude(pk=mine.pk).order_by("seat")
    return [
        Rated(
            seat,
            ValuesForm(version.record(), data, prefix=f"seat{seat.seat}"),
            GuessForm(data, prefix=f"guess{seat.seat}"),
        )
        for seat in seats
    ]


def _guesses(mine: MatchSeat) -> list[dict[str, object]]:
    guesses = Guess.objects.filter(by=mine).select_related("about__deployment__checkpoint", "about__deployment__remote")
    return [
        {
            "guess": guess,
            "was_person": guess.about.kind == MatchSeat.Kind.PERSON,
            "right": guess.person == (guess.about.kind == MatchSeat.Kind.PERSON),
        }
        for guess in guesses.order_by("about__seat")
    ]
