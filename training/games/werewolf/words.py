"""Every sentence of Werewolf, generated from the settings of the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.games.actions import how_to
from training.games.prose import listed
from training.games.werewolf.actions import BID, NOBODY, SPEAK, aimed
from training.games.werewolf.roles import counted
from training.games.werewolf.settings import Role, WerewolfSettings
from training.records import Action, Seat

Names = Sequence[str]


def a_role(role: Role) -> str:
    """Return a role with its article: `a werewolf`, `the seer`."""
    return f"a {role}" if role in ("villager", "werewolf") else f"the {role}"


# --- the first message -----------------------------------------------------------------------------------------------


def opening(settings: WerewolfSettings, names: Names, brief: str) -> str:
    """Return the rules with `brief` (the roles that this reader may know) in the middle."""
    players = f"{listed(names)} play Werewolf. The roles: {counted(settings.roles)}. Who has which is secret."
    acts = [SPEAK, aimed("vote", tuple(names)), *([BID] if settings.order == "bid" else [])]
    day = f"How to act by day:\n{how_to(acts)}\nWhat you may do at night you are asked in private."
    return "\n\n".join(part for part in (players, brief, _rules(settings), day) if part)


def _rules(settings: WerewolfSettings) -> str:
    parts = [
        "Nights and days take turns.",
        night(settings),
        DAY,
        TIES[settings.tie],
        talk(settings),
        "When a player dies, the role is told." if settings.reveal else "The roles of the dead are not told.",
        LAST_WORDS[settings.last_words],
        winning(settings),
    ]
    return " ".join(part for part in parts if part)


def night(settings: WerewolfSettings) -> str:
    """Return what happens at night."""
    wolves_too = ", who may be one of them" if settings.prey == "anybody" else ""
    lines = [f"At night the werewolves choose a victim{wolves_too}."]
    lines += [text for role, text in _POWERS.items() if role in settings.roles]
    if "witch" in settings.roles and not settings.self_save:
        lines.append("The antidote does not help the witch herself.")
    if not settings.first_night_kill:
        lines.append("In the first night nobody can die.")
    return " ".join(lines)


_POWERS: dict[Role, str] = {
    "seer": "The seer learns of one player whether it is a werewolf.",
    "witch": "The witch, while she has her antidote, is told the victim and may save it, once in the game; once in the "
    "game she may poison a player; she uses one potion a night at most.",
    "guard": "The guard keeps the werewolves off one player, never the same one two nights running.",
    "doctor": "The doctor keeps the werewolves off one player.",
    "hunter": "The hunter, unless poisoned, may shoot a player as it dies.",
}
DAY = (
    "By day the dead of the night are named, the living talk, and all vote at once; the votes are then read out with "
    "names, and who has most of them is out of the game. Votes for nobody do not count."
)
TIES = {
    "nobody": "When votes tie, nobody leaves.",
    "runoff": "When votes tie, the tied speak again and the others vote between them; tied again, nobody leaves.",
    "random": "When votes tie, chance decides among the tied.",
}
LAST_WORDS = {
    "nobody": "The dead have no last words.",
    "voted": "Who is voted out may speak last words.",
    "all": "Who dies at night or by the vote may speak last words.",
}


def talk(settings: WerewolfSettings) -> str:
    """Return who speaks when by day, and how long."""
    rounds = "once" if settings.rounds == 1 else f"{settings.rounds} times"
    how = {
        "seat": f"In the discussion everybody speaks {rounds}, in turn, from a player drawn each day.",
        "simultaneous": f"In the discussion all speak {rounds}, at the same time.",
        "bid": "In the discussion all bid for the floor before each speech; the highest bid speaks, chance decides "
        "between equal ones, and when all bid 0 the discussion is over.",
    }[settings.order]
    if settings.order == "seat" and any(fixed.event == "speakers" for fixed in settings.fixed):
        how = "In the discussion one speaks after the other."
    words = f"{settings.max_words} words and " if settings.max_words else ""
    return f"{how} A speech has at most {words}{settings.max_chars} characters."


def winning(settings: WerewolfSettings) -> str:
    """Return who wins when."""
    side = ", or when all plain villagers or all others with a power are dead" if settings.wolf_win == "side" else ""
    return (
        f"The werewolves win when they are at least as many as the others{side}. The village wins when no werewolf "
        f"lives, or when day {settings.day_limit} ends and the werewolves are still fewer."
    )


def brief(names: Names, roles: Sequence[Role], seat: Seat) -> str:
    """Return the private side of `seat`, addressed to it."""
    role = roles[seat]
    lines = [f"You are {names[seat]}. You are {a_role(role)}."]
    if role == "werewolf":
        pack = [names[other] for other, other_role in enumerate(roles) if other_role == role and other != seat]
        lines.append(f"The other werewolves: {listed(pack)}." if pack else "There is no other werewolf.")
        lines.append("You win with the werewolves. Do not let the others find out what you are.")
    else:
        lines.append("You win with the village: find the werewolves.")
    return " ".join(lines)


def cast(names: Names, roles: Sequence[Role]) -> str:
    """Return everybody's role, for viewers who may see everything and for the end."""
    return " ".join(f"{name} is {a_role(role)}." for name, role in zip(names, roles, strict=True))


# --- what happens ----------------------------------------------------------------------------------------------------

PROBE = "Whom would you vote for now?"
GIVEN_UP = "You give up, and give no answers from now on."
NO_ANSWER = "You gave no answer in time, or none that could be read."


def your_turn(actions: Sequence[Action]) -> str:
    """Return the private prompt of a seat."""
    return f"It is your turn:\n{how_to(actions)}"


def dawn(names: Names, roles: Sequence[Role], dead: Sequence[Seat], *, reveal: bool) -> str:
    """Return who died in the night, without the cause."""
    if not dead:
        return "Morning comes. Nobody died in the night."
    news = f"Morning comes. {listed(names[seat] for seat in dead)} died in the night."
    return news + (was(names, roles, dead) if reveal else "")


def was(names: Names, roles: Sequence[Role], dead: Sequence[Seat]) -> str:
    """Return the roles of the dead, to be appended to a line."""
    return "".join(f" {names[seat]} was {a_role(roles[seat])}." for seat in dead)


def ballots(names: Names, votes: Mapping[Seat, Seat | None]) -> str:
    """Return the votes."""
    return "; ".join(f"{names[s]} for {NOBODY if to is None else names[to]}" for s, to in votes.items())


def call(names: Names, candidates: Sequence[Seat], voters: Sequence[Seat], *, everybody: bool) -> str:
    """Return the line that opens a vote."""
    who = "Everybody votes now" if everybody else f"{listed(names[seat] for seat in voters)} vote between the tied"
    return f"{who}: <vote>name</vote>, with one of: {', '.join(names[seat] for seat in candidates)}, {NOBODY}."


def verdict(names: Names, eliminated: Seat | None) -> str:
    """Return the result of a vote."""
    return "Nobody is voted out." if eliminated is None else f"{names[eliminated]} is voted out."


def end(names: Names, roles: Sequence[Role], *, wolves: bool) -> str:
    """Return the winner and everybody's role."""
    return f"{'The werewolves win' if wolves else 'The village wins'}. {cast(names, roles)}"
