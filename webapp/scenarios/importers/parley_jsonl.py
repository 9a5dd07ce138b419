"""Reads the project's own JSONL: an export, or plain scenarios, one per line."""

from __future__ import annotations

from pathlib import Path

from training.dataset import parse_line
from training.errors import BadInput
from webapp.scenarios.importers.reading import Progress, Reading, check_line, noted, read_bytes


def read(path: Path, progress: Progress) -> Reading:
    """Read every line; each that is wrong, repeats an id or does not replay is an error with its line number."""
    reading = Reading()
    ids: set[str] = set()
    raw_lines = read_bytes(path).split(b"\n")
    for number, raw in enumerate(raw_lines, 1):
        if not raw.strip():
            continue
        where = f"{path.name} line {number}"
        with noted(reading, where):
            line = parse_line(raw, where)
            if line.scenario.id in ids:
                raise BadInput(f"a second scenario with the id {line.scenario.id!r}", f"{where}, scenario.id")
            check_line(line, where)
            ids.add(line.scenario.id)
            reading.lines.append(line)
        progress(number, len(raw_lines))
    reading.with_judgments = reading.judgments > 0
    if not reading.lines and not reading.errors:
        reading.error(BadInput("the file contains no scenario", path.name))
    return reading
