"""Reads a run's files incrementally. Incomplete lines are read later.

Nothing here writes to the database: the result is a `Batch`, stored together with the offsets it was read up to.
"""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.rundir import AttemptDir
from training.store import MANIFEST, looks_complete, read_lines, sha256
from webapp.core import files
from webapp.runs.batches import Batch

LINES = 500  # of each file at a time, so that a batch stays small
LOG_CHARACTERS = 32_000
SMALL_BYTES = 2**20  # episode files up to this size are uploaded whenever they have grown
GROWTH = 1.25  # larger ones when they have grown to so much of what was uploaded before
MOST_SECONDS = 30.0  # or after so long, so that pages are not further behind
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")


def clean(value: Any) -> Any:
    """Return the value without what the database cannot store: NUL and unpaired surrogates in texts."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


def _manifest(checkpoint: Path) -> str:
    """A checkpoint's manifest in `Attempt.offsets`: once read, it is never published again, even if it was deleted."""
    return f"checkpoints/{checkpoint.name}/{MANIFEST}"


class Tail:
    """Reads one attempt's folder incrementally. `name` is the attempt's name in the storage."""

    def __init__(
        self,
        attempt: AttemptDir,
        name: str,
        run_id: int,
        secrets: Mapping[str, str],
        offsets: Mapping[str, int] | None = None,
    ) -> None:
        self.attempt = attempt
        self.name = name
        self.run_id = run_id
        self.secrets = secrets
        self.offsets: dict[str, int] = dict(offsets or {})
        self.holds_back = False
        """Whether episodes may be read later, so that a growing file is not uploaded whole again with each of them."""
        self._uploaded: dict[str, int] = {}  # bytes of episode files, by their names
        self._uploaded_at = 0.0
        self._log_size = 0

    def read(self) -> Batch:
        """Return everything new, at most `LINES` of each file; call `done` once it is stored."""
        batch = Batch()
        checkpoints = self._new_checkpoints()  # first: a step's lines are written before its checkpoint
        batch.metrics = self._lines(self.attempt.metrics, batch)
        batch.events = self._lines(self.attempt.events, batch)
        batch.episodes = self._lines(self.attempt.index, batch)
        if self.holds_back and not (batch.metrics or checkpoints) and self._can_wait(batch.episodes):
            batch.episodes = []
            batch.offsets.pop(self.attempt.index.name, None)
        for line in batch.episodes:
            line["file"] = f"{self.name}/episodes/{line['file']}"
        for event in batch.events:
            if event["kind"] == "calibration" and "rows" in event:
                event["rows"] = f"{self.name}/calibration/{event['rows']}"
        if max(len(batch.metrics), len(batch.episodes)) < LINES:
            batch.checkpoints = checkpoints
            batch.offsets.update({_manifest(entry["source"]): entry["bytes"] for entry in checkpoints})
        batch.log = self._log()
        return batch

    def read_up_to(self, step: float) -> Batch:
        """Return the same for a finished attempt, without lines above the step from which another resumes.

        Its log is left out: the secrets that it may show are not known any more, for they may have been replaced since.
        """
        batch = self.read()
        batch.log = None
        batch.metrics = [line for line in batch.metrics if line["step"] <= step]
        batch.episodes = [line for line in batch.episodes if line["step"] <= step]
        batch.checkpoints = [checkpoint for checkpoint in batch.checkpoints if checkpoint["step"] <= step]
        return batch

    def done(self, batch: Batch) -> None:
        """Mark the batch as stored: the next one starts after it."""
        self.offsets.update(batch.offsets)
        if batch.episodes:
            self._uploaded = {line["file"]: line["offset"] + line["length"] for line in batch.episodes}
            self._uploaded_at = time.monotonic()

    def _can_wait(self, episodes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether too little is new for another upload of the file that grows, which is the last one's."""
        if not episodes or len(episodes) == LINES or time.monotonic() - self._uploaded_at > MOST_SECONDS:
            return False
        last = episodes[-1]
        name = f"{self.name}/episodes/{last['file']}"
        size = last["offset"] + last["length"]
        return SMALL_BYTES < size < GROWTH * self._uploaded.get(name, 0) and files.local(name) is None

    def _lines(self, path: Path, batch: Batch) -> list[dict[str, Any]]:
        lines, offset = [], self.offsets.get(path.name, 0)
        for line, after in read_lines(path, offset):
            lines.append(clean(line))
            offset = after
            if len(lines) == LINES:
                break
        if lines:
            batch.offsets[path.name] = offset
        return lines

    def _new_checkpoints(self) -> list[dict[str, Any]]:
        checkpoints = []
        for folder in sorted((self.attempt.root / "checkpoints").glob("step_*")):
            if _manifest(folder) in self.offsets or not looks_complete(folder):
                continue
            step = int(folder.name.removeprefix("step_"))
            kind = "adapter" if (folder / "adapter_config.json").is_file() else "full"
            try:
                digest, size = sha256(folder / MANIFEST), (folder / MANIFEST).stat().st_size
            except FileNotFoundError:  # pruned at this moment: the manifest goes first
                continue
            name = f"run-{self.run_id}-step-{step}"
            facts = {"step": step, "kind": kind, "name": name, "path": f"checkpoints/{name}"}
            checkpoints.append({**facts, "sha256": digest, "bytes": size, "source": folder})
        return checkpoints

    def _log(self) -> str | None:
        """The end of the log if it has grown, without colours and secrets."""
        try:
            size = self.attempt.log.stat().st_size
            if size == self._log_size:
                return None
            with self.attempt.log.open("rb") as file:
                file.seek(max(0, size - 2 * LOG_CHARACTERS))
                text = file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        self._log_size = size
        text = ANSI.sub("", text)
        for secret, value in self.secrets.items():
            text = text.replace(value, f"[{secret}]") if value else text
        lines = [line.rsplit("\r", 1)[-1] for line in text[-LOG_CHARACTERS:].split("\n")]
        return str(clean("\n".join(lines)))
