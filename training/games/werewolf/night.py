"""The night: the wolves talk and choose while seer, guard and doctor act; then the witch acts; then deaths resolve."""

from __future__ import annotations

from collections.abc import Collection, Generator

from training.games.werewolf import table
from training.games.werewolf.actions import PASS, SAVE, WHISPER, aimed
from training.games.werewolf.village import Cause, Moves, Step, Village, leaders
from training.games.werewolf.words import ballots
from training.records import Action, Seat

Dead = dict[Seat, Cause]


def night(v: Village) -> Generator[Step, Moves, Dead]:
    """Play one night; return the dead and their causes. The dead are still in the game."""
    v.enter(f"Night {v.day}")
    v.tell(f"Night {v.day} falls.")
    deadly = v.day > 1 or v.settings.first_night_kill
    yield from _whispers(v)
    victim, protected = yield from _first(v, deadly=deadly)
    if not deadly:
        return {}
    saved, poisoned = yield from _second(v, victim)
    return resolve(victim, protected | saved, poisoned)


def resolve(victim: Seat | None, protected: Collection[Seat], poisoned: Collection[Seat]) -> Dead:
    """Return the dead and their causes in seat order: the victim unless it was protected, and the poisoned."""
    dead: Dead = {} if victim is None or victim in protected else {victim: "wolves"}
    dead |= dict.fromkeys(poisoned, "poison")
    return dict(sorted(dead.items()))


def _whispers(v: Village) -> Generator[Step, Moves, None]:
    """Let the wolves talk among themselves, simultaneously in each round; a single wolf does not talk."""
    pack = v.having("werewolf")
    for _ in range(v.settings.wolf_talk if len(pack) > 1 else 0):
        step = v.ask(dict.fromkeys(pack, (WHISPER,)))
        moves = yield Step(step.offers, hearers=frozenset({*pack, *v.ghosts}), channel="wolves")
        for seat, move in moves.items():
            if move.origin != "seat":
                v.tell_pack(f"{v.names[seat]} says nothing to the pack.")


def _first(v: Village, *, deadly: bool) -> Generator[Step, Moves, tuple[Seat | None, set[Seat]]]:
    """Let wolves, seer, guard and doctor act simultaneously; return the victim and the protected seats."""
    offers = _offers(v, deadly=deadly)
    if not offers:
        return None, set()
    moves = yield v.ask(offers)
    victim = _kill(v, moves) if deadly else None
    protected: set[Seat] = set()
    for seat, move in moves.items():
        role, target = v.roles[seat], v.target(move)
        v.did(seat, move.action, target)
        if role == "seer":
            _inspect(v, seat, target)
        elif role in ("guard", "doctor"):
            if role == "guard":
                v.guarded[seat] = target
            protected |= set() if target is None else {target}
            target_name = "nobody" if target is None else v.names[target]
            v.tell_one(seat, f"You watch over {target_name} tonight.", f"{v.names[seat]} watches over {target_name}.")
    return victim, protected


def _offers(v: Village, *, deadly: bool) -> dict[Seat, tuple[Action, ...]]:
    offers: dict[Seat, tuple[Action, ...]] = {
        seat: (aimed("inspect", v.named(v.others({seat}))),) for seat in v.having("seer")
    }
    if not deadly:
        return offers
    pack = v.having("werewolf")
    prey = v.others(pack) if v.settings.prey == "others" else v.alive
    offers |= {seat: (aimed("kill", v.named(prey)),) for seat in pack}
    for seat in v.having("guard"):
        last = v.guarded.get(seat)
        offers[seat] = (aimed("guard", v.named(v.others(() if last is None else (last,)))),)
    offers |= {seat: (aimed("protect", v.named(v.alive)),) for seat in v.having("doctor")}
    return offers


def _kill(v: Village, moves: Moves) -> Seat | None:
    """Count the pack's votes, show them to the pack, and return the victim."""
    votes = {seat: v.target(move) for seat, move in moves.items() if v.roles[seat] == "werewolf"}
    tied = leaders(votes.values())
    victim = tied[0] if tied else None
    if len(tied) > 1:
        if v.settings.wolf_tie == "first":
            victim = next(vote for vote in votes.values() if vote in tied)
        else:
            victim = v.draw("prey", tied) if v.settings.wolf_tie == "random" else None
    target_name = "nobody" if victim is None else v.names[victim]
    how = "Its votes tie, and chance decides: it" if len(tied) > 1 and v.settings.wolf_tie == "random" else "It"
    sentence = table.hunt(v.names, votes, victim, by_chance=how.startswith("Its"))
    v.tell_pack(f"The pack votes: {ballots(v.names, votes)}. {how} attacks {target_name}.", sentence)
    return victim


def _inspect(v: Village, seat: Seat, target: Seat | None) -> None:
    if target is None:
        v.tell_one(seat, "You look at nobody tonight.", f"{v.names[seat]} looks at nobody.")
        return
    v.learned[seat].setdefault(target, v.day)
    finding = "a werewolf" if v.roles[target] == "werewolf" else "not a werewolf"
    line = f"{v.names[target]} is {finding}."
    v.tell_one(seat, f"You look at {v.names[target]}: {line}", f"{v.names[seat]} looks at {v.names[target]}: {line}")


def _second(v: Village, victim: Seat | None) -> Generator[Step, Moves, tuple[set[Seat], set[Seat]]]:
    """Let the witch act, who learns the victim while she has the antidote; return the saved and the poisoned."""
    v.victim = victim
    offers: dict[Seat, tuple[Action, ...]] = {}
    for seat in v.having("witch"):
        potions = v.potions[seat]
        if "save" in potions:
            target_name = "nobody" if victim is None else v.names[victim]
            target_name += " (you)" if victim == seat else ""  # a player may be called `you`
            v.tell_one(seat, f"The werewolves attack {target_name} tonight.", f"{v.names[seat]} is told the victim.")
        able = "save" in potions and victim is not None and (victim != seat or v.settings.self_save)
        actions = [SAVE] if able else []
        if "poison" in potions:
            actions.append(aimed("poison", v.named(v.others({seat}))))
        if actions:
            offers[seat] = (*actions, PASS)
    saved: set[Seat] = set()
    poisoned: set[Seat] = set()
    if not offers:
        return saved, poisoned
    moves = yield v.ask(offers)
    for seat, move in moves.items():
        v.potions[seat].discard(move.action)
        target = v.target(move)
        v.did(seat, move.action, victim if move.action == "save" else target)
        if move.action == "save" and victim is not None:
            saved.add(victim)
            v.tell_one(seat, "You use your antidote.", f"{v.names[seat]} saves {v.names[victim]}.")
        elif target is not None:
            poisoned.add(target)
            v.tell_one(seat, f"You poison {v.names[target]}.", f"{v.names[seat]} poisons {v.names[target]}.")
        else:
            v.tell_one(seat, "You use no potion.", f"{v.names[seat]} uses no potion.")
    return saved, poisoned
