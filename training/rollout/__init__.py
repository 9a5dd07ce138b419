"""Plays many episodes concurrently: turn order, retries, forfeits, errors as data."""

from __future__ import annotations

from training.rollout.episode import Tool, play
from training.rollout.lanes import Job, collect, rollout
from training.rollout.seats import RolloutPolicy

__all__ = ["Job", "RolloutPolicy", "Tool", "collect", "play", "rollout"]
