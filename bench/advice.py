"""Players whose strategies name moves, and the small strategists that are pretrained on them, for `bench.epo`.

A start writes strategies in the form that is asked for, and names moves as little skilled as its task states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from training import bases, players, samples
from training.games.actions import write
from training.games.shop.catalogues import find
from training.games.shop.game import TEST_EVERY
from training.games.shop.kinds import KINDS
from training.games.shop.settings import ShopSettings
from training.learn.tiny.pretrain import Recipe, Stage, pretrain
from training.players.advised import AdvisedPlayer
from training.players.base import Player, Reply
from training.players.random import RandomPlayer
from training.players.react import NamingPlayer
from training.records import Observation, Scenario, Seat, Trace
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import SpeakerSection
from training.seeding import derive, rng
from training.store import atomic_directory
from training.text.conversations import traces

if TYPE_CHECKING:
    from training.players.base import PlayerFactory
    from training.records import Episode
    from training.text.template import ChatTokenizer


class Wordless:
    """Plays random moves that need no words of its own, each action as often as the others."""

    def __init__(self) -> None:
        self._random = RandomPlayer()

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a random legal move."""
        actions = tuple(action for action in observation.actions if action.text != "required")
        return await self._random.act(seat, observation.model_copy(update={"actions": actions}), seed)

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


class Customer:
    """Searches the shop for the kind of product that the instruction names; clicks as the script does in `skill` % of
    its other turns, else at random.
    """

    def __init__(self, scenario: Scenario, seat: Seat, skill: int) -> None:
        self._script, self._random, self._skill = players.make("scripted", scenario, seat), RandomPlayer(), skill

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a search or a click."""
        if search := next((action for action in observation.actions if action.name == "search"), None):
            instruction = observation.messages[0].text
            nouns = (kind.noun for kind in KINDS if kind.noun in instruction)
            return Reply(write(search, {"words": max(nouns, key=len)}))
        skilled = rng(seed, "skill").random() * 100 < self._skill
        return await (self._script if skilled else self._random).act(seat, observation, derive(seed, "click"))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def named(player: PlayerFactory, form: SpeakerSection, scenario: Scenario, seat: Seat) -> Player:
    """Return a seat whose strategies name the moves of `player`, before the speaker of `form`."""
    strategist = NamingPlayer(player(scenario, seat), form)
    return AdvisedPlayer(strategist, players.make(form.source, scenario, seat))


def played(scenarios: Sequence[Scenario], games: int, player: PlayerFactory, seed: int) -> list[Episode]:
    """Return `games` games of the scenarios in turn, with `player` at every seat. Raises if one of them fails."""
    jobs = []
    for number in range(games):
        scenario = scenarios[number % len(scenarios)]
        drawn = scenario.with_seed(rng(seed, "game", number).getrandbits(62))
        jobs.append(Job(number, drawn, ("player",) * len(scenario.seats)))
    episodes = asyncio.run(collect(jobs, {"player": player}, lanes=64, rules=RolloutPolicy(seed=seed)))
    if broken := [each.error for each in episodes if each.error]:
        raise AssertionError(f"{len(broken)} games ended in errors: {broken[0]}")
    return episodes


@dataclass(frozen=True, slots=True)
class Start:
    """What a strategist is pretrained on: `games` in which the strategies name the moves of `player`.

    Each of `words` is a token of its own. Before whole games the strategist reads their beginnings, each up to its
    first strategy, in `beginnings` passes. `size` changes the recipe, and `sft` how whole games are learned.
    """

    player: PlayerFactory
    games: int
    words: tuple[str, ...] = ()
    beginnings: int = 0
    size: Mapping[str, Any] = field(default_factory=dict)
    sft: Mapping[str, Any] = field(default_factory=dict)


SIZE = {"hidden": 64, "layers": 2, "heads": 2, "groups": 1, "mlp": 160, "vocabulary": 1600, "context": 0.05}


def prepare(folder: Path, scenarios: Sequence[Scenario], start: Start, form: SpeakerSection) -> Path:
    """Return the folder with a strategist that names moves as `start` does; the first call pretrains it."""
    from training.sections import SftConfig

    if folder.is_dir():
        return folder
    sft = SftConfig(tokens_per_batch=2048, batches_per_step=1, max_length=2048, lr=4e-3, warmup=0.05, lora=None)
    recipe = Recipe.from_dict({"sft": sft.to_dict(), **SIZE, **start.size})
    note = f"strategist of {scenarios[0].game}"
    info = bases.ModelInfo(name=folder.name, base="tiny", licence="apache-2.0", note=note, dataset=(), command="")
    followed = form.model_copy(update={"source": "follower:100"})
    read = played(scenarios, start.games, partial(named, start.player, followed), 0)
    stages = [Stage(partial(traces, form=form), sft=start.sft)]
    if start.beginnings:
        stages.insert(0, Stage(partial(beginnings, form=form), context=0.0, sft={"epochs": start.beginnings}))
    with atomic_directory(folder) as new:
        pretrain(new, read, recipe, info, start.words, stages)
    return folder


def beginnings(episode: Episode, chat: ChatTokenizer, /, *, window: int | None, form: SpeakerSection) -> list[Trace]:
    """Return each seat's strategist's trace up to the end of its first strategy."""
    cut = []
    for trace in traces(episode, chat, window=window, form=form):
        if trace.parent is None and 1 in trace.mask:
            end = (*trace.mask, 0).index(0, trace.mask.index(1))
            parts = {name: getattr(trace, name)[:end] for name in ("tokens", "mask", "turn", "logprobs")}
            cut.append(trace.model_copy(update=parts))
    return cut


def bargains() -> list[Scenario]:
    """Return 36 bargains over nine items: each assignment of the values 5, 4 and 3 to either side."""
    first = samples.load("items")[0]
    deal = first.settings["deal"]
    names = [item["name"] for item in deal["items"]]
    every = list(permutations((5, 4, 3)))

    def side(number: int, values: Iterable[int]) -> dict[str, Any]:
        return {**deal["sides"][number], "values": dict(zip(names, values, strict=True)), "reasons": {}}

    made: list[Scenario] = []
    for values in every:
        for others in every:
            sides = [side(0, values), side(1, others)]
            settings = {"turn_limit": 8, "first_seat": None, "deal": {**deal, "story": "", "sides": sides}}
            update = {"id": f"bargain-{len(made) + 1}", "settings": {**first.settings, **settings}}
            made.append(first.model_copy(update=update))
    return made


SOLD = KINDS[::4]
"""The kinds of products that errands ask for: few enough that a small model reads their names in its instructions."""


def errands(split: Literal["train", "test"]) -> list[Scenario]:
    """Return visits to the shop of the generated catalogue, one for each of the split's goals among `SOLD`."""
    first, catalogue, sold = samples.load("shop")[0], find(ShopSettings()), {kind.noun for kind in SOLD}
    made = []
    for number, goal in enumerate(catalogue.goals):
        if (number % TEST_EVERY == 0) == (split == "test") and catalogue.products[goal.product].query in sold:
            settings = {"goal": goal.model_dump(), "turn_limit": 8}
            made.append(first.model_copy(update={"id": f"errand-{number + 1}", "settings": settings}))
    return made


def labels() -> tuple[str, ...]:
    """Return the names of the products that errands ask for, and of their options' values, longest first."""
    values = {value for kind in SOLD for shares in kind.options.values() for value in shares if not value.isdigit()}
    return tuple(sorted({*values, *(kind.noun for kind in SOLD)}, key=lambda label: (-len(label), label)))
