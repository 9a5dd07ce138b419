"""The cards of the guided tour on a researcher's first page, and what their buttons do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training import bases
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, researchers
from webapp.core.http import STOP_ASKING
from webapp.home import tour as tours
from webapp.home.models import Tour
from webapp.home.tour import Progress, State
from webapp.runs import services as runs

TINY = "tiny"


@dataclass(frozen=True)
class Card:
    """One step: description and duration, progress, its button, and a link to what it created."""

    name: str
    title: str
    takes: str
    about: str
    button: str
    progress: Progress
    address: str = ""
    link: str = ""

    @property
    def begins(self) -> bool:
        """Whether its button is offered."""
        return self.progress.state in {State.READY, State.FAILED}

    @property
    def step(self) -> str:
        """The step that its button starts."""
        return self.progress.instead or self.name


TEXTS = {
    "watch": (
        "Watch it learn",
        "about 3 minutes on two free cores",
        "The tiny model bargains with itself and learns from it. Then it plays against the model it started from.",
        "Start the quick trial",
    ),
    "play": (
        "Beat it",
        "3 minutes",
        "Negotiate with the newest checkpoint of your run, over items from its training.",
        "Play against it",
    ),
    "judge": (
        "Judge it",
        "2 minutes",
        "Rate how both of you talked, with the codebook of the game. Other annotators can judge the same game.",
        "Queue the game",
    ),
    "train": (
        "Train on that",
        "1 minute",
        "Your judged game becomes a dataset, and the model is fine-tuned on its messages. That completes the tour.",
        "Export it and train",
    ),
}


def cards(tour: Tour) -> list[Card]:
    """The cards of a person's tour, in their order.

    The first card of a finished run links to its games against the initial model, which say more than self-play reward.
    """
    steps = tours.progress(tour)
    page, link = ("evaluation", "See who won") if steps["watch"].state == State.DONE else ("detail", "To the run")
    links = {
        "watch": lambda: (tour.run_id and reverse(f"runs:{page}", args=[tour.run_id]), link),
        "play": lambda: (tour.match_id and reverse("arena:table", args=[tour.match_id]), "To the game"),
        "judge": lambda: (tour.queue_id and _queue_link(tour), "To the judgments"),
        "train": lambda: (tour.trained_id and reverse("runs:detail", args=[tour.trained_id]), "To the run"),
    }
    return [
        Card(name, *TEXTS[name][:3], TEXTS[progress.instead or name][3], progress, *_link(links[name]))
        for name, progress in steps.items()
    ]


def _link(link: Callable[[], tuple[Any, str]]) -> tuple[str, str]:
    address, text = link()
    return (address, text) if address else ("", "")


def _queue_link(tour: Tour) -> str:
    judging = tour.queue is not None and tour.queue.targets.open_for(tour.user).exists()
    return reverse("judgments:annotate" if judging else "judgments:queue", args=[tour.queue_id])


def context(user: User, refused: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """The context of the cards; `refused` is a step and why it did not start. `moving`: the page polls for changes."""
    tour = tours.of(user)
    shown = cards(tour)
    entry = bases.REGISTRY[TINY]
    ready = bases.is_prepared(entry) or not runs.unprepared(TINY)
    preparing = None if ready else bases.preparation(entry)
    working = {card.name for card in shown if card.progress.state == State.WORKING}
    return {
        "cards": shown,
        "refused": refused[0],
        "why": refused[1],
        "closed": all(card.progress.state == State.DONE for card in shown),
        "hidden": tour.hidden,
        "moving": bool(working) or not ready,
        "ready": ready,
        "preparing": preparing,
        "seconds_left": preparing.seconds_left(time.time()) if preparing else None,
    }


@require_GET
@researchers
def tour(request: HttpRequest) -> HttpResponse:
    """The cards alone, for the page that asks again while something works."""
    filled = context(current_user(request))
    return render(request, "home/tour.html", filled, status=200 if filled["moving"] else STOP_ASKING)


@require_POST
@researchers
def begin(request: HttpRequest, step: str) -> HttpResponse:
    """Begin a step and go to what it made; a refused one says why on its card."""
    if step not in tours.STEPS:
        raise Http404
    user = current_user(request)
    try:
        tours.STEPS[step](user=user)
    except BadInput as error:
        return render(request, "home/tour_page.html", context(user, (step, error.why)), status=400)
    address = next(each.address for each in cards(tours.of(user)) if each.name == step)
    return redirect(address)


@require_POST
@researchers
def hide(request: HttpRequest) -> HttpResponse:
    """Put the cards away, or bring them back."""
    tours.set_hidden(user=current_user(request), hidden=request.POST.get("hidden") == "1")
    return redirect("home:index")
