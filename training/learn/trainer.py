"""The loop: play, score, give credit, update, send the weights to the engine, save. Start here to read about learning.

`run` starts or resumes a run in a new attempt; it raises the errors of `run_attempt`.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, Protocol

from training import games, phases, rewards
from training.attempts.attempt import Checkpoint, run_attempt
from training.attempts.progress import Progress, Result, StopRequested
from training.cluster import watch
from training.config import RunConfig
from training.errors import BadInput, DivergedError, OutsideError, boundary
from training.learn import checkpoint, playing, report, unfinished
from training.learn.context import TrainingContext, build
from training.learn.in_flight import InFlightPrefetcher
from training.learn.learner import CRITIC, OPTIMIZER, Learner
from training.learn.prefetch import PlayedStep, RolloutPrefetcher, pack, stored, unpack
from training.learn.score import Rollout, begin_critic, give_credit, measured, rows
from training.learn.update import BadStep
from training.opponent_sections import PAST, START
from training.rundir import RunDir
from training.seeding import derive
from training.store import read_lines

log = logging.getLogger(__name__)
NO_GRADIENT = 1e-7
"""A smaller gradient norm is the rounding of equal numbers: such an update teaches nothing."""
UNWATCHED = "stop.kl_ceiling is not watched: without learn.kl and learn.kl_measured no KL divergence is measured"
Evaluate = Callable[["Trainer", int], Awaitable[dict[str, float]]]
"""Plays a head-to-head with the present weights; its numbers become an event."""
Measure = Callable[["Trainer"], Awaitable[dict[str, float]]]
"""Measures the present weights without playing; its numbers join the metrics of the step."""
AtEnd = Callable[["Trainer"], Awaitable[None]]
"""Called once the last step is done and saved."""


class Calibrate(Protocol):
    """Asks a single agent with the present weights."""

    def due(self, step: int) -> bool:
        """Return whether that is to be done after a step."""

    async def __call__(self, trainer: Trainer) -> None:
        """Ask it."""


class Trainer:
    """One attempt at a run, from the newest checkpoint (or from nothing) to the end, a stop, or a failure."""

    def __init__(
        self,
        context: TrainingContext,
        progress: Progress,
        evaluate: Evaluate | None = None,
        at_end: AtEnd | None = None,
        measure: Measure | None = None,
        calibrate: Calibrate | None = None,
    ) -> None:
        self.context, self.config, self.progress = context, context.config, progress
        self.evaluate, self.at_end, self.measure, self.calibrate = evaluate, at_end, measure, calibrate
        self.step = self._begun = context.step
        self.bad_in_a_row = self.effective = 0
        self.saved = context.step if context.resumed else -1
        self.prefetcher: RolloutPrefetcher | None = None
        checkpoint.seed_generators(derive(self.config.seed, "generators"))
        if context.resumed:
            self._restore(context.resumed)
            self._compare_again()

    async def loop(self) -> tuple[Result, str]:
        """Run to the end; return the result and, unless it succeeded, why."""
        try:
            self.progress.phase("syncing")
            await self.sync(phases.weights_after(self.config.phases, self.step))
            await self._measure_league()
            await self._calibrate()
            if self.config.cluster.lag:
                self.prefetcher = await self._start_prefetcher()
            self.context.forget_checkpoint()
            while self.step < self.config.learn.steps:
                if why := await self._step():
                    return "stopped", await self._end_early(why)
        except StopRequested as request:
            await self.save()
            return "stopped", str(request)
        finally:
            if self.prefetcher is not None:
                await self.prefetcher.close()
        await self.save()
        if not self.effective:
            raise DivergedError("no update changed the policy: there was nothing to learn from")
        if self.at_end is not None:
            if self.prefetcher is not None:  # the engine has the weights of the last games
                await self.sync(self.step)
            self.progress.check_processes = None  # what follows needs no learner
            await self.progress.unless_stopped(self.at_end(self))
        return "succeeded", ""

    async def _step(self) -> str:
        """Do one training step; return why the run should end early, or an empty text."""
        number = self.step + 1
        self.progress.check()
        began = time.monotonic()
        await self._enter_phase(number)
        rollouts, metrics = await self._played(number)
        reason = ""
        try:
            metrics |= await self._learned(rollouts, number)
            self.bad_in_a_row = 0
        except BadStep as bad:
            reason = str(bad)
            self.bad_in_a_row += 1
            metrics["bad_steps"] = 1.0
            self.progress.event("warning", step=number, why=f"nothing learned in this step: {bad}")
        self.progress.phase("syncing")
        metrics["sync_s"] = await _timed(self._sync_or_stage(number))
        self.step = self.progress.step = number
        metrics["step_s"] = time.monotonic() - began
        self._report(rollouts, metrics | await self._measured())
        if self.bad_in_a_row >= self.config.stop.bad_steps:
            raise DivergedError(f"{self.bad_in_a_row} steps in a row taught nothing; the last one: {reason}")
        if why := self.context.watchdog.see(metrics):
            return why  # the caller saves, and knows which earlier checkpoint must stay
        due = number % self.config.learn.save_every == 0 or number in phases.ends(self.config.phases)
        if self.progress.take_save() or due:
            if self.prefetcher is not None:
                await self.progress.unless_stopped(self.prefetcher.settle(number))
            await self.save()  # before the head-to-head: what a long one costs, should it fail, is the head-to-head
        await self._measure_league()
        if self.prefetcher is not None:
            self.prefetcher.complete(number)
        await self._calibrate()
        return await self._evaluate()

    async def _played(self, number: int) -> PlayedStep:
        """Return the games of training step `number`: played now, or while an earlier step was learned."""
        if self.prefetcher is None:
            return await playing.play(self.context, self.progress, number, number - 1, self._begun)
        self.progress.phase("sampling")
        rollouts, metrics = await self.progress.unless_stopped(self.prefetcher.take(number))
        return rollouts, metrics | self.prefetcher.behind(number, rollouts)

    async def _start_prefetcher(self) -> RolloutPrefetcher:
        """Start to sample ahead in the present phase, with what the checkpoint has of it if it was resumed."""
        resumed = self.context.resumed if self.step == self._begun else None
        played = unpack(resumed.data.get("ahead", [])) if resumed else {}
        staged = {step: stored(file) for step, file in self.context.older.items()} if resumed else {}
        start, end = phases.span(self.config.phases, self.context.place, self.config.learn.steps)
        first = max(start, max(played, default=self.step) - self.config.cluster.lag)
        in_flight = self.config.cluster.in_flight_updates
        if not in_flight and (missing := [each for each in range(first, self.step) if each not in staged]):
            why = f"the run was saved with another lag: the weights after step {missing[0]} are not in its checkpoint"
            raise BadInput(why, "cluster.lag")
        kind = InFlightPrefetcher if in_flight else RolloutPrefetcher
        prefetcher = kind(self.context, self.progress, self._begun, (start, end), self.step, played, staged)
        await prefetcher.learned(self.step)
        return prefetcher

    async def _sync_or_stage(self, number: int) -> None:
        """Send the engine the weights after training step `number`: now, or from the store when their games begin."""
        if self.prefetcher is None:
            await self.sync(number)
        else:
            await self.prefetcher.learned(number)

    @asynccontextmanager
    async def _present_weights(self) -> AsyncIterator[None]:
        """Let games that are not of a training step have the engine, with the present weights.

        What the engine still holds of their prompts afterwards would round the next games differently.
        """
        if self.prefetcher is None:
            yield
            await self.sync(self.step)
        else:
            async with self.prefetcher.idle():  # which loads the weights of its games again
                await self.sync(self.step)
                yield

    async def _enter_phase(self, number: int) -> None:
        """Enter the phase of training step `number`, if it is another than that of the step before."""
        if not self.config.phases or phases.place_at(self.config.phases, number) == self.context.place:
            return
        self.progress.phase("loading")
        generators = checkpoint.pack_generators()
        if self.prefetcher is not None:
            await self.prefetcher.close()
        await self.context.enter(self.context.place + 1)
        if origin := self.context.origin(self.step):
            self.context.learners.call(Learner.go_back, origin)
            await self.sync(phases.weights_after(self.config.phases, self.step))
        if self.prefetcher is not None:
            self.prefetcher = await self._start_prefetcher()
        checkpoint.unpack_generators(*generators)  # a resumed run has them from its checkpoint, after it has loaded

    async def sync(self, step: int) -> None:
        """Send the engine the present weights, which are those after training step `step`."""
        if self.prefetcher is None or not await self.prefetcher.load_present(step):
            await self.context.learners.push(self.context.engine, step)

    async def _end_early(self, why: str) -> str:
        """Save, report what the watchdog saw and the last good checkpoint, which stays on disk; return both as text."""
        last_good = self.context.watchdog.last_good_step(self.step)
        good = self._newest_checkpoint(last_good)
        await self.save(keep=() if good is None else (good,))
        self.progress.event("watchdog", step=self.step, why=why, last_good_step=last_good, checkpoint=good)
        advice = "none was saved before it" if good is None else f"the last good checkpoint is that of step {good}"
        return f"{why}; {advice}"

    def _newest_checkpoint(self, step: int) -> int | None:
        """Return the newest saved step up to `step`, whichever attempt saved it."""
        saved = RunDir(self.progress.attempt.root.parents[1]).steps()
        return max((each for each in saved if each <= step), default=None)

    async def _learned(self, rollouts: list[Rollout], number: int) -> dict[str, float]:
        """Measure, credit, update; return metrics. `BadStep` and `StopRequested` leave the weights as they were."""
        context, began = self.context, time.monotonic()
        self.progress.phase("learning")
        single = context.active.learn.single_update
        needs, learn = context.method.needs, context.active.learn
        await measured(rollouts, context.learners, needs, learn, old=not single, progress=self.progress)
        if not any(any(item.trace.mask) for rollout in rollouts for item in (rollout.items or {}).values()):
            raise BadStep("no game of the step ended with a score and a sampled token")
        if unfitted := context.learners.call(Learner.unfitted):
            context.learners.call(Learner.begin_critic, begin_critic(rollouts, unfitted, context.method))
        state = copy.deepcopy(context.method.state_dict())
        give_credit(rollouts, context.method)
        items = rows(rollouts, imitates=context.method.needs.imitates)
        if not items:
            raise BadStep("nothing was to be learned: the learner had no choice in any reply, and no text to predict")
        metrics = report.credit_metrics(rollouts)
        try:
            metrics |= await context.learners.update(items, number, self.progress)
        except StopRequested:
            context.method.load_state_dict(state)  # the step is credited again when the run goes on
            raise
        self.effective += metrics.get("grad_norm", 0.0) > NO_GRADIENT and metrics["lr"] > 0
        seconds = time.monotonic() - began
        tokens = sum(item.width for item in items)
        return metrics | {"learning_s": seconds, "learning_tokens_per_s": tokens / max(seconds, 1e-9)}

    async def _measured(self) -> dict[str, float]:
        """Return the measurements that are due; a stop or a failure leaves them out: the step itself is done."""
        section = self.config.evaluate
        due = self.step % section.nashconv_every == 0 or self.step == self.config.learn.steps
        if self.measure is None or not due:
            return {}
        self.progress.phase("evaluating")
        values: dict[str, float] = {}
        async with self._present_weights():
            try:
                with boundary():
                    values = await self.progress.unless_stopped(self.measure(self))
            except StopRequested:
                pass  # the next step ends the run
            except OutsideError as error:
                self.progress.event("warning", step=self.step, why=f"nothing was measured: {error}")
        return values

    def _report(self, rollouts: list[Rollout], metrics: dict[str, float]) -> None:
        if self.config.phases:
            metrics["phase"] = self.context.place + 1.0
        report.write_episodes(self.progress, self.step, rollouts)
        self.progress.metrics(self.step, metrics)
        summary = {
            name: round(metrics[name], 4) for name in ("reward", "parse_rate", "entropy", "kl") if name in metrics
        }
        log.info("step %d of %d: %s", self.step, self.config.learn.steps, summary)

    async def _evaluate(self) -> str:
        """Play the head-to-head if it is due; return why the run should end, or an empty text."""
        every = self.config.evaluate.every
        if self.evaluate is None or not every or self.step % every:
            return ""
        self.progress.phase("evaluating")
        async with self._present_weights():
            results = await self.progress.unless_stopped(self.evaluate(self, self.step))
        self.progress.event("evaluation", **{**results, "step": self.step})
        return self._compare(results)

    async def _measure_league(self) -> None:
        """Play the league's evaluation of this step, if it is due and no earlier attempt has played it."""
        if self.context.league.due(self.step):
            async with self._present_weights():
                await self.progress.unless_stopped(self.context.league.play(self))

    async def _calibrate(self) -> None:
        """Ask a single agent, if that is due; a failure is a warning, and the run goes on."""
        if self.calibrate is None or not self.calibrate.due(self.step):
            return
        async with self._present_weights():
            try:
                with boundary():
                    await self.progress.unless_stopped(self.calibrate(self))
            except (OutsideError, BadInput) as error:
                self.progress.event("warning", step=self.step, why=f"no single agent was measured: {error}")

    def _compare(self, results: Mapping[str, Any]) -> str:
        """Give the watchdog a head-to-head after this step, if training rewards what it compares."""
        worth = gain_worth(self.context.active)
        return "" if worth is None else self.context.watchdog.see_evaluation(self.step, results, worth)

    def _compare_again(self) -> None:
        """Give the watchdog the head-to-head after the resumed step, which was played once its checkpoint was saved."""
        run_dir = RunDir(self.progress.attempt.root.parents[1])
        events = (event for number in run_dir.attempts() for event, _ in read_lines(run_dir.attempt(number).events))
        for event in [event for event in events if event["kind"] == "evaluation" and event["step"] == self.step][-1:]:
            self._compare(event)

    # --- checkpoints ---

    async def save(self, keep: Collection[int] = ()) -> None:
        """Write a checkpoint of the last complete step, unless there is one; those of the steps `keep` stay.

        Games that are played ahead go on meanwhile.
        """
        if self.saved == self.step:
            return
        self.progress.phase("saving")
        context, folder = self.context, self.progress.attempt.checkpoint(self.step)
        info = context.info.model_copy(update={"step": self.step})
        state, loop = self._state(), asyncio.get_running_loop()

        def beat() -> None:
            loop.call_soon_threadsafe(self.progress.beat)

        adapter_only = context.adapter_only
        await asyncio.to_thread(context.learners.save, folder, info, state, adapter_only=adapter_only, beat=beat)
        self.saved = self.step
        if self.config.rollout.keep_unfinished:
            unfinished.clear(context.run_dir, self.step)
        self.progress.event("checkpoint", step=self.step, path=f"checkpoints/{folder.name}")
        evaluated = self._newest_checkpoint(context.watchdog.evaluated)  # what a later gap would offer
        protected = {*self.config.past(self.step + 1), *keep, *(() if evaluated is None else (evaluated,))}
        checkpoint.prune(self.progress.attempt, self.config.learn.keep, protected)

    def _state(self) -> checkpoint.TrainerState:
        """Return the driver's part of a checkpoint's state."""
        generators, states = checkpoint.pack_generators()
        rest = {
            "generators": generators,
            "method": self.context.method.state_dict(),
            "watchdog": self.context.watchdog.state_dict(),
            "bad_in_a_row": self.bad_in_a_row,
            "effective": self.effective,
            "league": self.context.league.state_dict(),
        }
        if self.prefetcher is None:
            return checkpoint.TrainerState(self.step, rest, states)
        rest["ahead"] = pack(self.prefetcher.played)
        return checkpoint.TrainerState(self.step, rest, states, self.prefetcher.older(self.step))

    def _restore(self, state: checkpoint.TrainerState) -> None:
        origin = self.context.origin(state.step)
        taken = checkpoint.read(origin) if origin else state
        optimizers = {name: taken.data[name] for name in (OPTIMIZER, CRITIC) if name in taken.data}
        self.context.learners.call(Learner.take, replace(taken, data=optimizers))  # ranks read the tensors themselves
        if state.step not in phases.ends(self.config.phases)[:-1]:  # else a phase begins, with neither state
            self.context.method.load_state_dict(state.data["method"])
            self.context.watchdog.load_state_dict(state.data["watchdog"])
        self.bad_in_a_row, self.effective = state.data["bad_in_a_row"], state.data["effective"]
        checkpoint.unpack_generators(state.data["generators"], state.tensors)


def gain_worth(config: RunConfig) -> float | None:
    """Return the reward of one unit of the return that a head-to-head compares, None where the two are not alike.

    They are where the same seats play against what the run began with, or against its past: one seat of a zero-sum
    game, or the roles of `evaluate.side` against the start as the common opponent. Where every seat learns, all may
    earn more together, which is no gain over the start at the same table. Against the start itself what one model
    earns the other loses, so that the difference of their returns is twice the gain.
    """
    section, spec = config.evaluate, games.lookup(config.game.name)
    if section.side:
        alike = section.opposition == "common" and config.common_opponent == config.model.base
    else:
        alike = spec.zero_sum
    learns = {*section.side} or "one"
    for entry in config.opponents:
        seats = entry.learner if entry.learner == "one" else {*entry.learner}
        alike &= entry.source in (PAST, START) and seats == learns and not (entry.partner or entry.ally)
    worth = rewards.per_return(config.reward, spec, config.game.settings)
    if worth is None or not alike or not config.opponents or config.mixture or section.opponent:
        return None
    return worth if section.side else worth / 2


async def _timed(work: Awaitable[object]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


def run(
    config: RunConfig,
    run_dir: RunDir,
    attempt: int | None = None,
    evaluate: Evaluate | None = None,
    at_end: AtEnd | None = None,
    measure: Measure | None = None,
    calibrate: Calibrate | None = None,
    *,
    supervised: bool = False,
) -> dict[str, Any]:
    """Start a training run, or resume it from the newest complete checkpoint; see `run_attempt`."""

    def prepare(progress: Progress, newest: Checkpoint | None) -> Trainer:
        watch.listen(lambda why: progress.event("error", step=progress.step, why=why))
        with ExitStack() as failing:
            context = build(config, run_dir, newest, progress.beat)
            failing.callback(lambda: asyncio.run(context.close()))
            trainer = Trainer(context, progress, evaluate, at_end, measure, calibrate)
            failing.pop_all()
        return trainer

    return run_attempt(run_dir, attempt, prepare, _go, steps=config.learn.steps, supervised=supervised)


def _unwatched(config: RunConfig, place: int) -> str:
    """Return that the KL divergence is not watched, naming the phases from `place` on where it is not; else nothing."""
    if not config.phases:
        return "" if config.learn.reads_reference else UNWATCHED
    rest = range(place, len(config.phases))
    names = [config.phases[at].name for at in rest if not config.of_phase(at).learn.reads_reference]
    return f"{UNWATCHED} (phase {', '.join(names)})" if names else ""


def _lag_notice(config: RunConfig) -> str:
    """Return which weights sample with a lag, and how the loss corrects that."""
    learn, lag = config.learn, config.cluster.lag
    weights = f"step n samples with the weights after step n - {lag + 1}"
    if config.cluster.in_flight_updates:
        weights += (
            ", and by in-flight updates with newer ones from a game's next reply on: neither seeds nor a resumed run "
            "repeat the games"
        )
    dropped = f", and left out beyond a factor of {learn.importance_outlier:g}" if learn.importance_outlier else ""
    return (
        f"{weights}: its tokens are weighted by π_prox / π_behavior, of the present policy and the one that sampled, "
        f"at most {learn.importance_cap:g}{dropped}"
    )


def _log_start(context: TrainingContext) -> None:
    """Log which processes are up, and after which step training continues."""
    if context.cluster is not None:
        log.info("%s are ready", context.config.cluster.counts)
    if context.resumed:
        log.info("continuing after step %d", context.step)


def _go(trainer: Trainer, progress: Progress) -> tuple[Result, str]:
    _log_start(trainer.context)
    if why := _unwatched(trainer.config, trainer.context.place):
        progress.event("warning", step=trainer.step, why=why)
    if labels := trainer.context.labels:
        progress.event("labels", step=trainer.step, labels=[asdict(label) for label in labels])
        for label in labels:
            if label.warning:
                log.warning("reward.labels: %s", label.warning)
                progress.event("warning", step=trainer.step, why=label.warning)

    if lag := trainer.config.cluster.lag:
        why = _lag_notice(trainer.context.active)
        log.info("%s", why)
        progress.event("lag", step=trainer.step, lag=lag, why=why)

    async def main() -> tuple[Result, str]:
        context = trainer.context
        if context.cluster is not None:
            progress.processes, progress.warnings = context.processes, context.cluster.warnings
            progress.check_processes = context.learners.check
        try:
            return await trainer.loop()
        finally:
            progress.processes = progress.check_processes = None
            await context.close()

    return asyncio.run(main())
