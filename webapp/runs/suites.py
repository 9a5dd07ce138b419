"""The suites that Parley includes, as the site offers them for a checkpoint."""

from __future__ import annotations

from training import config as configs
from training.config import RunConfig
from training.suites import FOLDER, beside_side, for_model
from webapp.runs.models import Checkpoint

SUITES: dict[str, str] = {
    "among_us": "The checkpoint is the crew of Among Us, except for one crewmate, against an imposter: in ships of "
    "several shapes, with two to six tasks, and with three to five crewmates.",
    "mars": "Tic-tac-toe, Kuhn poker and mini Hanabi, and the held-out games Connect Four, Leduc poker and simple "
    "Hanabi, against tree search and equilibria.",
}
"""What each suite plays; its file is in `training/suites`."""


def load(name: str) -> RunConfig:
    """Return the configuration of a suite."""
    return configs.load(FOLDER / f"{name}.toml")


def titles() -> list[tuple[str, str]]:
    """Return name and title of every suite."""
    return [(name, load(name).name) for name in SUITES]


def configuration(
    name: str, checkpoint: Checkpoint, *, games: int, seed: int, opponent: str = "", partner: str = ""
) -> RunConfig:
    """Return the configuration of a suite of a checkpoint, which samples by the engine of the run that wrote it.

    Its replies are limited to legal moves where those of the run were, since the model has learned nothing else.
    `opponent` and `partner` replace those of its tasks with a side. Raises `BadInput` where there is none.
    """
    base = checkpoint.name if checkpoint.kind == Checkpoint.Kind.BASE else checkpoint.base
    data = for_model(load(name).to_dict(), base, games=games, seed=seed)
    data["name"] = f"{data['name']} suite of {checkpoint}"[:120]
    data["suite"] = beside_side(data["suite"], opponent, partner)
    if checkpoint.run is not None:
        trained = checkpoint.run.config
        data["engine"] = trained.get("engine", data["engine"])
        data["sampling"]["constrain"] = trained.get("sampling", {}).get("constrain", False)
    return configs.parse(data)
