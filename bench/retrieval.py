"""Indexing and search of synthetic corpora (`bench.passages`): time, size, memory, latency, by kind of index.

Indexing and searching run in a fresh process each, whose memory is measured. A query is eight words drawn from a
passage (with repetition, so frequent words come as often as in the text), and `found` is the share of queries for which
the search returns that passage. Memory is in bytes: `peak` is the most that was resident, mapped files included, which
the system can drop at any time; `private` is what is left without them, after the last query.

Encoding limits the passages of a dense index here, so its exact search is also measured alone: on as many random
vectors as BM25 has passages.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import random
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

from bench import passages
from training.errors import ParleyError
from training.retrieval import index
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.dense import NUMBER, DenseSettings, nearest

P = ParamSpec("P")
DIMENSIONS = 384
WORDS = 8
"""Words of a query."""
LIMIT = 4 * 2**30
"""Bytes of memory in which an index must be built."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Measure each kind of index on a corpus of its size; raise `BadInput` if dense retrieval is not installed."""
    settings: dict[str, Bm25Settings | DenseSettings] = {}
    if arguments.kind != "dense":
        settings["bm25"] = Bm25Settings()
    if arguments.kind != "bm25":
        settings["dense"] = DenseSettings.of()
    sizes = {"bm25": arguments.passages, "dense": min(arguments.passages, arguments.dense)}
    conditions = {
        "seed": arguments.seed,
        "length": arguments.length,
        "vocabulary": passages.VOCABULARY,
        "queries": arguments.queries,
        "k": arguments.k,
        "python": platform.python_version(),
        **{name: version(name) for name in ("bm25s", "numpy", *(["sentence-transformers"] * ("dense" in settings)))},
    }
    with tempfile.TemporaryDirectory(prefix="parley-retrieval-") as folder:
        rows = {kind: _measure(Path(folder), each, sizes[kind], arguments) for kind, each in settings.items()}
        if "dense" in settings:
            file = Path(folder) / "vectors"
            rows["exact"] = _apart(_exact, file, arguments.passages, arguments.queries, arguments.k, arguments.seed)
    return {**conditions, "limit_bytes": LIMIT, **rows}


def _measure(home: Path, settings: Bm25Settings | DenseSettings, count: int, arguments: Namespace) -> dict[str, Any]:
    corpus = home / "corpus.jsonl"
    passages.write(corpus, count, arguments.seed, arguments.length)
    built = _apart(_build, home, corpus, settings)
    searched = _apart(_search, Path(built["folder"]), corpus, arguments.queries, arguments.k, arguments.seed)
    size = sum(file.stat().st_size for file in Path(built.pop("folder")).iterdir())
    return {
        "passages": count,
        "corpus_bytes": corpus.stat().st_size,
        "index_bytes": size,
        "bytes_per_passage": size / count,
        "build": built,
        "search": searched,
        "ok": built["peak_bytes"] <= LIMIT,
    }


def _apart(function: Callable[P, dict[str, Any]], *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
    """Return the result of a function in a fresh process, whose memory is that of this function alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def _memory(name: str) -> int:
    """Return a number of this process's memory in bytes: VmHWM (peak) or RssAnon (without files)."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise ParleyError(f"/proc/self/status has no {name}: this measurement needs Linux")


def _build(home: Path, corpus: Path, settings: Bm25Settings | DenseSettings) -> dict[str, Any]:
    """Build the index; return its folder, the seconds of each phase, and the peak memory."""
    os.environ["PARLEY_HOME"] = str(home)
    phases: dict[str, float] = {}
    began = before = time.perf_counter()
    cpu = time.process_time()

    def progress(done: int, total: int, phase: str) -> None:
        nonlocal before
        now = time.perf_counter()
        phases[phase] = phases.get(phase, 0.0) + now - before
        before = now

    folder = index.build(corpus, settings, progress)
    seconds = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    phases["writing"] = time.perf_counter() - before
    return {"folder": str(folder), **seconds, "phases": phases, "peak_bytes": _memory("VmHWM")}


def _search(folder: Path, corpus: Path, count: int, k: int, seed: int) -> dict[str, Any]:
    """Search by known passages; return the time of the first query, loading included, and quantiles of the others."""
    queries = _queries(corpus, count + 1, seed)
    hits, clock = 0, Clock()
    retriever = index.open_index(folder)
    for identifier, query in queries:
        passage_ids = [passage.id for passage in retriever.search(query, k)]
        clock.lap()
        hits += identifier in passage_ids
    return {**clock.latency(), "found": hits / len(queries)}


class Clock:
    """The seconds of each query, by the wall and of this process's CPU time, which other programs hardly change."""

    def __init__(self) -> None:
        self._laps: list[tuple[float, float]] = []
        self.start()

    def start(self) -> None:
        """Begin a query."""
        self._began = time.perf_counter(), time.process_time()

    def lap(self) -> None:
        """End a query and begin the next one."""
        wall, cpu = self._began
        self._laps.append((time.perf_counter() - wall, time.process_time() - cpu))
        self.start()

    def latency(self) -> dict[str, Any]:
        """Return the first query's seconds, the rate and the quantiles of the others, and this process's memory."""
        (first, _), *rest = self._laps
        row = {"first_s": first}
        for name, seconds in zip(("", "cpu_"), zip(*rest, strict=True), strict=True):
            cuts = statistics.quantiles(seconds, n=100, method="inclusive")
            row[f"{name}queries_per_second"] = len(seconds) / sum(seconds)
            row |= {f"{name}p50_ms": 1000 * cuts[49], f"{name}p95_ms": 1000 * cuts[94]}
        return {**row, "peak_bytes": _memory("VmHWM"), "private_bytes": _memory("RssAnon")}


def _exact(file: Path, count: int, queries: int, k: int, seed: int) -> dict[str, Any]:
    """Search random unit vectors in a file, which the queries are drawn from as well."""
    rng, block = np.random.default_rng(seed), 10_000
    with file.open("wb") as stream:
        for begin in range(0, count, block):
            vectors = rng.standard_normal((min(block, count - begin), DIMENSIONS), dtype=np.float32)
            stream.write((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(NUMBER).tobytes())
    stored = np.memmap(file, dtype=NUMBER, mode="r").reshape(count, DIMENSIONS)
    hits, clock = 0, Clock()
    for place in rng.integers(count, size=queries + 1).tolist():
        query = np.array(stored[place])
        clock.start()
        places, _ = nearest(stored, query, k)
        clock.lap()
        hits += place == places[0]
    return {"vectors": count, "dimensions": DIMENSIONS, **clock.latency(), "found": hits / (queries + 1)}


def _queries(corpus: Path, count: int, seed: int) -> list[tuple[str, str]]:
    """Return queries with the ids of the passages whose words they are, drawn by reservoir sampling."""
    rng, chosen = random.Random(seed), list[str]()
    with corpus.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number < count:
                chosen.append(line)
            elif (place := rng.randrange(number + 1)) < count:
                chosen[place] = line
    rows = map(json.loads, chosen)
    return [(row["id"], " ".join(rng.choices(row["text"].split(), k=WORDS))) for row in rows]


def show(result: dict[str, Any]) -> str:
    """Return a few lines for each kind of index."""
    lines = []
    for kind in ("bm25", "dense"):
        if kind not in result:
            continue
        row = result[kind]
        build, search = row["build"], row["search"]
        peaks = {part: row[part]["peak_bytes"] / 2**30 for part in ("build", "search")}
        lines += [
            f"{kind}, {row['passages']:,} passages of {row['corpus_bytes'] / row['passages']:.0f} bytes",
            f"  index: {build['seconds']:.0f} s, {row['bytes_per_passage']:.0f} bytes per passage",
            f"  first query: {search['first_s']:.1f} s; p50 {search['p50_ms']:.1f} ms, p95 {search['p95_ms']:.1f} ms",
            f"  {search['queries_per_second']:.1f} queries per second; known passage found: {search['found']:.2f}",
            f"  peak memory of the index: {peaks['build']:.2f} GiB (limit {LIMIT / 2**30:.0f})",
            f"  memory of the search: {peaks['search']:.2f} GiB, private {search['private_bytes'] / 2**30:.2f} GiB",
        ]
    if "exact" in result:
        row = result["exact"]
        lines.append(
            f"exact search of {row['vectors']:,} vectors: p50 {row['p50_ms']:.1f} ms, p95 {row['p95_ms']:.1f} ms"
        )
    return "\n".join(lines)
