"""Corpora and indexes for tests."""

import io
import json

from django.conf import settings
from django.core.files import File

from training.retrieval import index as indexes
from webapp.corpora import indexing, services

PASSAGES = (
    {
        "id": "eiffel",
        "title": "Eiffel Tower",
        "text": "An iron tower in Paris, built by the company of Gustave Eiffel.",
    },
    {"id": "cn", "title": "CN Tower", "text": "A tower of concrete in Toronto."},
    {"id": "cat", "text": "The cat sleeps all day."},
)


def lines(*passages):
    return "".join(json.dumps(passage) + "\n" for passage in passages or PASSAGES).encode()


def content(data, filename="towers.jsonl"):
    return services.content_of(File(io.BytesIO(data)), filename)


def corpus(owner, name="towers", data=None, **fields):
    return services.create(owner=owner, name=name, content=content(data or lines()), **fields)


def built(owner, name="towers", data=None, kind="bm25", **fields):
    """A corpus with a ready index, as a worker leaves it."""
    made = corpus(owner, name, data, **fields)
    build(made, kind)
    return made


def build(made, kind="bm25"):
    """Build a queued index in this process."""
    index = indexing.claim(pk=made.file.indexes.get(kind=kind).pk, host=settings.NODE_NAME, at_once=None)
    indexing.begun(index=index)
    with services.local_copy(index.file) as path:
        folder = indexes.build(path, indexing.settings_of(kind))
    size = sum(file.stat().st_size for file in folder.rglob("*"))
    indexing.finish(index=index, passages=indexes.read_info(folder).passages, size=size, seconds=1.0)
    return folder
