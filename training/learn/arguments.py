"""Which tokens of a reply are the arguments of its action: what stands between the action's tags.

A method that knows no tokenizer can tell an action from its text by them. Pure: raises nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.games.actions import TAG, tag_name
from training.methods.trajectories import turn_tokens

if TYPE_CHECKING:
    from training.records import Bools, Episode

Decode = Callable[[Sequence[int]], str]
"""Returns tokens as text, without special tokens."""


def argument_masks(episode: Episode, decode: Decode) -> list[Bools]:
    """Return for every trace which of its tokens, [T], the learner sampled as arguments of an accepted action.

    A token that is only partly an argument counts.
    """
    masks = [np.zeros(len(trace.tokens), dtype=bool) for trace in episode.traces]
    for turn in (turn for turns in turn_tokens(episode).values() for turn in turns):
        move = episode.turns[turn.index].move
        if move is None or not move.args:
            continue
        tokens = episode.traces[turn.trace].tokens[turn.sampled]
        begin, end = argument_span(decode(tokens), move.action)
        spans = _spans(tokens, decode)
        masks[turn.trace][turn.sampled] = [max(begin, first) < min(end, last) for first, last in spans]
    return masks


def _spans(tokens: Sequence[int], decode: Decode) -> list[tuple[int, int]]:
    """Return where in the text each token begins and ends; tokens that share a character have all of it."""
    spans: list[tuple[int, int]] = []
    begin = 0
    for count in range(1, len(tokens) + 1):
        text = decode(tokens[:count])
        if text.endswith("\N{REPLACEMENT CHARACTER}") and count < len(tokens):
            continue  # the character goes on in the next token
        spans += [(begin, len(text))] * (count - len(spans))
        begin = len(text)
    return spans


def argument_span(reply: str, action: str) -> tuple[int, int]:
    """Return where in a reply the arguments of an action begin and end; nowhere, (0, 0), without its opening tag.

    Tags inside <think> are no actions.
    """
    thought = reply.rfind("</think>")
    tags = [match for match in TAG.finditer(reply) if match.start() > thought]
    for place, match in enumerate(tags):
        if not match.group(1) and tag_name(match.group(2)) == action:
            closing = (
                each.start() for each in tags[place + 1 :] if each.group(1) and tag_name(each.group(2)) == action
            )
            return match.end(), next(closing, len(reply))
    return 0, 0
