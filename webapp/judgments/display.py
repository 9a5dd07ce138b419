"""Judgments as people read them: each value under its label type's title, with its reason and its author.

Reasons and comments are text of models and people; pages show them as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from training.errors import BadInput
from training.labels.codebooks import LabelType
from training.records import Label
from webapp.accounts.permissions import annotators, current_user, get_or_404, members, researchers
from webapp.arena import access
from webapp.arena.models import Match
from webapp.core.http import integer, render_page
from webapp.judgments import games
from webapp.judgments.annotating import marks
from webapp.judgments.models import Judgment, Queue
from webapp.judgments.naming import Names
from webapp.judgments.results import comparison
from webapp.scenarios.models import DatasetVersion, StoredConversation

PAGE = 50


@dataclass(frozen=True)
class ShownValue:
    """One label with its type; `of_game` if it is one of a whole game's labels, which are about different seats."""

    label_type: LabelType
    label: Label
    of_game: bool = False

    @property
    def place(self) -> str:
        """Where in the game the label is: for a label of a turn, and of a seat in a judgment of the whole game."""
        if self.label.turn is None:
            return f"seat {self.label.seat + 1}" if self.of_game and self.label.seat is not None else ""
        turn = f"turn {self.label.turn + 1}"
        if self.label.start is not None:
            return f"characters {self.label.start + 1} to {self.label.end} of {turn}"
        return turn if self.label.other_turn is None else f"{turn} to turn {self.label.other_turn + 1}"

    @property
    def words(self) -> str:
        """The value as people read it, a choice by the title of its option."""
        titles = {option.name: option.title for option in self.label_type.options}
        chosen = self.label.value if isinstance(self.label.value, tuple) else (self.label.value,)
        return ", ".join(titles[str(name)] for name in chosen) if titles else self.label.words

    @property
    def placed_words(self) -> str:
        """The words after the place; of marked words, and of a pair of turns, the place alone."""
        if not self.place:
            return self.words
        return self.place if self.label_type.kind in {"span", "relation"} else f"{self.place}: {self.words}"


@dataclass(frozen=True)
class ShownJudgment:
    """One judgment to read."""

    row: Judgment
    author: str
    values: list[ShownValue]

    @property
    def seat(self) -> str:
        """The judged seat's number as people count."""
        return "" if self.row.seat is None else str(self.row.seat + 1)

    @property
    def seat_name(self) -> str:
        """The name and number of the judged seat of a queue; the number alone if the game cannot be read any more."""
        assert self.row.target is not None
        if self.row.seat is None:
            return "the whole game"
        try:
            return f"{games.seat_name(self.row.target.game, self.row.seat)} (seat {self.seat})"
        except BadInput:
            return f"seat {self.seat}"


def shown_judgments(
    judgments: Iterable[Judgment], names: Names | None = None, *, as_annotated: bool = False
) -> list[ShownJudgment]:
    """Return judgments (loaded `with_authors`) as pages show them, in their order.

    `as_annotated`: turns have the numbers of the page on which they were judged, and labels of what it does not show
    are left out; the judgments are loaded with their targets and games.
    """
    names = names or Names()
    codebooks: dict[int, list[LabelType]] = {}
    readable = []
    for row in judgments:
        if row.codebook_version_id not in codebooks:
            codebooks[row.codebook_version_id] = list(row.codebook_version.record().labels)
        labels = _as_annotated(row) if as_annotated else row.records() or ()
        values = [
            ShownValue(label_type, label, of_game=row.seat is None)
            for label_type in codebooks[row.codebook_version_id]
            for label in labels
            if label.label == label_type.name
        ]
        readable.append(ShownJudgment(row, names.shown(row), values))
    return readable


def _as_annotated(row: Judgment) -> Sequence[Label]:
    labels = row.records() or ()
    if row.target is None or all(label.turn is None for label in labels):
        return labels
    try:
        lines = games.game_of(row.target).turn_lines(hidden=row.target.queue.shows_hidden)
    except BadInput:
        lines = []
    return [shown for label in labels if (shown := marks.on_page(label, lines)) is not None]


@require_GET
@annotators
def of_match(request: HttpRequest, pk: int) -> HttpResponse:
    """The judgments of a match, as a layer of its replay or a separate page, for those who may see that layer."""
    user = current_user(request)
    match = get_or_404(Match.objects.visible_to(user), pk=pk)
    if not access.shows_judgments(match, user):
        raise Http404
    rows = Judgment.objects.readable_by(user).scored().filter(match=match).with_authors().select_related("target")
    seats = match.scenario["seats"]
    judgments = [(seats[judgment.row.seat], judgment) for judgment in shown_judgments(rows)]
    return render_page(request, "judgments/of_match.html", {"match": match, "judgments": judgments}, "layer")


@require_GET
@researchers
def of_version(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Who judged the conversations of a dataset version, how their values compare, and how far they agree.

    Nothing is shown to a person who has yet to judge some of them.
    """
    user = current_user(request)
    versions = DatasetVersion.objects.visible_to(user).readable().select_related("dataset")
    version = get_or_404(versions, dataset__name=name, number=number)
    waiting = StoredConversation.objects.filter(scenario__version=version).awaited_by(user)
    queue = next((queue.pk for queue in waiting.values()), None)
    context = {
        "version": version,
        "queue_left": queue,
        "comparisons": [] if queue is not None else comparison.of_version(version, user),
    }
    return render(request, "judgments/of_version.html", context)


@require_GET
@members
def own_judgments(request: HttpRequest, pk: int) -> HttpResponse:
    """What this person has judged in a queue, each with a way to change it; the latest comes first."""
    user = current_user(request)
    queue = get_or_404(Queue.objects.annotated_by(user), pk=pk)
    own = Judgment.everything.filter(author=user, decides=False, queue=queue).consented()
    keys = own.order_by("-updated_at", "-pk").values_list("pk", flat=True)  # sorted without what a page shows of each
    page = Paginator(keys, PAGE).get_page(integer(request, "page", 1, low=1))
    last = page.paginator.count - page.start_index() + 1  # games have no names here: those tell who played, and when
    rows = Judgment.objects.filter(pk__in=list(page)).of_queue(queue).order_by("-updated_at", "-pk")
    shown = shown_judgments(rows, Names(queue.pk), as_annotated=True)
    judgments = [(f"no. {last - place}", judgment) for place, judgment in enumerate(shown)]
    return render(request, "judgments/own_judgments.html", {"queue": queue, "page": page, "judgments": judgments})
