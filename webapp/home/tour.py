"""The guided tour of a researcher: watch a model learn, play against it, judge the game, train on that.

Every step is a real task. A user's record refers to the objects that each step created, and progress follows from
their states, so that the tour can be left and continued later, and a failed step repeated. Every function is one
transaction, and raises `BadInput` without changing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction

from training.config import RunConfig
from training.errors import BadInput
from training.games import redrawn
from training.labels.rated import rated_after
from training.seeding import rng
from webapp.accounts.models import User
from webapp.arena import access
from webapp.arena.models import Match
from webapp.arena.setup import scenarios, speakers, tables
from webapp.home.models import Tour
from webapp.judgments.datasets import export
from webapp.judgments.models import CodebookVersion
from webapp.judgments.queues import services as queues
from webapp.judgments.rating import services as rating
from webapp.runs import services as runs
from webapp.runs.models import Checkpoint, Run
from webapp.runs.presets import PRESETS
from webapp.runs.querysets import ALIVE
from webapp.serving import services as serving


class State(StrEnum):
    """Progress of a step. A locked step waits for the previous one."""

    LOCKED = "locked"
    READY = "ready"
    WORKING = "working"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True)
class Progress:
    """The state of a step; `message` says what is happening, or what failed and what to do.

    `instead` names an earlier step that must be repeated first.
    """

    state: State
    message: str = ""
    done: int = 0
    of: int = 0
    instead: str = ""


def of(user: User) -> Tour:
    """The record of a person, unsaved before their first step."""
    tours = Tour.objects.select_related("run", "match", "queue", "trained")
    return tours.filter(user=user).first() or Tour(user=user)


def progress(tour: Tour) -> dict[str, Progress]:
    """The progress of every step, in their order."""
    played = _played(tour)
    judged = _judged(tour, played)
    return {
        "watch": _of_run(tour.run),
        "play": played,
        "judge": judged,
        "train": _of_run(tour.trained) if judged.state == State.DONE or tour.trained else Progress(State.LOCKED),
    }


def _of_run(run: Run | None) -> Progress:
    if run is None:
        return Progress(State.READY)
    if run.state in ALIVE:
        began = f"Step {run.step} of {run.steps}" if run.step and run.steps else "Starting"
        message = "Waiting for a worker" if run.state == Run.State.QUEUED else began
        return Progress(State.WORKING, message, run.step, run.steps)
    if run.state == Run.State.SUCCEEDED:
        return Progress(State.DONE)
    why = "The run was stopped" if run.state == Run.State.STOPPED else "The run failed"
    return Progress(State.FAILED, f"{why}: see its log. Start another run, or resume this one on its page.")


def opponent(tour: Tour) -> Checkpoint | None:
    """The newest checkpoint that the watched run has written."""
    return tour.run.checkpoints.order_by("-step").first() if tour.run else None


def _played(tour: Tour) -> Progress:
    match = tour.match
    if match is None:
        return Progress(State.READY if opponent(tour) else State.LOCKED)
    if match.state == Match.State.ABORTED:
        return Progress(State.FAILED, f"The game ended without a result: {match.aborted_why}. Play another.")
    return Progress(State.DONE if match.over else State.WORKING, "" if match.over else "Your game is not over.")


def _judged(tour: Tour, played: Progress) -> Progress:
    queue, match = tour.queue, tour.match
    if queue is None and (match is None or played.state != State.DONE):
        return Progress(State.LOCKED)
    if queue is None:
        if match is not None and not Match.objects.exportable().filter(pk=match.pk).exists():
            why = "You kept this game out of exports, or it does not count, so it cannot be judged."
            return Progress(State.FAILED, f"{why} Play another, and agree to its use.", instead="play")
        return Progress(State.READY)
    left, seats = queue.targets.open_for(tour.user).count(), queue.targets.count()
    if left:
        return Progress(State.WORKING, f"{seats - left} of {seats} seats judged", seats - left, seats)
    if not queue.targets.filter(judgments__unscored=False).exists():
        return Progress(State.FAILED, "No seat has been scored, so there is nothing to train on. Queue the game again.")
    return Progress(State.DONE)


@transaction.atomic
def watch(*, user: User) -> Run:
    """Start the quick trial; a game and judgments of an earlier one are kept outside of the tour."""
    tour = _locked(user)
    if tour.run is not None and tour.run.state in ALIVE:
        return tour.run
    run = runs.create_run(owner=user, config=RunConfig.from_dict(PRESETS["quick"].config()))
    Tour.objects.filter(pk=tour.pk).update(run=run, match=None, queue=None, trained=None)
    return run


@transaction.atomic
def play(*, user: User) -> Match:
    """Set up a table against the newest checkpoint of the watched run, with one of the scenarios that it learned from;
    a game of the tour that is not over is returned.
    """
    tour = _locked(user)
    if tour.match is not None and not tour.match.over:
        return tour.match
    checkpoint = opponent(tour)
    if tour.run is None or checkpoint is None:
        raise BadInput("there is no checkpoint yet: wait until the run has written one", "checkpoint")
    seed = tables.new_seed()
    learned = scenarios.samples(tour.run.game)[: tour.run.config["data"]["limit"] or None]
    start = tables.Start(redrawn(rng(seed, "sample").choice(learned), seed))
    place = speakers.place_of(serving.of_checkpoint(checkpoint), speakers.AS_TRAINED, user)
    match = tables.create(host=user, start=start, places=[tables.Place(user=user), place])
    Tour.objects.filter(pk=tour.pk).update(match=match, queue=None, trained=None)
    return match


@transaction.atomic
def judge(*, user: User) -> None:
    """Queue the game of the tour for its player, who is not asked any more who the others were."""
    tour = _locked(user)
    match = tour.match
    if match is None or not match.over:
        raise BadInput("play the game to its end first", "match")
    if tour.queue is not None and progress(tour)["judge"].state != State.FAILED:
        return
    seat = match.seats.filter(user=user).first()
    if seat is not None and not access.players_revealed(match, user):
        rating.reveal_unrated(by=seat)
    record = rated_after(match.game)
    codebook = "" if record is None else record.name
    version = CodebookVersion.objects.filter(codebook__name=codebook).order_by("-number").first()
    if version is None:
        raise BadInput(f"the codebook {codebook} is gone: make it again", "codebook")
    queue = queues.create_queue(
        name=f"First tour, match {match.pk}", owner=user, codebook_version=version, matches=[match], annotators=[user]
    )
    Tour.objects.filter(pk=tour.pk).update(queue=queue, trained=None)


@transaction.atomic
def train(*, user: User) -> Run:
    """Export the judged game as a dataset, and start a run that learns from it where the watched run ended."""
    tour = _locked(user)
    if tour.trained is not None and tour.trained.state in ALIVE:
        return tour.trained
    if tour.queue is None or progress(tour)["judge"].state != State.DONE:
        raise BadInput("judge the game first", "queue")
    version, _ = export.store(queue=tour.queue, name=f"first-tour-{tour.queue_id}", by=user)
    config = PRESETS["sft-quick"].config() | {"name": "Trained on my judged game"}
    run = runs.create_run(
        owner=user, config=RunConfig.from_dict(config), dataset_version=version, start_checkpoint=opponent(tour)
    )
    Tour.objects.filter(pk=tour.pk).update(trained=run)
    return run


def set_hidden(*, user: User, hidden: bool) -> None:
    """Put the cards away, or bring them back."""
    Tour.objects.update_or_create(user=user, defaults={"hidden": hidden})


def _locked(user: User) -> Tour:
    """The record of a person under its lock."""
    Tour.objects.get_or_create(user=user)
    return Tour.objects.select_for_update().get(user=user)


STEPS: Mapping[str, Callable[..., object]] = {"watch": watch, "play": play, "judge": judge, "train": train}
"""What begins each step, in their order."""
