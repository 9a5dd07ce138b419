"""The section `cluster` of a run's configuration: on how many processes and GPUs a training run is spread."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from training.reading import Record

AUTO = 0
"""The number of engines or learner ranks that `python -m training plan` chooses; TOML also has "auto" for it."""
MOST_PROCESSES = 1024
"""Most engines, and most learner ranks."""
MOST_LAG = 4
"""Most steps that the sampling weights may be behind: published systems that bound it use 4 to 8."""


def _automatic(value: object) -> object:
    return AUTO if value == "auto" else value


class ClusterSection(Record):
    """Processes and GPUs of a training run. By default one process samples and learns."""

    engines: Annotated[int, BeforeValidator(_automatic)] = Field(
        default=1, ge=0, le=MOST_PROCESSES, description="Engines, which sample the replies; 0 (auto) = as many as fit."
    )
    learners: Annotated[int, BeforeValidator(_automatic)] = Field(
        default=1,
        ge=0,
        le=MOST_PROCESSES,
        description="Learner ranks, over which weights, gradients and the optimizer are sharded; 0 (auto) = chosen by "
        "the memory that the model needs.",
    )
    tensor_parallel: int = Field(
        default=1, ge=1, le=64, description="GPUs of one engine, over which its weights and cache are split."
    )
    address: str = Field(
        default="",
        max_length=500,
        pattern=r"^\S*$",
        description="The address of the Ray cluster. Empty = the environment variable RAY_ADDRESS; without that, "
        "or with local, the run starts a Ray of its own on this machine.",
    )
    lag: int = Field(
        default=0,
        ge=0,
        le=MOST_LAG,
        description="Training steps by which the sampling weights are behind, so that sampling and learning overlap: "
        "step n samples with the weights after step n - 1 - lag. 0 = they alternate.",
    )

    @property
    def alone(self) -> bool:
        """Whether everything stays in one process: one engine, one learner, no cluster, no lag."""
        return self == ClusterSection()
