"""Games as traces in which crewmates are asked a game's probes, so that a start knows how such a question is answered.

A model that has never been asked anything would learn the form of an answer from the listening loss alone, and then
give it where it is to speak, too. An answer copies without reasoning: a name that stands before "kills" or "kill" in
what the seat has read, its own observation or another's claim, and otherwise any name. `excerpts` teach the copying
first (`bench.excerpts`). That a witness claims a kill and others do not is learned from messages alone (`talk`): in
whole games these are too few of the tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bench.excerpts import decisions, turn
from bench.random_talk import killers
from training.games import advance, make, replay
from training.records import Message, Move, Probe, Seat, Trace
from training.seeding import rng
from training.text.conversations import traces
from training.text.messages import chat as messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from training.records import Episode
    from training.text.messages import Chat
    from training.text.template import ChatTokenizer

LAST = (1, 3)
"""Fewest and most of the last chat messages in an excerpt, the one with the question included."""
EMPTY = 0.05
"""Share of the questions that are kept where nothing of a killer was read: else four of five would be such."""
ASKED = 0.5
"""Share of these questions that are asked in whole games."""
SILENT, SPOKEN = 0.06, 0.3
"""Shares of the seats whose whole trace is read: of those that said nothing, and of those that spoke."""
UNSEEN = 0.3
"""Share of the messages that are read after all that their author read: of authors who know of no kill; else all."""
DEEDS = ("kill", "report", "vote")
"""Actions that are learned from excerpts: games have few of them."""
_KILL = re.compile(r"^Round .* kills ", re.MULTILINE)


def excerpts(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return answers to probes after the last few chat messages, with the name as the only target."""
    chance = rng(episode.scenario.seed, "excerpts")
    asked = []
    for seat, probe, (_, *messages) in _questions(episode):
        last = messages[-chance.randint(*LAST) :]
        if (read := _killers(last, probe)) or chance.random() < EMPTY:
            name = chance.choice(read or probe.choices)
            asked.append(turn(seat, chat, last, probe.replies, probe.choices.index(name)))
    return asked


def deeds(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return the same answers, with the decisions in which a kill, a report or a vote was possible.

    They have the most of the last messages before them, which hold a whole meeting, and a kill that the seat saw.
    """
    done = decisions(episode, chat, window=window, lengths=LAST[1:], offered=DEEDS, recalled=_KILL)
    return [*excerpts(episode, chat, window=window), *done]


def games(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return some seats' whole traces, and some answers to probes after all that was read."""
    chance = rng(episode.scenario.seed, "games")
    spoke = {entry.seat for entry in episode.moves if entry.move.text}
    shares = [SPOKEN if seat in spoke else SILENT for seat in range(len(episode.scenario.seats))]
    seats = [seat for seat, share in enumerate(shares) if chance.random() < share]
    asked = []
    for seat, probe, messages in _questions(episode):
        read = _killers(messages[1:], probe)
        if chance.random() < ASKED * (1 if read else EMPTY):
            name = chance.choice(read or probe.choices)
            asked.append(turn(seat, chat, messages, probe.replies, probe.choices.index(name), whole=True))
    return [*asked, *traces(episode, chat, seats=seats, window=window)]


def talk(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return what was said in meetings: after the fewest and the most of the last messages, and after all of them.

    A kill that its author saw always stands before a message, so that a claim without one is rare. After all of them
    come the messages of every seat that saw a kill, and some of the others.
    """
    chance, game = rng(episode.scenario.seed, "talk"), replay(episode.scenario, episode.moves)
    short, long, whole = (
        decisions(episode, chat, window=window, lengths=(last,), offered=("talk",), recalled=_KILL)
        for last in (*LAST, 0)
    )
    saw = {trace.seat: any(_KILL.search(read.text) for read in game.observe(trace.seat).messages) for trace in whole}
    return [*short, *long, *(trace for trace in whole if saw[trace.seat] or chance.random() < UNSEEN)]


def everything(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return whole games and messages, so that neither is forgotten."""
    return [*games(episode, chat, window=window), *talk(episode, chat, window=window)]


def _questions(episode: Episode) -> Iterator[tuple[Seat, Probe, list[Chat]]]:
    """Yield each probe of each seat with the chat messages up to its question, the rules first."""
    game, names = make(episode.scenario), episode.scenario.seats
    pending: dict[Seat, Move] = {}
    for entry in episode.moves:
        for seat, probe in () if pending else game.probes().items():
            observation = game.observe(seat)
            read = (*observation.messages, Message(author=None, text=probe.question))
            yield seat, probe, messages_of(observation.model_copy(update={"messages": read}), seat, names)
        pending = advance(game, pending, entry)


def _killers(messages: Sequence[Chat], probe: Probe) -> list[str]:
    return killers((message["content"] for message in messages), probe.choices)
