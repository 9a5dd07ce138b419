"""One search at a table: find passages in an index, and move for the tool seat."""

from __future__ import annotations

import logging
from pathlib import Path

from training.errors import BadInput, IllegalMove, ParleyError
from training.records import Move
from training.retrieval import index as indexes
from training.retrieval.bm25 import Bm25Settings
from webapp.arena.play import searches
from webapp.arena.play.searches import PASSAGES, SearchClaim
from webapp.corpora import services as corpora

logger = logging.getLogger(__name__)


def search(due_id: int) -> None:
    """Claim a search and make the tool's move; do nothing if another worker has it or nothing is due."""
    claim = searches.claim(due_id=due_id)
    if claim is None:
        return
    try:
        searches.answer(claim=claim, move=_move(claim))
    except IllegalMove as error:  # the match ended, or the clock was faster
        logger.info("match %s, a search: %s", claim.match.pk, error)


def _move(claim: SearchClaim) -> Move:
    """What was found, or why nothing could be searched: in words that name no folder of this machine."""
    try:
        index = searches.index_of(claim)
    except BadInput as error:
        return claim.game.failure(error.why)
    try:
        folder = indexes.build(index, Bm25Settings()) if isinstance(index, Path) else corpora.local_folder(index)
        passages = indexes.open_index(folder).search(claim.search.query, PASSAGES)
    except (ParleyError, OSError) as error:  # files that are gone, a bucket that does not answer
        logger.warning("match %s: a search in %s failed: %s", claim.match.pk, claim.search.corpus, error)
        return claim.game.failure(f"the index of the corpus {claim.search.corpus} cannot be searched")
    return claim.game.retrieval(passage.with_title for passage in passages)
