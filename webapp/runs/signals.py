"""Signals of the runs."""

from __future__ import annotations

from django.dispatch import Signal

classifier_named = Signal()
"""Sent where a run's reward names a classifier, with its `name`.

A receiver returns the `ClassifierInfo` of the classifier of this name that is ready, and whether it learned from a game
that was withdrawn since; None if there is none.
"""
