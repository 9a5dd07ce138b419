"""The search tool of games whose seats search: what an index returns enters the game as the tool seat's move.

Raises `BadInput` for an index that there is not, and `OutsideError` where a search fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from training import samples
from training.errors import BadInput, OutsideError
from training.games import Game, SearchingGame, lookup
from training.records import Move, Scenario
from training.retrieval.base import Retriever
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build, open_index
from training.run_sections import SearchSection


class SearchTool:
    """A tool of the rollout. `retrievers` are by the name of the corpus in the settings of a scenario."""

    def __init__(self, retrievers: Mapping[str, Retriever], passages: int) -> None:
        self._retrievers, self._passages = dict(retrievers), passages

    async def __call__(self, game: Game) -> Move:
        """Return what the pending search found, each passage with its title on one line."""
        if not isinstance(game, SearchingGame) or (search := game.pending_search()) is None:
            raise OutsideError("a search was asked for in a game that has none")
        if search.corpus not in self._retrievers:
            raise OutsideError(f"no index is named for the corpus {search.corpus!r}")
        try:
            passages = await asyncio.to_thread(self._retrievers[search.corpus].search, search.query, self._passages)
        except BadInput as error:
            raise OutsideError(f"the search in {search.corpus!r} failed: {error}") from error
        return game.retrieval(passage.with_title for passage in passages)


def corpora(starts: Iterable[Scenario]) -> list[str]:
    """Return the corpora that the seats of these scenarios can search, sorted."""
    settings = ((lookup(start.game).corpora, start.settings) for start in starts)
    return sorted({corpus for name, stated in settings if name for corpus in stated.get(name, ()) if corpus})


def search_tool(section: SearchSection, starts: Iterable[Scenario]) -> SearchTool | None:
    """Return the tool for these scenarios, None if nobody in them searches.

    A corpus of the samples needs no index: it is small, and is indexed here. Raises `BadInput` for another one without
    an index, and for an index that cannot be opened.
    """
    needed = corpora(starts)
    if not needed:
        return None
    samples.check_indexes(needed, section.indexes)
    try:
        opened = {corpus: open_index(section.indexes.get(corpus) or _sampled(corpus)) for corpus in needed}
    except BadInput as error:
        raise BadInput(str(error), "search.indexes") from error
    return SearchTool(opened, section.passages)


def _sampled(corpus: str) -> Path:
    """Return the folder of the index of a corpus of the samples."""
    return build(samples.corpora()[corpus], Bm25Settings())
