"""Corpora by what the configuration of a run calls them in `search.indexes`.

`NAME` is the BM25 index of a corpus and `NAME dense` the one of its vectors; the name of an index works as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Q

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.corpora.models import Corpus, Index
from webapp.corpora.searching import ready_index
from webapp.corpora.services import INDEX_NAME, SLUG, local_folder


def corpora_named(indexes: Mapping[str, str], by: User) -> set[Corpus]:
    """Return the corpora that `by` may search under these names, locked until the end of the transaction.

    `indexes` is `search.indexes`. The name of an index that is no corpus's, but a command's, adds none. Raises
    `BadInput` if there is no such corpus for `by`, or its index is not ready.
    """
    texts = set(indexes.values())
    folders = {text for text in texts if INDEX_NAME.fullmatch(text)}
    names = {name for text in texts - folders if SLUG.fullmatch(name := _split(text)[0])}
    known = Index.objects.filter(name__in=folders)
    rows = Corpus.objects.visible_to(by).filter(Q(name__in=names) | Q(file__in=known.values("file")))
    rows = rows.select_for_update(of=("self",)).order_by("-pk")  # in one order, so that no two runs lock crosswise
    searchable: dict[str, Corpus] = {}
    for corpus in rows.select_related("file").prefetch_related("file__indexes"):
        searchable |= {index.name: corpus for index in corpus.file.indexes.all()} | {corpus.name: corpus}
    by_command = folders - set(known.values_list("name", flat=True))
    return {
        _checked(searchable, text, f"search.indexes.{tool}") for tool, text in indexes.items() if text not in by_command
    }


def _checked(searchable: Mapping[str, Corpus], text: str, field: str) -> Corpus:
    """The corpus of this name; raises `BadInput` about the field if there is none, or its index is not ready."""
    name, kind = (text, text.partition("-")[0]) if INDEX_NAME.fullmatch(text) else _split(text)
    if name not in searchable:
        why = "write NAME, or NAME dense for its vectors; folders are for the command line"
        raise BadInput(f"no corpus is named {text[:120]!r}: {why}", field)
    try:
        ready_index(searchable[name], kind)
    except BadInput as error:
        raise BadInput(error.why, field) from error
    return searchable[name]


def local_index(text: str, hashes: Mapping[str, str]) -> str:
    """Return the name of the index that a configuration means, whose folder is on this machine afterwards.

    `hashes` are those of the run's corpora by name. Raises `BadInput` if the corpus has been deleted, even if another
    one has its name, if its index is not ready any more, or if its files are gone.
    """
    if INDEX_NAME.fullmatch(text):
        index = Index.objects.filter(name=text).first()
        return text if index is None else local_folder(index, wait=True).name
    name, kind = _split(text)
    corpus = Corpus.objects.filter(name=name, file__sha256=hashes.get(name, "")).first()
    if corpus is None:
        raise BadInput(f"the corpus {name} has been deleted")
    return local_folder(ready_index(corpus, kind), wait=True).name


def _split(text: str) -> tuple[str, str]:
    """The corpus's name and the kind of index: `towers dense`; BM25 unless it is said."""
    name, _, kind = text.partition(" ")
    return name, kind or Index.Kind.BM25.value
