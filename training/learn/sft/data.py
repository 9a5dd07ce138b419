"""The training data of the cold start: conversations as traces, and the order of their batches.

The order depends on the seed alone, so a resumed run reads the same batches as an uninterrupted one. Raises `BadInput`,
naming the line, for an invalid file or a file without a conversation of the run's game.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from training import dataset
from training.errors import BadInput, EngineError
from training.records import Trace
from training.run_sections import SpeakerSection
from training.sections import SftConfig
from training.seeding import rng
from training.text.conversations import traces
from training.text.template import ChatTokenizer

log = logging.getLogger(__name__)

NEAR = 32
"""Number of batches whose traces are sorted by length together. Sorting reduces padding; the order stays mixed."""
IGNORED = -100
"""The label of a token that is not a target, as in PyTorch's losses."""


def read_traces(
    path: Path, game: str, chat: ChatTokenizer, *, limit: int, window: int, form: SpeakerSection | None = None
) -> list[Trace]:
    """Return the traces of all seats in all conversations of a dataset's first `limit` (0 = all) scenarios of `game`.

    With `form` they are the traces of the seats' strategists. A conversation with a message longer than the window is
    left out; the log has the number of them.
    """
    collected: list[Trace] = []
    left_out = 0
    for number, line in enumerate(dataset.read_game(path, game), 1):
        if limit and number > limit:
            break
        for index, conversation in enumerate(line.conversations):
            try:
                collected += traces(conversation.episode, chat, window=window, form=form)
            except BadInput as error:
                where = f"{path.name}, scenario {line.scenario.id}, conversations.{index}"
                raise BadInput(error.why, f"{where}.{error.where}") from error
            except EngineError:
                left_out += 1
    if left_out:
        log.warning("%d conversations have messages longer than %d tokens and are left out", left_out, window)
    useful = [trace for trace in collected if any(trace.mask[1:])]
    if not useful:
        nothing = "it holds none" if form is None else "no turn has a strategy: leave speaker.source out"
        why = f"every conversation has a message longer than {window} tokens" if left_out else nothing
        raise BadInput(f"no conversation to learn from: {why}", str(path))
    return useful


def example(trace: Trace) -> dict[str, list[int]]:
    """Return the trace as a row for TRL: all tokens as input, the tokens that the seat sampled as labels."""
    labels = [token if sampled else IGNORED for token, sampled in zip(trace.tokens, trace.mask, strict=True)]
    return {"input_ids": list(trace.tokens), "labels": labels}


def plan(lengths: Sequence[int], sft: SftConfig, seed: int) -> list[list[int]]:
    """Return the batches of all epochs in order, as indices. Each has at most `tokens_per_batch` tokens with padding.

    A trace longer than that forms a batch alone.
    """
    planned: list[list[int]] = []
    mean = sum(lengths) / len(lengths)
    near = max(1, round(NEAR * sft.tokens_per_batch / mean))
    for epoch in range(sft.epochs):
        generator = rng(seed, "sft", epoch)
        order = list(range(len(lengths)))
        generator.shuffle(order)
        batches: list[list[int]] = []
        for start in range(0, len(order), near):
            batches += _filled(sorted(order[start : start + near], key=lambda i: (lengths[i], i)), lengths, sft)
        generator.shuffle(batches)
        planned += batches
    return planned[: sft.max_steps * sft.batches_per_step] if sft.max_steps else planned


def _filled(ordered: Sequence[int], lengths: Sequence[int], sft: SftConfig) -> list[list[int]]:
    """Cut indices, ordered by the length of their traces, into batches of at most `tokens_per_batch` tokens."""
    batches: list[list[int]] = [[]]
    for index in ordered:
        if batches[-1] and (len(batches[-1]) + 1) * lengths[index] > sft.tokens_per_batch:
            batches.append([])
        batches[-1].append(index)
    return batches
