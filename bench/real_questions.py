"""Whether a prompted model gains by searching on real question sets: the condition under which a set can test a method.

From a folder with the sets in their authors' files, some questions of each are drawn. A single agent is asked as it
plays, without a search, and after one (`training.evaluate.calibration`).
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from training import question_sets
from training.dataset import DatasetLine
from training.question_sets import corpora
from training.store import write_json

FILES = {
    "popqa": "popqa_longtail/DisambPopQA.csv",
    "entityquestions": "entityquestions/dev",
    "nq-open": "nq_open/NQ-open.dev.jsonl",
    "pubmedqa": "pubmedqa/ori_pqal.json",
}
"""Each set's file or folder below the folder of the data."""
PASSAGES = "popqa_passages"
TOOLS = {"pubmedqa": "pubmed"}
"""The corpora in which sets are searched; the others in `wiki`."""
QUESTIONS = 48
WORDS = 100
"""Longest passage."""
SETTINGS: dict[str, Any] = {
    "engine": {"name": "transformers", "max_running": 16},
    "sampling": {"temperature": 0.6, "max_tokens": 24},
    "game": {"name": "qa_society", "settings": {"evidence_chars": 600}},
    "rollout": {"games": 4},
    "method": {"name": "csp"},
}


def measure(data: Path, model: str, folder: Path) -> dict[str, Any]:
    """Return the cells of a model and the conditions; all files are written into `folder`."""
    from training.evaluate.calibration.run import Plan, run

    plan = Plan(source=configuration(data, model, folder))
    measured = run(plan)
    return {"cells": measured["evaluations"][0]["cells"], "conditions": measured["conditions"]}


def configuration(data: Path, model: str, folder: Path) -> Path:
    """Write the questions, the corpora with their indexes, and the configuration; return its file."""
    from training.retrieval.bm25 import Bm25Settings
    from training.retrieval.index import build

    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "wiki": corpora.popqa_passages(data / PASSAGES, data / FILES["popqa"], WORDS),
        "pubmed": corpora.pubmedqa_contexts(data / FILES["pubmedqa"], WORDS),
    }
    indexes = {}
    for corpus, documents in texts.items():
        path = folder / f"{corpus}.jsonl"
        if not path.exists():
            corpora.write(documents, path)
        indexes[corpus] = build(path, Bm25Settings()).name
    for name, file in FILES.items():
        (folder / f"{name}.jsonl").write_text("".join(_lines(name, data / file)), encoding="utf-8")
    config = folder / "run.json"
    settings = {
        **SETTINGS,
        "model": {"base": model, "device": "cpu"},
        "search": {"indexes": indexes, "passages": 2},
        "calibration": {
            "sets": [{"label": name, "path": f"{name}.jsonl", "tools": [TOOLS.get(name, "wiki")]} for name in FILES]
        },
    }
    write_json(config, settings)
    return config


def _lines(name: str, path: Path) -> list[str]:
    """Return the first questions of a set in a random order as lines of a dataset."""
    source = question_sets.SETS[name]
    questions = question_sets.read(source, path)
    Random(0).shuffle(questions)
    starts = [question_sets.scenario(source, each, source.options()) for each in questions[:QUESTIONS]]
    return [DatasetLine(scenario=start).dumps() + "\n" for start in starts]
