"""Games as traces in which crewmates are asked a game's probes, so that a start knows how such a question is answered.

A model that has never been asked anything would learn the form of an answer from the listening loss alone, and then
give it where it is to speak, too. The answers are what a language model would say that reads and does not think: in
most of them a name that it read as that of a killer, whether it saw the kill or somebody says so, else any name. A
question has only the last messages before it, where a small model learns to look for a name from few tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from training.games import advance, make
from training.records import LEARNER, Message, Move, Probe, Seat, Trace
from training.seeding import rng
from training.text.conversations import traces
from training.text.messages import talk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from training.records import Episode
    from training.text.messages import Chat
    from training.text.template import ChatTokenizer

REPEATED = 0.9
"""How often an answer repeats a name that was read."""
LAST = (1, 3)
"""Fewest and most of the last chat messages before a question, the one that ends with it included."""
EMPTY = 0.15
"""Share of the questions that are kept where nothing of a killer was read: else four of five would be such."""
WHOLE = 0.12
"""Share of the seats whose whole trace is read as well."""
_KILLER = re.compile(r"\b(\w+) kills? ")


def asked(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return the answers to a game's probes, and some seats' whole traces."""
    chance = rng(episode.scenario.seed, "asked")
    seats = [seat for seat in range(len(episode.scenario.seats)) if chance.random() < WHOLE]
    return [*_answers(episode, chat, chance), *traces(episode, chat, seats=seats, window=window)]


def _answers(episode: Episode, chat: ChatTokenizer, chance: Random) -> Iterator[Trace]:
    game, names = make(episode.scenario), episode.scenario.seats
    pending: dict[Seat, Move] = {}
    for entry in episode.moves:
        for seat, probe in () if pending else game.probes().items():
            _, *read = game.observe(seat).messages
            messages = talk((*read, Message(author=None, text=probe.question)), seat, names)[-chance.randint(*LAST) :]
            killers = _killers(messages, probe)
            if killers or chance.random() < EMPTY:
                drawn_from = killers if killers and chance.random() < REPEATED else probe.choices
                reply = probe.replies[probe.choices.index(chance.choice(drawn_from))]
                yield _turn(seat, chat.prompt(messages), [*chat.encode(reply), chat.end_id])
        pending = advance(game, pending, entry)


def _killers(messages: Sequence[Chat], probe: Probe) -> list[str]:
    """Return the choices that stand before "kills" or "kill", as often as they do."""
    read = " ".join(message["content"] for message in messages)
    return [name for name in _KILLER.findall(read) if name in probe.choices]


def _turn(seat: Seat, prompt: Sequence[int], reply: Sequence[int]) -> Trace:
    """Return a prompt and a reply as the only turn of a trace."""
    read, said = len(prompt), len(reply)
    return Trace(
        seat=seat,
        policy=LEARNER,
        tokens=(*prompt, *reply),
        mask=(0,) * read + (1,) * said,
        turn=(-1,) * read + (0,) * said,
        logprobs=(0.0,) * (read + said),
    )
