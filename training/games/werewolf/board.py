"""The table of Werewolf as one zone: every player, alive or not, what the viewer knows of its role, its last vote."""

from __future__ import annotations

from training.games.werewolf.actions import NOBODY
from training.games.werewolf.village import Village
from training.records import ALL, Action, Cell, Seat, Viewer, Zone


def zone(v: Village, viewer: Viewer, offered: tuple[Action, ...], *, over: bool) -> Zone:
    """Return what `viewer` sees of all players; a name that can be chosen now carries its choice."""
    choices: tuple[str, ...] = ()
    if len(offered) == 1 and len(offered[0].args) == 1:
        choices = offered[0].args[0].choices
    return Zone(title="Players", rows=tuple(_row(v, viewer, seat, choices, over=over) for seat in range(len(v.names))))


def _row(v: Village, viewer: Viewer, seat: Seat, choices: tuple[str, ...], *, over: bool) -> tuple[Cell, ...]:
    name = v.names[seat]
    state = f"dead since day {v.died[seat]}" if seat in v.died else "alive"
    role = v.roles[seat] if over else known(v, viewer, seat)
    vote = ""
    if seat in v.votes:
        to = v.votes[seat]
        vote = f"voted for {NOBODY if to is None else v.names[to]}"
    return (
        Cell(
            text=f"{name} (you)" if seat == viewer else name,
            label=", ".join(part for part in (name, state, role, vote) if part),
            choice=name if name in choices else "",
        ),
        Cell(text=state),
        Cell(text=role),
        Cell(text=vote),
    )


def known(v: Village, viewer: Viewer, seat: Seat) -> str:
    """Return what `viewer` knows of the role of `seat` while the game goes on; nothing = empty."""
    role = v.roles[seat]
    if viewer in (seat, ALL, len(v.names)) or viewer in v.ghosts or (seat in v.died and v.settings.reveal):
        return role
    if viewer not in range(len(v.names)):
        return ""
    if {v.roles[viewer], role} == {"werewolf"}:
        return role
    if seat in v.learned[viewer]:
        return "werewolf" if role == "werewolf" else "not a werewolf"
    return ""
