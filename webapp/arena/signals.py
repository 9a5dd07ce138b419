"""Signals of the matches."""

from __future__ import annotations

from django.dispatch import Signal

consent_withdrawn = Signal()
"""Sent by `Match` with `match`, once a player of a finished match withdrew consent to its use.

Receivers run inside the transaction that stores the answer.
"""
