"""Runs and checkpoints over the API."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router, Status
from ninja.errors import HttpError
from ninja.pagination import LimitOffsetPagination, paginate

from training.config import parse
from training.errors import BadInput
from training.evaluate.calibration.report import Evaluation
from training.evaluate.league import PayoffTable
from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.datasets import version_named
from webapp.api.shapes import CheckpointOut, MetricOut, RunIn, RunOut
from webapp.core import files
from webapp.runs import archive, services
from webapp.runs.models import Checkpoint, Run
from webapp.runs.querysets import CheckpointQuerySet, RunQuerySet
from webapp.runs.registry import services as registry
from webapp.runs.summaries import calibration, league

router = Router(tags=["runs"], auth=Key(researchers=True))
checkpoints = Router(tags=["checkpoints"])


def _runs(request: HttpRequest) -> RunQuerySet:
    runs = Run.objects.visible_to(caller(request)).without_servers()
    runs = runs.select_related("owner", "dataset_version__dataset").order_by("-pk")
    return runs.prefetch_related("withdrawn_data__version__dataset")


@router.get("", response=list[RunOut])
@paginate(LimitOffsetPagination)
def list_runs(request: HttpRequest, state: str = "", kind: str = "") -> RunQuerySet:
    """Runs, newest first."""
    return _runs(request).matching(state=state, kind=kind)


@router.post("", response={201: RunOut})
def start_run(request: HttpRequest, data: RunIn) -> Status[Run]:
    """Queue a run; a wrong configuration is refused with the field's name."""
    services.check_bytes(data.config)
    run = services.create_run(
        owner=caller(request),
        config=parse(data.config),
        place=data.place,
        dataset_version=version_named(data.dataset, data.version) if data.dataset else None,
        start_checkpoint=_checkpoint(data.start_checkpoint, "start_checkpoint"),
        opponent_checkpoint=_checkpoint(data.opponent_checkpoint, "opponent_checkpoint"),
    )
    return Status(201, run)


def _checkpoint(named: int | str | None, field: str) -> Checkpoint | None:
    if named is None:
        return None
    checkpoint = registry.find(str(named))
    if checkpoint is None:
        raise BadInput(f"there is no checkpoint {named}", field)
    return checkpoint


@router.get("/{int:pk}", response=RunOut)
def get_run(request: HttpRequest, pk: int) -> Run:
    """One run."""
    return get_or_404(_runs(request), pk=pk)


@router.get("/{int:pk}/metrics", response=list[MetricOut])
def get_metrics(request: HttpRequest, pk: int, since: int = -1) -> list[dict[str, object]]:
    """The metrics of the steps above `since`, thinned evenly to about 600."""
    rows = get_or_404(_runs(request), pk=pk).metrics.since(since)
    return [{"step": step, "at": at, "values": values} for step, at, values in rows]


@router.get("/{int:pk}/league", response=list[PayoffTable])
def get_league(request: HttpRequest, pk: int) -> list[PayoffTable]:
    """The payoff tables of the run's league with their meta-strategies; none without a league."""
    return league.tables(get_or_404(_runs(request), pk=pk))


@router.get("/{int:pk}/calibration", response=list[Evaluation])
def get_calibration(request: HttpRequest, pk: int) -> list[Evaluation]:
    """The evaluations of the run's learner as a single agent, by step; none without question sets."""
    return calibration.evaluations(get_or_404(_runs(request), pk=pk))


def _own_run(request: HttpRequest, pk: int) -> Run:
    return get_or_404(Run.objects.changeable_by(caller(request)).without_servers(), pk=pk)


@router.post("/{int:pk}/stop", response=RunOut)
def stop_run(request: HttpRequest, pk: int) -> Run:
    """Request that a run saves and stops. Repeated requests change nothing."""
    services.stop_run(run=_own_run(request, pk))
    return get_or_404(_runs(request), pk=pk)


@router.post("/{int:pk}/resume", response=RunOut)
def resume_run(request: HttpRequest, pk: int) -> Run:
    """Queue a stopped or failed run again, from its last checkpoint."""
    services.resume_run(run=_own_run(request, pk))
    return get_or_404(_runs(request), pk=pk)


@router.delete("/{int:pk}", response={204: None})
def delete_run(request: HttpRequest, pk: int) -> Status[None]:
    """Delete a run that is over, with its files."""
    services.delete_run(run=_own_run(request, pk))
    return Status(204, None)


@checkpoints.get("", response=list[CheckpointOut])
@paginate(LimitOffsetPagination)
def list_checkpoints(request: HttpRequest, run: int | None = None) -> CheckpointQuerySet:
    """Checkpoints that the caller may use, newest first; with `run` those that a run wrote, for researchers."""
    rows = (
        Checkpoint.objects.visible_to(caller(request))
        .prefetch_related("aliases", "run__withdrawn_data__version__dataset")
        .order_by("-pk")
    )
    if run is None:
        return rows
    return rows.filter(run=run) if caller(request).is_researcher else rows.none()


def _visible(request: HttpRequest, reference: str) -> Checkpoint:
    checkpoint = registry.find(reference, among=Checkpoint.objects.visible_to(caller(request)))
    if checkpoint is None:
        raise Http404
    return checkpoint


@checkpoints.get("/{reference}", response=CheckpointOut)
def get_checkpoint(request: HttpRequest, reference: str) -> Checkpoint:
    """One checkpoint, by its id or an alias."""
    return _visible(request, reference)


@checkpoints.get("/{reference}/download", response=str)
def download_checkpoint(request: HttpRequest, reference: str) -> HttpResponseBase:
    """The checkpoint's folder as a zip file, for researchers, by its id or an alias; 409 if its files are gone."""
    if not caller(request).is_researcher:
        raise Http404
    row = _visible(request, reference)
    names = list(files.walk(row.path))
    if not names:
        raise HttpError(409, "its files are gone")
    return archive.zip_response(request, row.name, row.path, names)
