"""`python -m training index`: builds the index of a corpus, or names the one that exists."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from training.cli.reporter import Reporter
from training.errors import BadInput
from training.retrieval import index
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.corpus import InvalidCorpus
from training.retrieval.dense import MODEL, DenseSettings


def main(arguments: Namespace) -> dict[str, Any]:
    """Build the index; return its name, path, number of passages, size, the seconds that this call took, and whether
    it was built (and not there already).
    """
    began = time.perf_counter()
    report = Reporter(arguments.status)
    if arguments.model and arguments.kind != "dense":
        raise BadInput("only --kind dense has a model", "--model")
    try:
        settings = DenseSettings.of(arguments.model or MODEL) if arguments.kind == "dense" else Bm25Settings()
        folder = index.build(arguments.corpus, settings, report)
    except BadInput as error:
        report.write({"phase": "refused", **of_error(error)})
        raise
    result = {
        "name": folder.name,
        "path": str(folder),
        "kind": arguments.kind,
        "corpus": arguments.corpus.name,
        "passages": index.read_info(folder).passages,
        "bytes": sum(file.stat().st_size for file in folder.rglob("*")),
        "seconds": time.perf_counter() - began,
        "built": report.phase != "checksum",  # else there was only its checksum to read
    }
    report.write({"phase": "finished", **result})
    return result


def of_error(error: BadInput) -> dict[str, Any]:
    """Return the error for the status file; `invalid` says that the corpus is at fault, not the machine."""
    return {"where": error.where, "why": error.why, "invalid": isinstance(error, InvalidCorpus)}


def show(result: dict[str, Any]) -> str:
    """Return the name and the path, and what they stand for."""
    size = f"{result['passages']:,} passages, {result['bytes']:,} bytes, {result['seconds']:.1f} s"
    return f"{result['name']}: {size}\n{result['path']}"
