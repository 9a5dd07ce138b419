"""A run of kind `suite`: one model plays all tasks, at every seat.

`run` writes the conversations and `suite.json` (a row for every task and seat, with all conditions) into an attempt of
the run directory. A suite that is stopped begins anew in the next attempt. Raises the errors of `run_attempt`, and
`OutsideError` if not a single number could be measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any

from training import players
from training.attempts.attempt import run_attempt
from training.attempts.progress import Progress, Result
from training.cluster.fit import make_engine
from training.config import RunConfig
from training.errors import BadInput, OutsideError, boundary
from training.evaluate import nashconv
from training.evaluate.intervals import METHOD
from training.evaluate.run import versions
from training.evaluate.suite.judging import GOAL, Judged, judged
from training.evaluate.suite.plan import MODEL, OPPONENT, PARTNER, Block, blocks, label, opponent_of
from training.evaluate.suite.rows import SIDE, Results, Row, estimates
from training.games import lookup
from training.games.openspiel.equilibria import Policy
from training.labels.codebooks import SOTOPIA
from training.learn import report
from training.learn.context import judge as judge_of
from training.learn.context import pick_device, tool_of
from training.opponent_sections import MIRROR
from training.players.base import Reply
from training.players.contestants import Contestant, ContestantPool
from training.records import ErrorRecord, Seat
from training.rollout import Job, RolloutPolicy, rollout
from training.rollout.pool import title
from training.rundir import RunDir
from training.store import sha256, write_json
from training.suites import BEST_RESPONSE, SuiteTask

FILE = "suite.json"


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Play the suite of a configuration; return the result of `run_attempt` together with the report."""
    result: dict[str, Any] = {}

    def go(suite: Suite, progress: Progress) -> tuple[Result, str]:
        result.update(asyncio.run(suite.hold(progress)))
        return "succeeded", ""

    return run_attempt(run_dir, attempt, lambda *_: Suite(config, run_dir), go, supervised=supervised) | result


class Suite:
    """One suite with its starts read and its models loaded. Raises `BadInput` for whatever cannot be played."""

    def __init__(self, config: RunConfig, run_dir: RunDir) -> None:
        self.config = config
        self.blocks = blocks(config, run_dir)
        self._command = f"python -m training run config.json --dir {run_dir.root.name}"
        device = pick_device(config.model.device).partition(":")[0]
        self.pool = ContestantPool(config.engine, config.sampling, device, config.speaker, partial(make_engine, config))
        self.model = self.pool.open(config.model.base, MODEL)
        others = dict.fromkeys(block.task.measured for block in self.blocks if block.task.measured)
        self.measured = {"": self.model, **{source: self.pool.open(source, MODEL) for source in others}}
        tasks = {block.task.opponent: block.task for block in self.blocks if block.task.opponent != MIRROR}
        self.opponents = {
            source: self.pool.open(opponent_of(task, config.model.base, "opponent"), OPPONENT)
            for source, task in tasks.items()
        }
        partners = dict.fromkeys(block.task.partner for block in self.blocks if block.task.partner)
        self.partners = {source: self.pool.open(source, PARTNER) for source in partners}
        self.pool.check_choices([block.starts[0] for block in self.blocks])
        needs_judge = any(lookup(block.task.game).judged for block in self.blocks)
        self.judge = judge_of(config) if needs_judge else None
        self._tool = tool_of(config, [start for block in self.blocks for start in block.starts], self.judge)
        self._total = sum(len(block.starts) for block in self.blocks)
        self._errors: list[ErrorRecord] = []
        self._versions = versions()

    async def hold(self, progress: Progress) -> dict[str, Any]:
        """Play and measure all tasks and write the report; return it. Always closes the models."""
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.pool.aclose)
            if self.judge is not None:
                stack.push_async_callback(self.judge.close)
            progress.phase("evaluating", done=0, of=self._total)
            rows: list[Row] = []
            for place, task in enumerate(self.config.suite.tasks):
                exact = task.opponent == BEST_RESPONSE
                rows += await (self._best_response if exact else self._played)(place, task, progress)
        report = {
            "rows": [row.to_dict() for row in rows],
            "conditions": {
                "command": self._command,
                "suite": self.config.name,
                "model": {"title": self.model.title, **self.model.facts},
                "intervals": f"{METHOD.replace('scenarios', 'deals')}; a deal is a start with its seed",
                "seconds": round(time.monotonic() - began, 1),
            },
        }
        write_json(progress.attempt.root / FILE, report)
        progress.metrics(0, flat(rows))
        progress.event("suite", games=self._total, errors=len(self._errors))
        if all(row.raw is None and row.exact is None for row in rows):
            if not self._errors:
                raise OutsideError(f"nothing was measured: {rows[0].unavailable}")
            count, first = len(self._errors), self._errors[0].message
            raise OutsideError(f"no game was played without an error; the first of {count} errors: {first}")
        return report

    # --- tasks that play games ---

    async def _played(self, place: int, task: SuiteTask, progress: Progress) -> list[Row]:
        """Play a task at every seat; return the rows of the seats, then that of all seats."""
        if task.side:
            return await self._played_as_side(place, task, progress)
        by_seat: dict[Seat, Results] = {}
        of_task = [block for block in self.blocks if block.place == place]
        steps: dict[Seat, Block] = {}
        for block in of_task:
            results = Results()
            seats = range(len(block.starts[0].seats)) if block.seat is None else (block.seat,)
            await self._play(block, results, seats, progress)
            by_seat |= dict.fromkeys(seats, results)
            steps |= dict.fromkeys(seats, block)
        rows = [self._row(task, steps[seat], {seat: by_seat[seat]}, seat) for seat in by_seat]
        return [*rows, self._row(task, of_task[0], by_seat, None)] if len(by_seat) > 1 else rows

    async def _played_as_side(self, place: int, task: SuiteTask, progress: Progress) -> list[Row]:
        """Play a task in which the model has all seats of a side; return its row."""
        [block] = [block for block in self.blocks if block.place == place]
        results = Results()
        await self._play(block, results, (), progress)
        return [self._row(task, block, {SIDE: results}, None)]

    async def _play(self, block: Block, results: Results, seats: range | tuple[Seat, ...], progress: Progress) -> None:
        """Play the games of a block and store each of them as it ends."""
        before = sum(len(other.starts) for other in self.blocks if other.number < block.number)
        replies = 0

        def on_reply(reply: Reply) -> None:
            nonlocal replies
            replies += 1
            progress.check()
            progress.beat(replies=replies)

        rules = RolloutPolicy(
            block.seed(self.config.seed), 0, self.config.rollout.retries, self.config.rollout.on_refused
        )
        lanes = self.config.rollout.lanes or self.config.engine.max_running
        policies = {MODEL: self.measured[block.task.measured].player}
        if block.seat is not None or block.task.side:
            policies[OPPONENT] = self.opponents[block.task.opponent].player
        if block.task.partner:
            policies[PARTNER] = self.partners[block.task.partner].player
        games = rollout(block.jobs(), policies, lanes=lanes, rules=rules, tool=self._tool, on_reply=on_reply)
        judge = self.judge if lookup(block.task.game).judged else None
        async with aclosing(games) as playing, aclosing(judged(playing, judge, rules.seed)) as scored:
            async for job, game in scored:
                self._count(progress, block, job, game, results, seats)
                progress.check()
                progress.beat(done=before + results.games)

    def _count(
        self,
        progress: Progress,
        block: Block,
        job: Job,
        game: Judged,
        results: Results,
        seats: range | tuple[Seat, ...],
    ) -> None:
        """Add a game to the results, and store it."""
        by_policy = {
            name: [seat for seat, policy in enumerate(job.policies) if policy == name] for name in (MODEL, OPPONENT)
        }
        side, zero_sum = bool(block.task.side), lookup(block.task.game).zero_sum
        opposite = None if side or zero_sum else by_policy[OPPONENT]
        results.add(game.episode, by_policy[MODEL] if side else seats, side=side, opposite=opposite)
        self._errors += [game.episode.error] if game.episode.error else []
        _store(progress, block, job, game)

    def _row(self, task: SuiteTask, block: Block, by_seat: Mapping[Seat, Results], seat: Seat | None) -> Row:
        distinct = {id(results): results for results in by_seat.values()}.values()  # the seats of a mirror share theirs
        errors: dict[str, int] = {}
        for results in distinct:
            for kind, count in results.errors.items():
                errors[kind] = errors.get(kind, 0) + count
        mirror = task.opponent == MIRROR
        numbers = estimates(task.scale, by_seat)
        opponent: Contestant = self.measured[task.measured] if mirror else self.opponents[task.opponent]
        return Row(
            task=block.place,
            title=label(task, block.starts[0]),
            opponent=task.opponent if mirror else opponent.title,
            held_out=task.held_out,
            seat=seat,
            side=task.side,
            partner=self.partners[task.partner].title if task.partner else "",
            charts=task.charts,
            games=sum(results.games for results in distinct),
            played=sum(results.played for results in distinct),
            errors=errors,
            step=None if seat is None and not (mirror or task.side) else block.number,
            provenance={
                **self._provenance(task, seat),
                "opponent": {**({} if mirror else opponent.facts), "source": title(task.opponent)},
                **self._beside(task, block),
                **self._judge_facts(task),
                "scenarios": {"file": block.file.name, "sha256": sha256(block.file), "deals": len(block.starts)},
                "retries": self.config.rollout.retries,
                "on_refused": self.config.rollout.on_refused,
                "sampling": self.config.sampling.to_dict(),
            },
            **numbers,
        )

    def _beside(self, task: SuiteTask, block: Block) -> dict[str, Any]:
        """Return what the numbers of a side depend on; nothing for other tasks."""
        if not task.side:
            return {}
        facts: dict[str, Any] = {"side": list(task.side), "players": len(block.starts[0].seats)}
        if task.partner:
            facts["partner"] = {**self.partners[task.partner].facts, "source": title(task.partner)}
        return facts

    def _judge_facts(self, task: SuiteTask) -> dict[str, Any]:
        """Return who scored the games of a task and by which codebook; nothing where they have results of their own."""
        if self.judge is None or not lookup(task.game).judged:
            return {}
        return {
            "judge": {"model": self.judge.name, "codebook": f"{SOTOPIA.name} v{SOTOPIA.version}", "value": GOAL.name}
        }

    def _provenance(self, task: SuiteTask, seat: Seat | None) -> dict[str, Any]:
        """Return what every number depends on."""
        return {
            "model": self.measured[task.measured].title,
            "game": task.game,
            "settings": dict(task.settings),
            "opponent": {"source": title(task.opponent)},
            "seat": seat,
            "seed": self.config.seed,
            "scale": None if task.scale is None else task.scale.to_dict(),
            "versions": self._versions,
        }

    # --- tasks that compute a best response ---

    async def _best_response(self, place: int, task: SuiteTask, progress: Progress) -> list[Row]:
        """Return NashConv and exploitability of the model's policy, or the reason why they are unknown."""
        exact: dict[str, float] | None = None
        errors: dict[str, int] = {}
        why = ""
        try:
            with boundary():
                exact = nashconv.measure(task.game, await self._policy(task.game, progress))
        except BadInput as error:
            why = error.why
        except OutsideError as error:
            why, errors = str(error), {error.kind: 1}
        row = Row(
            task=place,
            title=label(task),
            opponent=task.opponent,
            held_out=task.held_out,
            seat=None,
            errors=errors,
            exact=exact,
            unavailable=why,
            provenance=self._provenance(task, None),
        )
        return [row]

    async def _policy(self, game: str, progress: Progress) -> Policy:
        source, states = self.config.model.base, nashconv.points(game)
        policy = nashconv.named_policy(source, game, states)
        if policy is not None:
            return policy
        if players.known(source) or "://" in source:
            raise BadInput(f"the probabilities of what {self.model.title} answers are unknown", "model.base")

        def on_progress(done: int, of: int) -> None:
            progress.check()
            progress.beat(states=done)

        sampling = self.config.sampling
        constrained = sampling.temperature if sampling.constrain else None
        return await nashconv.model_policy(states, *self.pool.scorer(source), on_progress, constrained=constrained)


def _store(progress: Progress, block: Block, job: Job, game: Judged) -> None:
    """Append one game to the attempt's episodes, under the number of its block."""
    names = dict.fromkeys((MODEL, OPPONENT, *job.policies))
    seats = {name: [seat for seat, policy in enumerate(job.policies) if policy == name] for name in names}
    facts = {"block": block.title}
    report.write_evaluated(progress, block.number, job.number, game.episode, seats, facts, judgments=game.judgments)


def flat(rows: list[Row]) -> dict[str, float]:
    """Return the numbers over all seats or a side under one name each, for the comparison of runs."""
    numbers: dict[str, float] = {}
    means = [row for row in rows if row.seat is None]
    names = [f"{row.title} against {row.opponent}{f', {row.who}' if row.side else ''}" for row in means]
    for row, short in zip(means, names, strict=True):
        alone = names.count(short) == 1  # tasks may differ in what the name leaves out, such as settings
        name = short if alone else f"{short} (task {row.task + 1})"
        joint = row.joint if row.opposite else None  # without opponents it is the return
        numbers_of = {"return": row.raw, "opposite": row.opposite, "joint": joint}
        for kind, estimate in {**numbers_of, "normalised": row.normalised, "won": row.won}.items():
            if estimate is not None:
                numbers[f"{kind}/{name}"] = estimate.mean
        if row.exact is not None:
            numbers |= {f"nashconv/{row.provenance['game']}": row.exact["nash_conv"]}
            numbers |= {f"exploitability/{row.provenance['game']}": row.exact["exploitability"]}
    return numbers
