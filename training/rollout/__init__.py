"""Many episodes at once: turn order, retries, forfeits, errors as data."""

from __future__ import annotations

from training.rollout.episode import Tool, play
from training.rollout.lanes import Job, PlayerFactory, collect, rollout
from training.rollout.seats import Rules

__all__ = ["Job", "PlayerFactory", "Rules", "Tool", "collect", "play", "rollout"]
