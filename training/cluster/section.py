"""The section `cluster` of a run's configuration: on how many processes and GPUs a training run is spread."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from training.reading import Record

AUTO = 0
"""The number of engines or learner ranks that `python -m training plan` chooses; TOML also has "auto" for it."""
LOCAL = "local"
"""The address of a Ray that a run starts itself, on its machine."""
MOST_PROCESSES = 1024
"""Most engines, and most learner ranks."""
MOST_LAG = 4
"""Most steps that the sampling weights may be behind: published systems that bound it use 4 to 8."""


def _automatic(value: object) -> object:
    if isinstance(value, str) and value != "auto" and not value.lstrip("-").isdigit():
        raise ValueError('must be a whole number or "auto"')
    return AUTO if value == "auto" else value


class ClusterSection(Record):
    """Processes and GPUs of a training run. By default one process samples and learns."""

    engines: Annotated[int, BeforeValidator(_automatic)] = Field(
        default=1,
        ge=0,
        le=MOST_PROCESSES,
        description="Engines, which sample the replies; 0 (auto) = on all GPUs that the learner ranks leave. One "
        "engine and one learner rank without a lag are one process.",
    )
    learners: Annotated[int, BeforeValidator(_automatic)] = Field(
        default=1,
        ge=0,
        le=MOST_PROCESSES,
        description="Learner ranks, over which weights, gradients and optimizer state are sharded; 0 (auto) = a "
        "quarter of the GPUs, or as many as the model needs to fit.",
    )
    tensor_parallel: int = Field(
        default=1,
        ge=1,
        le=64,
        description="GPUs of one engine, over which its model is split (tensor parallelism); without GPUs, shares of "
        "the machine's cores. Only vLLM splits a model. It must divide the attention heads.",
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
        description="Policy lag: steps by which the sampling weights are behind, so that sampling and learning "
        "overlap: step n samples with the weights after step n - 1 - lag. 0 = they alternate.",
    )
    in_flight_updates: bool = Field(
        default=False,
        json_schema_extra={"label": "in-flight updates"},
        description="Whether new weights are loaded while games are played (in-flight updates), so that a game's later "
        "turns are sampled by newer weights; lag is then the most steps that they are behind. The games depend on "
        "which process was faster: neither seeds nor a run that was stopped and resumed repeat them. Engines forget "
        "the keys and values of prompts with every update, and compute them again.",
    )

    @field_validator("in_flight_updates")
    @classmethod
    def _updates_need_a_lag(cls, value: bool, info: ValidationInfo) -> bool:
        if value and not info.data.get("lag", 1):
            raise ValueError("without a lag no games are played while weights are learned: set lag to at least 1")
        return value

    @property
    def counts(self) -> str:
        """The numbers of processes in words, such as "1 learner rank and 2 engines"."""
        named = (("learner rank", self.learners), ("engine", self.engines))
        return " and ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in named)

    @property
    def alone(self) -> bool:
        """Whether everything stays in one process: one learner, one engine that is not split, no cluster, no lag."""
        return (self.learners, self.engines, self.tensor_parallel, self.address, self.lag) == (1, 1, 1, "", 0)
