"""Deployments: started on first need, stopped when idle or when another needs the slot; remote models are always there.

A local deployment is a run of kind `serve`. Rows say what is requested; `settle` (a clock step) starts and stops what
is needed, and the supervising worker reports with `ready` and `ended`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from training.engines.remote.addresses import AllowList
from training.engines.remote.config import RemoteConfig
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.core import health, queue, quotas
from webapp.runs import services as runs
from webapp.runs.models import Checkpoint, Run
from webapp.runs.querysets import OVER
from webapp.runs.registry.services import find as find_checkpoint
from webapp.serving.models import Deployment, RemoteModel

if TYPE_CHECKING:
    from training.engines.remote.chat import RemoteModel as RemoteChat

IDLE = timedelta(seconds=settings.SERVE_IDLE_SECONDS)
"""A served model that nobody has asked for this long is stopped."""

ADVISES = timedelta(seconds=75)
"""How long a request for advice may wait for its answer, the start of the model included."""

FRESH = timedelta(seconds=20)
"""A model that was used this recently does not yield its slot."""

KEY_NAME = "DEPLOYMENT_API_KEY"
"""Stands for a local server's random key where a secret's name is asked for; the key itself is in the row."""


def of_checkpoint(checkpoint: Checkpoint) -> Deployment:
    """Return the deployment of a checkpoint, with this instance of it; a cold one is created if there is none."""
    deployment = Deployment.objects.get_or_create(checkpoint=checkpoint)[0]
    deployment.checkpoint = checkpoint
    return deployment


def find(value: str, *, user: User) -> Deployment | None:
    """Return the model that the value of a form names: `checkpoint:ID`, `checkpoint:ALIAS`, or `deployment:ID`.

    The last one is that of a remote model. None for any other text, and for models that this user may not play.
    """
    kind, _, key = value.partition(":")
    number = int(key) if key.isascii() and key.isdigit() and len(key) < 19 else 0
    if kind == "checkpoint":
        checkpoint = find_checkpoint(key, among=Checkpoint.objects.visible_to(user))
        return None if checkpoint is None else of_checkpoint(checkpoint)
    if kind == "deployment":
        return Deployment.objects.visible_to(user).filter(pk=number, remote__isnull=False).first()
    return None


@transaction.atomic
def request(*, deployment: Deployment, by: User | None = None) -> bool:
    """Request that it be started; return whether it is ready. A failed one is tried again.

    `by` is whoever requests it outside a game. Raises `BadInput` if they wait for as many models as they may.
    """
    if by is not None:
        waiting = Deployment.objects.requested().filter(requested_by=by).exclude(pk=deployment.pk)
        quotas.check(user=by, quota="requested_models", used=waiting)
    return bool(request_all(deployments=[deployment], by=by))


@transaction.atomic
def request_all(*, deployments: Iterable[Deployment], by: User | None = None) -> set[int]:
    """Request that all of them be started; return the keys of those that are ready.

    A request that waits already keeps its place and its `by`: tables repeat theirs while they wait. The rows are locked
    in the order of their keys, whatever their order at a table, so that two tables do not deadlock.
    """
    keys = [deployment.pk for deployment in deployments]
    ready_keys = set()
    for locked in Deployment.objects.select_for_update().filter(pk__in=keys).order_by("pk"):
        locked.used_at = Now()
        if locked.remote_id is None:
            if locked.requested_at is None:
                locked.requested_at, locked.requested_by = Now(), by
            if locked.state == Deployment.State.FAILED:
                locked.state, locked.error = Deployment.State.COLD, ""
        locked.save(update_fields=["used_at", "requested_at", "requested_by", "state", "error"])
        if locked.remote_id is not None or locked.state == Deployment.State.READY:
            ready_keys.add(locked.pk)
    return ready_keys


@transaction.atomic
def start(*, deployment: Deployment) -> bool:
    """Start a cold, local deployment as a run of its own; return whether it was (another may have been faster)."""
    locked = Deployment.objects.select_for_update(of=("self",)).select_related("checkpoint__run").get(pk=deployment.pk)
    checkpoint = locked.checkpoint
    if checkpoint is None or locked.state != Deployment.State.COLD:
        return False
    owner = checkpoint.run.owner if checkpoint.run is not None else _keeper()
    locked.run = Run.objects.create(
        kind=Run.Kind.SERVE,
        name=f"serve {checkpoint.name}"[:120],
        owner=owner,
        queue="serve",
        base=checkpoint.base,
        start_checkpoint=checkpoint,
        config={"model": checkpoint.name},
    )
    locked.state, locked.error, locked.address = Deployment.State.STARTING, "", ""
    locked.key = secrets.token_urlsafe(32)
    locked.save(update_fields=["run", "state", "error", "address", "key"])
    queue.send(queue.SUPERVISE, locked.run.pk, queue="serve")
    return True


def _keeper() -> User:
    """Whose name a base model's server runs under: the first administrator, else the first person."""
    people = User.objects.exclude(role="guest").order_by("pk")
    return people.filter(role="admin").first() or people.earliest("pk")


@transaction.atomic
def ready(*, run_id: int, address: str) -> None:
    """Record that its server answers at `address` (ending in /v1); ignored for a run that is not its present one."""
    deployment = Deployment.objects.select_for_update().filter(run_id=run_id, state=Deployment.State.STARTING).first()
    if deployment is not None:
        deployment.state, deployment.address, deployment.ready_at = Deployment.State.READY, address, Now()
        deployment.used_at = Now()  # the time it took to start is not idleness
        deployment.save(update_fields=["state", "address", "ready_at", "used_at"])


@transaction.atomic
def ended(*, run_id: int, error: str = "") -> None:
    """Record that its process has ended: cold if a stop was requested, else failed with the reason.

    `stop` withdraws the request that it was started for; one made since, while it was stopping, stays.
    """
    deployment = Deployment.objects.select_for_update().filter(run_id=run_id).first()
    if deployment is None or deployment.state in {Deployment.State.COLD, Deployment.State.FAILED}:
        return
    stop_asked = deployment.state == Deployment.State.STOPPING
    deployment.state = Deployment.State.COLD if stop_asked else Deployment.State.FAILED
    deployment.error = "" if stop_asked else (error or "the model server ended by itself")[:4000]
    deployment.address = deployment.key = ""
    deployment.requested_at = deployment.requested_at if stop_asked else None
    deployment.ready_at = None
    deployment.save(update_fields=["state", "error", "address", "key", "requested_at", "ready_at"])


@transaction.atomic
def stop(*, deployment: Deployment) -> None:
    """Ask its process to stop; one without a process stays as it is."""
    locked = Deployment.objects.select_for_update().get(pk=deployment.pk)
    if locked.remote_id is not None or locked.state not in {Deployment.State.STARTING, Deployment.State.READY}:
        return
    locked.state, locked.requested_at = Deployment.State.STOPPING, None
    locked.save(update_fields=["state", "requested_at"])
    if locked.run is not None:
        runs.stop_run(run=locked.run)  # one that no worker has taken yet ends at once, and `settle` sees it


def settle() -> int:
    """Start requested deployments where slots are free, free slots from the least recently used, stop idle ones."""
    return _follow_runs() + _stop_idle() + _start_requested()


def _follow_runs() -> int:
    """Mark deployments as down whose run has ended without a report, as when its worker died."""
    lost = list(Deployment.objects.local().up().filter(run__state__in=OVER).select_related("run"))
    gone = list(Deployment.objects.local().up().filter(run__isnull=True))
    for deployment in lost:
        if deployment.run is not None:
            ended(run_id=deployment.run.pk, error=deployment.run.error)
    Deployment.objects.filter(pk__in=[d.pk for d in gone]).update(state=Deployment.State.COLD, address="", key="")
    return len(lost) + len(gone)


def _stop_idle() -> int:
    idle = Deployment.objects.local().filter(state=Deployment.State.READY, used_at__lt=Now() - IDLE)
    for deployment in idle:
        stop(deployment=deployment)
    return len(idle)


def slots() -> int:
    """Return how many models all nodes serve at once; before the first heartbeat, this node's number."""
    return sum(health.serve_slots().values()) or settings.SERVE_SLOTS


def _start_requested() -> int:
    """Each node takes no more than its own slots when it claims (`attempts.claim`); here all of them count together."""
    done = 0
    for deployment in Deployment.objects.requested().order_by("requested_at"):
        if Deployment.objects.local().up().count() < slots():
            done += start(deployment=deployment)
        else:
            return done + _yield_slot()
    return done


def _busy(seats: str) -> Exists:
    """Whether a deployment is being asked for the move of one of its seats; `seats` is the relation to them."""
    asked = Deployment.objects.filter(pk=OuterRef("pk"), **{f"{seats}__match__due__claimed_until__gt": Now()})
    return Exists(asked.filter(**{f"{seats}__match__due__seat": F(f"{seats}__seat")}))


def _advises() -> Exists:
    """Whether a deployment has been asked for advice a short time ago, and has not answered yet."""
    asked = Deployment.objects.filter(pk=OuterRef("pk"), advice__text="", advice__why="")
    return Exists(asked.filter(advice__asked_at__gt=Now() - ADVISES))


def _yield_slot() -> int:
    """Stop the least recently used ready deployment that no seat is waiting for; 0 if a slot is being freed."""
    if Deployment.objects.filter(state=Deployment.State.STOPPING).exists():
        return 0
    busy = _busy("match_seats") | _busy("spoken_seats") | _advises()
    free = Deployment.objects.local().filter(~busy, state=Deployment.State.READY, used_at__lt=Now() - FRESH)
    oldest = free.order_by("used_at").first()
    if oldest is None:
        return 0
    stop(deployment=oldest)
    return 1


def chat_model(deployment: Deployment, *, timeout_s: float) -> RemoteChat:
    """Return a client for this deployment, with one try per call; raises `BadInput` if its address is not allowed."""
    from training.engines.remote import chat  # the openai client is slow to import

    common: dict[str, Any] = {"model": deployment.model, "timeout_s": min(600.0, max(0.1, timeout_s)), "retries": 0}
    if deployment.remote is not None:
        config = RemoteConfig(address=deployment.remote.address, secret=deployment.remote.secret_name, **common)
        return chat.RemoteModel(config)
    if not deployment.address:
        raise BadInput("it is not running", str(deployment))
    config = RemoteConfig(address=deployment.address, secret=KEY_NAME, **common)
    allowed = AllowList.of([f"{deployment.address}={KEY_NAME}"])
    return chat.RemoteModel(config, allowed=allowed, secret=lambda _name: deployment.key)


@transaction.atomic
def add_remote(*, by: User, name: str, address: str, model: str, secret_name: str, open_to_players: bool) -> Deployment:
    """Register a remote model at an allowed address; raises `BadInput` naming the field that is wrong."""
    RemoteConfig.from_dict({"address": address, "model": model, "secret": secret_name})
    AllowList.from_environment().check(address, secret_name)
    if RemoteModel.objects.filter(name=name).exists():
        raise BadInput("another remote model has this name", "name")
    remote = RemoteModel.objects.create(
        name=name,
        address=address,
        model=model,
        secret_name=secret_name,
        open_to_players=open_to_players,
        added_by=by,
    )
    return Deployment.objects.create(remote=remote, state=Deployment.State.READY)


@transaction.atomic
def remove_remote(*, remote: RemoteModel) -> None:
    """Delete a remote model; raises `BadInput` if a match or a judge refers to it."""
    played = Q(match_seats__isnull=False) | Q(spoken_seats__isnull=False)
    if Deployment.objects.filter(played, remote=remote).exists():
        raise BadInput("it played in a match, whose record names it, so it cannot be removed", remote.name)
    if RemoteModel.objects.filter(Q(pk=remote.pk), judges__isnull=False).exists():
        raise BadInput("a judge uses it: delete the judge first", remote.name)
    remote.delete()
