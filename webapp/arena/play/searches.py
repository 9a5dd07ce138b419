"""Searches at the table: the tool seat of a game that searches is a due seat, which a worker answers from an index.

A corpus is the one of this name that the match's host sees: everybody at the table reads its passages. A private one is
searched only for its owner's own scenarios at its owner's own tables, so that no scenario of others can make it public.
The name of a corpus of the samples means that one, unless the corpus of the site belongs to the host or to the author
of the scenario: nobody else can decide what those who play a sample read.
A search that fails is a move as well: the seat that searched reads why, and the game goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from training import samples
from training.errors import BadInput
from training.games import Search, SearchingGame
from training.records import Move
from webapp.arena.models import Match
from webapp.arena.play import model_seats, services
from webapp.corpora.models import Corpus, Index

PASSAGES = 3
"""Most passages of a result."""


@dataclass(frozen=True)
class SearchClaim:
    """A search claimed by a worker. `state` is the match at the time of the claim; `answer` advances it."""

    due_id: int
    fence: int
    match: Match
    state: services.MatchState
    game: SearchingGame
    search: Search


@transaction.atomic
def claim(*, due_id: int) -> SearchClaim | None:
    """Claim the search that a due tool seat stands for; None if it is done or claimed, or another seat is due."""
    now = services.database_now()
    due = model_seats.unclaimed(due_id, now)
    if due is None or due.seat != services.scenario_of(due.match).tool_seat:
        return None
    state = services.fold(due.match)
    if not isinstance(state.game, SearchingGame) or (search := state.game.pending_search()) is None:
        return None
    model_seats.lease(due, now)
    return SearchClaim(due.pk, due.fence, due.match, state, state.game, search)


def index_of(claim: SearchClaim) -> Index | Path:
    """The index to search, or a corpus of the samples, whose index is built where there is none.

    Raises `BadInput` with a reason for the players if there is no such corpus, or no index of it that is ready.
    """
    name = claim.search.corpus
    sample = samples.corpora().get(name)
    corpus = _corpus(claim.match, name, replaces_sample=sample is not None)
    if corpus is not None:
        index = corpus.index(Index.Kind.BM25)
        if index is None or index.state != Index.State.READY:
            raise BadInput(f"the index of the corpus {name} is not ready")
        return index
    if sample is None:
        raise BadInput(f"there is no corpus called {name} here")
    return sample


def _corpus(match: Match, name: str, *, replaces_sample: bool) -> Corpus | None:
    """The corpus of the site that a match searches by this name, None if there is none."""
    host, author = match.host_id, match.source.version.created_by_id if match.source else None
    for_table = Q(private=False)
    if author == host:
        for_table |= Q(owner=host)
    rows = Corpus.objects.visible_to(match.host).filter(for_table, name=name, file__problem={})
    return (rows.filter(owner__in={host, author} - {None}) if replaces_sample else rows).first()


def answer(*, claim: SearchClaim, move: Move) -> None:
    """Make the tool's move. Raises `IllegalMove`, and changes nothing, if the claim was lost or the match is over."""
    services.submit(
        match_id=claim.match.pk,
        seat=claim.game.scenario.tool_seat,
        step=claim.match.step,
        move=model_seats.while_claimed(claim.due_id, claim.fence, move),
        known=claim.state,
    )
