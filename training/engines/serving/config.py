"""The configuration of a serve run. Pure data, so that workers can write it."""

from __future__ import annotations

from pydantic import Field

from training.reading import Record


class ServeConfig(Record):
    """The content of a serve run's `config.json`: the model, and how to serve it."""

    model: str = Field(description="Folder of the model or adapter")
    name: str = Field(default="parley", description="Name under which the server knows it")
    host: str = Field(default="127.0.0.1", description="Address to listen on")
    start_s: float = Field(default=300.0, gt=0, description="Seconds within which it must answer")
    max_running: int = Field(default=16, ge=1, description="Requests answered at once")
    gpu_share: float = Field(default=0.85, gt=0, le=1, description="Share of the GPU's memory")
    engine: str = Field(default="auto", pattern="^(auto|vllm|transformers)$", description="Which server")
