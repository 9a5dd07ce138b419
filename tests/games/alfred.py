"""A home as a game of ALFWorld: the PDDL problem that its package plays, and the folder with its files."""

import json

from training.games.household import alfworld
from training.games.household.kinds import LAMP, OBJECTS, OPENABLE, kind

TYPES = {"sinkbasin": "SinkBasin", "microwave": "Microwave", "fridge": "Fridge", "desklamp": "DeskLamp"}
CHANGED = {"clean": "isClean", "heat": "isHot", "cool": "isCool"}
ABLE = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}


def ident(name):
    """An identifier from which ALFWorld makes the same name: it gives the highest number to the first in order."""
    word, number = name.split(" ")
    base = word.removesuffix("basin")
    return f"{base}_bar_{99 - int(number)}" + ("" if base == word else f"_bar_{word}")


def typed(word):
    return f"{TYPES.get(word, word)}Type"


def problem(home):
    """The home in ALFWorld's domain."""
    places = list(home.receptacles)
    things = [thing for listed in home.receptacles.values() for thing in listed]
    receptacle_types = {*map(kind, places), "sinkbasin", "microwave", "fridge"}
    object_types = {*map(kind, things), home.task.object, "knife", "butterknife"}
    objects = ["agent1 - agent", "loc_start - location"]
    objects += [f"loc_{at} - location {ident(place)} - receptacle" for at, place in enumerate(places)]
    objects += [f"{ident(thing)} - object" for thing in things]
    objects += [f"{typed(word)} - rtype" for word in sorted(receptacle_types)]
    objects += [
        f"{'ButterKnifeType' if word == 'butterknife' else 'KnifeType' if word == 'knife' else typed(word)} - otype"
        for word in sorted(object_types)
    ]
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_start)"]
    for at, place in enumerate(places):
        name = ident(place)
        facts += [f"(receptacleType {name} {typed(kind(place))})", f"(receptacleAtLocation {name} loc_{at})"]
        facts += [f"(openable {name})"] if kind(place) in OPENABLE else []
        for thing in home.receptacles[place]:
            facts += [f"(inReceptacle {ident(thing)} {name})", f"(objectAtLocation {ident(thing)} loc_{at})"]
    for thing in things:
        name = ident(thing)
        facts += [f"(objectType {name} {typed(kind(thing))})"]
        facts += [f"({'toggleable' if kind(thing) == LAMP else 'pickupable'} {name})"]
        facts += [f"({ABLE[change]} {name})" for change in OBJECTS[kind(thing)].changes]
    for word in sorted(object_types):
        allowed = [place for place in OBJECTS[word].places if place in receptacle_types]
        facts += [f"(canContain {typed(place)} {typed(word)})" for place in allowed]
    return (
        f"(define (problem home) (:domain alfred) (:objects {' '.join(objects)}) (:init {' '.join(facts)}) "
        f"(:goal (and {goal(home.task)})) (:metric minimize (total-cost)))"
    )


def goal(task):
    """The goal of a task, as ALFRED's goal library states it."""
    wanted, target = typed(task.object), typed(task.receptacle)
    if task.family == "look_under_light":
        return (
            "(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?ot {target}) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) "
            "(atLocation ?a ?l) (inReceptacle ?ot ?r))) "
            f"(exists (?o - object ?a - agent) (and (objectType ?o {wanted}) (holds ?a ?o)))"
        )
    if task.family == "two_objects":
        return (
            f"(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 {wanted}) "
            f"(receptacleType ?r {target}) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2)) "
            f"(objectType ?o2 {wanted}) (inReceptacle ?o2 ?r))))))"
        )
    changed = f"({CHANGED[task.family]} ?o)" if task.family in CHANGED else ""
    return (
        f"(exists (?r - receptacle) (exists (?o - object) (and {changed} (inReceptacle ?o ?r) "
        f"(objectType ?o {wanted}) (receptacleType ?r {target}))))"
    )


def trajectory(task):
    """What ALFRED says of the task."""
    family = next(name for name, family in alfworld.FAMILIES.items() if family == task.family)
    light = task.family == "look_under_light"
    params = {
        "object_target": task.object.capitalize(),
        "parent_target": "" if light else task.receptacle.capitalize(),
        "toggle_target": task.receptacle.capitalize() if light else "",
    }
    return {"task_type": family, "pddl_params": params}


def write(folder, home, game):
    """The files of a game; `game` is what its file holds."""
    folder.mkdir(parents=True)
    (folder / alfworld.GAME).write_text(json.dumps(game), "utf-8")
    (folder / alfworld.TRAJECTORY).write_text(json.dumps(trajectory(home.task)), "utf-8")
    return folder
