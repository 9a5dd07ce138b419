"""Claims of whole episodes."""

import pytest

from tests.games.cases.negotiation import items
from training.games import make
from training.labels.claims import Claim, claims_of
from training.records import Move, Scenario, SeatMove


def talk(seat, text, **more):
    return SeatMove(seat=seat, move=Move(action="talk", text=text, **more))


def test_every_claim_has_its_move_and_its_speaker():
    moves = [talk(0, "Hello. I need food most."), talk(1, "Me too."), talk(0, "Fine."), talk(1, "My first need is oil")]
    claims = claims_of(items(), moves)
    assert [(claim.move, claim.seat, claim.start, claim.end, claim.verdict) for claim in claims] == [
        (0, 0, 7, 23, "true"),
        (3, 1, 0, 20, "true"),
    ]
    assert [Claim.from_dict(claim.to_dict()) for claim in claims] == claims


def test_only_words_that_a_seat_chose_are_read():
    assert not claims_of(items(), [SeatMove(seat=0, move=make(items()).default(0))])


def test_a_game_that_checks_nothing_has_no_claims():
    scenario = Scenario(id="k", game="kuhn_poker", settings={}, seats=("Ada", "Ben"))
    assert claims_of(scenario, []) == []


def test_a_claim_is_judged_by_the_moment_it_was_made():
    """Ben claims a vote before and after he cast it."""
    from tests.games.cases.werewolf import dealt, spoke

    scenario = dealt(
        *("werewolf", "villager", "villager", "villager", "villager", "villager"),
        fixed=spoke([1], [1]),
        first_night_kill=False,
        last_words="nobody",
    )
    game, moves = make(scenario), []

    def step(**chosen):
        joint = {seat: chosen.get(game.names[seat], game.default(seat)) for seat in sorted(game.to_act())}
        moves.extend(SeatMove(seat=seat, move=move) for seat, move in joint.items())
        game.step(joint)

    speech = Move(action="speak", text="I voted for Cleo.")
    step(Ben=speech)
    step(**{name: Move(action="vote", args={"target": "Cleo"}) for name in ("Ben", "Dan")})
    while 1 not in game.to_act() or game.observe(1).actions[0].name != "speak":
        step()
    step(Ben=speech)
    assert [claim.verdict for claim in claims_of(scenario, moves)] == ["false", "true"]


def test_a_move_that_does_not_replay_is_refused():
    from training.errors import IllegalMove

    with pytest.raises(IllegalMove):
        claims_of(items(), [talk(1, "I need food most.")])
