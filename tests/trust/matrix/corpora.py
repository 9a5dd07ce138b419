"""Who may use the corpora: the matrix has one that is private, so somebody else's is not there."""

import itertools
from typing import Any

from tests.trust.matrix.base import RESEARCHERS, Route
from tests.webapp.corpora import making
from webapp.corpora import services

NUMBERS = itertools.count()


def corpus(owner: Any) -> dict[str, Any]:
    return {"name": making.corpus(owner, f"towers-{next(NUMBERS)}", private=True).name}


def stopped(owner: Any) -> dict[str, Any]:
    made = making.corpus(owner, f"towers-{next(NUMBERS)}", private=True)
    services.stop_index(corpus=made, kind="bm25")
    return {"name": made.name, "kind": "bm25"}


ADMIN = ("admin",)
ROUTES = [
    Route("corpora:list", RESEARCHERS),
    Route("corpora:upload", RESEARCHERS),
    Route("corpora:upload", RESEARCHERS, method="POST", data={"name": "nothing"}),
    Route("corpora:corpus", RESEARCHERS, ADMIN, make=corpus),
    Route("corpora:results", RESEARCHERS, ADMIN, make=stopped),
    Route("corpora:build", RESEARCHERS, ADMIN, method="POST", make=stopped),
    Route("corpora:stop", RESEARCHERS, ADMIN, method="POST", make=stopped),
    Route("corpora:share", RESEARCHERS, ADMIN, method="POST", make=corpus, data={"private": "1"}),
    Route("corpora:delete", RESEARCHERS, ADMIN, method="POST", make=corpus),
    Route("corpora:export", RESEARCHERS, ADMIN, make=corpus),
]
