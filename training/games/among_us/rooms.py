"""The names of rooms, for people; models read their positions. Each reads well after `the`."""

from __future__ import annotations

from training.games.among_us.settings import MOST, Room

_NAMES: tuple[tuple[str, ...], ...] = (
    ("Canteen", "Arsenal", "Bridge", "Lookout", "Observatory", "Garden", "Library", "Workshop"),
    ("Sickbay", "Office", "Greenhouse", "Telegraph", "Laundry", "Kitchen", "Gym", "Chapel"),
    ("Reactor", "Turbine", "Store", "Hangar", "Pantry", "Archive", "Studio", "Aviary"),
    ("Guardroom", "Engine", "Boiler", "Tank", "Cabin", "Lounge", "Lab", "Vault"),
    ("Airlock", "Compressor", "Cooler", "Battery", "Bath", "Theatre", "Clinic", "Foyer"),
    ("Probe", "Drill", "Foundry", "Crane", "Nursery", "Cinema", "Darkroom", "Court"),
    ("Hold", "Mill", "Bakery", "Dock", "Sauna", "Parlour", "Garage", "Bank"),
    ("Bilge", "Pump", "Silo", "Winch", "Stable", "Gallery", "Antenna", "Keel"),
)
assert len(_NAMES) == MOST == len(_NAMES[0])

ROOMS: dict[str, Room] = {name: (x, y) for y, row in enumerate(_NAMES) for x, name in enumerate(row)}
"""The position of each room by its name."""


def room_name(room: Room) -> str:
    """Return the name of a room by its position."""
    return _NAMES[room[1]][room[0]]
