"""The engines and learner ranks of a run as its page lists them, while they start and while they work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.cluster.section import AUTO, ClusterSection
from training.errors import BadInput
from training.records import ProcessStatus

BEFORE_ENGINES = {"", "loading", "starting"}
"""Phases of a heartbeat in which a run still makes its processes, and does not name them."""


@dataclass(frozen=True)
class ProcessRow:
    """A process with what its table says in place of figures that nobody has: none of them is then a zero."""

    status: ProcessStatus

    @property
    def activity(self) -> str:
        """What it does; where the heartbeat does not say, its state."""
        return self.status.doing or ("starting" if self.status.state == "starting" else "waiting")

    @property
    def idle(self) -> bool:
        """Whether it has no work in which it could make progress."""
        return self.activity.startswith("waiting")

    @property
    def no_progress(self) -> str:
        """Why it has no last progress; empty if it has one."""
        if self.status.state == "lost" and not self.status.doing:
            return "lost"
        if not self.status.pid:
            return self.unreported
        return "no work" if self.idle else ""

    @property
    def unreported(self) -> str:
        """Why its use of cores and memory is unknown; empty once it has reported them. No process uses 0 bytes."""
        if self.status.rss_bytes:
            return ""
        return self.status.state if self.status.state in {"starting", "lost"} else "not reported yet"

    @property
    def no_gpu(self) -> str:
        """Why it has no figures of a GPU; empty if it has."""
        if self.unreported or self.status.device != "cpu":
            return self.unreported
        return "no GPU" if self.status.pid else self.status.state  # the device is known once it has started

    @property
    def may_use_gpu(self) -> bool:
        """Whether its device is a GPU, or is not known yet. One that is started again, or lost, has reported it before:
        the columns of GPUs do not come and go with it.
        """
        has_reported = self.status.pid or self.status.restarts or self.status.state == "lost"
        return self.status.device != "cpu" or not has_reported

    @property
    def no_requests(self) -> str:
        """Why it has no number of requests; empty if it has."""
        if self.status.requests is None:
            return "not an engine"
        return "" if self.status.pid else self.status.state


def listed(status: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[ProcessRow, ...]:
    """The processes that a heartbeat names; before it does, those that the configuration states, as starting.

    None if the run has no others than its driver, or if the heartbeat is not one of this release.
    """
    try:
        if "processes" in status:
            return tuple(ProcessRow(ProcessStatus.from_dict(each)) for each in status["processes"])
        section = ClusterSection.from_dict(config.get("cluster", {}))
    except (BadInput, TypeError):
        return ()
    if section.alone or AUTO in (section.learners, section.engines) or status.get("phase", "") not in BEFORE_ENGINES:
        return ()
    learners = [ProcessStatus(name=f"learner {number}") for number in range(section.learners)]
    engines = [ProcessStatus(name=f"engine {number}", requests=0) for number in range(section.engines)]
    return tuple(map(ProcessRow, (*learners, *engines)))
