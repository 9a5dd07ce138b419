"""The rooms of the household: their receptacles, which objects are found where, and what can be done to them.

What may lie where, and what can be cleaned, heated and cooled, follows ALFRED (Shridhar et al. 2020), on whose scenes
ALFWorld's games are built; how typical a place is was chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Room = Literal["kitchen", "living_room", "bedroom", "bathroom"]
Change = Literal["clean", "heat", "cool"]

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""Receptacles that are closed at first."""
TOOLS: Mapping[str, str] = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""The receptacle with which each change is made."""
LAMP = "desklamp"
"""The object that can be turned on. It stays where it stands."""

RECEPTACLES: Mapping[Room, Mapping[str, tuple[int, int]]] = {
    "kitchen": {
        "cabinet": (4, 9),
        "coffeemachine": (1, 1),
        "countertop": (2, 3),
        "diningtable": (1, 1),
        "drawer": (3, 7),
        "fridge": (1, 1),
        "garbagecan": (1, 1),
        "microwave": (1, 1),
        "shelf": (0, 3),
        "sidetable": (0, 1),
        "sinkbasin": (1, 1),
        "stoveburner": (2, 4),
        "toaster": (1, 1),
    },
    "living_room": {
        "armchair": (1, 2),
        "cabinet": (2, 4),
        "coffeetable": (1, 1),
        "diningtable": (0, 1),
        "drawer": (3, 6),
        "dresser": (0, 1),
        "garbagecan": (1, 1),
        "ottoman": (0, 1),
        "safe": (0, 1),
        "shelf": (3, 5),
        "sidetable": (1, 3),
        "sofa": (1, 2),
        "tvstand": (1, 1),
        "desk": (1, 1),
    },
    "bedroom": {
        "armchair": (1, 1),
        "bed": (1, 1),
        "cabinet": (0, 2),
        "desk": (1, 2),
        "drawer": (5, 9),
        "dresser": (1, 1),
        "garbagecan": (1, 1),
        "laundryhamper": (1, 1),
        "safe": (1, 1),
        "shelf": (3, 6),
        "sidetable": (1, 2),
    },
    "bathroom": {
        "bathtubbasin": (1, 1),
        "cabinet": (3, 6),
        "cart": (0, 1),
        "countertop": (1, 2),
        "drawer": (3, 5),
        "garbagecan": (1, 1),
        "handtowelholder": (1, 2),
        "shelf": (1, 3),
        "sinkbasin": (1, 2),
        "toilet": (1, 1),
        "toiletpaperhanger": (1, 1),
        "towelholder": (1, 2),
    },
}
"""The least and the most receptacles of each kind."""


@dataclass(frozen=True)
class ObjectKind:
    """Where an object may be put, with a weight for how often it is found there; the rooms where it is found."""

    places: Mapping[str, int]
    rooms: tuple[Room, ...]
    changes: frozenset[Change] = frozenset()


def _kind(rooms: tuple[Room, ...], places: str, *changes: Change) -> ObjectKind:
    """Return a kind from `countertop 4, fridge 2`."""
    weights = (place.split() for place in places.split(", "))
    return ObjectKind({name: int(weight) for name, weight in weights}, rooms, frozenset(changes))


_KITCHEN: tuple[Room, ...] = ("kitchen",)
_BATHROOM: tuple[Room, ...] = ("bathroom",)
_BEDROOM: tuple[Room, ...] = ("bedroom",)
_LIVING_ROOM: tuple[Room, ...] = ("living_room",)
_LIVED_IN: tuple[Room, ...] = ("bedroom", "living_room")
_CUTLERY = "drawer 5, countertop 5, diningtable 4, sinkbasin 2, sidetable 1"
_SMALL = "desk 4, drawer 3, sidetable 4, dresser 3, coffeetable 4, shelf 2, safe 1"
_SEATED = ", sofa 3, armchair 3, ottoman 2"

OBJECTS: Mapping[str, ObjectKind] = {
    "apple": _kind(
        _KITCHEN,
        "countertop 6, diningtable 5, fridge 4, sinkbasin 2, sidetable 2, garbagecan 1, microwave 1",
        "clean",
        "heat",
        "cool",
    ),
    "bread": _kind(
        _KITCHEN, "countertop 6, diningtable 5, fridge 2, sidetable 2, garbagecan 1, microwave 1", "heat", "cool"
    ),
    "egg": _kind(
        _KITCHEN,
        "fridge 5, countertop 4, diningtable 3, sinkbasin 2, garbagecan 1, microwave 1",
        "clean",
        "heat",
        "cool",
    ),
    "lettuce": _kind(_KITCHEN, "fridge 4, countertop 4, diningtable 3, sinkbasin 2, garbagecan 1", "clean", "cool"),
    "potato": _kind(
        _KITCHEN,
        "countertop 5, fridge 3, sinkbasin 3, diningtable 3, garbagecan 1, microwave 1",
        "clean",
        "heat",
        "cool",
    ),
    "tomato": _kind(
        _KITCHEN,
        "countertop 5, fridge 4, diningtable 4, sinkbasin 2, garbagecan 1, microwave 1",
        "clean",
        "heat",
        "cool",
    ),
    "cup": _kind(
        _KITCHEN,
        "countertop 5, cabinet 4, diningtable 3, shelf 3, sinkbasin 3, microwave 1, fridge 1",
        "clean",
        "heat",
        "cool",
    ),
    "plate": _kind(
        _KITCHEN,
        "cabinet 4, countertop 4, diningtable 4, shelf 2, sinkbasin 3, fridge 1, microwave 1",
        "clean",
        "heat",
        "cool",
    ),
    "mug": _kind(
        ("kitchen", "bedroom", "living_room"),
        "coffeemachine 4, countertop 4, cabinet 3, shelf 3, sinkbasin 2, diningtable 2, microwave 1, fridge 1, desk 5, "
        "dresser 3, sidetable 3, coffeetable 4",
        "clean",
        "heat",
        "cool",
    ),
    "bowl": _kind(
        ("kitchen", "living_room"),
        "cabinet 4, countertop 4, diningtable 3, shelf 3, sinkbasin 2, fridge 1, desk 2, dresser 2, sidetable 2, "
        "coffeetable 4",
        "clean",
        "cool",
    ),
    "pan": _kind(
        _KITCHEN, "stoveburner 6, countertop 4, cabinet 2, sinkbasin 2, diningtable 2, fridge 1", "clean", "cool"
    ),
    "pot": _kind(_KITCHEN, "stoveburner 6, countertop 3, cabinet 2, sinkbasin 2, shelf 2, fridge 1", "clean", "cool"),
    "kettle": _kind(_KITCHEN, "stoveburner 5, countertop 4, cabinet 2, shelf 2, sinkbasin 1", "clean"),
    "butterknife": _kind(_KITCHEN, _CUTLERY, "clean"),
    "fork": _kind(_KITCHEN, _CUTLERY, "clean"),
    "knife": _kind(_KITCHEN, _CUTLERY, "clean"),
    "ladle": _kind(_KITCHEN, f"{_CUTLERY}, cabinet 1", "clean"),
    "spatula": _kind(_KITCHEN, _CUTLERY, "clean"),
    "spoon": _kind(_KITCHEN, _CUTLERY, "clean"),
    "dishsponge": _kind(
        ("kitchen", "bathroom"),
        "sinkbasin 5, countertop 4, bathtubbasin 3, cart 2, toilet 2, drawer 2, cabinet 2, shelf 2, garbagecan 1",
        "clean",
    ),
    "saltshaker": _kind(_KITCHEN, "countertop 5, diningtable 4, cabinet 3, shelf 3, drawer 2, sidetable 2"),
    "peppershaker": _kind(_KITCHEN, "countertop 5, diningtable 4, cabinet 3, shelf 3, drawer 2, sidetable 2"),
    "winebottle": _kind(
        ("kitchen", "living_room"),
        "fridge 3, countertop 4, cabinet 3, diningtable 3, shelf 3, garbagecan 1, coffeetable 2, sidetable 2",
        "cool",
    ),
    "papertowelroll": _kind(
        ("kitchen", "bathroom"), "countertop 5, shelf 3, diningtable 3, toilet 2, cart 2, garbagecan 1"
    ),
    "soapbottle": _kind(
        ("kitchen", "bathroom"),
        "countertop 5, cabinet 3, toilet 3, shelf 3, cart 2, drawer 1, garbagecan 1",
    ),
    "soapbar": _kind(
        _BATHROOM,
        "countertop 4, bathtubbasin 4, sinkbasin 4, toilet 2, cabinet 2, shelf 2, cart 2, drawer 1, garbagecan 1",
        "clean",
    ),
    "spraybottle": _kind(_BATHROOM, "cabinet 4, countertop 3, toilet 3, shelf 2, cart 2, drawer 1, garbagecan 1"),
    "toiletpaper": _kind(
        _BATHROOM, "toiletpaperhanger 5, toilet 4, cabinet 3, countertop 2, shelf 2, cart 2, drawer 1, garbagecan 1"
    ),
    "candle": _kind(
        ("bathroom", "living_room"),
        "countertop 4, toilet 4, coffeetable 4, shelf 3, sidetable 3, dresser 2, cart 2, desk 2, cabinet 1, drawer 1",
    ),
    "cloth": _kind(
        ("bathroom", "bedroom"),
        "bathtubbasin 4, countertop 4, laundryhamper 4, dresser 3, desk 2, sinkbasin 2, toilet 2, cabinet 2, drawer 2, "
        "shelf 2, cart 2, sidetable 2, armchair 2, garbagecan 1",
        "clean",
    ),
    "handtowel": _kind(
        _BATHROOM,
        "handtowelholder 6, countertop 3, sinkbasin 2, bathtubbasin 2, cabinet 2, shelf 2, toilet 1, drawer 1",
    ),
    "towel": _kind(_BATHROOM, "towelholder 1"),
    "tissuebox": _kind(
        ("bathroom", "bedroom", "living_room"),
        "countertop 4, toilet 4, sidetable 4, coffeetable 4, desk 3, dresser 3, tvstand 2, shelf 2, cart 2, cabinet 1, "
        "drawer 1, garbagecan 1",
    ),
    "alarmclock": _kind(_BEDROOM, "sidetable 6, desk 5, dresser 4, shelf 3"),
    "book": _kind(
        _LIVED_IN,
        f"bed 5, desk 4, shelf 4, sidetable 3, coffeetable 4, dresser 3, drawer 2, cabinet 1, diningtable 2{_SEATED}",
    ),
    "cd": _kind(
        _LIVED_IN, "desk 4, shelf 4, drawer 3, dresser 3, sidetable 3, tvstand 3, coffeetable 3, safe 1, garbagecan 1"
    ),
    "cellphone": _kind(_LIVED_IN, f"bed 5, {_SMALL}{_SEATED}"),
    "creditcard": _kind(_LIVED_IN, f"{_SMALL}{_SEATED}"),
    "keychain": _kind(_LIVED_IN, f"{_SMALL}{_SEATED}"),
    "watch": _kind(_LIVED_IN, f"{_SMALL}, diningtable 2, tvstand 1"),
    "laptop": _kind(_LIVED_IN, f"bed 5, desk 5, dresser 2, coffeetable 4, diningtable 2{_SEATED}"),
    "newspaper": _kind(
        _LIVED_IN,
        f"coffeetable 5, bed 3, desk 3, diningtable 3, sidetable 2, dresser 2, drawer 1, garbagecan 2{_SEATED}",
    ),
    "pen": _kind(_LIVED_IN, "desk 6, drawer 3, shelf 3, sidetable 3, dresser 3, coffeetable 3, garbagecan 1"),
    "pencil": _kind(_LIVED_IN, "desk 6, drawer 3, shelf 3, sidetable 3, dresser 3, coffeetable 3, garbagecan 1"),
    "pillow": _kind(_LIVED_IN, "bed 6, sofa 6, armchair 4, ottoman 3"),
    "remotecontrol": _kind(
        _LIVING_ROOM,
        f"coffeetable 5, tvstand 4, sidetable 3, drawer 2, shelf 2, dresser 2, desk 2, diningtable 2{_SEATED}",
    ),
    "statue": _kind(
        _LIVED_IN, "shelf 4, dresser 4, sidetable 3, desk 3, coffeetable 4, tvstand 3, diningtable 2, safe 1"
    ),
    "vase": _kind(
        _LIVED_IN, "shelf 4, sidetable 4, coffeetable 4, dresser 3, desk 3, diningtable 4, tvstand 2, cabinet 2, safe 1"
    ),
    "wateringcan": _kind(
        _LIVING_ROOM, "sidetable 4, coffeetable 3, diningtable 3, shelf 3, cabinet 2, dresser 2, desk 2"
    ),
    "basketball": _kind(_BEDROOM, "bed 4, dresser 3, desk 3, sidetable 2, armchair 3"),
    "baseballbat": _kind(_BEDROOM, "bed 5, sidetable 2, desk 2"),
    "tennisracket": _kind(_BEDROOM, "bed 5, dresser 3, desk 3, sidetable 2"),
    LAMP: _kind(_LIVED_IN, "desk 5, sidetable 5, dresser 3, shelf 2"),
}

PORTABLE = frozenset(OBJECTS) - {LAMP}


@lru_cache(maxsize=4096)
def kind(name: str) -> str:
    """Return the kind of a thing: `soapbar` of `soapbar 2`."""
    return name.rpartition(" ")[0]


def is_open(receptacle: str, opened: frozenset[str] | set[str]) -> bool:
    """Return whether something can be seen in, taken from and put into a receptacle."""
    return kind(receptacle) not in OPENABLE or receptacle in opened


def fits(thing: str, receptacle: str) -> bool:
    """Return whether an object may be put into or on a receptacle."""
    return kind(receptacle) in OBJECTS[kind(thing)].places
