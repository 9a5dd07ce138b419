"""The seats of Werewolf as a circle: who is out, which roles the viewer knows, who speaks, who voted for whom."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from training.games.werewolf import table
from training.games.werewolf.actions import NOBODY
from training.games.werewolf.settings import Role
from training.games.werewolf.village import Snapshot, Village
from training.records import ALL, Action, Seat, Viewer
from training.views import Circle, Option, Place


def circle(v: Village, viewer: Viewer, offered: tuple[Action, ...], speaking: Collection[Seat]) -> Circle:
    """Return the circle as `viewer` sees it; seats that the only `offered` action can choose have their choice."""
    aimed = offered[0] if len(offered) == 1 and [arg.kind for arg in offered[0].args] == ["choice"] else None
    choices = aimed.args[0].choices if aimed else ()
    snapshot = v.snapshot(viewer)
    attacked = (
        v.victim if any(action.name == "save" for action in offered) else None
    )  # who may save was told the victim
    nobody = [Option(label=table.NOBODY[aimed.name], choice=NOBODY)] if aimed and NOBODY in choices else []
    return Circle(
        title="The village",
        places=tuple(
            _place(v, snapshot, viewer, seat).model_copy(
                update={
                    "note": "attacked tonight" if seat == attacked else _note(v, snapshot, viewer, seat),
                    "speaks": seat in speaking,
                    "choice": v.names[seat] if v.names[seat] in choices else "",
                }
            )
            for seat in range(len(v.names))
        ),
        centre=f"{len(v.names) - len(snapshot.died)} of {len(v.names)} alive",
        options=tuple(nobody),
        ballot="The last vote" if snapshot.votes else "",
        mood=table.mood(snapshot.phase),
    )


def _place(v: Village, snapshot: Snapshot, viewer: Viewer, seat: Seat) -> Place:
    revealed = seat in snapshot.died and v.settings.reveal
    role = v.roles[seat] if revealed else known_role(v, viewer, seat)
    return Place(
        seat=seat,
        out=seat in snapshot.died,
        left=_left(v, seat) if seat in snapshot.died else "",
        role=role,
        emblem=table.EMBLEMS.get(cast("Role", role), ""),
        voted=snapshot.votes.get(seat),
    )


def _left(v: Village, seat: Seat) -> str:
    departure = next(departure for departure in v.departures if seat in departure.seats)
    return {"night": "night", "vote": "vote, day", "shot": "shot, day"}[departure.how] + f" {departure.day}"


def _note(v: Village, snapshot: Snapshot, viewer: Viewer, seat: Seat) -> str:
    if seat in snapshot.votes and snapshot.votes[seat] is None:
        return "voted for nobody"
    return "guarded last" if v.guarded.get(viewer) == seat and seat not in snapshot.died else ""


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
