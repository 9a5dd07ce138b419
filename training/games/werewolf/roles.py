"""Roles: their assignment, their teams, and the winner. Pure functions that raise nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from training.games.werewolf.settings import Role, WerewolfSettings
from training.records import Seat
from training.seeding import rng

Team = Literal["wolves", "village"]
ORDER: tuple[Role, ...] = ("werewolf", "seer", "witch", "hunter", "guard", "doctor", "villager")
"""The order in which roles are listed."""
POWERS: tuple[tuple[Role, int], ...] = (("witch", 6), ("hunter", 8), ("guard", 10))
"""Additional roles of default villages with at least this many players."""


def dealt(settings: WerewolfSettings, seed: int) -> tuple[Role, ...]:
    """Return the role of every seat: as stated by the settings, or shuffled by the seed."""
    if settings.deal:
        return settings.deal
    roles = list(settings.roles)
    rng(seed, "werewolf", "deal").shuffle(roles)
    return tuple(roles)


def usual(seats: int) -> list[Role]:
    """Return the roles of a village of 3 to 12: a third of them wolves, a power more for every two or three players.

    For six and nine it is what is usually played: `SIX` and `NINE`.
    """
    powers: list[Role] = ["seer", *(role for role, least in POWERS if seats >= least)]
    wolves: list[Role] = ["werewolf"] * max(1, seats // 3)
    villagers: list[Role] = ["villager"] * (seats - len(wolves) - len(powers))
    return [*wolves, *powers, *villagers]


def team(role: Role) -> Team:
    """Return the team of a role."""
    return "wolves" if role == "werewolf" else "village"


def counted(roles: Sequence[Role]) -> str:
    """Return the number of players with each role, in words: `2 werewolves, seer, witch, 2 villagers`."""
    counts = Counter(roles)
    return ", ".join(_several(role, counts[role]) for role in ORDER if counts[role])


def _several(role: Role, count: int) -> str:
    plural = {"werewolf": "werewolves", "witch": "witches"}.get(role, f"{role}s")
    return role if count == 1 else f"{count} {plural}"


def winner(settings: WerewolfSettings, roles: Sequence[Role], alive: Collection[Seat]) -> Team | None:
    """Return the winner if only the seats in `alive` live, None while the game continues."""
    living = [roles[seat] for seat in alive]
    wolves = living.count("werewolf")
    if not wolves:
        return "village"
    if wolves >= len(living) - wolves or (settings.wolf_win == "side" and _lost_a_side(roles, living)):
        return "wolves"
    return None


def _lost_a_side(roles: Sequence[Role], living: Sequence[Role]) -> bool:
    """Return whether all plain villagers, or all villagers with a power, are dead and there were any."""
    plain = {"villager"}
    power = set(ORDER) - {"villager", "werewolf"}
    return any(side & set(roles) and not side & set(living) for side in (plain, power))
