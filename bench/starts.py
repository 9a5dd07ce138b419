"""Starting models of the miniatures: small models, pretrained for a few minutes on scripted games.

A starting model replies in the required format and reads its own cards, board or room; how well it plays is measured
before training.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from bench.excerpts import decisions
from bench.random_talk import TELLING, RandomTalk
from training import bases, players, samples
from training.learn.tiny.pretrain import Recipe, Stage, pretrain
from training.players.base import Player, PlayerFactory, Reply
from training.players.strategic import StrategicPlayer, poker_state
from training.records import Episode, Observation, Scenario, Seat
from training.rollout import Job, RolloutPolicy, collect
from training.seeding import rng
from training.store import atomic_directory

if TYPE_CHECKING:
    from training.records import Trace

BETS = {"": (0.5, 0.2, 0.8), "p": (0.7, 0.3, 0.8), "b": (0.4, 0.2, 0.8), "pb": (0.4, 0.1, 0.9)}
"""How often the player `arbitrary` bets with the Jack, the Queen and the King, by what was played before."""
DECISIONS_FIRST = (
    Stage(decisions, context=0.0, sft={"tokens_per_batch": 2048, "lr": 4e-3, "warmup": 0.1, "epochs": 3}),
    Stage(sft={"tokens_per_batch": 1280, "lr": 2e-3}),
)
"""Stages after which a small model sees its card: single decisions, then whole games."""
_TAG = re.compile(r"<answer>.*?</answer>")


@dataclass(frozen=True, slots=True)
class Start:
    """What a start is pretrained on: games of `sample`, each seat one of `seats`; `recipe` changes `tiny`'s.

    `sample` is a scenario of the sample dataset `file`, played with `settings` instead of its own where they name one.
    Each of `words` is a token of its own. `stages` are those of pretraining; by default one, which reads whole traces.
    """

    sample: str
    seats: tuple[str, ...]
    games: int
    recipe: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    file: str = "strategic"
    settings: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = (Stage(),)

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played, with its cards or roles drawn anew in every game."""
        sample = next(each for each in samples.load(self.file) if each.id == self.sample)
        return sample.model_copy(update={"settings": {**sample.settings, **self.settings}})


class Arbitrary(StrategicPlayer):
    """Plays Kuhn poker with an arbitrary betting probability in each information state: NashConv 0.660."""

    def choose(self, observation: Observation, chance: Random) -> str:
        """Return BET with the probability of the information state."""
        card, *played = poker_state(self.scenario, self.seat, observation).information_state_string(self.seat)
        return "BET" if chance.random() < BETS["".join(played)][int(card)] else "PASS"


class Terse:
    """A player without its reasons: its choice alone, which takes fewer tokens."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the player's choice."""
        tag = _TAG.search((await self._player.act(seat, observation, seed)).text)
        assert tag, "a strategic game's player always chooses"
        return Reply(tag.group())

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def scripted(scenario: Scenario, seat: Seat) -> Player:
    """Return the game's script, without its reasons."""
    return Terse(players.make("scripted", scenario, seat))


BOARD = (
    Stage(
        partial(decisions, lengths=(*(1,) * 6, 2, 0, 0), teacher=scripted),
        context=0.0,
        sft={"tokens_per_batch": 5120, "lr": 3e-3, "warmup": 0.1, "epochs": 3},
    ),
)
"""Pretraining on what the script would do in every position of the games: mostly after the newest board alone, where a
small model finds it, and sometimes after the whole game, as it is read when it plays."""


def _seated(name: str, scenario: Scenario, seat: Seat) -> Player:
    factories: dict[str, PlayerFactory] = {
        "arbitrary": Arbitrary,
        "random_talk": RandomTalk,
        "witness_talk": partial(RandomTalk, telling=TELLING),
    }
    return factories[name](scenario, seat) if name in factories else Terse(players.make(name, scenario, seat))


def play(start: Start) -> list[Episode]:
    """Return the games that a start is pretrained on."""
    jobs = [
        Job(
            number,
            start.scenario.with_seed(rng(start.seed, "game", number).getrandbits(62)),
            tuple(
                rng(start.seed, "seat", number, seat).choice(start.seats) for seat in range(len(start.scenario.seats))
            ),
        )
        for number in range(start.games)
    ]
    policies = {name: _factory(name) for name in start.seats}
    played = asyncio.run(collect(jobs, policies, lanes=64, rules=RolloutPolicy(seed=start.seed)))
    if broken := [each.error for each in played if each.error]:
        raise AssertionError(f"{len(broken)} games ended in errors: {broken[0]}")
    return played


def _factory(name: str) -> PlayerFactory:
    return lambda scenario, seat: _seated(name, scenario, seat)


def prepare(start: Start, folder: Path, also: Sequence[Start] = ()) -> Path:
    """Return the folder with the pretrained model; it is pretrained on the first call.

    The games of `also` are pretrained on, too, in one order with those of `start`, which states the recipe.
    """
    from training.sections import SftConfig

    if folder.is_dir():
        return folder
    sft = SftConfig(tokens_per_batch=640, batches_per_step=1, max_length=4096, lr=5e-3, warmup=0.05, lora=None)
    small = {"hidden": 64, "layers": 2, "heads": 2, "groups": 1, "mlp": 160, "vocabulary": 1200, "context": 0.05}
    recipe = Recipe.from_dict({"seed": start.seed, "sft": sft.to_dict(), **small, **start.recipe})
    info = bases.ModelInfo(
        name=folder.name, base="tiny", licence="apache-2.0", note=f"plays {start.sample}", dataset=(), command=""
    )
    with atomic_directory(folder) as new:
        games = [game for each in (start, *also) for game in play(each)]
        pretrain(new, games, recipe, info, words=start.words, stages=start.stages)
    return folder
