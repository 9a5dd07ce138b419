"""The parts of a training run, built from its configuration and, on resume, from a checkpoint.

Raises `BadInput` for whatever in the configuration, the data or the checkpoint does not fit; nothing is written here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from training import bases, engines, games, phases, rewards
from training.cluster import processes
from training.cluster.processes import Cluster
from training.cluster.reservation import Reservation
from training.config import RunConfig
from training.engines.base import Engine, Sampling
from training.errors import BadInput, EngineError
from training.games import Game, SearchingGame
from training.labels import classifier
from training.labels.classifier import Labeller
from training.learn import checkpoint, numerics, placement, policy, scenarios
from training.learn.checkpoint import TrainerState
from training.learn.league import League
from training.learn.learner import InProcess, Learner, Learners, Settings
from training.learn.opponents import Opponents, folder_of
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
from training.rewards.labels import Measured, measured
from training.rollout import Job, Tool
from training.rollout.listed import lists_moves
from training.rollout.search import search_tool
from training.rundir import RunDir
from training.text.conversations import traces
from training.text.template import ChatTokenizer


@runtime_checkable
class Spread(Protocol):
    """Engines or ranks in processes of their own."""

    def status(self) -> list[ProcessStatus]:
        """Return what each process does."""


@dataclass(slots=True)
class TrainingContext:
    """Everything that one attempt works with.

    `step` is the last complete step, `resumed` the state it starts from, `engine_step` the step whose weights sample.
    `older` are the files of weights before that step, with which games are still to be played.
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
    cluster: Cluster | None = None
    reservation: Reservation | None = None
    judge: Judge | None = None
    labels: tuple[Measured, ...] = ()
    tool: Tool | None = None
    step: int = 0
    engine_step: int = 0
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
            "version": lambda: self.engine_step,
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


def build(config: RunConfig, run_dir: RunDir, latest: tuple[int, Path] | None) -> TrainingContext:
    """Return the context of an attempt that starts from checkpoint `latest` = (step, folder), or from the beginning."""
    with ExitStack() as failing:
        context = _build(config, run_dir, latest, failing)
        failing.pop_all()
    return context


def _build(config: RunConfig, run_dir: RunDir, latest: tuple[int, Path] | None, failing: ExitStack) -> TrainingContext:
    """Return the context; `failing` ends what was started if something after it fails."""
    device, cluster, reservation = pick_device(config.model.device), None, None
    if not config.cluster.alone:
        packages = ("vllm",) if config.engine.name != "transformers" else ()
        cluster = processes.start(config.cluster.address, packages=packages)
        failing.callback(cluster.stop)
        config, device = placement.placed(config, cluster, device, resumed=latest is not None)
        reservation = placement.reserved(config, cluster, device)
        failing.callback(reservation.close)
    numerics.set_up(config.learn, config.learn.threads)
    files, starts = _read_starts(config, run_dir)
    _check_random_moves(config, starts.scenarios)
    _check_probes(config, starts.scenarios)
    opponents = Opponents(config, run_dir, starts.scenarios, device.partition(":")[0])
    resumed = checkpoint.read(latest[1]) if latest else None
    step = resumed.step if resumed else 0
    place = phases.place_at(config.phases, step + 1)
    active = config.of_phase(place)
    opponents.open(active)
    league = League(config, starts, opponents)
    method = active.method.build()
    if latest and resumed:
        league.restore(resumed.data.get("league", ()), run_dir, latest[1], resumed.step)
    learners = _learners(config, _policy(config, active, device, latest[1] if latest else None), cluster, reservation)
    failing.callback(learners.close)
    chat = ChatTokenizer(learners.tokenizer)
    for start in {start.game: start for start in starts.scenarios}.values():
        check_choices(chat, config.sampling, start)
    remote_judge, labellers = judge(config), _labellers(config, device)
    engine = _engine(config, device, reservation)
    failing.callback(lambda: asyncio.run(engine.close()))
    context = TrainingContext(
        config=config,
        run_dir=run_dir,
        learners=learners,
        active=active,
        place=place,
        method=method,
        engine=engine,
        chat=chat,
        reward=_reward(config, remote_judge, labellers),
        starts=starts,
        opponents=opponents,
        league=league,
        watchdog=_watchdog(active, method),
        info=_info(config, run_dir, files),
        cluster=cluster,
        reservation=reservation,
        adapter_only=policy.saves_adapter_only(config.model.base, config.learn),
        judge=remote_judge,
        labels=_measured(config, labellers),
        tool=tool_of(config, starts.scenarios, remote_judge),
        step=step,
        resumed=resumed,
        older=checkpoint.older(latest[1]) if latest else {},
    )
    context.begin()
    context.player(starts.scenarios[0], 0)  # raises `BadInput` for replies that do not fit the window
    if origin := context.origin(step):
        learners.call(Learner.go_back, origin)
    return context


def _watchdog(config: RunConfig, method: Method) -> Watchdog:
    """Return a new watchdog; it looks for no drift of advantages that are not meant to be around 0."""
    rules = config.stop if method.needs.centred else config.stop.model_copy(update={"advantage_drift": 0.0})
    return Watchdog(rules)


def _read_starts(config: RunConfig, run_dir: RunDir) -> tuple[list[Path], MixtureSampler]:
    """Return the dataset files of the run's games, and their starts."""
    named = [f"mixture.{place}.path" for place in range(len(config.mixture))] or ["scenarios.path"]
    files = [input_file(part.path, run_dir, where) for part, where in zip(config.parts, named, strict=True)]
    alone = config.method.build().needs.alone
    samplers = [
        scenarios.read_scenarios(config, file, part, alone=alone)
        for file, part in zip(files, config.parts, strict=True)
    ]
    return files, MixtureSampler(samplers, [part.weight for part in config.parts])


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


def _learners(
    config: RunConfig, arguments: dict[str, Any], cluster: Cluster | None, reservation: Reservation | None
) -> Learners:
    """Return the learner in this process, or its ranks."""
    if cluster is None or reservation is None:
        return InProcess(Learner(policy.load(**arguments), config.seed))
    from training.learn.ray_learners import RayLearners

    on_gpu = str(arguments["device"]).startswith("cuda")
    cores = placement.cores_of_processes(config, arguments["device"])[: config.cluster.learners]
    meeting_point = None if cluster.folder is None else cluster.folder / "ranks"
    arguments = arguments | {"device": "cuda"} if on_gpu else arguments
    options, half = placement.options(config, cores, reservation.learners), config.engine.dtype == "bfloat16"
    return RayLearners(arguments, options, meeting_point, half=half)


def _reward(config: RunConfig, remote_judge: Judge | None, labellers: Mapping[str, Labeller]) -> Reward:
    return rewards.PerGame(
        {
            part.game: rewards.build(config.reward, games.lookup(part.game), remote_judge, labellers)
            for part in config.parts
        }
    )


def _labellers(config: RunConfig, device: str) -> dict[str, Labeller]:
    """Return the classifiers that the reward names; raise `BadInput` naming the field and what is wrong in the folder.

    Two that stand on one base model have it twice in memory.
    """
    opened: dict[str, Labeller] = {}
    for place, entry in enumerate(config.reward.labels):
        if entry.classifier and entry.classifier not in opened:
            try:
                opened[entry.classifier] = Labeller(classifier.load(Path(entry.classifier)), device)
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


def _engine(config: RunConfig, device: str, reservation: Reservation | None) -> Engine:
    section, kind = config.engine, device.partition(":")[0]
    options: dict[str, Any] = {
        "dtype": section.dtype,
        "device": kind,
        "window": section.window,
        "max_running": section.max_running,
        "cache_gib": section.cache_gib,
        "choices": config.sampling.constrain,
    }
    if reservation is None:
        return engines.make(section.name, config.model.base, **options)
    from training.engines.pool import EnginePool

    cores = placement.cores_of_processes(config, kind)[config.cluster.learners :]
    pool = placement.options(config, cores, reservation.engines)
    return EnginePool(section.name, config.model.base, pool, **options)
