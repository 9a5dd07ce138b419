"""Writes of saved searches."""

from __future__ import annotations

from django.db import transaction

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.judgments.models import SavedSearch

MOST_SAVED = 100
"""Searches that one person may save."""
LONGEST_QUERY = 2000


@transaction.atomic
def save(*, owner: User, name: str, query: str) -> SavedSearch:
    """Save a search under a name; one of the same name is replaced."""
    name = " ".join(name.split())[:80]
    if not name:
        raise BadInput("name the search", "name")
    if len(query) > LONGEST_QUERY:
        raise BadInput("the search is too long to be saved", "query")
    User.objects.select_for_update().get(pk=owner.pk)  # two requests at once do not pass the limit
    others = SavedSearch.objects.filter(owner=owner).exclude(name=name)
    if others.count() >= MOST_SAVED:
        raise BadInput(f"you have saved {MOST_SAVED} searches: delete one first", "name")
    search, _ = SavedSearch.objects.update_or_create(owner=owner, name=name, defaults={"query": query})
    return search
