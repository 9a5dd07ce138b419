"""The names of rooms, for people; models read their positions."""

from __future__ import annotations

from training.games.among_us.settings import MOST, Room

_NAMES: tuple[tuple[str, ...], ...] = (
    ("Canteen", "Weapons", "Bridge", "Shields", "Lookout", "Garden", "Library", "Workshop"),
    ("Sickbay", "Office", "Oxygen", "Radio", "Laundry", "Kitchen", "Gym", "Chapel"),
    ("Reactor", "Electrics", "Storage", "Hangar", "Pantry", "Archive", "Studio", "Aviary"),
    ("Security", "Engine", "Boiler", "Fuel", "Cabins", "Lounge", "Lab", "Vault"),
    ("Airlock", "Turbine", "Coolant", "Battery", "Bath", "Theatre", "Clinic", "Armoury"),
    ("Probes", "Drill", "Foundry", "Crane", "Nursery", "Cinema", "Optics", "Court"),
    ("Cargo", "Mill", "Bakery", "Dock", "Sauna", "Chess", "Robots", "Bank"),
    ("Ballast", "Pumps", "Silo", "Winch", "Stables", "Gallery", "Antenna", "Keel"),
)
assert len(_NAMES) == MOST == len(_NAMES[0])


def room_name(room: Room) -> str:
    """Return the name of a room by its position."""
    return _NAMES[room[1]][room[0]]
