"""The suites that Parley includes, as the site offers them for a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from training import config as configs
from training.config import RunConfig
from training.errors import BadInput
from training.suites import FOLDER, beside_side, for_model, judged_by, spoken_by
from webapp.runs.models import Checkpoint

SUITES: dict[str, str] = {
    "among_us": "The checkpoint is the crew of Among Us, except for one crewmate, against an imposter: in ships of "
    "several shapes, with two to six tasks, and with three to five crewmates.",
    "epo": "Item bargaining before a frozen speaker: the speaker at both seats, the checkpoint as the strategist of "
    "one seat against the speaker alone and against an untrained strategist, and as the strategist of both.",
    "epo_dialogue": "The same pairings in social dialogue, where a judge scores the goals.",
    "mars": "Tic-tac-toe, Kuhn poker and mini Hanabi, and the held-out games Connect Four, Leduc poker and simple "
    "Hanabi, against tree search and equilibria.",
}
"""What each suite plays; its file is in `training/suites`."""


@cache
def load(name: str) -> RunConfig:
    """Return the configuration of a suite."""
    return configs.load(FOLDER / f"{name}.toml")


def titles() -> list[tuple[str, str]]:
    """Return name and title of every suite."""
    return [(name, load(name).name) for name in SUITES]


def configuration(
    name: str,
    checkpoint: Checkpoint,
    *,
    games: int,
    seed: int,
    opponent: str = "",
    partner: str = "",
    speaker: str = "",
    judge: str = "",
) -> RunConfig:
    """Return the configuration of a suite of a checkpoint, which samples by the engine of the run that wrote it.

    `opponent` and `partner` replace those of its tasks with a side, `speaker` and `judge` those of the suite or of that
    run. Raises `BadInput` for one that the suite has no use for.
    """
    base = checkpoint.name if checkpoint.kind == Checkpoint.Kind.BASE else checkpoint.base
    data = for_model(load(name).to_dict(), base, games=games, seed=seed)
    data["name"] = f"{data['name']} suite of {checkpoint}"[:120]
    data["suite"] = beside_side(data["suite"], opponent, partner)
    if checkpoint.run is not None:
        data |= _as_trained(data, checkpoint.run.config)
    if not judge and data["judge"] and not (checkpoint.run and checkpoint.run.config.get("judge")):
        raise BadInput("its games need a judge, and the checkpoint's run has none: ADDRESS MODEL [SECRET]", "judge")
    data["speaker"] = spoken_by(data["speaker"], speaker)
    return configs.parse(data | judged_by(data, judge))


def _as_trained(suite: Mapping[str, Any], trained: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a suite that follow the run that wrote the checkpoint.

    Replies are limited to legal moves where those of the run were, since the model has learned nothing else. A suite of
    strategists has the run's speaker and strategies, and one with a judge the run's judge.
    """
    sampling = trained.get("sampling", {})
    sections: dict[str, Any] = {"engine": trained.get("engine", suite["engine"])}
    if not suite["speaker"]["source"]:
        sections["sampling"] = {**suite["sampling"], "constrain": sampling.get("constrain", False)}
    elif trained.get("speaker", {}).get("source"):
        speaker = {**trained["speaker"], "alone": suite["speaker"]["alone"]}
        sections["speaker"] = spoken_by({**suite["speaker"], **speaker}, speaker["source"])
        sections["sampling"] = {**suite["sampling"], "max_tokens": sampling["max_tokens"]}
    if suite["judge"] and trained.get("judge"):
        sections["judge"] = trained["judge"]
    return sections
