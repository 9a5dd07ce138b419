"""The social metrics of a head-to-head: a judge scores every seat on the seven SOTOPIA dimensions, the five
fine-grained dimensions, and the codebooks of its game.

A seat that could not be scored gets a judgment without values, and no error is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from training.evaluate.head_to_head import Match
from training.games import lookup
from training.labels.codebooks import CODEBOOKS, CONDUCT, SOTOPIA, Codebook
from training.records import Judgment
from training.rewards.judge import Judge, transcript_of
from training.seeding import derive

SOCIAL: tuple[Codebook, ...] = (SOTOPIA, CONDUCT)


def codebooks(game: str) -> tuple[Codebook, ...]:
    """Return the codebooks on which the seats of a game are judged."""
    return (*SOCIAL, *(CODEBOOKS[name] for name in lookup(game).codebooks))


async def judge_all(
    matches: Sequence[Match], judge: Judge, seed: int, *, on_judged: Callable[[], None] = lambda: None
) -> dict[int, list[Judgment]]:
    """Return the judgments of every conversation that ended without an error, by the pairing's number.

    The judge does not read which model had which seat. `on_judged` is called after each conversation.
    """

    async def judge_match(match: Match) -> tuple[int, list[Judgment]]:
        number, episode = match.pairing.number, match.episode
        transcript = transcript_of(episode.scenario, episode.moves)
        seats = range(len(episode.scenario.seats))
        roles = episode.roles or ("",) * len(seats)
        judgments = await asyncio.gather(
            *(
                judge.judgment(
                    transcript,
                    codebook.of(roles[seat]),
                    seat,
                    episode=str(number),
                    seed=derive(seed, "social", number, seat, codebook.name),
                )
                for seat in seats
                for codebook in codebooks(episode.scenario.game)
            )
        )
        on_judged()
        return number, list(judgments)

    return dict(await asyncio.gather(*(judge_match(match) for match in matches if not match.episode.error)))
