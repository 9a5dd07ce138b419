"""The pages of a participant, all under one address: a reload or a return shows the stage that they are at.

The link needs no account: whoever agrees becomes a guest. The page of each stage has its own form, and an answer to an
earlier page changes nothing.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from webapp.accounts import guests
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, everyone, get_or_404
from webapp.arena import opponents
from webapp.arena.models import MatchSeat
from webapp.arena.play import services
from webapp.experiments import grouping, participation, resume_tokens
from webapp.experiments.models import Experiment, Participant, Question
from webapp.experiments.questionnaire import Questionnaire
from webapp.experiments.states import Stage

KINDS = {
    MatchSeat.Kind.PERSON: "a person",
    MatchSeat.Kind.MODEL: "a language model",
    MatchSeat.Kind.SCRIPTED: "a computer player without a model",
    MatchSeat.Kind.OPEN: "nobody",
}
"""Who sat at a seat before a stand-in; the name of a player without a model is not kept then."""


def _experiment(token: str) -> Experiment:
    published = Experiment.objects.exclude(state=Experiment.State.DRAFT).select_related("owner")
    return get_or_404(published, token=token)


def _participant(request: HttpRequest, token: str) -> Participant:
    """The participation of this user, else 404."""
    rows = Participant.objects.select_related("experiment__owner", "arm", "group__match", "user")
    return get_or_404(rows, experiment__token=token, user=current_user(request))


def _origin(request: HttpRequest, experiment: Experiment) -> participation.Origin:
    names = (experiment.id_parameter, experiment.study_parameter, experiment.session_parameter)
    return participation.Origin(*(request.GET.get(name, "").strip()[:200] for name in names))


def _person(request: HttpRequest) -> User | None:
    """The signed-in member who opens the link; None for guests, who become a new one, and for who is not signed in."""
    user = request.user
    return user if isinstance(user, User) and not user.is_guest else None


@never_cache
@require_GET
def participate(request: HttpRequest, token: str) -> HttpResponse:
    """The page of the stage that a participant is at; the consent text for everybody else."""
    experiment = _experiment(token)
    if request.user.is_authenticated:
        rows = experiment.participants.select_related("experiment__owner", "arm", "group__match", "user")
        participant = rows.filter(user=current_user(request)).first()
        if participant is not None and not participation.is_of_another(participant, _origin(request, experiment)):
            participation.note_shown(participant=participant)
            return _stage(request, participation.update_stage(participant=participant))
    return _consent(request, experiment)


def _participates_as_another(request: HttpRequest, experiment: Experiment) -> bool:
    """Whether this browser takes part already, and the link is of another person: they share a computer."""
    if not request.user.is_authenticated:
        return False
    participant = experiment.participants.filter(user=current_user(request)).first()
    return participant is not None and participation.is_of_another(participant, _origin(request, experiment))


def _consent(request: HttpRequest, experiment: Experiment, problem: str = "", status: int = 200) -> HttpResponse:
    origin = _origin(request, experiment)
    owner = _person(request) == experiment.owner
    shared = _participates_as_another(request, experiment)
    context = {
        "experiment": experiment,
        "problem": problem,
        "closed": "" if owner else participation.refusal(experiment, origin),
        "owner": owner,
        "shared": shared,
        "may_begin": not owner and not (shared and _person(request)),
        "guest": isinstance(request.user, User) and request.user.is_guest,
    }
    response = render(request, "experiments/participant/consent.html", context, status=status)
    resume_tokens.issue(request, response)
    return response


@require_POST
def begin(request: HttpRequest, token: str) -> HttpResponse:
    """Agree and take part, as the signed-in member or as a new guest; a refusal stores nothing."""
    experiment = _experiment(token)
    if request.POST.get("agree") != "yes":
        return render(request, "experiments/participant/refused.html", {"experiment": experiment})
    person = _person(request)
    if person == experiment.owner:
        raise Http404
    if _participates_as_another(request, experiment):
        if person is not None:
            return _consent(request, experiment, status=400)
    elif request.user.is_authenticated and experiment.participants.filter(user=current_user(request)).exists():
        return redirect("experiments:participate", token)
    if person is None and guests.is_throttled(request, "participant"):
        return render(request, "429.html", status=429)
    try:
        participant = participation.begin(
            experiment=experiment,
            user=person,
            origin=_origin(request, experiment),
            may_reuse=request.POST.get("reuse") == "yes",
            resume_token=resume_tokens.token_of(request),
        )
    except BadInput as error:
        return _consent(request, experiment, error.why, status=400)
    if person is None:
        login(request, participant.user)
    return redirect("experiments:participate", token)


def _stage(request: HttpRequest, participant: Participant, form: Questionnaire | None = None) -> HttpResponse:
    """Render the stage of a participant."""
    experiment = participant.experiment
    context: dict[str, Any] = {
        "experiment": experiment,
        "participant": participant,
        "heartbeat_s": grouping.HEARTBEAT_S,
    }
    if participant.outcome:
        return render(request, "experiments/participant/ended.html", context | _ending(participant))
    if participant.stage in {Stage.BEFORE, Stage.AFTER}:
        questions = experiment.questions.filter(part=participant.stage)
        context["form"] = form or Questionnaire(questions)
        return render(request, "experiments/participant/questions.html", context, status=400 if form else 200)
    if participant.stage == Stage.WAIT:
        return render(request, "experiments/participant/waiting.html", context | _waiting(participant))
    if participant.stage == Stage.PLAY and participant.group is not None:
        return redirect("arena:table", participant.group.match_id)
    return render(request, "experiments/participant/debriefing.html", context | {"others": others(participant)})


def _waiting(participant: Participant) -> dict[str, Any]:
    """What the waiting room says. It is the same in every arm: how many are there would tell who a machine is."""
    since = participant.waiting_since
    assert since is not None
    until = since + timedelta(seconds=participant.experiment.wait_seconds)
    remaining = (until - services.database_now()) / timedelta(minutes=1)
    return {
        "minutes": max(1, math.ceil(remaining)),
        "paused": participant.experiment.state == Experiment.State.PAUSED,
    }


def others(participant: Participant) -> list[tuple[str, str]]:
    """(name at the table, who it really was) of the other players, for the debriefing."""
    if participant.group is None:
        return []
    seats = MatchSeat.objects.filter(match=participant.group.match_id).exclude(user=participant.user_id)
    return [(seat.name, _kind(seat)) for seat in seats.order_by("seat")]


def _kind(seat: MatchSeat) -> str:
    kind = KINDS[MatchSeat.Kind(seat.original_kind or seat.kind)]
    if seat.stand_in:
        return f"{kind}, and then {opponents.title(seat.scripted)}"
    return opponents.title(seat.scripted) if seat.kind == MatchSeat.Kind.SCRIPTED else kind


def _ending(participant: Participant) -> dict[str, Any]:
    address = participant.experiment.completion_url
    linked = address.replace("{code}", quote(participant.code, safe="")) if participant.code else ""
    return {"link": linked, "others": others(participant)}


@require_POST
@everyone
def answer(request: HttpRequest, token: str) -> HttpResponse:
    """Answer the questions of a stage."""
    participant = _participant(request, token)
    part = request.POST.get("part", "")
    if participant.stage == part and part in Question.Part and not participant.outcome:
        form = Questionnaire(participant.experiment.questions.filter(part=part), request.POST)
        if not form.is_valid():
            return _stage(request, participant, form)
        participation.answer(participant=participant, part=part, answers=form.answers())
    return redirect("experiments:participate", token)


@require_POST
@everyone
def heartbeat(request: HttpRequest, token: str) -> HttpResponse:
    """Note that the page is there, and answer with what has changed: the waiting room, a notice, or another stage."""
    participant = _participant(request, token)
    shown = request.POST.get("stage", "")
    participant = participation.heartbeat(participant=participant, visible=request.POST.get("visible") == "1")
    if participant.outcome or participant.stage != shown:
        response = HttpResponse(status=200)
        response["HX-Refresh"] = "true"
        return response
    context = {"participant": participant, "experiment": participant.experiment}
    if participant.stage == Stage.WAIT:
        context |= _waiting(participant)
    return render(request, "experiments/participant/heartbeat.html", context)


@require_POST
@everyone
def finish(request: HttpRequest, token: str) -> HttpResponse:
    """Go on after the debriefing."""
    participation.finish(participant=_participant(request, token))
    return redirect("experiments:participate", token)


@require_POST
@everyone
def withdraw(request: HttpRequest, token: str) -> HttpResponse:
    """Withdraw consent."""
    participation.withdraw(participant=_participant(request, token))
    messages.success(request, "Your answers and ids are erased, and you are in no export of the study.")
    return redirect("experiments:participate", token)
