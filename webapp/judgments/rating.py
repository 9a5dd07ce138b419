"""The form after a game: a guess for each other seat (person or model), then optional values.

The players are revealed after the vote, or on request without a vote; a later vote is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.records import ALL, Message
from training.rewards.rubrics import RATED_AFTER
from training.rewards.rubrics import Rubric as RubricRecord
from webapp.accounts.permissions import current_user, everyone, get_or_404
from webapp.arena.live import client_state
from webapp.arena.models import Match, MatchSeat
from webapp.core.http import accepted
from webapp.core.transcripts import Transcript, lines_of, transcript
from webapp.judgments import services
from webapp.judgments.forms import ValuesForm
from webapp.judgments.models import Guess, RubricVersion, role_at


class GuessForm(forms.Form):
    """Who was it: a person or a model."""

    person = forms.ChoiceField(
        label="Person or model?", choices=[("yes", "a person"), ("no", "a model")], widget=forms.RadioSelect
    )


@dataclass
class RatedSeat:
    """One other seat with its two forms; `values` is None where the game's rubric asks nothing about it."""

    seat: MatchSeat
    guess: GuessForm
    values: ValuesForm | None

    def is_valid(self) -> bool:
        """Whether both forms are; each keeps its own errors."""
        return self.guess.is_valid() & (self.values is None or self.values.is_valid())


@require_http_methods(["GET", "POST"])
@everyone
def rate(request: HttpRequest, pk: int) -> HttpResponseBase:
    user = current_user(request)
    match = get_or_404(Match.objects.visible_to(user), pk=pk)
    own_seat = match.seats.filter(user=user).first()
    if own_seat is None or match.state != Match.State.FINISHED or match.task:
        raise Http404
    if request.method == "POST" and "reveal" in request.POST:
        if accepted(request, partial(services.reveal_unrated, by=own_seat)):
            messages.info(request, "This is who sat at the table. No guess was recorded.")
        return redirect("judgments:rate", match.pk)
    version = rubric_after(match)
    others = _others(match, own_seat, version, request)
    done = services.is_rated(own_seat)
    if request.method == "POST" and done:
        accepted(request, partial(services.check_rateable, own_seat))
        return redirect("judgments:rate", match.pk)
    if request.method == "POST" and all(other.is_valid() for other in others):
        if accepted(request, partial(_store, own_seat, version, others)):
            messages.success(request, "Thank you. This is who sat at the table.")
        return redirect("judgments:rate", match.pk)
    context = {"match": match, "others": others, "done": done, "revealed": _revealed(match, own_seat) if done else []}
    if not done:
        context["transcript"] = _transcript(match)
    return render(request, "judgments/rate.html", context, status=400 if request.method == "POST" else 200)


def _transcript(match: Match) -> Transcript:
    """What happened from the all-seeing view; of a game that cannot be replayed any more, the stored log alone."""
    if state := client_state.folded(match):
        return transcript(state.game)
    messages = match.rows.filter(viewer=ALL).order_by("number").values_list("message", flat=True)
    return Transcript("", (), (), lines_of(map(Message.from_dict, messages), match.scenario["seats"]))


def rubric_after(match: Match) -> RubricVersion | None:
    """The newest version of the rubric that players use after this game, or None for a game without one."""
    record = RATED_AFTER.get(match.game)
    versions = RubricVersion.objects.select_related("rubric").order_by("-number")
    return versions.filter(rubric__name=record.name).first() if record else None


def _store(own_seat: MatchSeat, version: RubricVersion | None, others: list[RatedSeat]) -> None:
    services.rate(
        by=own_seat,
        version=version,
        values={other.seat.seat: other.values.values() for other in others if other.values is not None},
        guesses={other.seat.seat: other.guess.cleaned_data["person"] == "yes" for other in others},
    )


def _others(match: Match, own_seat: MatchSeat, version: RubricVersion | None, request: HttpRequest) -> list[RatedSeat]:
    data = request.POST or None
    record = version.record() if version is not None else None
    return [
        RatedSeat(seat, GuessForm(data, prefix=f"guess{seat.seat}"), _values_form(record, match, seat.seat, data))
        for seat in match.seats.exclude(pk=own_seat.pk).order_by("seat")
    ]


def _values_form(record: RubricRecord | None, match: Match, seat: int, data: object) -> ValuesForm | None:
    role = role_at(match, seat)
    if record is None or not record.asks(role):
        return None
    return ValuesForm(record.of(role), data, prefix=f"seat{seat}", optional=True)


def _revealed(match: Match, own_seat: MatchSeat) -> list[dict[str, object]]:
    """Return every other seat with who sat there and, if there is one, this player's guess."""
    guesses = {guess.about_id: guess.person for guess in Guess.objects.filter(by=own_seat)}
    seats = match.seats.exclude(pk=own_seat.pk).named()
    return [
        {
            "seat": seat,
            "guess": guesses.get(seat.pk),
            "right": guesses.get(seat.pk) == (seat.kind == MatchSeat.Kind.PERSON),
        }
        for seat in seats.order_by("seat")
    ]
