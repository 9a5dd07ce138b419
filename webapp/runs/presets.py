"""Where a new run can start from: a few complete configurations for common wishes, or the one of an earlier run.

The form offers what a kind of run uses and leaves out what is chosen elsewhere on the page (data, models, kind, name).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from training import config as configs
from training.config import RunConfig
from training.engines.remote import RemoteConfig

SECTIONS: dict[str, tuple[str, ...]] = {
    "train": (
        "game",
        "rollout",
        "sampling",
        "reward",
        "method",
        "learn",
        "stop",
        "evaluate",
        "engine",
        "model",
        "data",
        "judge",
        "seed",
    ),
    "sft": ("sft", "game", "model", "data", "stop", "seed"),
    "eval": ("evaluate", "game", "rollout", "sampling", "engine", "model", "data", "judge", "seed"),
}
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "model": ("base",),
    "data": ("path",),
    "evaluate": ("path", "model", "opponent"),
    "game": ("name",),
}
FULL_JUDGE = {"address": "http://127.0.0.1:8000/v1", "model": "judge", "secret": "JUDGE_API_KEY"}


@dataclass(frozen=True)
class Preset:
    """A starting point: its name on the page, what it is for, and what differs from the defaults."""

    title: str
    about: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> dict[str, Any]:
        """The complete configuration as JSON data."""
        return RunConfig.from_dict(deepcopy(dict(self.changes))).to_dict()


_JUDGE = RemoteConfig.from_dict(FULL_JUDGE).to_dict()
PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "Quick trial",
        "The tiny model learns item negotiation for a few minutes on one CPU: see every part at work.",
        {
            "name": "Quick trial",
            "model": {"base": "tiny"},
            "engine": {"name": "transformers", "max_running": 32},
            "sampling": {"max_tokens": 48},
            "rollout": {"scenarios": 8, "games": 2},
            "learn": {"steps": 20, "lr": 3e-4, "lora": None, "critic_warmup": 2, "save_every": 5},
        },
    ),
    "negotiation": Preset(
        "Negotiation with SmolLM2",
        "A 135M-parameter model bargains with itself over items; about a minute a step on two CPU cores.",
        {
            "name": "Negotiation",
            "model": {"base": "smollm2-135m"},
            "rollout": {"scenarios": 8, "games": 2},
            "sampling": {"max_tokens": 96},
            "learn": {"steps": 50, "lr": 5e-5, "autocast": True},
        },
    ),
    "dialogue": Preset(
        "Social dialogue with a judge",
        "Two characters with goals and secrets talk; a judge model at an address of yours scores how they do.",
        {
            "name": "Social dialogue",
            "model": {"base": "smollm2-135m"},
            "game": {"name": "dialogue"},
            "reward": {"source": "judge", "judge_filter": True},
            "judge": FULL_JUDGE,
            "learn": {"steps": 50, "autocast": True},
        },
    ),
    "sft": Preset(
        "Cold start on conversations",
        "Supervised learning on a dataset's conversations, so that self-play begins with a model that can play.",
        {"kind": "sft", "name": "Cold start", "model": {"base": "smollm2-135m"}},
    ),
    "eval": Preset(
        "Arena of two models",
        "Two models hold the same conversations in both seatings; points, agreement and intervals.",
        {"kind": "eval", "name": "Arena", "model": {"base": "smollm2-135m"}, "evaluate": {"conversations": 100}},
    ),
}


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON schema of a run's configuration; it is only read."""
    return configs.schema()


def with_judge(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with a judge to fill in, if it has none."""
    return {**config, "judge": config.get("judge") or _JUDGE}


def offered(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that the form shows, in the order in which it shows it."""
    found: dict[str, Any] = {}
    for section in SECTIONS[config["kind"]]:
        value = deepcopy(config[section])
        for name in ELSEWHERE.get(section, ()):
            value.pop(name, None)
        if value is None or value == {}:
            continue
        if isinstance(value, dict) and "lora" in value and value["lora"] is None:
            del value["lora"]
        found[section] = value
    return found


def merged(config: Mapping[str, Any], entered: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with what the form returned put over it; what the form did not show stays."""
    result = deepcopy(dict(config))
    for section, value in entered.items():
        under = result.get(section)
        result[section] = {**under, **value} if isinstance(value, dict) and isinstance(under, dict) else value
    return result
