"""The annotation bench from recorded games to labels in another site, with scripted annotators whose errors are known.

Recorded games are imported into a fresh installation. Annotators judge a queue over seats of Werewolf, half through the
pages and half through the API; agreement is computed anew from the exported labels; the owner, who is one of the
annotators, decides every disagreement; labels are exported in every format, twice, and compared judgment by judgment,
those of the formats that can be imported in another fresh installation. Fails if anything differs.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from html import unescape
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from bench import coincidences, label_copies
from bench.annotators import Annotator, Truth, Way, adjudicate, answered, read
from bench.installation import installation
from bench.label_copies import Row
from bench.site_conditions import measured
from bench.sockets import ROOT
from training.errors import ParleyError
from training.seeding import rng

DATASETS = {
    "werewolf": ("werewolf6", "werewolf6_llm_games/games_compact.jsonl"),
    "sotopia": ("sotopia-episodes", "sotopia_scored_sample"),
    "casino": ("casino", "casino/casino_train.json"),
}
"""Name of the dataset, format, and file or folder below the folder of recorded games."""
JUDGED, CODEBOOK = "werewolf", "werewolf-behaviours"
RATES = (0.05, 0.1, 0.2, 0.3, 0.15)
"""The annotators' error rates; the last one owns the queue."""
OVERLAP = 3
YES = 0.5
"""The share of true labels that are yes."""
FORMATS = ("jsonl", "csv", "label-studio", "w3c")
IMPORTED = ("jsonl", "label-studio")
TOLERANCE = 1e-9
PATIENCE_S = 600.0
WORKER = (
    "-m",
    "celery",
    "-A",
    "worker.app",
    "worker",
    "--queues",
    "default",
    "--pool",
    "threads",
    "--concurrency",
    "1",
)
SHOWN = re.compile(r'<tr><th scope="row">([^<]*)<br>.*?<td class="number">\s*(?:([-−]?[\d.]+)|—)', re.DOTALL)
"""A row of the page of agreement: the title of a label type, and alpha."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return counts, agreement beside its recomputation, differences by format, and seconds."""
    result = measured(lambda: _measure(arguments))
    if not result["ok"]:
        raise ParleyError(f"labels or agreement differ: {json.dumps(problems(result), ensure_ascii=False)}")
    return result


def show(result: dict[str, Any]) -> str:
    """Return the lines of the page."""
    return "\n".join(import_module("bench.annotation_page").page(result))


def problems(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs, by what was compared."""
    return {
        name: value
        for name, value in {
            "agreement": result["agreement"]["largest_gap"] > TOLERANCE and result["agreement"],
            "formats": [name for name, each in result["formats"].items() if each["differences"]],
            "bytes": [name for name, each in result["formats"].items() if not each["same_bytes"]],
            "undecided": result["undecided"],
            "lines": [line for each in result["formats"].values() for line in each["differences"]][:10],
        }.items()
        if value
    }


def _measure(arguments: Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="parley-labels-") as folder:
        with installation("annotation"), working():
            imports = {name: _imported(arguments.data, name) for name in DATASETS}
            result = annotated(arguments.games, arguments.seed, Path(folder))
        begun = time.monotonic()
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            files = {name: Path(folder) / name for name in IMPORTED}
            copies = pool.submit(label_copies.in_another_site, files, CODEBOOK).result()
        result["seconds"]["other_site"] = time.monotonic() - begun
    return {"seed": arguments.seed, "imports": imports, **compared(result, copies)}


def _imported(data: Path, name: str) -> dict[str, Any]:
    """Import a dataset of recorded games by the command; return what it says, with the seconds it took."""
    kind, path = DATASETS[name]
    said, begun = io.StringIO(), time.monotonic()
    command = import_module("django.core.management").call_command
    command("import_dataset", kind, data / path, name=name, json=True, stdout=said)
    report = json.loads(said.getvalue())
    version = import_module("webapp.scenarios.models").DatasetVersion.objects.get(dataset__name=name)
    return {
        "conversations": version.conversation_count,
        "judgments": report.get("judgments", 0),
        "notices": len(report["notices"]),
        "seconds": time.monotonic() - begun,
    }


@contextmanager
def working() -> Iterator[None]:
    """Run a worker for analyses in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, *WORKER], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def annotated(games: int, seed: int, folder: Path) -> dict[str, Any]:
    """Judge, compare agreement, decide and export in the site of this process, which has the dataset; files go to
    `folder`. The result has all but the comparison of labels.
    """
    users = import_module("webapp.accounts.models").User.objects
    people = [users.create(username=f"annotator-{number}", role="annotator") for number in range(1, len(RATES))]
    owner = users.create(username="owner", role="researcher")
    client = import_module("django.test").Client()
    client.force_login(owner)
    queue = _queue(client, [*people, owner], games)
    truth = _truth(seed)
    annotators = [Annotator(user, rate, truth, seed) for user, rate in zip([*people, owner], RATES, strict=True)]
    judging = _judge(annotators, queue)
    seconds: dict[str, Any] = {way: median(times) for way, times in judging.items() if times}
    shown = _agreement(client, owner, queue, seconds)
    begun = time.monotonic()
    decided = list(adjudicate(client, queue, truth))
    seconds["decision"] = (time.monotonic() - begun) / max(1, len(decided))
    disagreements = len(_ready(owner, queue)["disagreements"])
    same = {name: _exported(queue, name, folder, seconds) for name in FORMATS}
    return {
        "queue": queue, "rates": RATES, "overlap": OVERLAP, "games": games, "by": _counts(annotators),
        "agreement": shown, "decided": len(decided), "disagreements": disagreements,
        "undecided": disagreements - len(set(decided)), "same_bytes": same, "seconds": seconds,
        "rows": label_copies.stored(queue),
        "csv": label_copies.from_csv((folder / "csv").read_bytes().decode()),
        "w3c": label_copies.from_annotations(json.loads((folder / "w3c").read_text("utf-8"))),
    }  # fmt: skip


def _queue(client: Any, people: Sequence[Any], games: int) -> int:
    """Make the queue by the page's form; return its number."""
    version = import_module("webapp.scenarios.models").DatasetVersion.objects.get(dataset__name=JUDGED)
    codebook = import_module("webapp.judgments.models").CodebookVersion.objects.named(CODEBOOK)
    sent = {
        "name": "Behaviours", "codebook_version": codebook.pk, "annotators": [user.pk for user in people],
        "overlap": OVERLAP, "version": version.pk, "most": games, "assignment": "first_come", "reserve_minutes": 30,
        "order": "random",
    }  # fmt: skip
    answer = client.post("/judgments/queues/new/", sent)
    read(answer, "/judgments/queues/new/", redirect=True)
    return int(answer["Location"].rstrip("/").rsplit("/", 1)[1])


def _truth(seed: int) -> Truth:
    """Return the true labels: those of a seat of a recorded game are the same for every queue and site."""
    targets = import_module("webapp.judgments.models").Target.objects.select_related("conversation")
    places: dict[int, tuple[str, int | None]] = {}

    def true(pk: int, name: str) -> bool:
        if pk not in places:
            target = targets.get(pk=pk)
            places[pk] = target.conversation.episode_sha256, target.seat
        return rng(seed, "truth", *map(str, places[pk]), name).random() < YES

    return true


def _judge(annotators: Sequence[Annotator], queue: int) -> dict[Way, list[float]]:
    """Let everybody judge in turns, by the pages and by the API alternately; return the seconds of judgments."""
    seconds: dict[Way, list[float]] = {"pages": [], "api": []}
    ways: tuple[Way, Way] = ("pages", "api")
    left, number = list(annotators), 0
    while left:
        for annotator in list(left):
            way, begun = ways[number % 2], time.monotonic()
            if annotator.judge(queue, way):
                seconds[way].append(time.monotonic() - begun)
                number += 1
            else:
                left.remove(annotator)
    return seconds


def _counts(annotators: Sequence[Annotator]) -> dict[str, int]:
    return {way: sum(each.done[way] for each in annotators) for way in ("pages", "api")}


def _agreement(client: Any, owner: Any, queue: int, seconds: dict[str, Any]) -> dict[str, Any]:
    """Return alpha of each label type with its interval: of the API, of the page, and recomputed."""
    begun = time.monotonic()
    result = _ready(owner, queue)
    seconds["agreement"] = time.monotonic() - begun
    address = f"/judgments/queues/{queue}/agreement/"
    page = {unescape(title): value for title, value in SHOWN.findall(read(client.get(address), address))}
    rows = label_copies.stored(queue)
    again, units = coincidences.by_label(rows), coincidences.pairs(rows)
    labels = {}
    for label in result["labels"]:
        estimate = label["coefficients"][0]
        labels[label["label"]] = {
            **{name: estimate[name] for name in ("value", "low", "high", "units", "games")},
            "page": page[label["title"]],
            "recomputed": again[label["label"]],
            "units_recomputed": units.get(label["label"], 0),
        }
    gaps = [_gap(each["value"], each["recomputed"]) for each in labels.values()]
    shown = [_gap(_shown(each["page"]), each["value"]) <= 0.005 + TOLERANCE for each in labels.values()]
    counted = [each["units"] == each["units_recomputed"] for each in labels.values()]
    right = all(shown) and all(counted) and bool(labels)
    return {"labels": labels, "largest_gap": max(gaps, default=float("inf")) if right else float("inf")}


def _shown(text: str) -> float | None:
    """The value that a page shows with two digits."""
    return float(text.replace("−", "-")) if text else None


def _gap(first: float | None, second: float | None) -> float:
    if first is None or second is None:
        return 0.0 if first is second else float("inf")
    return abs(first - second)


def _ready(owner: Any, queue: int) -> Mapping[str, Any]:
    """Return the agreement that the API states, once it is there."""
    key = import_module("webapp.accounts.services").create_key(user=owner, name="results")[1]
    api = import_module("django.test").Client(headers={"Authorization": f"Bearer {key}"})
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        body = answered(api.get(f"/api/v1/judgments/queues/{queue}/agreement"))
        if body["state"] == "ready":
            result: Mapping[str, Any] = body["result"]
            return result
        if body["state"] == "failed":
            break
        time.sleep(0.5)
    raise ParleyError(f"the agreement of queue {queue} was not computed")


def _exported(queue: int, name: str, folder: Path, seconds: dict[str, Any]) -> bool:
    """Export the labels twice; return whether both files have the same bytes."""
    command: Callable[..., Any] = import_module("django.core.management").call_command
    begun = time.monotonic()
    for path in (folder / name, folder / f"{name}-again"):
        command("export_labels", queue, format=name, output=path, stderr=io.StringIO())
    seconds.setdefault("export", {})[name] = (time.monotonic() - begun) / 2
    return (folder / name).read_bytes() == (folder / f"{name}-again").read_bytes()


def compared(result: Mapping[str, Any], copies: Mapping[str, list[Row]]) -> dict[str, Any]:
    """Return the result with what each format says otherwise than the database, and whether all is well."""
    rows: list[Row] = result["rows"]
    exported = {**copies, "csv": result["csv"], "w3c": result["w3c"]}
    formats = {
        name: {
            "imported": name in copies,
            "judgments": len(exported[name]),
            "labels": sum(len(row["labels"]) for row in exported[name]),
            "same_bytes": result["same_bytes"][name],
            "differences": list(label_copies.differences(rows, exported[name])),
        }
        for name in FORMATS
    }
    counts = {
        "targets": len({(row["episode"], row["seat"]) for row in rows}),
        "judgments": sum(not row["decides"] for row in rows),
        "unscored": sum(not row["scored"] for row in rows),
        "unsure": sum(row["unsure"] for row in rows),
        "comments": sum(bool(row["comment"]) for row in rows),
        "decisions": sum(row["decides"] for row in rows),
        "labels": sum(len(row["labels"]) for row in rows),
        "authors": len({row["author"] for row in rows}),
    }
    kept = {name: value for name, value in result.items() if name not in {"rows", "csv", "w3c", "same_bytes", "queue"}}
    finished = {**kept, "counts": counts, "formats": formats}
    return {**finished, "ok": not problems(finished)}
