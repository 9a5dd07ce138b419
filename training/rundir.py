"""The run directory: where each attempt of a run keeps its status, metrics, events, episodes and checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from training.errors import BadInput
from training.store import looks_complete, verify_directory


@dataclass(frozen=True, slots=True)
class AttemptDir:
    """The files of one attempt of a run; only that attempt writes here."""

    root: Path

    @property
    def status(self) -> Path:
        """`{"phase", "step", "steps", "at", "pid", …}`: the process's own heartbeat (`at` in Unix seconds)."""
        return self.root / "status.json"

    @property
    def metrics(self) -> Path:
        """One line per training step: `{"step": n, "at": s, name: value, …}`."""
        return self.root / "metrics.jsonl"

    @property
    def events(self) -> Path:
        """One line per event: `{"at", "kind", …}`.

        Kinds: started, labels, checkpoint, warning, error, watchdog, evaluation, suite, league, calibration, finished.
        """
        return self.root / "events.jsonl"

    @property
    def log(self) -> Path:
        """Whatever the process printed."""
        return self.root / "log.txt"

    def episodes(self, step: int) -> Path:
        """One gzip member per episode of training step `step`."""
        return self.root / "episodes" / f"step_{step:06d}.jsonl.gz"

    def league_games(self, step: int) -> Path:
        """One gzip member per game of the league's evaluation after training step `step`."""
        return self.root / "episodes" / f"step_{step:06d}_league.jsonl.gz"

    @property
    def unfinished(self) -> Path:
        """The folder of the steps that are not saved yet: the games and scores of each, one line per game or score."""
        return self.root / "unfinished"

    @property
    def league(self) -> Path:
        """The whole payoff table of the run's league so far: `{"version", "cells": […]}`."""
        return self.root / "league.json"

    def calibration(self, step: int) -> Path:
        """The evaluation of a single agent after training step `step`; a file with a row per question is beside it."""
        return self.root / "calibration" / f"step_{step:06d}.json"

    def calibrations(self) -> list[Path]:
        """Return the complete evaluations of a single agent, oldest first."""
        return sorted((self.root / "calibration").glob("step_*.json"))

    @property
    def index(self) -> Path:
        """One line per episode: `{"step", "episode", "file", "offset", "length", "summary": {…}}`."""
        return self.root / "episodes" / "index.jsonl"

    def checkpoint(self, step: int) -> Path:
        """The folder of the checkpoint after training step `step`."""
        return self.root / "checkpoints" / f"step_{step:06d}"

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Return the complete checkpoints as (step, folder), oldest first; torn ones are skipped.

        This does not compare hashes; reading a checkpoint does.
        """
        folders = sorted((self.root / "checkpoints").glob("step_*"))
        return [(int(folder.name.removeprefix("step_")), folder) for folder in folders if looks_complete(folder)]

    def ask(self, control: str) -> None:
        """Leave a control request for the process: `stop` or `save`."""
        path = self.root / "control" / control
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def asked(self, control: str) -> bool:
        """Return whether the control request was left."""
        return (self.root / "control" / control).exists()


@dataclass(frozen=True, slots=True)
class RunDir:
    """A run directory: `config.json`, `inputs/` and one folder per attempt."""

    root: Path

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.root / "config.json"

    @property
    def inputs(self) -> Path:
        """Datasets and checkpoints that the run reads, named by their hash."""
        return self.root / "inputs"

    def attempt(self, number: int) -> AttemptDir:
        """Return attempt `number` (from 1)."""
        return AttemptDir(self.root / "attempts" / f"{number:04d}")

    @property
    def ignored(self) -> Path:
        """`{"attempts": [2]}`: numbers of folders that a supervisor of the run did not make; they do not count."""
        return self.root / "ignored.json"

    def folders(self) -> list[int]:
        """Return the numbers of all attempt folders."""
        return sorted(int(p.name) for p in (self.root / "attempts").glob("[0-9]*") if p.is_dir())

    def attempts(self) -> list[int]:
        """Return the numbers of the attempts that have a folder and are not ignored."""
        ignored = json.loads(self.ignored.read_text())["attempts"] if self.ignored.is_file() else ()
        return [number for number in self.folders() if number not in ignored]

    def continued(self) -> bool:
        """Return whether an attempt before the newest has begun, also on another machine, where its folder is then.

        The folder of an attempt that was refused has no status.
        """
        folders, counted = self.folders(), self.attempts()
        earlier = range(1, max(counted, default=0))
        return any(n not in folders or (n in counted and self.attempt(n).status.exists()) for n in earlier)

    def steps(self) -> set[int]:
        """Return the steps after which any attempt has a complete checkpoint; this does not compare hashes."""
        return {step for number in self.attempts() for step, _ in self.attempt(number).checkpoints()}

    def checkpoint_of(self, step: int) -> Path:
        """Return the folder of the checkpoint after `step`, of the newest attempt that has it complete.

        Raises `BadInput` where none is on this machine.
        """
        for number in reversed(self.attempts()):
            if folder := dict(self.attempt(number).checkpoints()).get(step):
                return folder
        raise BadInput(f"the checkpoint after step {step} is not on this machine", str(self.root))

    def latest_checkpoint(self) -> tuple[int, Path] | None:
        """Return (step, folder) of the newest checkpoint of any attempt whose files match their hashes.

        A later attempt supersedes earlier ones above the step it started from, so the newest attempt that has a
        complete checkpoint wins.
        """
        for number in reversed(self.attempts()):
            for step, folder in reversed(self.attempt(number).checkpoints()):
                try:
                    verify_directory(folder)
                except (BadInput, ValueError, KeyError, OSError):
                    continue
                return step, folder
        return None
