"""Services for reports: write, pin anew, delete."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.runs.report_pages import numbers
from webapp.runs.report_pages.models import PinnedNumber, Report

LONGEST = 100_000
MOST_NUMBERS = 100


def checked(text: str) -> list[str]:
    """The references of a text; raises `BadInput` at `text` if it is too long or has too many."""
    if len(text) > LONGEST:
        raise BadInput(f"it has {len(text)} characters, more than {LONGEST}", "text")
    references = numbers.references(text)
    if len(references) > MOST_NUMBERS:
        raise BadInput(f"it pins {len(references)} numbers, more than {MOST_NUMBERS}", "text")
    return references


def provenances(text: str, user: User, known: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a text with their provenance: known ones as they are, others read anew.

    Raises `BadInput` at `text`.
    """
    return {name: known[name] if name in known else numbers.provenance(name, user) for name in checked(text)}


def pinned(report: Report) -> dict[str, Any]:
    """The numbers of a report with their provenance, by reference, and the time at which each was pinned."""
    return {row.reference: {**row.provenance, "pinned_at": row.pinned_at} for row in report.pinned.all()}


@transaction.atomic
def write(*, report: Report, by: User, title: str, text: str) -> Report:
    """Store a report. New numbers are pinned, those that the text no longer has are forgotten, others stay as they are.

    Raises `BadInput` at `text` for a number that is not there.
    """
    report.title, report.text = title, text
    report.save()
    kept = set(report.pinned.values_list("reference", flat=True))
    references = checked(text)
    report.pinned.exclude(reference__in=references).delete()
    new = [name for name in references if name not in kept]
    PinnedNumber.objects.bulk_create(
        PinnedNumber(report=report, reference=name, provenance=numbers.provenance(name, by)) for name in new
    )
    return report


@transaction.atomic
def pin_anew(*, report: Report, by: User) -> int:
    """Read every number of a report again; return how many have changed. Raises `BadInput` if one is gone."""
    changed = 0
    for row in report.pinned.select_for_update():
        provenance = numbers.provenance(row.reference, by)
        changed += provenance["value"] != row.provenance["value"]
        row.provenance = provenance
        row.save(update_fields=["provenance", "pinned_at"])
    return changed


@transaction.atomic
def delete(*, report: Report) -> None:
    """Delete a report with its pinned numbers; runs stay."""
    report.delete()
