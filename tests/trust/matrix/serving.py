"""Who may use the deployments: researchers see and start them; owners of the checkpoint and admins stop them."""

from typing import Any

from tests.trust.matrix.base import RESEARCHERS, Route
from webapp.runs.models import Checkpoint, Run
from webapp.serving.models import Deployment, RemoteModel

ADMIN = ("admin",)


def checkpoint(owner: Any) -> dict[str, Any]:
    run = Run.objects.create(kind="train", name="a run", owner=owner, queue="train-cpu", config={}, state="stopped")
    made = Checkpoint.objects.create(name=f"step-{run.pk}", kind="full", base="tiny", run=run, path="x")
    return {"checkpoint_id": made.pk}


def deployment(owner: Any) -> dict[str, Any]:
    made = Deployment.objects.create(checkpoint_id=checkpoint(owner)["checkpoint_id"], state="ready")
    return {"deployment_id": made.pk}


def remote(owner: Any) -> dict[str, Any]:
    made = RemoteModel.objects.create(name="far away", address="http://x/v1", model="m", added_by=owner)
    return {"remote_id": made.pk}


ROUTES = [
    Route("serving:list", RESEARCHERS),
    Route("serving:serve", RESEARCHERS, RESEARCHERS, method="POST", make=checkpoint),
    Route("serving:stop", RESEARCHERS, ADMIN, method="POST", make=deployment),
    Route("serving:add-remote", ADMIN, method="POST"),
    Route("serving:remove-remote", ADMIN, ADMIN, method="POST", make=remote),
]
