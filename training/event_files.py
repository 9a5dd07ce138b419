"""A run's metrics as a TensorBoard event file, which `tensorboard --logdir` reads, and `to_wandb.py` logs to W&B.

TensorBoard itself is imported when the first byte is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Row = tuple[int, float, Mapping[str, float]]
"""A training step, the Unix time at which it ended, and its metrics by name."""

TO_WANDB = Path(__file__).with_name("to_wandb.py")
"""A script that needs nothing of this package and logs the event files beside it to Weights & Biases."""


def file_name(began: float) -> str:
    """Return the name of the event file of a run whose first row is of Unix time `began`."""
    return f"events.out.tfevents.{int(began)}.parley"


class _Sink:
    """Collects the bytes that TensorBoard's writer writes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._parts.append(bytes(data))

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        written, self._parts = b"".join(self._parts), []
        return written


def pieces(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the content of an event file in pieces, one per row; every metric is a scalar under its own name."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    sink = _Sink()
    writer = RecordWriter(sink)
    began = False
    for step, at, metrics in rows:
        if not began:
            writer.write(Event(wall_time=at, file_version="brain.Event:2").SerializeToString())
            began = True
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        writer.write(Event(wall_time=at, step=step, summary=Summary(value=values)).SerializeToString())
        yield sink.take()
