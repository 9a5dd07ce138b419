"""The form after a game: a guess for each other seat (person or model), then optional values.

The players are revealed after the vote, or on request without a vote; a later vote is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.labels.codebooks import Codebook as CodebookRecord
from training.labels.rated import ASKED_FIRST, rated_after
from training.records import ALL, Message
from training.views import Line
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, everyone, get_or_404
from webapp.arena import access
from webapp.arena.live import client_state
from webapp.arena.models import Match, MatchMove, MatchSeat
from webapp.arena.play import probes
from webapp.arena.play.services import MatchState
from webapp.core.http import accepted
from webapp.core.transcripts import Transcript, lines_of, transcript
from webapp.judgments.annotating.forms import ValuesForm
from webapp.judgments.models import CodebookVersion, Guess, role_at
from webapp.judgments.rating import services as rating
from webapp.runs.episodes.beliefs import SeatBeliefs, over_time

GUESSES = {
    "yes": ("surely a person", rating.Answer(person=True)),
    "rather_yes": ("rather a person", rating.Answer(person=True, sure=False)),
    "rather_no": ("rather a model", rating.Answer(person=False, sure=False)),
    "no": ("surely a model", rating.Answer(person=False)),
}
"""What can be answered about a seat: label and meaning. There is no middle, so that a guess is always one."""


class GuessForm(forms.Form):
    """Who was it: a person or a model."""

    person = forms.ChoiceField(
        label="Person or model?",
        choices=[(value, label) for value, (label, _) in GUESSES.items()],
        widget=forms.RadioSelect,
    )

    def answer(self) -> rating.Answer:
        """The guess of a valid form."""
        return GUESSES[self.cleaned_data["person"]][1]


@dataclass
class RatedSeat:
    """One other seat with its two forms.

    `guess` is None for a host who chose the player, `values` where the game's codebook asks nothing about the seat. One
    question is asked first, about the seat with `asked_first`.
    """

    seat: MatchSeat
    guess: GuessForm | None
    values: ValuesForm | None
    asked_first: bool

    def is_valid(self) -> bool:
        """Whether both forms are; each keeps its own errors."""
        valid = [form.is_valid() for form in (self.guess, self.values) if form is not None]
        return all(valid)

    @property
    def first(self) -> list[forms.BoundField]:
        """The question that is asked first; empty where there is none."""
        return [field for field in self.values or () if self.asked_first and field.name in ASKED_FIRST]

    @property
    def more(self) -> list[forms.BoundField]:
        """The questions that are asked on request."""
        return [field for field in self.values or () if not self.asked_first or field.name not in ASKED_FIRST]


@require_http_methods(["GET", "POST"])
@everyone
def rate(request: HttpRequest, pk: int) -> HttpResponseBase:
    user = current_user(request)
    match = get_or_404(Match.objects.visible_to(user), pk=pk)
    own_seat = match.seats.filter(user=user).first()
    if own_seat is None or match.state != Match.State.FINISHED or match.task or match.shown_as:
        raise Http404
    if request.method == "POST" and "reveal" in request.POST:
        if accepted(request, partial(rating.reveal_unrated, by=own_seat)):
            messages.info(request, "This is who sat at the table. No guess was recorded.")
        return redirect("judgments:rate", match.pk)
    version = codebook_after(match)
    others = _others(match, own_seat, version, request)
    done = rating.is_rated(own_seat)
    if request.method == "POST" and done:
        accepted(request, partial(rating.check_rateable, own_seat))
        return redirect("judgments:rate", match.pk)
    if request.method == "POST" and all(other.is_valid() for other in others):
        if accepted(request, partial(_store, own_seat, version, others)):
            messages.success(request, "Thank you. This is who sat at the table.")
        return redirect("judgments:rate", match.pk)
    revealed, state = access.players_revealed(match, user), client_state.folded(match)
    knows, record = access.chose_seats(match, user), version.record() if version is not None else None
    context = {
        "match": match,
        "others": [] if done else others,
        "done": done,
        "asks": access.asks_about_others(match, own_seat.seat, record, knows=knows),
        "revealed": _revealed(match, own_seat, user) if revealed else [],
        "view": client_state.view_of(state, own_seat.seat),
        "may_repeat": True,
        "knows": knows,
        "following": match.rematches.visible_to(user).filter(state=Match.State.OPEN).order_by("pk").first(),
    }
    if not done:
        context["transcript"] = _transcript(match, state)
    return render(request, "judgments/rate.html", context, status=400 if request.method == "POST" else 200)


def _transcript(match: Match, state: MatchState | None) -> Transcript:
    """What happened from the all-seeing view; of a game that cannot be replayed any more, the stored log alone."""
    if state is not None:
        return transcript(state.game)
    messages = match.rows.filter(viewer=ALL).order_by("number").values_list("message", flat=True)
    return Transcript("", (), (), lines_of(map(Message.from_dict, messages), match.scenario["seats"]))


def codebook_after(match: Match) -> CodebookVersion | None:
    """The newest version of the codebook that players use after this game, or None for a game without one."""
    record = rated_after(match.game)
    versions = CodebookVersion.objects.select_related("codebook").order_by("-number")
    return versions.filter(codebook__name=record.name).first() if record else None


def _store(own_seat: MatchSeat, version: CodebookVersion | None, others: list[RatedSeat]) -> None:
    rating.rate(
        by=own_seat,
        version=version,
        values={other.seat.seat: other.values.values() for other in others if other.values is not None},
        guesses={other.seat.seat: other.guess.answer() for other in others if other.guess is not None},
    )


def _others(
    match: Match, own_seat: MatchSeat, version: CodebookVersion | None, request: HttpRequest
) -> list[RatedSeat]:
    data = request.POST or None
    record = version.record() if version is not None else None
    knows = access.chose_seats(match, current_user(request))
    seats = list(match.seats.exclude(pk=own_seat.pk).order_by("seat"))
    values = [_values_form(record, match, seat.seat, data) for seat in seats]
    first = next((form for form in values if form is not None), None)
    return [
        RatedSeat(seat, None if knows else GuessForm(data, prefix=f"guess{seat.seat}"), form, form is first)
        for seat, form in zip(seats, values, strict=True)
    ]


def _values_form(record: CodebookRecord | None, match: Match, seat: int, data: object) -> ValuesForm | None:
    role = role_at(match, seat)
    if record is None or not record.asks(role):
        return None
    return ValuesForm(record.of(role), data, prefix=f"seat{seat}", optional=True)


@dataclass(frozen=True)
class Thought:
    """A move with private reasoning or a strategy, and what people read of it."""

    move: MatchMove
    lines: Sequence[Line]


@dataclass(frozen=True)
class RevealedSeat:
    """Another seat with who sat there, this player's guess (None without one), and what its model thought and believed.

    `thoughts` are in the order of the game; `beliefs` is None for a seat that was asked nothing.
    """

    seat: MatchSeat
    guess: Guess | None
    thoughts: Sequence[Thought]
    beliefs: SeatBeliefs | None

    @property
    def right(self) -> bool:
        """Whether the guess was right."""
        return self.guess is not None and self.guess.person == (self.seat.kind == MatchSeat.Kind.PERSON)


def _revealed(match: Match, own_seat: MatchSeat, user: User) -> list[RevealedSeat]:
    """Every other seat, revealed."""
    guesses = {guess.about_id: guess for guess in Guess.objects.filter(by=own_seat)}
    thoughts, beliefs = dict[int, list[Thought]](), dict[int, SeatBeliefs]()
    if ALL in access.viewpoints(match, user):
        thoughts = _thoughts(match)
        roles = [role.replace("_", " ") for role in match.roles]
        beliefs = {seat.seat: seat for seat in over_time(probes.believed(match), match.scenario["seats"], roles)}
    return [
        RevealedSeat(seat, guesses.get(seat.pk), thoughts.get(seat.seat, []), beliefs.get(seat.seat))
        for seat in match.seats.exclude(pk=own_seat.pk).named().order_by("seat")
    ]


def _thoughts(match: Match) -> dict[int, list[Thought]]:
    """The thoughts of every seat, each beside what its move said and did, else what the game said of its step."""
    lines: dict[tuple[int, int | None], list[Line]] = defaultdict(list)
    for row in match.rows.filter(viewer=ALL).order_by("number"):
        author = row.message["author"]
        for line in row.lines:
            lines[row.step - 1, line.seat if author is None else author].append(line)
    thoughts: dict[int, list[Thought]] = defaultdict(list)
    for move in match.moves.exclude(private="", strategy="").order_by("number"):
        thoughts[move.seat].append(Thought(move, lines[move.step, move.seat] or lines[move.step, None]))
    return thoughts
