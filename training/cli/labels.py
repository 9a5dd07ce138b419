"""`python -m training labels`: train a classifier of turns on judged games, or label the turns of games with one."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from training.cli.reporter import Reporter
from training.errors import BadInput
from training.labels import turns
from training.labels.classifier import Labeller, load, train
from training.labels.turns import LabelledTurns
from training.records import Episode
from training.rundir import RunDir
from training.store import atomic_file


def main(arguments: Namespace) -> dict[str, Any]:
    """Train or label; return what was made. The status file ends with the result, or with why the input is wrong."""
    report = Reporter(arguments.status)
    try:
        result = _train(arguments, report) if arguments.action == "train" else _label(arguments, report)
    except BadInput as error:
        report.write({"phase": "refused", "where": error.where, "why": error.why})
        raise
    report.write({"phase": "finished", **result})
    return result


def _train(arguments: Namespace, report: Reporter) -> dict[str, Any]:
    if arguments.output.exists():
        raise BadInput("it exists already: choose another folder", str(arguments.output))
    games = turns.merged(turns.read(path) for path in arguments.files)
    labelled = turns.labelled(games, _codebook(arguments.codebook))
    if arguments.labels:
        labelled = _only(labelled, arguments.labels.split(","))
    classifier = train(
        labelled,
        arguments.model,
        seed=arguments.seed,
        device=arguments.device,
        progress=lambda done, total: report(done, total, "reading turns"),
    )
    classifier.save(arguments.output)
    return {"folder": str(arguments.output), "info": classifier.info.to_dict()}


def _codebook(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    name, _, version = text.rpartition(":")
    if not name or not re.fullmatch("[0-9]{1,9}", version):
        raise BadInput("expected a name and a version, such as negotiation-moves:1", "--codebook")
    return name, int(version)


def _only(labelled: LabelledTurns, names: list[str]) -> LabelledTurns:
    """Return the turns with these labels alone; raise `BadInput` for one that no turn has."""
    for name in names:
        if name not in labelled.names:
            raise BadInput(f"no turn has the label {name!r}; they have {', '.join(labelled.names)}", "--labels")
    columns = [labelled.names.index(name) for name in dict.fromkeys(names)]
    return replace(labelled, names=tuple(dict.fromkeys(names)), labels=labelled.labels[:, columns])


def _label(arguments: Namespace, report: Reporter) -> dict[str, Any]:
    if arguments.out.exists():
        raise BadInput("it exists already: choose another file", str(arguments.out))
    classifier = load(arguments.classifier)
    episodes = list(_episodes(arguments.source))
    places = [(game, place) for game, episode in enumerate(episodes) for place in turns.spoken(episode.moves)]
    texts = [episodes[game].moves[place].move.text for game, place in places]
    labeller = Labeller(classifier, arguments.device)
    rows = labeller.predict(
        texts, [game for game, _ in places], lambda done, total: report(done, total, "reading turns")
    )
    names, seen = classifier.info.labels, classifier.decide(rows)
    with atomic_file(arguments.out) as file:
        for (game, place), row, flags in zip(places, rows, seen, strict=True):
            episode = episodes[game]
            line = {
                "game": game,
                "scenario": episode.scenario.id,
                "turn": place,
                "seat": episode.moves[place].seat,
                "labels": [name for name, flag in zip(names, flags, strict=True) if flag],
                "probabilities": {name: round(float(value), 6) for name, value in zip(names, row, strict=True)},
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    shares = {name: float(seen[:, at].mean()) if len(seen) else 0.0 for at, name in enumerate(names)}
    return {"file": str(arguments.out), "games": len(episodes), "turns": len(places), "shares": shares}


def _episodes(source: Path) -> Iterator[Episode]:
    """Yield the games of a file, or those of a run in the order of its steps."""
    files = _of_run(RunDir(source)) if source.is_dir() else [source]
    if not files:
        raise BadInput("this folder has no episodes: name a run directory", str(source))
    for file in files:
        yield from (episode for episode, _ in turns.read(file))


def _of_run(run_dir: RunDir) -> list[Path]:
    """Return the episodes' files of a run by step: of a step that was played again, that of the newest attempt."""
    folders = [run_dir.attempt(number).index.parent for number in run_dir.attempts()]
    files = {file.name: file for folder in folders for file in sorted(folder.glob("step_??????.jsonl.gz"))}
    return [file for _, file in sorted(files.items())]


def show(result: dict[str, Any]) -> str:
    """Return where the classifier or the labels are, and a line for each label."""
    if "info" not in result:
        lines = [f"{result['file']}: {result['turns']} turns of {result['games']} games"]
        return "\n".join([*lines, *(f"{name:24}{share:8.1%} of turns" for name, share in result["shares"].items())])
    info = result["info"]
    lines = [f"{result['folder']}: {info['turns']} turns of {info['dialogues']} dialogues"]
    lines.append(f"{'label':24}{'turns with it':>14}  F1 [95 % interval]   everywhere yes    right   majority")
    for name, each in zip(info["labels"], info["agreement"], strict=True):
        f1, share = each["f1"], each["share"]
        always, majority = 2 * share / (1 + share), max(share, 1 - share)
        interval = f"{f1['share']:.2f} [{f1['low']:.2f}, {f1['high']:.2f}]"
        lines.append(
            f"{name:24}{share:>14.1%}  {interval:21}{always:>14.2f}{each['right']['share']:>9.1%}{majority:>11.1%}"
        )
    return "\n".join(lines)
