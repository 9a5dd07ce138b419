"""Small scenarios and episodes for the tests of rewards."""

from training.games import REGISTRY
from training.records import Episode, Move, Scenario, SeatMove, Turn


def negotiation(**settings):
    items = [{"name": name, "count": 3} for name in ("food", "water", "firewood")]
    sides = [{"values": dict(zip(("food", "water", "firewood"), v, strict=True))} for v in ((5, 4, 3), (3, 4, 5))]
    deal = {"kind": "items", "items": items, "sides": sides}
    return Scenario(id="n1", game="negotiation", settings={"deal": deal, **settings}, seats=("Ann", "Ben"))


def dialogue(scene="Two friends share a flat.", **settings):
    people = [{"goal": "Get the kitchen cleaned."}, {"goal": "Go out tonight.", "profile": {"secret": "Has moved."}}]
    return Scenario(
        id="d1",
        game="dialogue",
        settings={"scenario": scene, "participants": people, **settings},
        seats=("Ann", "Ben"),
    )


def episode(scenario, *replies, returns=None):
    """Seats take turns to talk; a reply given as (text, error) was refused."""
    bare = REGISTRY[scenario.game].actions[0]
    turns, moves = [], []
    for reply in replies:
        seat = len(moves) % 2
        if isinstance(reply, tuple):
            turns.append(Turn(seat=seat, reply=reply[0], error=reply[1], passed=False))
            continue
        move = Move(action=bare, text=reply)
        turns.append(Turn(seat=seat, reply=reply, move=move, move_index=len(moves), passed=True))
        moves.append(SeatMove(seat=seat, move=move))
    return Episode(scenario=scenario, moves=tuple(moves), turns=tuple(turns), returns=returns or {})
