"""Many episodes at once: turn order, retries, forfeits, errors as data."""

from __future__ import annotations

from training.rollout.episode import Tool, play
from training.rollout.lanes import Job, collect, rollout
from training.rollout.pool import OpponentPool, PlayerFactory
from training.rollout.seats import Rules

__all__ = ["Job", "OpponentPool", "PlayerFactory", "Rules", "Tool", "collect", "play", "rollout"]
