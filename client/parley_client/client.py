"""`Client`: one attribute for each kind of thing on the site."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from parley_client.checkpoints import Checkpoints
from parley_client.datasets import Datasets
from parley_client.experiments import Experiments
from parley_client.judgments import Judgments
from parley_client.matches import Matches
from parley_client.runs import Runs
from parley_client.transport import Transport, stated


class Client:
    """A site as the owner of a key sees it.

    `url` and `key` default to `PARLEY_URL` and `PARLEY_KEY`. `timeout` is in seconds per request; `retries` and
    `longest_wait` (seconds) say how often and how long the client waits for a busy site.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        longest_wait: float = 90.0,
    ) -> None:
        self._transport = Transport(
            stated("PARLEY_URL", url), stated("PARLEY_KEY", key),
            timeout=timeout, retries=retries, longest_wait=longest_wait,
        )  # fmt: skip
        self.datasets = Datasets(self._transport)
        self.runs = Runs(self._transport)
        self.checkpoints = Checkpoints(self._transport)
        self.matches = Matches(self._transport)
        self.judgments = Judgments(self._transport)
        self.experiments = Experiments(self._transport)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
