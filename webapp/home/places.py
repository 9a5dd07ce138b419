"""The pages and actions that the search offers, with who may use them; the same as the menus show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from training.games import REGISTRY
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import MEMBERS

RESEARCHERS = frozenset({Role.RESEARCHER, Role.ADMIN})
ANNOTATORS = RESEARCHERS | {Role.ANNOTATOR}
ADMINS = frozenset({Role.ADMIN})


@dataclass(frozen=True)
class Place:
    """A page, or an action that begins on a page. `words` are further words by which it is found."""

    title: str
    route: str
    roles: frozenset[Role]
    words: str = ""
    query: str = ""

    @property
    def address(self) -> str:
        """Its address."""
        return reverse(self.route) + self.query


PAGES = (
    Place("Home", "home:index", MEMBERS, "start first page"),
    Place("Play", "arena:lobby", MEMBERS, "lobby tables games"),
    Place("Your matches", "arena:matches", MEMBERS, "games history replays", "?of=me"),
    Place("Public matches", "arena:matches", MEMBERS, "games replays"),
    Place("Datasets", "scenarios:list", RESEARCHERS, "scenarios"),
    Place("Corpora", "corpora:list", RESEARCHERS, "passages index"),
    Place("Runs", "runs:list", RESEARCHERS, "training curves"),
    Place("Sweeps", "runs:sweeps", RESEARCHERS, "hyperparameters grid random search trials"),
    Place("Reports", "runs:reports", RESEARCHERS, "pages charts markdown"),
    Place("Alerts", "runs:alerts", RESEARCHERS, "mail webhooks notifications"),
    Place("Checkpoints", "runs:checkpoints", MEMBERS, "models"),
    Place("Matrix of evaluations", "runs:matrix", RESEARCHERS, "checkpoints opponents registry scores"),
    Place("Models that answer", "serving:list", RESEARCHERS, "deployments serving"),
    Place("Experiments", "experiments:list", RESEARCHERS, "studies participants arms power"),
    Place("Judgments", "judgments:list", ANNOTATORS, "labels queues codebooks"),
    Place("Classifiers", "judgments:classifiers", RESEARCHERS, "labels train suggestions"),
    Place("Search labels", "judgments:search", RESEARCHERS, "find words behaviours"),
    Place("Ladder", "ladder:ladder", MEMBERS, "ratings ranks"),
    Place("Documentation", "docs", MEMBERS, "help manual tutorial reference"),
    Place("Account and keys", "accounts:account", MEMBERS, "api password"),
    Place("People", "accounts:people", ADMINS, "roles users"),
    Place("Reported messages", "arena:chat-reports", MEMBERS, "moderation spectators chat"),
)
ACTIONS = (
    Place("New table", "arena:new", MEMBERS, "set up a game"),
    Place("Play alone", "arena:alone", MEMBERS, "task shop household"),
    Place("Start a run", "runs:new", RESEARCHERS, "new train"),
    Place("Start a sweep", "runs:new-sweep", RESEARCHERS, "new hyperparameters grid random search"),
    Place("New report", "runs:new-report", RESEARCHERS, "write page charts"),
    Place("New experiment", "experiments:new", RESEARCHERS, "study participants arms"),
    Place("Import a dataset", "scenarios:upload", RESEARCHERS, "upload jsonl"),
    Place("Upload a corpus", "corpora:upload", RESEARCHERS, "passages"),
    Place("Queue games for judgment", "judgments:queue-new", RESEARCHERS, "label new"),
    Place("New codebook", "judgments:codebook-new", RESEARCHERS, "labels"),
    Place("Change the password", "account_change_password", MEMBERS, ""),
)


def actions(user: User) -> Iterator[Place]:
    """The actions of this user, a new table of each game last."""
    yield from (action for action in ACTIONS if user.role in action.roles)
    for spec in REGISTRY.values():
        yield Place(f"New table of {spec.title}", "arena:new", MEMBERS, spec.name, f"?game={spec.name}")


def pages(user: User) -> Iterator[Place]:
    """The pages of this user."""
    return (page for page in PAGES if user.role in page.roles)


def matching(places: Iterator[Place], words: str) -> list[Place]:
    """Those in whose title or words every word occurs, ignoring case; without words, those that any search has."""
    terms = words.casefold().split()
    return [place for place in places if all(term in f"{place.title} {place.words}".casefold() for term in terms)]
