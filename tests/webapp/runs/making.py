"""Runs, episodes and checkpoints for tests, with files where a page reads them."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils.timezone import now

from tests.games.cases.werewolf import dealt
from tests.games.play import played, scripted_move
from training import config as configs
from training.config import RunConfig
from training.evaluate.calibration.report import Evaluation, Row, cell_of
from training.games import make
from training.records import Belief, Episode, Scenario, SeatMove, Turn
from training.suites import FOLDER
from webapp.runs.models import Attempt, Checkpoint, Event, Metric, PlayedEpisode, Run

CONFIG = RunConfig(name="made", model={"base": "tiny"}).to_dict()

SCENARIO = {
    "version": 1,
    "id": "talk-1",
    "game": "negotiation",
    "settings": {},
    "seats": ["Ann", "Bob"],
    "seed": 0,
}
RECORD: dict[str, Any] = {
    "version": 1,
    "episode": {
        "version": 1,
        "scenario": SCENARIO,
        "moves": [{"seat": 0, "move": {"action": "say", "args": {}, "text": "hello", "origin": "seat"}}],
        "turns": [
            {
                "seat": 0,
                "voice": "player",
                "reply": "hello",
                "private": "think of it",
                "move": {"action": "say", "args": {}, "text": "hello", "origin": "seat"},
                "move_index": 0,
                "error": None,
                "passed": True,
                "reward": 0.0,
            },
            {
                "seat": 1,
                "voice": "player",
                "reply": "<deal>",
                "private": "",
                "move": None,
                "move_index": None,
                "error": "this tag is not closed",
                "passed": False,
                "reward": -0.5,
            },
        ],
        "traces": [
            {
                "seat": 0,
                "voice": "player",
                "policy": "learner",
                "parent": None,
                "tokens": [1, 2, 3, 4],
                "mask": [0, 1, 1, 0],
                "turn": [-1, 0, 0, -1],
                "logprobs": [0.0, -0.25, -1.5, 0.0],
            }
        ],
        "returns": {"0": 1.0, "1": 0.25},
        "metrics": {"agreement": 1.0},
        "error": None,
    },
    "returns": {"0": 1.0, "1": 0.25},
    "turn_rewards": [0.0, -0.5],
    "passed": [True, False],
    "judgments": [],
    "credit": [
        {
            "advantages": [0.0, 0.8, -0.4, 0.0],
            "values": {"token": [0.0, 0.5, 0.6, 0.0]},
            "turn_advantages": {"0": 0.8},
            "logprobs": [0.0, -0.26, -1.49, 0.0],
        }
    ],
}


def untouched(form: Any) -> dict[str, Any]:
    """The data of the form of a new run, as a browser sends it back without a change."""
    values = {field.html_name: field.value() for part in (form.start, form.rest) for field in part}
    kept = {name: value for name, value in values.items() if value is not None and value is not False}
    return {name: "on" if value is True else value for name, value in kept.items()}


def make_run(owner: Any, **fields: Any) -> Run:
    """A run that nobody works on."""
    defaults = {"kind": "train", "name": "made", "queue": "train-cpu", "config": CONFIG, "state": "stopped"}
    return Run.objects.create(
        owner=owner, **{**defaults, "method": "omar", "game": "negotiation", "base": "tiny", **fields}
    )


def make_episode(run: Run, step: int = 1, number: int = 0, record: dict[str, Any] | None = None) -> PlayedEpisode:
    """An episode with its record in the storage."""
    member = gzip.compress((json.dumps(record or RECORD) + "\n").encode())
    name = default_storage.save(f"runs/{run.pk}/e{step}-{number}.jsonl.gz", ContentFile(member))
    summary = {"scenario": "talk-1", "returns": {"0": 1.0, "1": 0.25}, "turns": 2, "refused": 1, "metrics": {}}
    return PlayedEpisode.objects.create(
        run=run,
        step=step,
        number=number,
        fence=1,
        file=name,
        offset=0,
        length=len(member),
        outcome="agreement",
        summary=summary,
    )


def league_cell(step: int, opponent: str, *results: float, **fields: Any) -> dict[str, Any]:
    """A cell of a league with a start for each result, from 0 to 1, each played twice; the opponent gets the rest."""
    cell = {"learner": "one", "low": 0.0, "high": 1.0, "games": 2 * len(results), "errors": 0, "first": 16384}
    others = [1 - result for result in results]
    return {
        **cell,
        "step": step,
        "opponent": opponent,
        "results": list(results),
        "others": others,
        "after": step,
        **fields,
    }


def make_league(run: Run, cells: Iterable[dict[str, Any]] = ()) -> Run:
    """A run with these results of a league, or those of two checkpoints, the later of which beats the earlier."""
    late = {"after": 10}
    both = [league_cell(10, "past 0", 0.75, 0.85), league_cell(0, "past 10", 0.25, 0.15, **late)]
    rows = list(cells) or [
        league_cell(0, "scripted", 0.1, 0.3),
        *both,
        league_cell(10, "scripted", 0.5, 0.7, first=16388),
    ]
    attempt, _ = Attempt.objects.get_or_create(
        run=run, number=1, defaults={"fence": 1, "state": "ended", "lease_until": now()}
    )
    for step in sorted({row["after"] for row in rows}):
        data = {"step": step, "cells": [row for row in rows if row["after"] == step]}
        Event.objects.create(run=run, attempt=attempt, at=now(), kind="league", data=data)
    return run


def make_league_game(run: Run, step: int, number: int, pair: tuple[int, str], seats: tuple[int, int]) -> PlayedEpisode:
    """A game of a league between a checkpoint and an opponent at these seats."""
    side = {"a": [seats[0]], "b": [seats[1]]}
    episode = make_episode(run, step, number, record={**RECORD, "credit": [], "seats": side})
    episode.summary |= {"seats": side, "league": {"step": pair[0], "opponent": pair[1], "learner": "one"}}
    episode.save()
    return episode


def village(names: tuple[str, ...] = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"), **fields: Any) -> dict[str, Any]:
    """The record of a game of Werewolf played by chance, the wolves at the first two seats; `fields` of its episode."""
    roles = ("werewolf", "werewolf", "seer", "witch", "villager", "villager")
    scenario = dealt(*roles).model_copy(update={"seats": names})
    game, moves = played(scenario, seed=3)
    turns = [
        {"seat": one.seat, "reply": one.move.text, "move": one.move.to_dict(), "move_index": place, "passed": True}
        for place, one in enumerate(moves)
    ]
    episode = {
        "version": 1,
        "scenario": game.scenario.to_dict(),
        "moves": [entry.to_dict() for entry in moves],
        "turns": turns,
        "traces": [],
        "returns": {},
        "roles": list(game.roles()),
    }
    return {"version": 1, "episode": {**episode, **fields}, "returns": {}, "credit": []}


def ship(believed: Callable[[int, int], float], seed: int = 2, **fields: Any) -> dict[str, Any]:
    """The record of a scripted game of Among Us; `believed` is a seat's probability of the truth after so many moves.

    The rest is shared by the other choices. `fields` are those of the episode.
    """
    game = make(Scenario(id="ship", game="among_us", seats=("Ada", "Ben", "Cleo", "Dan", "Eva"), seed=seed))
    moves: list[SeatMove] = []
    beliefs: list[Belief] = []
    while acting := sorted(game.to_act()):
        for seat, probe in game.probes().items():
            right = believed(len(moves), seat)
            rest = (1 - right) / (len(probe.choices) - 1)
            shares = {name: right if name in probe.truth else rest for name in probe.choices}
            facts = {"question": probe.question, "truth": probe.truth}
            beliefs.append(Belief(seat=seat, after=len(moves), probabilities=shares, **facts))
        step = {seat: scripted_move(game, seat, seed) for seat in acting}
        game.step(step)
        moves += [SeatMove(seat=seat, move=move) for seat, move in step.items()]
    turns = [
        Turn(seat=one.seat, reply=one.move.text, move=one.move, move_index=place, passed=True)
        for place, one in enumerate(moves)
    ]
    facts = {"returns": game.returns(), "roles": game.roles(), "beliefs": beliefs}
    episode = Episode(scenario=game.scenario, moves=tuple(moves), turns=tuple(turns), **facts)
    return {"version": 1, "episode": {**episode.to_dict(), **fields}, "returns": {}, "credit": []}


CREW = ["crewmate", "imposter", "crewmate"]
SIDES = ("imposter", "crewmate", "imposter", "crewmate")


def make_summary(run: Run, step: int, number: int, **summary: Any) -> PlayedEpisode:
    """An episode with these facts in its summary."""
    episode = make_episode(run, step, number)
    episode.summary |= summary
    episode.save()
    return episode


def in_turns(owner: Any, phases: Iterable[Mapping[str, Any]], **fields: Any) -> Run:
    """A run of Among Us in these phases."""
    made = list(phases)
    learn = {"steps": sum(phase["steps"] for phase in made), "critic_warmup": 0}
    config = RunConfig.from_dict({**CONFIG, "game": {"name": "among_us"}, "phases": made, "learn": learn})
    return make_run(owner, game="among_us", config=config.to_dict(), **fields)


def make_game(run: Run, step: int, number: int, *, crew_won: bool, learner: str, **summary: Any) -> PlayedEpisode:
    """A game of three in which `learner` learned, and another policy played the other role."""
    won = {str(seat): {"won": float((role == "crewmate") == crew_won)} for seat, role in enumerate(CREW)}
    policies = ["learner" if role == learner else "start" for role in CREW]
    return make_summary(run, step, number, roles=CREW, policies=policies, seat_metrics=won, error=None, **summary)


def make_deduction(owner: Any) -> Run:
    """A run in which imposter and crew learn in turn, with what their messages changed, and curves of it."""
    phases = [
        {"name": f"{side}-{place}", "steps": 2, "opponents": [{"source": "start", "learner": [side]}]}
        for place, side in enumerate(SIDES)
    ]
    run = in_turns(owner, phases, name="sides in turn", state="stopped")
    for step in range(1, 2 * len(SIDES) + 1):
        shift = 0.02 * (step % 3)
        effects = [
            {"speaker": "crewmate", "listener": "crewmate", "n": 4, "mean": 0.06 + shift},
            {"speaker": "crewmate", "listener": "itself", "n": 2, "mean": shift - 0.02},
            {"speaker": "imposter", "listener": "crewmate", "n": 2, "mean": -0.09 + shift},
        ]
        for number in range(4):
            crew_won = number < (3, 1, 1, 4, 3, 2, 2, 3)[step - 1]
            learner = SIDES[(step - 1) // 2]
            make_game(run, step, number, crew_won=crew_won, learner=learner, message_effects=effects)
        values = {"reward": 0.1, "belief_change/crewmate": 0.2 + shift, "belief_change/imposter": shift - 0.3}
        Metric.objects.create(run=run, step=step, fence=1, at=now(), values=values)
    return run


def make_crew_suite(owner: Any, model: str = "tiny step 5", rate: float = 0.4, **fields: Any) -> Run:
    """A suite of Among Us with the numbers of a model that wins about this share of its games."""
    suite = configs.load(FOLDER / "among_us.toml")
    rows = [
        suite_row(
            task=place, title=f"{task.settings['width']} by {task.settings['height']} rooms, {task.settings['tasks']} "
            f"tasks each, {task.seats} players", opponent="scripted", partner="scripted", side=["crewmate"], seat=None,
            step=place + 1, charts=task.charts, normalised=None, raw=estimate(rate - 0.5, rate - 0.7, rate - 0.3, 40),
            won=estimate(rate - 0.03 * place, max(0.0, rate - 0.03 * place - 0.1), rate - 0.03 * place + 0.1, 40),
        )
        for place, task in enumerate(suite.suite.tasks)
    ]  # fmt: skip
    conditions = {"model": {"title": model}, "intervals": "95 %", "command": "python"}
    facts = {"kind": "suite", "state": "succeeded", "name": f"Among Us suite of {model}", "config": suite.to_dict()}
    return make_run(owner, result={"rows": rows, "conditions": conditions}, **{**facts, **fields})


def make_checkpoint(run: Run | None, **fields: Any) -> Checkpoint:
    """A checkpoint with a small folder in the storage."""
    name = fields.pop("name", f"run-{run.pk if run else 'none'}-step-{fields.get('step', 5)}")
    default_storage.save(f"checkpoints/{name}/config.json", ContentFile(b"{}"))
    default_storage.save(f"checkpoints/{name}/model.safetensors", ContentFile(b"weights"))
    defaults = {
        "kind": "full",
        "run": run,
        "step": 5,
        "base": "tiny",
        "path": f"checkpoints/{name}",
        "metrics": {"reward": 0.5},
    }
    return Checkpoint.objects.create(name=name, **{**defaults, **fields})


def estimate(mean: float, low: float, high: float, n: int = 4) -> dict[str, float]:
    """An interval as a result has it."""
    return {"mean": mean, "low": low, "high": high, "n": n, "level": 0.95}


def suite_row(**fields: Any) -> dict[str, Any]:
    """A row of a suite's report."""
    defaults: dict[str, Any] = {
        "task": 0, "title": "Tic-tac-toe", "opponent": "mcts:100", "held_out": False, "seat": 0, "games": 4,
        "played": 4, "errors": {}, "raw": estimate(-0.5, -0.9, -0.1), "normalised": estimate(25.0, 5.0, 45.0),
        "parse_rate": estimate(1.0, 0.9, 1.0), "legal_rate": estimate(0.75, 0.5, 1.0), "exact": None, "unavailable": "",
        "step": 1, "provenance": {"game": "tic_tac_toe", "seat": 0, "seed": 3, "scenarios": {"sha256": "abc123"}},
    }  # fmt: skip
    return {**defaults, **fields}


SUITE_RESULT: dict[str, Any] = {
    "rows": [
        suite_row(),
        suite_row(seat=1, step=2, played=2, errors={"engine": 2}, normalised=estimate(900.0, 800.0, 1000.0)),
        suite_row(seat=None, step=None, games=8, played=6),
        suite_row(task=1, title="Leduc poker", opponent="best_response", held_out=True, seat=None, raw=None, step=None,
            normalised=None, exact={"nash_conv": 0.9167, "exploitability": 0.4583, "value": 0.1}),
        suite_row(task=2, title="Kuhn poker", opponent="best_response", seat=None, raw=None, normalised=None, step=None,
            unavailable="the probabilities are <b>unknown</b>"),
        suite_row(task=3, opponent="nobody", played=0, errors={"remote": 4}, raw=None, normalised=None, parse_rate=None,
            legal_rate=None, step=5),
    ],
    "conditions": {"model": {"title": "tiny step 5", "note": "a note"}, "intervals": "95 %", "command": "python"},
}  # fmt: skip


def calibration_rows(
    label: str = "PopQA", tool: str = "wiki", *, questions: int = 40, knows: float = 0.5, searches: float = 0.9
) -> list[Row]:
    """Rows of a question set: the model knows the first share `knows` of the questions, and a search finds the others.

    It searches for the share `searches` of the questions, from the last one on, and its probabilities rank them so.
    """
    rows = []
    for at in range(questions):
        known, searched = at < knows * questions, bool(tool) and at >= round((1 - searches) * questions)
        search = (at + 1) / (questions + 1) if tool else 0.0
        answer = (1 - search) * (0.9 if known else 0.2)
        actions = {"search": search if tool else None, "answer": answer, "hedge": 1 - search - answer, "legal": 1.0}
        f1 = float(not known if searched else known)
        played = {"f1": f1, "searched": float(searched), "hedged": float(not f1), "text": "otter"}
        base = (float(not known), float(known)) if tool else (None, None)
        names = {"label": label, "tool": tool, "question": f"q{at}-{tool or 'alone'}"}
        by_base = dict(zip(("base_searched_f1", "base_unsearched_f1"), base, strict=True))
        rows.append(Row(**names, **actions, **played, unsearched_f1=float(known), **by_base))
    return rows


def make_calibration(
    run: Run, step: int, *sets: tuple[list[Row], bool], attempt: int = 1, started: int = 0, saved: bool = True
) -> Evaluation:
    """An evaluation after a step: rows of each set, and whether it is in distribution; with its rows if `saved`."""
    cells = tuple(cell_of(rows, 1, in_distribution=inside) for rows, inside in sets)
    evaluation = Evaluation(step=step, model=f"made step {step}" if step else "tiny", cells=cells)
    owner, _ = Attempt.objects.get_or_create(
        run=run, number=attempt, defaults={"fence": attempt, "pid": 1, "start_step": started, "lease_until": now()}
    )
    data = evaluation.to_dict()
    if saved:
        lines = "".join(json.dumps(row.to_dict()) + "\n" for rows, _ in sets for row in rows)
        name = f"runs/{run.pk}/attempts/{attempt:04d}/calibration/step_{step:06d}.jsonl"
        data["rows"] = default_storage.save(name, ContentFile(lines.encode()))
    Event.objects.create(run=run, attempt=owner, at=now(), kind="calibration", data=data)
    return evaluation
