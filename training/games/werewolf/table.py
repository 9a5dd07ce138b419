"""What people read of a village besides the circle of seats: the rules, a role's card, what to do now, how it ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from training.games import prose
from training.games.prose import listed
from training.games.werewolf import roles, words
from training.games.werewolf.settings import Role, WerewolfSettings
from training.games.werewolf.village import OVER, Departure, Village
from training.records import Action, Seat, Viewer
from training.views import Brief

Mood = Literal["", "night", "day", "vote", "over"]

EMBLEMS: Mapping[Role, str] = {
    "villager": "house",
    "werewolf": "wolf",
    "seer": "eye",
    "witch": "flask",
    "hunter": "crosshair",
    "guard": "shield",
    "doctor": "cross",
}
"""The drawing of each role."""

_POWERS: Mapping[Role, str] = {
    "villager": "You have no power of your own. Listen to what is said, speak, and vote for whom you suspect.",
    "werewolf": "At night you choose a victim. By day you talk and vote as if you were one of the village.",
    "seer": "Each night you look at one player and learn whether it is a werewolf. "
    "Who shows what it knows may be the next victim.",
    "witch": "Your antidote saves the victim of a night, and your poison kills a player. "
    "Each works once, and you use one a night at most.",
    "hunter": "When you die, you may shoot one player. If you were poisoned, you cannot.",
    "guard": "Each night you keep the werewolves off one player, who may be you. "
    "You cannot choose the same one two nights running.",
    "doctor": "Each night you keep the werewolves off one player, who may be you. "
    "You may choose the same one as often as you like.",
}


def mood(phase: str) -> Mood:
    """Return the mood of a phase, which is a night, a part of a day, or the end."""
    if phase == OVER:
        return "over"
    part = phase.partition(": ")[2]
    if part in ("vote", "run-off"):
        return "vote"
    return "day" if part else "night" if phase else ""


# --- the rules -------------------------------------------------------------------------------------------------------


def story(settings: WerewolfSettings) -> str:
    """Return the situation that everybody knows."""
    return f"The roles in this village: {roles.counted(settings.roles)}. Who has which is secret."


def rules(settings: WerewolfSettings) -> tuple[str, ...]:
    """Return the rules for a person at a screen."""
    revealed = "When a player dies, the role is told." if settings.reveal else "The roles of the dead are not told."
    dead_see = {"public": "what everybody hears", "all": "everything: the nights, and who has which role"}
    return (
        "Nights and days take turns. The werewolves know each other; all others know only what they are themselves.",
        words.night(settings),
        words.DAY,
        words.TIES[settings.tie],
        words.talk(settings),
        f"{revealed} {words.LAST_WORDS[settings.last_words]} The dead go on to see {dead_see[settings.dead_see]}.",
        words.winning(settings),
    )


# --- the card of a role ----------------------------------------------------------------------------------------------


def brief(v: Village, seat: Seat) -> Brief:
    """Return what `seat` alone knows: its role, its pack, and what it has learned."""
    role = v.roles[seat]
    known = [*_pack(v, seat), *_learned(v, seat)]
    if seat in v.died and not v.won:
        known.append(f"You are out of the game{', and see everything' if seat in v.ghosts else ''}.")
    side = "the werewolves" if role == "werewolf" else "the village"
    win = f"You win with {side} {_goal(v.settings, role)}."
    return Brief(title=f"You are {words.a_role(role)}", text=(_POWERS[role], win, *known), emblem=EMBLEMS[role])


def _goal(settings: WerewolfSettings, role: Role) -> str:
    if role != "werewolf":
        return f"when no werewolf lives, or when day {settings.day_limit} ends and they are still fewer"
    side = ", or one side of the village is dead" if settings.wolf_win == "side" else ""
    return f"when you are at least as many as the others{side}"


def _pack(v: Village, seat: Seat) -> list[str]:
    if v.roles[seat] != "werewolf":
        return []
    pack = [v.names[other] for other, role in enumerate(v.roles) if role == "werewolf" and other != seat]
    return [f"Your pack: you and {listed(pack)}." if pack else "You hunt alone: there is no other werewolf."]


def _learned(v: Village, seat: Seat) -> list[str]:
    """Return what the powers of `seat` have brought to light, and what is left of them."""
    lines = [
        f"Night {night}: {v.names[other]} is {'a werewolf' if v.roles[other] == 'werewolf' else 'not a werewolf'}."
        for other, night in v.learned[seat].items()
    ]
    if v.roles[seat] == "witch":
        left = [
            name for potion, name in (("save", "the antidote"), ("poison", "the poison")) if potion in v.potions[seat]
        ]
        lines.append(f"You still have {listed(left)}." if left else "You have used both potions.")
    guarded = v.guarded.get(seat)
    if guarded is not None:
        whom = "yourself" if guarded == seat else v.names[guarded]
        lines.append(f"You guarded {whom} last; the next night it must be somebody else.")
    return lines


# --- what to do now --------------------------------------------------------------------------------------------------

_AIMS: Mapping[str, str] = {
    "inspect": "Choose whom to look at tonight.",
    "guard": "Choose whom to guard tonight.",
    "protect": "Choose whom to protect tonight.",
    "shoot": "Choose whom to shoot as you die, or nobody.",
    "bid": "Bid for the floor: from 0 to listen, to 4 if you must speak now.",
    "whisper": "Talk with your pack; only the werewolves hear it.",
}
NOBODY: Mapping[str, str] = {
    "vote": "Vote for nobody",
    "kill": "Attack nobody",
    "inspect": "Look at nobody",
    "guard": "Guard nobody",
    "protect": "Protect nobody",
    "shoot": "Shoot nobody",
}
"""The button of each action that chooses nobody."""


def ask(v: Village, offered: Sequence[Action]) -> str:
    """Return what a seat with these actions is to do now; nothing without any."""
    if not offered:
        return ""
    name, part = offered[0].name, v.phase.partition(": ")[2]
    if name == "speak":
        return {"last words": "Speak your last words.", "run-off": "Say why the village should keep you."}.get(
            part, "Speak to the village."
        )
    if name == "vote":
        return f"Choose who leaves the village{', between the tied' if part == 'run-off' else ''}, or nobody."
    if name == "kill":
        return "Choose a victim with your pack." if len(v.having("werewolf")) > 1 else "Choose your victim."
    if name in ("save", "poison", "pass"):
        return _ask_witch(v, offered)
    return _AIMS[name]


def _ask_witch(v: Village, offered: Sequence[Action]) -> str:
    able = {action.name for action in offered}
    parts = [f"save {v.names[v.victim]}"] if v.victim is not None and "save" in able else []
    parts += ["poison a player"] if "poison" in able else []
    sentence = listed([*parts, "use no potion"], "or")
    return f"{sentence[0].upper()}{sentence[1:]}."


# --- what happened ---------------------------------------------------------------------------------------------------


def own_dawn(v: Village, dead: Collection[Seat], seat: Seat) -> str:
    """Return the dawn to `seat`, one of the dead."""
    others = [other for other in dead if other != seat]
    also = f" and {listed(v.named(others))}" if others else ""
    return (
        f"Morning comes. You{also} died in the night.{words.was(v.names, v.roles, others) if v.settings.reveal else ''}"
    )


def call(v: Village, candidates: Sequence[Seat], *, everybody: bool) -> str:
    """Return the line that opens a vote."""
    return "Everybody votes." if everybody else f"The others vote between {listed(v.named(candidates))}."


def ballots(names: Sequence[str], votes: Mapping[Seat, Seat | None]) -> str:
    """Return the votes as they are read out."""
    return prose.ballots(names, votes, ("votes for nobody", "vote for nobody"))


def hunt(names: Sequence[str], votes: Mapping[Seat, Seat | None], victim: Seat | None, *, by_chance: bool) -> str:
    """Return whom the pack attacks, with its votes where it disagrees."""
    target = "nobody" if victim is None else names[victim]
    if len(set(votes.values())) < 2:
        return f"The pack attacks {target}."
    return f"{ballots(names, votes)} {'Chance decides: the' if by_chance else 'The'} pack attacks {target}."


# --- the end ---------------------------------------------------------------------------------------------------------


def headline(v: Village, viewer: Viewer) -> str:
    """Return how the game ended for `viewer`; nothing before the end."""
    if not v.won:
        return ""
    if viewer in range(len(v.names)) and roles.team(v.roles[viewer]) == v.won:
        return f"You win with the {'werewolves' if v.won == 'wolves' else 'village'}."
    wolves = [name for name, role in zip(v.names, v.roles, strict=True) if role == "werewolf"]
    cast = f"{listed(wolves)} {'was the werewolf' if len(wolves) == 1 else 'were the werewolves'}."
    if viewer not in range(len(v.names)):
        return f"The {'werewolves win' if v.won == 'wolves' else 'village wins'}. {cast}"
    return f"You lose. {cast if v.won == 'wolves' else 'The village wins.'}"


def moment(v: Village) -> str:
    """Return what decided the game; nothing before the end."""
    if not v.won:
        return ""
    decisive = _decisive(v)
    if decisive is None:
        return f"Day {v.day}, the last, ended, and the werewolves were still fewer than the others."
    if v.won == "wolves":
        deed = {"night": "the death of", "vote": "the vote against", "shot": "the shot that killed"}[decisive.how]
        return f"{_when(decisive)}: {deed} {listed(v.named(decisive.seats))} {_left(v)}."
    wolves = listed(v.named(seat for seat in decisive.seats if v.roles[seat] == "werewolf"))
    several = sum(v.roles[seat] == "werewolf" for seat in decisive.seats) > 1
    last = "the last werewolves" if several else "the last werewolf"
    if decisive.how == "vote":
        return f"{_when(decisive)}: the vote against {wolves} removed {last}."
    if decisive.by is not None:
        return f"{_when(decisive)}: {v.names[decisive.by]} shot {wolves}, {last}."
    return f"{_when(decisive)}: {wolves}, {last}, died."


def _when(departure: Departure) -> str:
    return f"{'Night' if departure.how == 'night' else 'Day'} {departure.day}"


def _decisive(v: Village) -> Departure | None:
    """Return the departure since which the winner has been certain; None if the last day decided."""
    if v.winner() is None:
        return None
    alive = set(range(len(v.names)))
    decisive: Departure | None = None
    for departure in v.departures:
        alive -= set(departure.seats)
        if roles.winner(v.settings, v.roles, alive) != v.won:
            decisive = None
        elif decisive is None:
            decisive = departure
    return decisive


def _left(v: Village) -> str:
    """Return what the decisive departure left behind, in a game that the werewolves won."""
    living = [v.roles[seat] for seat in v.alive]
    others = [role for role in living if role != "werewolf"]
    if len(living) - len(others) >= len(others):
        return "left at least as many werewolves as others"
    return "left no plain villager alive" if "villager" not in others else "left nobody with a power alive"
