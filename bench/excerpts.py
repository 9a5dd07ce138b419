"""Short pieces of games for pretraining: the last messages that a seat read, then one reply.

Of a move only those tokens are targets at which another legal move continues differently. The loss is then the choice's
alone, from which a small model is to learn where in a message to look.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from training.engines.trie import Trie
from training.games import advance, make
from training.records import LEARNER, Move, Seat, Trace
from training.seeding import rng
from training.text.choices import count, replies
from training.text.messages import chat as messages_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from training.players.base import PlayerFactory
    from training.records import Episode
    from training.text.messages import Chat
    from training.text.template import ChatTokenizer


def turn(
    seat: Seat, chat: ChatTokenizer, messages: Sequence[Chat], choices: Sequence[str], at: int, *, whole: bool = False
) -> Trace:
    """Return choice number `at` as the only turn of a trace, after `messages`.

    Targets are its tokens at which another choice continues differently; with `whole` all of its tokens.
    """
    prompt = chat.prompt(messages)
    listed = [(*chat.encode(choice), chat.end_id) for choice in choices]
    allowed = Trie(listed).along(listed[at])
    prompt_length, choice_length = len(prompt), len(listed[at])
    return Trace(
        seat=seat,
        policy=LEARNER,
        tokens=(*prompt, *listed[at]),
        mask=(*(0,) * prompt_length, *(int(whole or len(tokens) > 1) for tokens in allowed)),
        turn=(-1,) * prompt_length + (0,) * choice_length,
        logprobs=(0.0,) * (prompt_length + choice_length),
    )


def decisions(
    episode: Episode,
    chat: ChatTokenizer,
    /,
    *,
    window: int | None,
    lengths: Sequence[int] = (1,),
    teacher: PlayerFactory | None = None,
    offered: Collection[str] = (),
    recalled: re.Pattern[str] | None = None,
) -> list[Trace]:
    """Return a trace for each choice among listed moves and for each message, after the last that the seat read.

    The number of chat messages before it is drawn from `lengths`, where 0 stands for all of them. The decision is the
    move that was made, or the one that `teacher` would make in its place. Of a message every token is a target. With
    `offered`, an action of one of these names must be possible. With `recalled`, the last older message that contains
    the pattern precedes these messages, after the reply to which it is the answer.
    """
    game, names, chance = make(episode.scenario), episode.scenario.seats, rng(episode.scenario.seed, "decisions")
    written = {each.move_index: each.reply for each in episode.turns}
    pending: dict[Seat, Move] = {}
    decided = []
    for place, entry in enumerate(episode.moves):
        observation = game.observe(entry.seat)
        moves = count(observation.actions)
        named = not offered or any(action.name in offered for action in observation.actions)
        if named and entry.move.origin == "seat" and moves != 1:
            read = messages_of(observation, entry.seat, names)
            last = read[-chance.choice(lengths) :]
            if recalled is not None:
                older = read[: len(read) - len(last)]
                matches = [at for at, each in enumerate(older) if recalled.search(each["content"])][-1:]
                last = [*(each for at in matches for each in older[max(1, at - 1) : at + 1]), *last]
            if teacher is not None:
                player = teacher(episode.scenario, entry.seat)
                written[place] = asyncio.run(player.act(entry.seat, observation, chance.getrandbits(62))).text
            choices = list(replies(observation.actions)) if moves else [written[place]]
            decided.append(turn(entry.seat, chat, last, choices, choices.index(written[place]), whole=not moves))
        pending = advance(game, pending, entry)
    return decided
