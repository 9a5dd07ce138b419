"""The board of Werewolf as one zone: every player, alive or dead, its role if the viewer knows it, its last vote."""

from __future__ import annotations

from training.games.werewolf.actions import NOBODY
from training.games.werewolf.village import Snapshot, Village
from training.records import ALL, Action, Seat, Viewer
from training.views import Cell, Cells


def zone(v: Village, viewer: Viewer, offered: tuple[Action, ...]) -> Cells:
    """Return the table of all players as `viewer` sees it; names that can be chosen now have their choice."""
    choices: tuple[str, ...] = ()
    if len(offered) == 1 and len(offered[0].args) == 1:
        choices = offered[0].args[0].choices
    snapshot = v.snapshot(viewer)
    rows = (_row(v, snapshot, viewer, seat, choices) for seat in range(len(v.names)))
    return Cells(title="Players", rows=tuple(rows))


def _row(v: Village, snapshot: Snapshot, viewer: Viewer, seat: Seat, choices: tuple[str, ...]) -> tuple[Cell, ...]:
    name = v.names[seat]
    state = f"died on day {snapshot.died[seat]}" if seat in snapshot.died else "alive"
    role = v.roles[seat] if seat in snapshot.died and v.settings.reveal else known_role(v, viewer, seat)
    vote = ""
    if seat in snapshot.votes:
        to = snapshot.votes[seat]
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


def known_role(v: Village, viewer: Viewer, seat: Seat) -> str:
    """Return the role of `seat` as far as `viewer` knows it, apart from deaths that reveal it; empty if unknown."""
    role = v.roles[seat]
    if v.won or viewer in (seat, ALL, len(v.names)) or viewer in v.ghosts:
        return role
    if viewer not in range(len(v.names)):
        return ""
    if {v.roles[viewer], role} == {"werewolf"}:
        return role
    if seat in v.learned[viewer]:
        return "werewolf" if role == "werewolf" else "not a werewolf"
    return ""
