"""Start a run: from a preset, or from the configuration of an earlier one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training import config as configs
from training.cluster.section import ClusterSection
from training.config import RunConfig
from training.errors import BadInput
from training.reward_section import MOST_LABELS
from training.rewards.labels import Measured
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import integer
from webapp.runs import presets, services
from webapp.runs.forms import RunForm
from webapp.runs.models import Checkpoint, Run
from webapp.runs.reward_labels import measured_labels
from webapp.scenarios.models import DatasetVersion


@require_http_methods(["GET", "POST"])
@researchers
def new(request: HttpRequest) -> HttpResponse:
    """Show and process the form.

    `?preset=`, `?clone=`, `?judge=1`, `?opponents=` and `?labels=` (numbers), `?checkpoint=`, `?dataset=` set initial
    values, `?label=` and `?classifier=` those of the labels that are added, and `?exploit=` (a checkpoint) those of a
    run whose only opponent it is. A form sent with `redraw` comes back as the
    query says, with what was entered.
    """
    user = current_user(request)
    preset = request.GET.get("preset", "quick")
    exploited = _requested(request, "exploit")
    if exploited is not None and not presets.exploitable(exploited.run):
        raise Http404
    source = _source(request, exploited)
    config, initial = _begin(request, preset, source)
    if exploited is not None:
        if source is None and exploited.run is not None:
            config = presets.of_game(config, exploited.run.game)
        if config["kind"] != Run.Kind.TRAIN or not presets.contested(config):
            raise Http404("only a run that trains in a game with opponents finds a weakness")
        config = presets.against(config, exploited.name)
        initial |= {"name": f"Weakness of {exploited}"[:120], "model": exploited.pk, "opponent": exploited.pk}
    sent, redrawn = request.method == "POST", "redraw" in request.POST
    form = RunForm(config, user, request.POST if sent else None, redrawn=redrawn, **initial)
    if sent and not redrawn and form.is_valid():
        try:
            run = services.create_run(owner=user, config=form.run_config, cloned_from=source, **form.choices())
        except BadInput as error:
            form.blame(error)
        else:
            for label in measured_labels(form.run_config):
                if label.warning:
                    messages.warning(request, f"Reward: {label.warning}.")
            return redirect("runs:detail", run.pk)
    status = 400 if sent and not redrawn else 200
    context = {"form": form, "presets": presets.startable(), "preset": "" if source else preset, "source": source}
    context |= {"exploited": exploited, "labels_measured": _measured(config)}
    judge = {"judge": config["judge"] is not None, "may_judge": "judge" in presets.SECTIONS[config["kind"]]}
    opponents = {"opponents": len(config["opponents"]), "most_opponents": presets.MOST_OPPONENTS}
    labels = {"labels": len(config["reward"]["labels"]), "most_labels": MOST_LABELS}
    return render(request, "runs/new.html", {**context, **judge, **opponents, **labels}, status=status)


def _measured(config: dict[str, Any]) -> list[Measured]:
    """How well the labels in the reward agree with people; a name that is wrong is shown once the form is sent."""
    try:
        return measured_labels(configs.parse(config))
    except BadInput:
        return []


def _requested(request: HttpRequest, name: str) -> Checkpoint | None:
    """The checkpoint that the query names, if it names one."""
    number = integer(request, name, 0)
    checkpoints = Checkpoint.objects.visible_to(current_user(request)).select_related("run")
    return get_or_404(checkpoints, pk=number) if number else None


def _source(request: HttpRequest, exploited: Checkpoint | None) -> Run | None:
    """The run whose configuration is taken over: the one to clone, or that which trained the only opponent."""
    clone = integer(request, "clone", 0)
    if clone:
        cloneable = Run.objects.visible_to(current_user(request)).without_servers().exclude(kind=Run.Kind.SUITE)
        return get_or_404(cloneable, pk=clone)  # a suite's form is the checkpoint's
    if exploited is not None and exploited.run is not None and exploited.run.kind == Run.Kind.TRAIN:
        return exploited.run
    return None


def _begin(request: HttpRequest, preset: str, source: Run | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The initial configuration, and the initial values of the upper half."""
    initial: dict[str, Any] = {}
    if source is not None:
        config = {**RunConfig().to_dict(), **source.config}  # sections added after the run get their defaults
        initial["name"] = f"{source.name} again"[:120]
        for name, key in (("dataset", source.dataset_version_id), ("opponent", source.opponent_checkpoint_id)):
            initial |= {name: key} if key else {}
        initial |= {"model": source.start_checkpoint_id} if source.start_checkpoint_id else {}
        initial["place"] = "gpu" if source.queue == "train-gpu" else "cpu"
    elif preset in presets.PRESETS:
        config = presets.PRESETS[preset].config()
        if not ClusterSection.from_dict(config["cluster"]).alone:
            initial["place"] = "gpu"
    else:
        raise Http404
    config = _with_additions(request, config)
    if (model := _requested(request, "checkpoint")) is not None:
        initial["model"] = model.pk
        if model.run is not None and source is None:
            if config["kind"] == "eval":
                config = presets.as_trained(config, model.run.config)
            else:
                config = presets.of_game(config, model.run.game)
    if dataset := integer(request, "dataset", 0):
        version = get_or_404(DatasetVersion.objects.all(), pk=dataset)
        initial["dataset"] = version.pk
        if version.games and config["game"]["name"] not in version.games:
            config = presets.of_game(config, version.games[0])
    return config, initial


def _with_additions(request: HttpRequest, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the judge, the number of opponents and the number of labels that the query asks for."""
    if request.GET.get("judge") == "1":
        config = presets.with_judge(config)
    if request.GET.get("opponents") and "opponents" in presets.SECTIONS[config["kind"]]:
        most = max(presets.MOST_OPPONENTS, len(config["opponents"]))
        config = presets.with_opponents(config, integer(request, "opponents", 0, 0, most))
    if request.GET.get("labels") and "reward" in presets.SECTIONS[config["kind"]]:
        added = {name: request.GET.get(name, "")[:80] for name in ("label", "classifier")}
        config = presets.with_labels(config, integer(request, "labels", 0, 0, MOST_LABELS), **added)
    return config
