"""What a page shows of the information-provision game: a map for two players, and a table of profiles.

The map is the unit square of both players' accuracies p₁ and p₂ at a fixed guess accuracy ḡ and cost c. Its regions
follow from the conditions in `training.evaluate.provision`; the region of a profile includes its borders.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product

from training.evaluate.provision import ProvisionGame

LEFT, TOP, SIDE = 60, 12, 300
"""Where the unit square lies in the drawing, and its side."""
ROOM = Fraction(3, 20)
"""A region at least this wide has its name in it."""
MOST_ROWS = 50

Corner = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Area:
    """The region of one profile: its corners in (p₁, p₂), and which hatching it has."""

    profile: str
    hatching: int
    corners: tuple[Corner, ...]

    @property
    def points(self) -> str:
        """The corners as an SVG polygon has them."""
        return " ".join(f"{_x(first):.1f},{_y(second):.1f}" for first, second in self.corners)


@dataclass(frozen=True)
class Mark:
    """A text or a point in the drawing."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class RegionMap:
    """The drawing. `border` is ḡ + c, from which on a search is worth its cost; `band` is 2c."""

    border: float
    band: float
    areas: list[Area]
    labels: list[Mark]
    tick: Mark | None
    here: Mark

    @property
    def overlap(self) -> bool:
        """Whether the regions of (S,G) and (G,S) overlap."""
        return self.border < 1 and self.band > 0


def areas(game: ProvisionGame) -> list[Area]:
    """Return the regions of (G,G), (S,G) and (G,S), without empty ones. That of (S,S) is the diagonal where c = 0."""
    border, band, zero, unit = game.guess + game.cost, 2 * game.cost, Fraction(0), Fraction(1)
    low = min(border, unit)
    nobody = Area("GG", 0, ((zero, zero), (low, zero), (low, low), (zero, low)))
    if border > unit:
        return [nobody]
    left, top = max(border, unit - band), min(unit, border + band)
    player_1 = ((border, zero), (unit, zero), (unit, unit), (left, unit), (border, top))
    player_2 = tuple((p1, p2) for p2, p1 in player_1)
    return [nobody, Area("SG", 1, player_1), Area("GS", 2, player_2)]


def region_map(game: ProvisionGame) -> RegionMap:
    """Return the map around a game of two players."""
    border = game.guess + game.cost
    first, second = game.accuracies
    return RegionMap(
        border=float(border),
        band=float(2 * game.cost),
        areas=areas(game),
        labels=_labels(border, 2 * game.cost),
        tick=Mark("", _x(border), _y(border)) if Fraction(1, 10) <= border <= Fraction(9, 10) else None,
        here=Mark(profiles_text(game), _x(first), _y(second)),
    )


def _labels(border: Fraction, band: Fraction) -> list[Mark]:
    """The names of regions that have room for them, at places that belong to no other region."""
    middle = (border + 1) / 2
    labels = []
    if border >= ROOM:
        side = min(border, Fraction(1))
        labels.append(("(G,G)", side / 2, side / 4))  # beside the diagonal, which is drawn where a search is free
    if 1 - border >= ROOM:
        along, beside = (middle, border / 2) if border >= 2 * ROOM else (Fraction(4, 5), ROOM)
        labels += [("(S,G)", along, beside), ("(G,S)", beside, along)]
        if band >= ROOM and 1 - border >= 2 * ROOM:
            labels.append(("(S,G) and (G,S)", middle, middle))
    return [Mark(text, _x(first), _y(second)) for text, first, second in labels]


def _x(accuracy: Fraction) -> float:
    return LEFT + SIDE * float(accuracy)


def _y(accuracy: Fraction) -> float:
    return TOP + SIDE * (1 - float(accuracy))


@dataclass(frozen=True)
class ProfileRow:
    """One profile: every player's payoff, and the player who gains most by changing its move, if one does."""

    profile: str
    payoffs: list[float]
    player: int
    gain: float
    move: str


def profile_rows(game: ProvisionGame) -> list[ProfileRow]:
    """Return all profiles of two players; of more players the equilibria, the first `MOST_ROWS`."""
    every = list(product("SG", repeat=2)) if len(game.accuracies) == 2 else game.equilibria()
    return [_row(game, profile) for profile in islice(every, MOST_ROWS)]


def _row(game: ProvisionGame, profile: tuple[str, ...]) -> ProfileRow:
    gains = game.gains(profile)
    gain = max(gains)
    player = gains.index(gain)
    move = "guessing" if profile[player] == "S" else "searching"
    return ProfileRow(
        _text(profile), [float(payoff) for payoff in game.payoffs(profile)], player + 1, max(float(gain), 0.0), move
    )


def profiles_text(game: ProvisionGame) -> str:
    """Return the equilibria as words: `(S,G) and (G,S)`."""
    *before, last = [_text(profile) for profile in game.equilibria()]
    return f"{', '.join(before)} and {last}" if before else last


def _text(profile: tuple[str, ...]) -> str:
    return f"({','.join(profile)})"
