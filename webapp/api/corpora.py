"""Corpora over the API: list, upload, the state of their indexes, search, export, delete."""

from __future__ import annotations

from typing import Literal

from django.core.files.storage import default_storage
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import File, Form, Router, Status
from ninja.errors import HttpError
from ninja.files import UploadedFile
from ninja.pagination import LimitOffsetPagination, paginate

from training.errors import BadInput
from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.shapes import CorpusOut, PassageOut
from webapp.core import streaming
from webapp.corpora import searching, services
from webapp.corpora.models import Corpus, CorpusQuerySet
from webapp.corpora.searching import FoundPassage

router = Router(tags=["corpora"], auth=Key(researchers=True))
Kind = Literal["bm25", "dense"]
KINDS: list[Kind] = ["bm25"]


def _corpus(request: HttpRequest, name: str) -> Corpus:
    return get_or_404(Corpus.objects.visible_to(caller(request)).listed(), name=name)


def _changeable(request: HttpRequest, name: str) -> Corpus:
    return get_or_404(Corpus.objects.changeable_by(caller(request)).select_related("file"), name=name)


@router.get("", response=list[CorpusOut])
@paginate(LimitOffsetPagination)
def list_corpora(request: HttpRequest, q: str = "") -> CorpusQuerySet:
    """Corpora whose name or source contains `q`, newest first."""
    return Corpus.objects.visible_to(caller(request)).listed(q)


@router.post("", response={201: CorpusOut})
def upload_corpus(
    request: HttpRequest,
    name: Form[str],
    file: File[UploadedFile],
    kinds: Form[list[Kind]] = KINDS,
    source: Form[str] = "",
    licence: Form[str] = "",
    private: Form[bool] = False,
) -> Status[Corpus]:
    """Store a JSONL file of passages, and queue the building of its indexes.

    The file is checked while it is indexed: `problem` of the corpus then says what is wrong in it.
    """
    services.check_upload(file.size or 0)
    services.create(
        owner=caller(request), name=name, kinds=kinds, private=private, source=source, licence=licence,
        content=services.content_of(file, file.name or ""),
    )  # fmt: skip
    return Status(201, _corpus(request, name))


@router.get("/{name}", response=CorpusOut)
def get_corpus(request: HttpRequest, name: str) -> Corpus:
    """One corpus with the state and progress of its indexes."""
    return _corpus(request, name)


@router.delete("/{name}", response={204: None})
def delete_corpus(request: HttpRequest, name: str) -> Status[None]:
    """Delete a corpus with its indexes."""
    services.delete_corpus(corpus=_changeable(request, name))
    return Status(204, None)


@router.post("/{name}/indexes/{kind}", response=CorpusOut)
def build_index(request: HttpRequest, name: str, kind: Kind) -> Corpus:
    """Queue the building of an index; one that is being built goes on, and one that is ready stays as it is."""
    services.request_index(corpus=_changeable(request, name), kind=kind, again=False)
    return _corpus(request, name)


@router.get("/{name}/search", response=list[PassageOut])
def search_corpus(request: HttpRequest, name: str, q: str = "", kind: Kind = "bm25", k: int = 10) -> list[FoundPassage]:
    """At most `k` passages of a corpus for the query `q`, the best first; 409 if there is no answer now.

    The texts have at most 2,000,000 characters in all, and each the same share of them; a longer one is `cut`.
    """
    corpus = _corpus(request, name)
    if not q.strip():
        raise BadInput("enter what you search for", "q")
    try:
        return searching.search(corpus, kind, q, k, caller(request)).passages
    except searching.SearchError as error:
        raise HttpError(409, str(error)) from error


@router.get("/{name}/export", response=str)
def export_corpus(request: HttpRequest, name: str) -> HttpResponseBase:
    """The file as it was uploaded; 409 if it is gone."""
    corpus = _corpus(request, name)
    if not corpus.file.stored or not default_storage.exists(corpus.file.storage_name):
        raise HttpError(409, "its file is gone")
    return streaming.stream(request, services.pieces(corpus.file), "application/jsonl; charset=utf-8")
