"""Pages of the corpora. Researchers see those that are not private and their own, and change their own; admins all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib import messages
from django.core.files.storage import default_storage
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from training.retrieval import dense
from training.retrieval.base import Passage
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core import streaming
from webapp.core.http import accepted, integer, render_page, wants_fragment
from webapp.corpora import searching, services
from webapp.corpora.excerpts import WHOLE, Excerpt, Part, excerpt, marked
from webapp.corpora.forms import PRIVATE, UploadForm
from webapp.corpora.models import Corpus, Index

PAGE = 24
HITS = 10
"""Passages of a search, at first and with each press of the button for more."""
ORDERS = {"-created_at": "newest first", "created_at": "oldest first", "name": "by name"}
"""The orders of the list; the first is the default."""
PHASES = {
    "": "Starting",
    "checksum": "Reading the file (bytes)",
    "read": "Checking the passages",
    "words": "Splitting the passages into words",
    "scores": "Computing the scores",
    "vectors": "Computing the vectors",
    "finished": "Storing the index",
}
"""What a person reads for the phases of `training.retrieval.index.build`."""


@require_GET
@researchers
def corpus_list(request: HttpRequest) -> HttpResponse:
    words, requested = request.GET.get("q", ""), request.GET.get("order", "")
    order = requested if requested in ORDERS else next(iter(ORDERS))
    corpora = Corpus.objects.visible_to(current_user(request)).listed(words, order)
    page = Paginator(corpora, PAGE).get_page(integer(request, "page", 1, 1))
    context = {"page": page, "words": words, "order": order, "orders": ORDERS}
    return render_page(request, "corpora/list.html", context, "results")


@require_http_methods(["GET", "POST"])
@researchers
def upload(request: HttpRequest) -> HttpResponseBase:
    user = current_user(request)
    form = UploadForm(user, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            corpus = services.create(
                owner=user, name=cleaned["name"], kinds=form.kinds(), private=cleaned["private"],
                content=services.content_of(cleaned["file"], cleaned["file"].name),
                source=cleaned["source"], licence=cleaned["licence"],
            )  # fmt: skip
        except BadInput as error:  # somebody took the name meanwhile, or a quota is used up
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            return redirect("corpora:corpus", corpus.name)
    return render(request, "corpora/upload.html", {"form": form}, status=400 if form.errors else 200)


def _corpus(request: HttpRequest, name: str) -> Corpus:
    rows = Corpus.objects.visible_to(current_user(request)).select_related("owner", "file")
    return get_or_404(rows.prefetch_related("file__indexes"), name=name)


def _changeable(request: HttpRequest, name: str) -> Corpus:
    return get_or_404(Corpus.objects.changeable_by(current_user(request)).select_related("file"), name=name)


def _kind(kind: str) -> str:
    if kind not in Index.Kind.values:
        raise Http404
    return kind


@dataclass(frozen=True)
class Row:
    """One kind of index on a corpus's page; `index` is None if nobody has asked for it."""

    kind: str
    title: str
    index: Index | None
    may_build: bool

    @property
    def install(self) -> str:
        """What to do where dense retrieval is missing."""
        return dense.INSTALL

    @property
    def phase(self) -> str:
        """What its worker does."""
        phase = self.index.phase if self.index else ""
        return PHASES.get(phase, phase)


def _rows(corpus: Corpus, *, may_change: bool) -> list[Row]:
    """The kinds of indexes, with whether the reader may have one built."""
    stored = may_change and corpus.file.stored
    may_build = {Index.Kind.BM25: stored, Index.Kind.DENSE: stored and dense.installed()}
    return [Row(kind.value, kind.label, corpus.index(kind), may_build[kind]) for kind in Index.Kind]


def _states(corpus: Corpus) -> str:
    """The state of the corpus in words, by which a page notices a change."""
    states = [f"{index.get_kind_display()}: {index.state}" for index in corpus.file.indexes.all()]
    return "refused" if corpus.problem else ", ".join(states)


@require_GET
@researchers
def corpus_page(request: HttpRequest, name: str) -> HttpResponse:
    """The corpus with the state of its indexes, and what a query finds in them.

    A polling page sends the state it shows as `seen`: the response is 204 if nothing has changed.
    """
    corpus = _corpus(request, name)
    states, seen = _states(corpus), request.GET.get("seen", "").partition(" | ")
    progress = ", ".join(f"{index.phase} {index.done}" for index in corpus.file.indexes.all())
    if wants_fragment(request) and seen == (states, " | ", progress):
        return HttpResponse(status=204)
    may_change = current_user(request).may_change(corpus.owner_id)
    rows = _rows(corpus, may_change=may_change)
    context = {
        "corpus": corpus,
        "rows": rows,
        "states": states,
        "seen": f"{states} | {progress}",
        "changed": wants_fragment(request) and seen[0] != states,
        "worked_at": any(row.index and row.index.is_worked_at for row in rows),
        "may_change": may_change,
        "private_help": PRIVATE,
        "query": request.GET.get("q", "").strip(),
        "longest": searching.LONGEST_QUERY,
    }
    response = render_page(request, "corpora/corpus.html", context, "state")
    if context["changed"] and corpus.problem:
        response["HX-Refresh"] = "true"  # there is nothing any more to search or export
    return response


class Hit(NamedTuple):
    """A passage as it is shown."""

    rank: int
    passage: Passage
    title: list[Part]
    excerpt: Excerpt
    whole: list[Part]
    """The whole text, if the excerpt is not."""
    cut: bool
    """Whether also that is only its beginning."""


def _hits(results: searching.Results) -> list[Hit]:
    hits, most = [], WHOLE // max(HITS, len(results.passages))
    for rank, passage in enumerate(results.passages, 1):
        short = excerpt(passage.text, results.words)
        whole = marked(passage.text, results.words, most) if short.cut_before or short.cut_after else []
        cut = passage.cut or len(passage.text) > most
        hits.append(Hit(rank, passage, marked(passage.title, results.words), short, whole, cut))
    return hits


@require_GET
@researchers
def results(request: HttpRequest, name: str, kind: str) -> HttpResponse:
    """What one index finds for a query: a column of the corpus's page, or a page of its own."""
    corpus, query = _corpus(request, name), request.GET.get("q", "").strip()
    count = integer(request, "k", HITS, 1, searching.MOST)
    may_change = current_user(request).may_change(corpus.owner_id)
    context: dict[str, Any] = {"corpus": corpus, "kind": _kind(kind), "query": query, "problem": ""}
    context["title"], hits = Index.Kind(kind).label, []
    try:
        hits = _hits(searching.search(corpus, kind, query, count, current_user(request))) if query else []
    except BadInput as error:
        row = next(row for row in _rows(corpus, may_change=may_change) if row.kind == kind)
        context |= {"problem": error.why, "may_build": row.may_build and not (row.index and row.index.is_worked_at)}
    except searching.SearchError as error:
        context["problem"] = str(error)
    more = len(hits) == count < searching.MOST
    context |= {"hits": hits, "more": min(count + HITS, searching.MOST) if more else 0}
    return render_page(request, "corpora/results.html", context, "results")


@require_POST
@researchers
def build(request: HttpRequest, name: str, kind: str) -> HttpResponseBase:
    corpus = _changeable(request, name)
    accepted(request, lambda: services.request_index(corpus=corpus, kind=_kind(kind)))
    return redirect("corpora:corpus", name)


@require_POST
@researchers
def stop(request: HttpRequest, name: str, kind: str) -> HttpResponseBase:
    services.stop_index(corpus=_changeable(request, name), kind=_kind(kind))
    return redirect("corpora:corpus", name)


@require_POST
@researchers
def share(request: HttpRequest, name: str) -> HttpResponseBase:
    """Make a corpus private, or visible to all researchers."""
    services.share(corpus=_changeable(request, name), private=request.POST.get("private") == "1")
    return redirect("corpora:corpus", name)


@require_POST
@researchers
def delete(request: HttpRequest, name: str) -> HttpResponseBase:
    corpus = _changeable(request, name)
    try:
        services.delete_corpus(corpus=corpus)
    except BadInput as error:
        messages.error(request, f"{name} was not deleted: {error.why}.")
        return redirect("corpora:corpus", name)
    messages.success(request, f"{name} was deleted.")
    return redirect("corpora:list")


@require_GET
@researchers
def export(request: HttpRequest, name: str) -> HttpResponseBase:
    """The file as it was uploaded."""
    corpus = _corpus(request, name)
    if not corpus.file.stored or not default_storage.exists(corpus.file.storage_name):
        messages.error(request, f"{name} was not exported: its file is gone.")
        return redirect("corpora:corpus", name)
    response = streaming.stream(request, services.pieces(corpus.file), "application/jsonl; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.jsonl"'
    response["X-Content-SHA256"] = corpus.file.sha256
    return response
