"""Runs: start, watch, wait, stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from parley_client.errors import RunFailed, TimedOut
from parley_client.models import MetricOut, RunIn, RunOut
from parley_client.transport import Transport

OVER = ("succeeded", "stopped", "failed")


class Runs:
    """The runs of a site."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, state: str = "", kind: str = "") -> Iterator[RunOut]:
        """Runs, newest first; of one state (such as `running`) or kind (`train`, `sft`, `eval`, `suite`)."""
        return self._transport.rows(RunOut, "runs", state=state, kind=kind)

    def get(self, run: int) -> RunOut:
        """One run."""
        return self._transport.model(RunOut, "GET", f"runs/{run}")

    def start(self, config: Mapping[str, Any], **choices: Any) -> RunOut:
        """Queue a run. `config` is a RunConfig, as in its TOML file; `choices` are the other fields of `RunIn`.

        Raises `Invalid` with the name of the field that is wrong.
        """
        body = RunIn(config=dict(config), **choices).model_dump(mode="json", exclude_unset=True)
        return self._transport.model(RunOut, "POST", "runs", json=body)

    def metrics(self, run: int, *, since: int = -1) -> Sequence[MetricOut]:
        """The metrics of the steps above `since`, thinned evenly to about 600."""
        rows = self._transport.json("GET", f"runs/{run}/metrics", params={"since": since})
        return [MetricOut.model_validate(row) for row in rows]

    def wait(
        self,
        run: int,
        *,
        progress: Callable[[RunOut], object] = lambda run: None,
        every: float = 2.0,
        timeout: float | None = None,
    ) -> RunOut:
        """Wait until a run is over, and return it.

        `progress` is called with the run whenever its state or step has changed. Raises `RunFailed` if it failed or was
        stopped, `TimedOut` if it is not over after `timeout` seconds (None: no limit); the run itself goes on.
        """
        began, before = time.monotonic(), None
        while True:
            current = self.get(run)
            if (current.state, current.step) != before:
                before = (current.state, current.step)
                progress(current)
            if current.state == "succeeded":
                return current
            if current.state in OVER:
                raise RunFailed(current.error or f"the run was {current.state}", where=current.name)
            if timeout is not None and time.monotonic() - began > timeout:
                raise TimedOut(f"run {run} is not over after {timeout:.0f} seconds: it is {current.state}")
            time.sleep(every)

    def stop(self, run: int) -> RunOut:
        """Request that a run saves and stops."""
        return self._transport.model(RunOut, "POST", f"runs/{run}/stop")

    def resume(self, run: int) -> RunOut:
        """Queue a stopped or failed run again, from its last checkpoint."""
        return self._transport.model(RunOut, "POST", f"runs/{run}/resume")

    def delete(self, run: int) -> None:
        """Delete a run that is over, with its files."""
        self._transport.json("DELETE", f"runs/{run}")
