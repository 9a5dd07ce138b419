"""Fills queues with suggestions and trains classifiers; what needs a model runs in a process of its own.

The process writes its progress to a file, which is stored with each renewal of the lease. If the lease is lost or the
work was deleted, the process is killed and nothing more is written. If this worker shuts down, the work is queued
again.
"""

import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, close_old_connections

from training.errors import BadInput, OutsideError, ParleyError, name_full_disk
from training.labels.info import read_info
from training.store import loads, sha256
from webapp.core import children, files
from webapp.judgments.models import Classifier, SuggestionRun
from webapp.judgments.suggesting import services, training_data
from worker import lifecycle, processes

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.25
BEAT_SECONDS = 1.0


class ProcessEnded(OutsideError):
    """The process ended before it was done, not for its input."""

    kind = "process"


class WorkerLeaves(Exception):
    """This worker shuts down."""


def suggest(pk: int) -> None:
    """Claim a suggestion run that waits, and ask its source; does nothing if there is nothing to do."""
    run = services.claim(waiting=SuggestionRun.objects.waiting(), pk=pk)
    if isinstance(run, SuggestionRun):
        _work(run, lambda: services.fill(run=run, command=lambda arguments: _run(run, arguments), leave=_leave))


def train(pk: int) -> None:
    """Claim a classifier that waits, and train it; does nothing if there is nothing to do."""
    classifier = services.claim(waiting=Classifier.objects.waiting(), pk=pk)
    if isinstance(classifier, Classifier):
        _work(classifier, lambda: _train(classifier))


def _work(work: services.Work, do: Any) -> None:
    try:
        do()
    except services.Superseded as error:
        logger.info("%s", error)
    except WorkerLeaves:
        services.give_back(work=work)
    except ProcessEnded as error:
        services.give_back(work=work, why=str(error))
    except (ParleyError, OSError) as error:
        services.fail(work=work, why=name_full_disk(str(error)))


def _leave() -> None:
    if lifecycle.leaving.is_set():
        raise WorkerLeaves


def _train(classifier: Classifier) -> None:
    with tempfile.TemporaryDirectory(prefix="parley-classifier-") as temporary:
        folder = Path(temporary)
        sources = processes.meanwhile(
            lambda: training_data.write(classifier, folder), lambda: services.beat(work=classifier), BEAT_SECONDS
        )
        for source in sources:
            source["sha256"] = sha256(folder / source["file"])
        under = classifier.codebook_version
        command = ["labels", "train", *(str(folder / source["file"]) for source in sources)]
        command += ["--output", str(folder / "classifier"), "--model", classifier.trained_on["base"]]
        _run(classifier, [*command, "--codebook", f"{under.codebook.name}:{under.number}"])
        info = read_info(folder / "classifier")
        name = f"classifiers/{classifier.pk}-{classifier.fence}"
        files.publish_folder(folder / "classifier", name)
        services.finish_training(classifier=classifier, folder=name, info=info, sources=sources)


def _run(work: services.Work, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a command of `python -m training` to its end, and return its result.

    Raises `BadInput` for wrong input, `ProcessEnded` if it was killed or crashed, and `services.Superseded`.
    """
    with tempfile.TemporaryDirectory(prefix="parley-process-") as temporary:
        status, log = Path(temporary) / "status.json", Path(temporary) / "log.txt"
        command = [*settings.RUN_COMMAND, *arguments, "--status", str(status)]
        child = processes.start(command, log, children.environment({}, {}))
        try:
            _watch(work, child, status)
        finally:
            child.kill()
        code, result = child.ended(), _read(status)
        if code == 0 and result.get("phase") == "finished":
            return result
        if code == processes.WRONG_INPUT and "why" in result:
            raise BadInput(str(result["why"]), Path(str(result["where"])).name)
        _leave()
        last = processes.last_line(log.read_text("utf-8", "replace")[-2000:]).replace("\x00", "")
        raise ProcessEnded(f"the process ended with code {code}. {last}".strip())


def _watch(work: services.Work, child: processes.Child, status: Path) -> None:
    due, progress, progressed_at = 0.0, dict[str, Any](), time.monotonic()
    while child.ended() is None:
        if (read := _read(status)) != progress:
            progress, progressed_at = read, time.monotonic()
        if time.monotonic() >= due:
            due = time.monotonic() + BEAT_SECONDS
            try:
                services.beat(work=work, done=int(progress.get("done", 0)), total=int(progress.get("total", 0)))
            except Error as error:  # waited for until the lease is lost
                logger.warning("%s: the database is away: %s", work, error)
            finally:
                close_old_connections()
        if lifecycle.leaving.is_set() or time.monotonic() - progressed_at > settings.RUN_STALL_MINUTES * 60:
            child.kill()
        time.sleep(POLL_SECONDS)


def _read(status: Path) -> dict[str, Any]:
    try:
        progress: dict[str, Any] = loads(status.read_bytes())
    except (OSError, ValueError):
        return {}
    return progress
