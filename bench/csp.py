"""Collaborative self-play in miniature: a small model that knows some invented facts learns when to search and answer.

The starting model (`bench.taught`) knows the facts of `bench.facts` in part, mostly searches, and answers or
hedges by a coin toss: it is the baseline `icl`. Every form learns from it for some epochs on half of the questions
about two relations, and is measured after each epoch as a single agent (`training.evaluate.calibration`) on the other
half, with the corpus that has the answers and with the other one, and on a third relation that no form learns on. A
question set with a corpus counts only where `icl` beats itself without searches by 0.05 F1, with an interval above 0.
The last epoch is evaluated, not the best one. With `--data`, the same condition is measured for a prompted SmolLM2 on
real question sets (`bench.real_questions`).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import real_questions, taught
from bench.facts import CORPORA, RELATIONS, World, scenario
from bench.forms import chosen_forms
from bench.rows import UNWATCHED, over_seeds, run, stored_row
from training.dataset import DatasetLine
from training.errors import BadInput
from training.learn.tiny.pretrain import Stage
from training.store import dumps, loads, read_lines

FORMS: dict[str, dict[str, Any]] = {
    "csp": {},
    "deanon": {"game": {"name": "qa_society", "settings": {"deanon": True}}},
    "action_supervision": {"method": {"name": "csp", "form": "action_supervision"}},
}
"""What is compared: sections of the configuration that a form changes. Action supervision has one epoch, in which every
question is a start for each corpus."""
TRAINED = ("town", "trade")
WORLD = World()
QUESTIONS = len(TRAINED) * WORLD.people // 2
"""Questions of an epoch."""
EXERCISES, ROUNDS = 8, 8
PASSAGES = 1
RECIPE = {"hidden": 96, "layers": 3, "heads": 3, "groups": 1, "mlp": 256, "vocabulary": 2000}
STAGES = (
    Stage(taught.exercises, context=0.3, sft={"tokens_per_batch": 1024, "lr": 4e-3, "epochs": 2}),
    Stage(taught.short, sft={"tokens_per_batch": 2048, "lr": 4e-3, "epochs": 2}),
    Stage(partial(taught.whole, share=0.5), sft={"tokens_per_batch": 3072, "lr": 2e-3}),
    Stage(partial(taught.short, searching=0.3), sft={"tokens_per_batch": 2048, "lr": 3e-3, "epochs": 2}),
    Stage(partial(taught.whole, share=0.3, searching=0.3), sft={"tokens_per_batch": 3072, "lr": 1.5e-3}),
)
"""Reading, then facts, then both with the rules; at last the same with fewer of the searches, of which a model would
otherwise never try to do without."""
PROMPTED = "smollm2-135m"
"""The model that is only prompted, with real questions."""
EPOCHS = 3
GAMES = 24
DRAWS = 2
"""Games of each question in a measurement."""
SAMPLING = {"max_tokens": 12}
LEARN = {
    "lora": None,
    "lr": 1e-3,
    "restart": True,
    "epochs": 4,
    "critic_warmup": 0,
    "kl": "none",
    "kl_measured": False,
    "schedule": "constant",
    "threads": 1,
    "tokens_per_batch": 8192,
    "tokens_per_update": 8192,
}


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure every form and seed, seed by seed, so that an interrupted call leaves complete seeds."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    folder = arguments.dir.absolute()
    forms = chosen_forms(arguments.forms, FORMS)
    epochs = arguments.steps or EPOCHS
    start = taught.prepare(WORLD, folder / "start", (EXERCISES, ROUNDS), PASSAGES, RECIPE, STAGES)
    write_questions(folder / "questions")
    rows: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for seed in range(arguments.seeds):
        for form in forms:
            place = folder / f"{form}-{seed}"
            wanted = {"form": form, "seed": seed, "epochs": epochs}
            row = stored_row(place, wanted, partial(_trained, form, seed, epochs, start, folder))
            print(f"{form}, seed {seed}: {_summary(row)}", file=sys.stderr)
            rows[form].append(row)
    result = summary(rows, epochs)
    if arguments.data is not None:
        measure = partial(real_questions.measure, arguments.data, PROMPTED, folder / "real" / "files")
        result["real"] = stored_row(folder / "real", {"model": PROMPTED}, measure)
    return result


def write_questions(folder: Path) -> None:
    """Write the questions to learn from, those of each test, and the corpora."""
    folder.mkdir(parents=True, exist_ok=True)
    for relation in RELATIONS:
        _write(folder / f"{relation.name}.jsonl", [scenario(fact) for fact in WORLD.split(relation.name, test=True)])
    learned = [scenario(fact) for name in TRAINED for fact in WORLD.split(name, test=False)]
    _write(folder / "train.jsonl", learned)
    for corpus in CORPORA:
        lines = (dumps(document._asdict()) + "\n" for document in WORLD.documents(corpus))
        (folder / f"{corpus}.jsonl").write_text("".join(lines), encoding="utf-8")


def _write(path: Path, starts: Sequence[Any]) -> None:
    path.write_text("".join(DatasetLine(scenario=start).dumps() + "\n" for start in starts), encoding="utf-8")


def configuration(form: str, seed: int, epochs: int, start: Path, folder: Path) -> dict[str, Any]:
    """Return the configuration of a run on the questions in `folder/questions`, whose corpora are indexed."""
    from training.retrieval.bm25 import Bm25Settings
    from training.retrieval.index import build

    questions, alone = folder / "questions", form == "action_supervision"
    steps = 1 if alone else epochs
    indexes = {corpus: str(build(questions / f"{corpus}.jsonl", Bm25Settings())) for corpus in CORPORA}
    sets = [
        {
            "label": relation.name,
            "path": str(questions / f"{relation.name}.jsonl"),
            "tools": list(CORPORA),
            "in_distribution": relation.name in TRAINED,
        }
        for relation in RELATIONS
    ]
    return {
        "seed": seed,
        "model": {"base": str(start), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": "qa_society"},
        "data": {"path": str(questions / "train.jsonl")},
        "sampling": SAMPLING,
        "search": {"indexes": indexes, "passages": PASSAGES},
        "rollout": {"scenarios": QUESTIONS * (len(CORPORA) if alone else 1), "games": GAMES},
        "method": {"name": "csp"},
        "reward": {"scale": "raw"},
        "learn": {**LEARN, "steps": steps, "save_every": steps},
        "calibration": {"sets": sets, "draws": DRAWS},
        "stop": UNWATCHED,
        **FORMS[form],
    }


def _trained(form: str, seed: int, epochs: int, start: Path, folder: Path) -> dict[str, Any]:
    """Train one form with one seed; return what the starting model and every epoch were measured to do."""
    trained, run_dir = run(configuration(form, seed, epochs, start, folder), folder / f"{form}-{seed}" / "train")
    files = {int(path.stem.partition("_")[2]): path for path in run_dir.attempt(1).calibrations()}
    return {
        "result": trained["result"],
        "why": trained["why"],
        "steps": trained["step"],
        "cells": {str(step): [cell(each) for each in loads(path.read_text())["cells"]] for step, path in files.items()},
        "questions": {str(step): questions(path.with_suffix(".jsonl")) for step, path in files.items()},
        "train_s": trained["wall_s"],
        "cpu_s": trained["cpu_s"],
    }


def cell(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a cell: all but the points of its curves."""
    kept = {name: value for name, value in whole.items() if not name.endswith("calibration")}
    for name in ("search_calibration", "answer_calibration"):
        kept[name] = {part: whole[name][part] for part in ("area", "shuffled_area", "gain", "top")}
    return kept


def questions(file: Path) -> dict[str, list[Any]]:
    """Return by question set and corpus, for every question: whether its fact is known, F1 and share of searches."""
    known = {scenario(fact).id: fact.known for fact in WORLD.facts}
    rows: dict[str, list[Any]] = {}
    for row, _ in read_lines(file):
        person = row["question"].removesuffix(f"-{row['tool']}")
        rows.setdefault(f"{row['label']}/{row['tool']}", []).append([known[person], row["f1"], row["searched"]])
    return rows


# --- what comes of it ------------------------------------------------------------------------------------------------


def compared(runs: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return how the last epoch of some runs differs from their start on a question set with a corpus, by seed.

    `f1` is the difference of the means, `searches` the share of the starting model's searches that is left, and `known`
    and `unknown` the search rates where the fact is known by heart and where not.
    """
    first, last = ([_columns(each["questions"][step][key]) for each in runs] for step in ("0", str(_last(runs))))
    return {
        "f1": [after["f1"] - before["f1"] for before, after in zip(first, last, strict=True)],
        "searches": [after["searched"] / before["searched"] for before, after in zip(first, last, strict=True)],
        "known": [each["known"] for each in last],
        "unknown": [each["unknown"] for each in last],
    }


def _last(runs: Sequence[Mapping[str, Any]]) -> int:
    return max(int(step) for step in runs[0]["questions"])


def _columns(rows: Sequence[Sequence[Any]]) -> dict[str, float]:
    return {
        "f1": fmean(f1 for _, f1, _ in rows),
        "searched": fmean(searched for *_, searched in rows),
        "known": fmean(searched for known, _, searched in rows if known),
        "unknown": fmean(searched for known, _, searched in rows if not known),
    }


def counting(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the question sets with their corpora that count: where `icl` gains by searching in every run."""
    cells = [{f"{each['label']}/{each['tool']}": each["counts"] for each in run["cells"]["0"]} for run in runs]
    return [key for key in cells[0] if all(each[key] for each in cells)]


def summary(rows: Mapping[str, list[dict[str, Any]]], epochs: int) -> dict[str, Any]:
    """Return all rows, with what each form changed by question set and corpus, as means over seeds."""
    first = next(iter(rows.values()))
    keys = [f"{each['label']}/{each['tool']}" for each in first[0]["cells"]["0"]]
    forms: dict[str, Any] = {}
    for form, runs in rows.items():
        changes = {key: compared(runs, key) for key in keys}
        forms[form] = {
            "runs": runs,
            "changes": {
                key: {name: over_seeds("mean", values) for name, values in each.items()}
                for key, each in changes.items()
            },
        }
    return {
        "task": {
            "game": "qa_society",
            "people": WORLD.people,
            "known": WORLD.known,
            "exercises": EXERCISES,
            "rounds": ROUNDS,
            "passages": PASSAGES,
            "recipe": RECIPE,
            "learn": {**LEARN, "steps": epochs},
            "games": GAMES,
            "draws": DRAWS,
        },
        "counting": counting(first),
        "forms": forms,
    }


def _summary(row: Mapping[str, Any]) -> str:
    """Return what the last epoch does, in one line."""
    return "; ".join(
        f"{each['label']}/{each['tool']} F1 {each['f1']['mean']:.2f}, searched {each['search_rate']['mean']:.2f}"
        for each in row["cells"][str(row["steps"])]
    )


def show(result: Mapping[str, Any]) -> str:
    """Return one line for each form, question set and corpus; those that count are marked by a star."""
    lines = []
    for form, row in result["forms"].items():
        for key, change in row["changes"].items():
            star = "*" if key in result["counting"] else " "
            numbers = ", ".join(f"{name} {value['mean']:+.3f}" for name, value in change.items())
            lines.append(f"{star} {form:<20} {key:<20} {numbers}")
    return "\n".join(lines)
