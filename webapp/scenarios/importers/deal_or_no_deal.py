"""Reads Deal or No Deal: human item divisions, one line per side of a dialogue.

The two lines of one dialogue stand next to each other and become one scenario; a line whose other half is missing
stands alone. A selection by the last speaker becomes that seat's proposal and the other's acceptance. Without an
agreement, `<no_agreement>` is walking away; a record with `<disagree>` or `<disconnect>` has its own length as its turn
limit, while the start made of it keeps the game's. In each case no deal is worth 0. Source: Lewis et al., "Deal or No
Deal?", EMNLP 2017.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import make
from training.games.negotiation import NegotiationSettings
from training.records import Move, Scenario, Seat, SeatMove
from webapp.scenarios.importers.reading import WHOLE, Progress, Reading, noted, played, read_text, scenario_of, storable

ITEMS = ("book", "hat", "ball")
SEATS = ("Player 1", "Player 2")
STORY = "A few books, hats and balls lie on the table, and two players must agree who takes which of them."
LINE = re.compile(
    r"<input> (?P<own>.+?) </input> <dialogue> (?P<talk>.+) </dialogue> "
    r"<output> (?P<output>.+?) </output> <partner_input> (?P<partner>.+?) </partner_input>"
)
AGREED = re.compile(rf"item(\d)=({WHOLE.pattern})")
SELECTION = "<selection>"
TURN_LIMIT = NegotiationSettings.model_fields["turn_limit"].default
"""Turns of a game that states no limit of its own."""


@dataclass(frozen=True)
class View:
    """One line: what YOU saw. `talk` holds (is it YOU, text); `shares` are (YOUR, THEIR) units, or the word instead."""

    counts: tuple[int, ...]
    values: tuple[tuple[int, ...], tuple[int, ...]]
    talk: tuple[tuple[bool, str], ...]
    shares: tuple[tuple[int, ...], tuple[int, ...]] | None
    refusal: str

    def mirrored(self) -> View:
        """Return the same dialogue as the other side's line has it."""
        return View(
            counts=self.counts,
            values=(self.values[1], self.values[0]),
            talk=tuple((not you, text) for you, text in self.talk),
            shares=(self.shares[1], self.shares[0]) if self.shares else None,
            refusal=self.refusal,
        )


def read(path: Path, progress: Progress) -> Reading:
    """Read every line, join the two views of a dialogue, and report lines without a counterpart as notices."""
    reading = Reading()
    texts = read_text(path).splitlines()
    previous: View | None = None
    for number, text in enumerate(texts, 1):
        where = f"{path.name} line {number}"
        progress(number, len(texts))
        if not text.strip():
            continue
        other, previous = previous, None
        with noted(reading, where):
            view = parse(text, where)
            if other is None or view != other.mirrored():
                reading.lines.append(_line(view, number, where))
                previous = view
    if not reading.lines and not reading.errors:
        reading.error(BadInput("the file contains no dialogue", path.name))
    return reading


def parse(text: str, where: str) -> View:
    """Return one line as a `View`; raise `BadInput` naming the part that is malformed."""
    match = LINE.fullmatch(text.strip())
    if not match:
        raise BadInput("expected <input>, <dialogue>, <output> and <partner_input>", where)
    you, partner = (_pairs(match[name], f"{where}, {name}") for name in ("own", "partner"))
    if [n for n, _ in you] != [n for n, _ in partner]:
        raise BadInput("the two sides see different counts", f"{where}, partner_input")
    counts = tuple(n for n, _ in you)
    talk = tuple(_utterance(part, f"{where}, dialogue") for part in match["talk"].split(" <eos> "))
    if talk[-1][1] != SELECTION:
        raise BadInput(f"must end with {SELECTION}", f"{where}, dialogue")
    shares = _shares(match["output"], counts, f"{where}, output")
    refusal = "" if shares else match["output"].split()[0].strip("<>")
    return View(counts, (tuple(v for _, v in you), tuple(v for _, v in partner)), talk, shares, refusal)


def _pairs(text: str, where: str) -> list[tuple[int, int]]:
    numbers = text.split()
    if len(numbers) != 2 * len(ITEMS) or not all(WHOLE.fullmatch(n) for n in numbers):
        raise BadInput(f"expected a count and a value for each of {', '.join(ITEMS)}", where)
    values = [int(n) for n in numbers]
    return list(zip(values[0::2], values[1::2], strict=True))


def _utterance(text: str, where: str) -> tuple[bool, str]:
    speaker, _, words = text.partition(":")
    if speaker not in {"YOU", "THEM"} or not words.strip():
        raise BadInput(f"expected YOU: or THEM: and words, not {text[:40]!r}", where)
    return speaker == "YOU", words.strip()


def _shares(text: str, counts: tuple[int, ...], where: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    if set(text.split()) in ({"<no_agreement>"}, {"<disagree>"}, {"<disconnect>"}):
        return None
    units = [AGREED.fullmatch(part) for part in text.split()]
    if len(units) != 2 * len(ITEMS) or not all(units):
        raise BadInput("expected six itemN=… or one of <no_agreement>, <disagree>, <disconnect>", where)
    numbers = [int(unit[2]) for unit in units if unit]
    you, partner = tuple(numbers[:3]), tuple(numbers[3:])
    if any(a + b != n for a, b, n in zip(you, partner, counts, strict=True)):
        raise BadInput("the two shares do not add up to the counts", where)
    return you, partner


def _line(view: View, number: int, where: str) -> DatasetLine:
    first_is_you = view.talk[0][0]
    seat_of: dict[bool, Seat] = {first_is_you: 0, not first_is_you: 1}
    values = view.values if first_is_you else (view.values[1], view.values[0])
    moves = [SeatMove(seat=seat_of[you], move=Move(action="talk", text=text)) for you, text in view.talk[:-1]]
    moves += _ending(view, seat_of[view.talk[-1][0]], you_seat=seat_of[True])
    scenario = scenario_of(
        {
            "id": f"deal-{number}",
            "game": "negotiation",
            "settings": {
                "deal": {
                    "kind": "items",
                    "story": STORY,
                    "items": [{"name": name, "count": n} for name, n in zip(ITEMS, view.counts, strict=True) if n],
                    "sides": [
                        {"values": {name: v for name, v, n in zip(ITEMS, side, view.counts, strict=True) if n}}
                        for side in values
                    ],
                },
                "first_seat": 0,
            },
            "seats": list(SEATS),
        },
        where,
    )
    try:
        make(scenario)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, {error.where}") from error
    recorded = _with_turn_limit(scenario, _turn_limit(view, len(moves)))
    conversation = played(recorded, moves, f"deal-or-no-deal:{number}", where)
    return storable(DatasetLine(scenario=scenario, conversations=(conversation,)), where)


def _with_turn_limit(scenario: Scenario, limit: int) -> Scenario:
    """Return the scenario that was played in the record; the start for new games keeps the game's own limit."""
    if limit == TURN_LIMIT:
        return scenario
    return scenario.model_copy(update={"settings": {**scenario.settings, "turn_limit": limit}})


def _turn_limit(view: View, moves: int) -> int:
    """Return the record's length if it ended without a deal and without leaving, as the turn limit of the record."""
    return max(2, moves) if view.refusal in {"disagree", "disconnect"} else max(TURN_LIMIT, moves)


def _ending(view: View, selector: Seat, you_seat: Seat) -> list[SeatMove]:
    if view.shares:
        shares = view.shares[0] if selector == you_seat else view.shares[1]
        args = {name: n for name, n, count in zip(ITEMS, shares, view.counts, strict=True) if count}
        return [
            SeatMove(seat=selector, move=Move(action="propose", args=dict(args))),
            SeatMove(seat=1 - selector, move=Move(action="accept")),
        ]
    # A game needs two turns to reach its limit; an earlier interrupted record ends by leaving as well.
    if view.refusal == "no_agreement" or len(view.talk) < 3:
        return [SeatMove(seat=selector, move=Move(action="walk_away"))]
    return []
