"""Search over everything that a user may see: pages and actions, runs, checkpoints, data, games, people, judgments.

What may be seen is decided by the QuerySet methods of each app; every list is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, members
from webapp.arena.models import Match
from webapp.core.http import render_page
from webapp.corpora.models import Corpus
from webapp.home import places
from webapp.judgments.models import Codebook, Judgment, Queue
from webapp.ladder.models import Standing
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios.models import Dataset

LONGEST, LEAST = 100, 2
"""Letters of a search that are read, and that are needed to search more than pages."""
IN_PALETTE, ON_PAGE = 4, 20
"""Results of one kind."""


@dataclass(frozen=True)
class Hit:
    """One result; `about` tells it from others of the same title."""

    title: str
    address: str
    about: str = ""


@dataclass(frozen=True)
class Group:
    """The results of one kind; `more` if there are others."""

    title: str
    hits: list[Hit]
    more: bool = False


def search(user: User, words: str, limit: int) -> list[Group]:
    """All results for these words, by kind; without enough letters, pages and actions alone."""
    words = " ".join(words[:LONGEST].split())
    kinds: list[tuple[str, Iterable[Hit]]] = [
        ("Pages", (Hit(place.title, place.address) for place in places.matching(places.pages(user), words))),
        ("Actions", (Hit(place.title, place.address) for place in places.matching(places.actions(user), words))),
    ]
    if len(words) >= LEAST or words.isdecimal():
        kinds += _rows(user, words, limit + 1)
    groups = []
    for title, hits in kinds:
        several = list(hits)
        if several:
            groups.append(Group(title, several[:limit], more=len(several) > limit))
    return groups


def _rows(user: User, words: str, most: int) -> list[tuple[str, Iterable[Hit]]]:
    """At most `most` rows of each kind, newest first."""
    return [
        ("Runs", _runs(user, words, most)),
        ("Checkpoints", _checkpoints(user, words, most)),
        ("Datasets and corpora", [*_datasets(user, words, most), *_corpora(user, words, most)]),
        ("Games and tables", _matches(user, words, most)),
        ("People", _people(user, words, most)),
        ("Judgments", [*_queues(user, words, most), *_codebooks(user, words, most), *_judgments(user, words, most)]),
    ]


def _runs(user: User, words: str, most: int) -> Iterator[Hit]:
    for run in Run.objects.visible_to(user).without_servers().matching(text=words).listed().order_by("-pk")[:most]:
        yield Hit(run.name, reverse("runs:detail", args=[run.pk]), f"{run.get_kind_display()}, {run.state}")


def _checkpoints(user: User, words: str, most: int) -> Iterator[Hit]:
    for row in Checkpoint.objects.visible_to(user).matching(text=words).order_by("-pk")[:most]:
        yield Hit(row.name, reverse("runs:checkpoint", args=[row.pk]), row.get_kind_display())


def _datasets(user: User, words: str, most: int) -> Iterator[Hit]:
    for row in Dataset.objects.visible_to(user).listed(words)[:most]:
        yield Hit(row.title or row.name, reverse("scenarios:newest", args=[row.name]), f"dataset {row.name}")


def _corpora(user: User, words: str, most: int) -> Iterator[Hit]:
    for row in Corpus.objects.visible_to(user).listed(words)[:most]:
        yield Hit(row.name, reverse("corpora:corpus", args=[row.name]), "corpus")


def _matches(user: User, words: str, most: int) -> Iterator[Hit]:
    matches = Match.objects.visible_to(user).named(words).select_related("host").order_by("-pk")
    for match in matches[:most]:
        about = f"match {match.pk}, {match.get_state_display()}, hosted by {match.host.shown_name}"
        yield Hit(match.title, reverse("arena:table", args=[match.pk]), about)


def _people(user: User, words: str, most: int) -> Iterator[Hit]:
    """Administrators find every account; others the people on the ladder, which everybody reads."""
    if user.is_admin:
        for person in User.objects.members().filter(username__icontains=words).order_by("username")[:most]:
            query = urlencode({"q": person.username})
            yield Hit(person.username, f"{reverse('accounts:people')}?{query}", person.get_role_display())
        return
    closed = Match.objects.undisclosed_to(user).values("game")  # as the ladder itself is
    rows = Standing.objects.visible_to(user).of_people(words).exclude(fit__game__in=closed)
    for row in rows.select_related("fit", "user").order_by("user__username", "pk")[:most]:
        query = urlencode({"game": row.fit.game, "kind": "person"})
        yield Hit(row.name, f"{reverse('ladder:ladder')}?{query}", f"on the ladder of {row.fit.game.replace('_', ' ')}")


def _queues(user: User, words: str, most: int) -> Iterator[Hit]:
    route = "judgments:queue" if user.is_researcher else "judgments:annotate"
    for queue in Queue.objects.visible_to(user).matching(text=words).order_by("-pk")[:most]:
        yield Hit(queue.name, reverse(route, args=[queue.pk]), "queue of judgments")


def _codebooks(user: User, words: str, most: int) -> Iterator[Hit]:
    for codebook in Codebook.objects.visible_to(user).matching(words).with_newest()[:most]:
        address = reverse("judgments:codebook", args=[codebook.name, codebook.newest().number])
        yield Hit(codebook.title, address, f"codebook {codebook.name}")


def _judgments(user: User, words: str, most: int) -> Iterator[Hit]:
    """Judgments by what was written in them, where a game or queue shows them."""
    rows = Judgment.objects.readable_by(user).saying(words).filter(queue__in=Queue.objects.visible_to(user))
    for row in rows.select_related("target__queue", "codebook_version").with_labels().order_by("-pk")[:most]:
        assert row.target is not None
        route = "judgments:queue" if user.is_researcher else "judgments:own_judgments"
        said = [text for label in row.labels.all() for text in (label.reason, label.text)]
        text = row.reason or next((text for text in said if words.casefold() in text.casefold()), "")
        yield Hit(text[:120], reverse(route, args=[row.target.queue_id]), f"judgment in {row.target.queue.name}")


@require_GET
@members
def search_page(request: HttpRequest) -> HttpResponse:
    """The page of results; a fragment is the results alone."""
    words = request.GET.get("q", "")[:LONGEST]
    context = {"words": words, "groups": search(current_user(request), words, ON_PAGE) if words.strip() else []}
    return render_page(request, "home/search.html", {**context, "least": LEAST}, "results")


@require_GET
@members
def palette(request: HttpRequest) -> HttpResponse:
    """The results as options of the palette's list."""
    words = request.GET.get("q", "")[:LONGEST]
    groups = search(current_user(request), words, IN_PALETTE)
    context = {"words": words, "groups": groups, "count": sum(len(group.hits) for group in groups)}
    return render(request, "home/palette_hits.html", context)
