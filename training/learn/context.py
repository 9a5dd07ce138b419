"""The parts of a training run, built from its configuration and, on resume, from a checkpoint.

Raises `BadInput` for whatever in the configuration, the data or the checkpoint does not fit; nothing is written here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from training import bases, engines, games, phases, rewards
from training.cluster.processes import Cluster, joined_address
from training.cluster.reservation import Reservation
from training.config import RunConfig
from training.engines.adapters import AdapterEngine
from training.engines.base import Engine, Sampling
from training.errors import BadInput, EngineError
from training.games import Game, SearchingGame
from training.labels import classifier
from training.labels.labellers import LocalLabeller, SpreadLabeller
from training.learn import checkpoint, numerics, placement, policy, scenarios
from training.learn.checkpoint import TrainerState
from training.learn.league import League
from training.learn.learner import InProcess, Learner, Learners, Settings
from training.learn.opponents import Opponents, folder_of
from training.learn.placement import Placement
from training.learn.scenarios import MixtureSampler
from training.learn.watchdog import Watchdog
from training.methods import Method
from training.opponent_sections import TEACHER
from training.players.base import Player
from training.players.contestants import window_of
from training.players.model import check_choices
from training.players.uniform import UniformPlayer
from training.records import Episode, ErrorRecord, Move, ProcessStatus, Scenario, Seat
from training.rewards import Reward
from training.rewards.goals import GoalCheck
from training.rewards.judge import Judge
from training.rewards.labels import Labeller, Measured, measured
from training.rollout import Job, Tool
from training.rollout.listed import lists_moves
from training.rollout.search import search_tool
from training.rundir import RunDir
from training.text.conversations import traces
from training.text.template import ChatTokenizer

if TYPE_CHECKING:
    from training.engines.pool import EnginePool

log = logging.getLogger(__name__)


@runtime_checkable
class Spread(Protocol):
    """Engines or ranks in processes of their own."""

    def status(self) -> list[ProcessStatus]:
        """Return what each process does."""


@dataclass(slots=True)
class TrainingContext:
    """Everything that one attempt works with.

    `make_engine` makes engines of other models, such as opponents, as `engines.make` does: where the learner's are.
    `step` is the last complete step. `resumed` is the state that it starts from, and `older` the files of earlier
    versions of the weights that are still to sample games, until `forget_checkpoint`.
    `place` is the index of the phase, and `active` the configuration by which it trains: `config` without phases.
    """

    config: RunConfig
    run_dir: RunDir
    learners: Learners
    active: RunConfig
    place: int
    method: Method
    engine: Engine
    chat: ChatTokenizer
    reward: Reward
    starts: MixtureSampler
    opponents: Opponents
    league: League
    watchdog: Watchdog
    info: bases.ModelInfo
    adapter_only: bool
    make_engine: Callable[..., AdapterEngine] = engines.make
    cluster: Cluster | None = None
    reservation: Reservation | None = None
    judge: Judge | None = None
    labels: tuple[Measured, ...] = ()
    tool: Tool | None = None
    step: int = 0
    resumed: TrainerState | None = None
    older: Mapping[int, Path] = field(default_factory=dict)

    async def close(self) -> None:
        """Free engines, ranks and the connections of judge and opponents, each also if another fails."""
        async with AsyncExitStack() as stack:
            if self.cluster is not None:
                stack.callback(self.cluster.stop)
            if self.reservation is not None:
                stack.callback(self.reservation.close)
            stack.push_async_callback(self.engine.close)
            stack.push_async_callback(self.opponents.aclose)
            if self.judge is not None:
                stack.push_async_callback(self.judge.close)
            stack.callback(self.learners.close)

    def processes(self) -> list[ProcessStatus]:
        """Return what the run's engines and ranks do, where they are processes of their own."""
        parts = (self.learners, self.engine)
        return [each for part in parts if isinstance(part, Spread) for each in part.status()]

    def forget_checkpoint(self) -> None:
        """Drop what was read of the checkpoint that the attempt starts from, once everything is restored."""
        self.resumed, self.older = None, {}

    async def enter(self, place: int) -> None:
        """Train by the phase at `place` from now on: method and watchdog are reset; optimizer and critic continue."""
        self.place, self.active = place, self.config.of_phase(place)
        self.method = self.active.method.build()
        self.watchdog = _watchdog(self.active, self.method)
        await self.opponents.go_on(self.active)
        self.begin()

    def origin(self, step: int) -> Path | None:
        """Return the checkpoint from which training continues after `step`, if it is that of an earlier phase's end.

        Raises `BadInput` if it is not on this machine.
        """
        before = phases.weights_after(self.config.phases, step)
        try:
            return None if before == step else self.run_dir.checkpoint_of(before)
        except BadInput as error:
            name = self.config.phases[phases.place_at(self.config.phases, step + 1)].name
            raise BadInput(f"phase {name!r} cannot begin: {error.why}", error.where) from error

    def begin(self) -> None:
        """Give the learner what the phase changes."""
        before = sum(phase.steps for phase in self.config.phases[: self.place])
        settings = Settings(self.active.learn, before, tuple(self.method.needs.critic))
        if not self.config.phases:
            self.learners.call(Learner.begin, settings)
            return
        reference = self.config.phases[self.place].reference
        try:
            folder = folder_of(self.config, self.run_dir, reference)
            self.learners.call(Learner.begin, replace(settings, refers=True, reference=folder))
        except BadInput as error:
            raise BadInput(f"{reference!r} cannot be the reference: {error.why}", error.where) from error

    def player(
        self, scenario: Scenario, seat: Seat, sampling: Sampling | None = None, *, random_moves: bool = False
    ) -> Player:
        """Return the learner at one seat of one episode; `sampling` takes the place of the run's own.

        Where the run has a speaker, the learner is its strategist, or both in one.
        """
        used = sampling or self.config.sampling
        places: dict[str, Any] = {
            "seat": seat,
            "names": scenario.seats,
            "window": window_of(self.config.engine, used, self.learners.window),
        }
        if random_moves:
            return UniformPlayer(self.engine, self.chat, used, **places)
        return self.opponents.model_player(self.engine, self.chat, scenario, sampling=used, **places)

    def taught(self, job: Job, episode: Episode) -> Episode:
        """Return an episode with the learner's traces of a teacher's seats, as if it had written the strategies.

        An episode in which they do not fit the learner's window has an error instead. Others are returned as they are.
        """
        seats = [seat for seat, policy in enumerate(job.policies) if policy == TEACHER]
        if not seats or episode.error is not None:
            return episode
        window = window_of(self.config.engine, self.config.sampling, self.learners.window)
        try:
            made = traces(episode, self.chat, seats=seats, window=window, form=self.config.speaker)
        except EngineError as error:
            record = ErrorRecord(kind=error.kind, message=str(error))
            return episode.model_copy(update={"error": record, "metrics": {}})
        first = len(episode.traces)
        moved = (
            trace.model_copy(update={"parent": (trace.parent[0] + first, trace.parent[1])}) if trace.parent else trace
            for trace in made
        )
        return episode.model_copy(update={"traces": (*episode.traces, *moved)})


def build(
    config: RunConfig, run_dir: RunDir, latest: tuple[int, Path] | None, beat: Callable[[], None] = lambda: None
) -> TrainingContext:
    """Return the context of an attempt that starts from checkpoint `latest` = (step, folder), or from the beginning.

    `beat` is called after each part that may take minutes: together they may take longer than a supervisor waits.
    """
    with ExitStack() as failing:
        device = pick_device(config.model.device)
        again = latest is not None or run_dir.continued()
        if not config.cluster.alone:
            joins = joined_address(config.cluster.address)
            log.info("joining the Ray cluster" if joins else "starting Ray on this machine")
        placed = placement.place(config, device, failing, again=again)
        if placed.cluster:
            log.info("starting %s", placed.config.cluster.counts)
        beat()
        context = _build(placed, run_dir, latest[1] if latest else None, failing, beat)
        context.begin()
        context.player(context.starts.scenarios[0], 0)  # raises `BadInput` for replies that do not fit the window
        if origin := context.origin(context.step):
            context.learners.call(Learner.go_back, origin)
        failing.pop_all()
    return context


def _build(
    placed: Placement, run_dir: RunDir, saved: Path | None, failing: ExitStack, beat: Callable[[], None]
) -> TrainingContext:
    """Return the context of an attempt that starts from a `saved` checkpoint; `failing` ends what was started."""
    config, device = placed.config, placed.device
    numerics.set_up(config.learn, config.learn.threads)
    files, starts = _read_starts(config, run_dir)
    opponents = Opponents(config, run_dir, starts.scenarios, device.partition(":")[0])
    position = _position(config, saved)
    active: RunConfig = position["active"]
    pool = _open_pool(placed, opponents, failing)
    beat()
    opponents.open(active)
    beat()
    league, method = League(config, starts, opponents), active.method.build()
    if saved and (resumed := position["resumed"]):
        league.restore(resumed.data.get("league", ()), run_dir, saved, resumed.step)
    learners = _learners(placed, _policy(config, active, device, saved))
    failing.callback(learners.close)
    beat()
    chat = _chat(config, learners, starts)
    scoring = _scoring(config, device, starts, pool)
    engine = pool or engines.make(config.engine.name, config.model.base, **_engine_options(config, device))
    failing.callback(lambda: asyncio.run(engine.close()))
    return TrainingContext(
        config=config,
        run_dir=run_dir,
        learners=learners,
        method=method,
        engine=engine,
        chat=chat,
        starts=starts,
        opponents=opponents,
        league=league,
        watchdog=_watchdog(active, method),
        info=_info(config, run_dir, files),
        make_engine=pool.open_model if pool else engines.make,
        cluster=placed.cluster,
        reservation=placed.reservation,
        adapter_only=policy.saves_adapter_only(config.model.base, config.learn),
        **position,
        **scoring,
    )


def _position(config: RunConfig, saved: Path | None) -> dict[str, Any]:
    """Return where training stands, as fields of the context: the step, its phase, and what the checkpoint has."""
    resumed = checkpoint.read(saved) if saved else None
    step = resumed.step if resumed else 0
    place = phases.place_at(config.phases, step + 1)
    return {
        "step": step,
        "place": place,
        "active": config.of_phase(place),
        "resumed": resumed,
        "older": checkpoint.older(saved) if saved else {},
    }


def _watchdog(config: RunConfig, method: Method) -> Watchdog:
    """Return a new watchdog; it looks for no drift of advantages that are not meant to be around 0."""
    rules = config.stop if method.needs.centred else config.stop.model_copy(update={"advantage_drift": 0.0})
    return Watchdog(rules)


def _read_starts(config: RunConfig, run_dir: RunDir) -> tuple[list[Path], MixtureSampler]:
    """Return the dataset files of the run's games, and their starts; raise `BadInput` for those that do not fit."""
    named = [f"mixture.{place}.path" for place in range(len(config.mixture))] or ["scenarios.path"]
    files = [input_file(part.path, run_dir, where) for part, where in zip(config.parts, named, strict=True)]
    alone = config.method.build().needs.alone
    samplers = [
        scenarios.read_scenarios(config, file, part, alone=alone)
        for file, part in zip(files, config.parts, strict=True)
    ]
    starts = MixtureSampler(samplers, [part.weight for part in config.parts])
    _check_random_moves(config, starts.scenarios)
    _check_probes(config, starts.scenarios)
    return files, starts


def _policy(config: RunConfig, active: RunConfig, device: str, weights: Path | None) -> dict[str, Any]:
    """Return how the policy is loaded; a checkpoint has the value heads of all phases from the first step on."""
    every = (config.of_phase(place).method.build() for place in range(max(1, len(config.phases))))
    heads = dict.fromkeys(head for method in every for head in method.needs.critic)
    return {
        "base": config.model.base,
        "heads": list(heads),
        "learn": active.learn,
        "seed": config.seed,
        "temperature": config.sampling.temperature,
        "device": device,
        "weights": str(weights) if weights else None,
    }


def _chat(config: RunConfig, learners: Learners, starts: MixtureSampler) -> ChatTokenizer:
    """Return the learner's tokenizer; raise `BadInput` for games whose moves it cannot limit replies to."""
    chat = ChatTokenizer(learners.tokenizer)
    for start in {start.game: start for start in starts.scenarios}.values():
        check_choices(chat, config.sampling, start)
    return chat


def _learners(placed: Placement, arguments: dict[str, Any]) -> Learners:
    """Return the learner in this process, or its ranks."""
    config, cluster = placed.config, placed.cluster
    if cluster is None or placed.reservation is None:
        return InProcess(Learner(policy.load(**arguments), config.seed))
    from training.learn.ray_learners import RayLearners

    on_gpu = placed.device.startswith("cuda")
    cores = placement.cores_of_processes(config, placed.device)[: config.cluster.learners]
    rendezvous = None if cluster.folder is None else cluster.folder / "ranks"
    arguments = arguments | {"device": "cuda"} if on_gpu else arguments
    options = placement.options(config, cores, placed.reservation.learners)
    return RayLearners(arguments, options, rendezvous, bfloat16=config.engine.dtype == "bfloat16")


def _scoring(config: RunConfig, device: str, starts: MixtureSampler, pool: EnginePool | None) -> dict[str, Any]:
    """Return what scores games, as fields of the context: rewards, judge, labels, and what moves at the tool seat."""
    remote_judge, labellers = judge(config), _labellers(config, device, pool)
    return {
        "reward": _reward(config, remote_judge, labellers),
        "judge": remote_judge,
        "labels": _measured(config, labellers),
        "tool": tool_of(config, starts.scenarios, remote_judge),
    }


def _reward(config: RunConfig, remote_judge: Judge | None, labellers: Mapping[str, Labeller]) -> Reward:
    return rewards.PerGame(
        {
            part.game: rewards.build(config.reward, games.lookup(part.game), remote_judge, labellers)
            for part in config.parts
        }
    )


def _labellers(config: RunConfig, device: str, pool: EnginePool | None) -> dict[str, Labeller]:
    """Return the classifiers that the reward names; raise `BadInput` naming the field and what is wrong in the folder.

    Their base models are on the processes of engines, or in this one, where two on one base have it twice in memory.
    """
    opened: dict[str, Labeller] = {}
    for place, entry in enumerate(config.reward.labels):
        if entry.classifier and entry.classifier not in opened:
            try:
                known = classifier.load(Path(entry.classifier))
                opened[entry.classifier] = SpreadLabeller(known, pool) if pool else LocalLabeller(known, device)
            except BadInput as error:
                raise BadInput(f"{error.why} ({error.where})", f"reward.labels.{place}.classifier") from error
    return opened


def _measured(config: RunConfig, labellers: Mapping[str, Labeller]) -> tuple[Measured, ...]:
    """Return how well the sources of the reward's labels agree with people."""
    infos = {name: labeller.info for name, labeller in labellers.items()}
    section = config.reward
    return tuple(measured(entry, section.least_agreement, infos.get(entry.classifier)) for entry in section.labels)


def _info(config: RunConfig, run_dir: RunDir, files: list[Path]) -> bases.ModelInfo:
    """Return the provenance of the checkpoints that the run will save."""
    return bases.child_info(
        config.model.base,
        name=config.name,
        how="-".join((config.method.name, *dict.fromkeys(part.game for part in config.parts))),
        datasets=files,
        command=f"python -m training run config.json --dir {run_dir.root.name}",
    )


def _check_random_moves(config: RunConfig, starts: Sequence[Scenario]) -> None:
    """Raise `BadInput` where moves are drawn at random, and none of the run's games has moves that can be listed."""
    for place in range(max(1, len(config.phases))):
        if config.of_phase(place).rollout.random_moves:
            kinds = {start.game: start for start in starts}
            if not any(lists_moves(start) for start in kinds.values()):
                in_phase = "random_moves" in (config.phases[place].rollout if config.phases else {})
                where = f"phases.{place}.rollout.random_moves" if in_phase else "rollout.random_moves"
                raise BadInput(f"no move of {', '.join(sorted(kinds))} can be listed, so none can be drawn", where)
            return


def _check_probes(config: RunConfig, starts: Sequence[Scenario]) -> None:
    """Raise `BadInput` for a method that asks probes where none of the run's games has any."""
    if any(games.lookup(start.game).probed(start.settings) for start in starts):
        return
    for place in range(max(1, len(config.phases))):
        if config.of_phase(place).method.build().needs.probes:
            kinds = ", ".join(sorted({start.game for start in starts}))
            why = f"{config.method.name} asks probes, and no scenario of {kinds} has them with its settings"
            raise BadInput(why, "method.name")


def pick_device(name: str) -> str:
    """Return the device to train on; `auto` is CUDA where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise BadInput("no CUDA device is available here: use cpu or auto", "model.device")
    return name


def data_path(config: RunConfig, run_dir: RunDir) -> Path:
    """Return the dataset's file: an absolute path, or one inside the run directory."""
    return input_file(config.data.path, run_dir, "scenarios.path")


def input_file(name: str, run_dir: RunDir, where: str) -> Path:
    """Return a file by its absolute path, or that inside the run directory; `where` is the field that names it."""
    path = run_dir.root / name
    if not name or not path.is_file():
        raise BadInput(f"no such file: {path}", where)
    return path


def tool_of(config: RunConfig, starts: Sequence[Scenario], judge: Judge | None) -> Tool | None:
    """Return what moves at the tool seat of these scenarios: a search where seats can search, else the goal check.

    Raises `BadInput` for a corpus without an index.
    """
    search = search_tool(config.search, starts)
    goals = GoalCheck(judge) if judge else None
    if search is None or goals is None:
        return search or goals

    async def move(game: Game) -> Move:
        return await (search if isinstance(game, SearchingGame) else goals)(game)

    return move


def judge(config: RunConfig) -> Judge | None:
    """Return the run's judge, if it has one; raise `BadInput` if its address may not be asked or sent the secret."""
    if config.judge is None:
        return None
    from training.engines.remote.addresses import check_remote
    from training.engines.remote.chat import RemoteModel

    check_remote(config.judge, "judge")
    return Judge(RemoteModel(config.judge), config.judge.model)


def _engine_options(config: RunConfig, device: str) -> dict[str, Any]:
    """Return the options of the learner's engine; see `EngineOptions`."""
    section = config.engine
    return {
        "dtype": section.dtype,
        "device": device.partition(":")[0],
        "window": section.window,
        "max_running": section.max_running,
        "cache_gib": section.cache_gib,
        "choices": config.sampling.constrain,
        "tensor_parallel": config.cluster.tensor_parallel,
    }


def _open_pool(placed: Placement, opponents: Opponents, failing: ExitStack) -> EnginePool | None:
    """Return the learner's engines, each in a process of its own, and those of opponents in them; None in one."""
    if placed.reservation is None:
        return None
    from training.engines.pool import EnginePool

    config, options = placed.config, _engine_options(placed.config, placed.device)
    cores = placement.cores_of_processes(config, options["device"])[config.cluster.learners :]
    where = placement.options(config, cores, placed.reservation.engines)
    pool = EnginePool(config.engine.name, config.model.base, where, **options)
    failing.callback(lambda: asyncio.run(pool.close()))
    opponents.place(pool.open_model)
    return pool
