"""Services that put runs in order. None of them changes what a run does."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.organising.models import Pin
from webapp.runs.querysets import ALIVE

TAGS, TAG_LENGTH = 20, 40
"""Most tags of a run, and characters of one."""
NOTE_LENGTH, GROUP_LENGTH = 10_000, 80


def tags_of(text: str) -> list[str]:
    """The tags in a text with commas, each once, in alphabetical order. Raises `BadInput` if they are too many."""
    tags = sorted({" ".join(tag.split()) for tag in text.split(",")} - {""})
    if len(tags) > TAGS:
        raise BadInput(f"a run has at most {TAGS} tags, not {len(tags)}", "tags")
    if long := next((tag for tag in tags if len(tag) > TAG_LENGTH), None):
        raise BadInput(f"a tag has at most {TAG_LENGTH} characters: {long[:TAG_LENGTH]}…", "tags")
    return tags


@transaction.atomic
def describe(*, run: Run, tags: Iterable[str], note: str, group: str) -> None:
    """Set a run's tags, note and group."""
    run.tags, run.note, run.group = list(tags), note, group
    run.save(update_fields=["tags", "note", "group"])


@transaction.atomic
def add_tag(*, run: Run, tag: str) -> None:
    """Add a tag to those of a run; raises `BadInput` if it has too many."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    locked.tags = tags_of(",".join([*locked.tags, tag]))
    locked.save(update_fields=["tags"])


@transaction.atomic
def set_group(*, run: Run, group: str) -> None:
    """Put a run into a group; an empty name takes it out of its group."""
    if len(group) > GROUP_LENGTH:
        raise BadInput(f"a group's name has at most {GROUP_LENGTH} characters", "group")
    Run.objects.filter(pk=run.pk).update(group=" ".join(group.split()))


@transaction.atomic
def archive(*, run: Run, archived: bool) -> bool:
    """Hide a run that is over from lists, or show it again; return whether it was not so already.

    Raises `BadInput` for one that is active.
    """
    if archived and run.state in ALIVE:
        raise BadInput(f"it is {run.state}: only a run that is over can be archived", run.name)
    other = Run.objects.filter(pk=run.pk, archived_at__isnull=archived)
    return bool(other.update(archived_at=Now() if archived else None))


@transaction.atomic
def pin(*, run: Run, user: User, pinned: bool) -> bool:
    """Keep a run at the top of a person's list, or no longer; return whether it was not so already."""
    if pinned:
        return Pin.objects.get_or_create(run=run, user=user)[1]
    return bool(Pin.objects.filter(run=run, user=user).delete()[0])
