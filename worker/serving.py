"""Served models as a kind of run: starting the server, and reporting its state to the deployment.

A missing checkpoint raises `BadInput`, which fails the run and the deployment with that message.
"""

import sys
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from training.engines.serving.config import ServeConfig
from training.errors import BadInput
from training.rundir import RunDir
from training.store import write_json
from webapp.runs.models import Run
from webapp.serving import services
from webapp.serving.models import Deployment
from worker.kinds import Launch, put_checkpoint


class Serving:
    """A model server, requested by its deployment; it is never restarted automatically."""

    def prepare(self, run: Run, folder: RunDir, attempt: int) -> Launch:
        """Write the model's location; the random key is passed in the environment."""
        deployment = Deployment.objects.filter(run=run).first()
        if deployment is None or run.start_checkpoint is None:
            raise BadInput("no request waits for this model any more", run.name)
        model = put_checkpoint(run.start_checkpoint, folder)
        config = ServeConfig(
            model=str(model),
            name=deployment.model,
            host=settings.NODE_ADDRESS,
            start_s=settings.SERVE_START_SECONDS,
            engine=settings.SERVE_ENGINE,
            gpu_share=round(0.85 / settings.SERVE_SLOTS, 3),
        )
        write_json(folder.config, config.to_dict())
        command = [sys.executable, "-m", "training.engines.serving.serve", str(folder.root), "--attempt", str(attempt)]
        return Launch(command, {"VLLM_API_KEY": deployment.key})

    def on_status(self, run: Run, status: Mapping[str, Any]) -> None:
        """Report the address at which it answers."""
        if status.get("phase") == "ready":
            services.ready(run_id=run.pk, address=str(status["address"]))

    def on_end(self, run: Run, error: str) -> None:
        """Report that it has ended."""
        services.ended(run_id=run.pk, error=error)
