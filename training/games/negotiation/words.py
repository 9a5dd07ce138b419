"""Every sentence of the negotiation, generated from the settings and the terms of the game.

A `None` seat means a reader without a side (a spectator), who reads nothing private.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.games.actions import how_to
from training.games.negotiation.settings import Items, NegotiationSettings, Price
from training.games.negotiation.terms import Deal, Terms
from training.records import Action, Seat

Names = Sequence[str]


def number(points: float) -> str:
    """Return points without needless digits: 22, 0.5, 0.33."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


# --- the first message -----------------------------------------------------------------------------------------------


def opening(settings: NegotiationSettings, names: Names, actions: Sequence[Action], first: Seat, briefs: str) -> str:
    """Return the rules with `briefs` (what this reader may know of the private side) in the middle."""
    deal = settings.deal
    public = _item_story(deal) if isinstance(deal, Items) else _listing(deal, names)
    parts = [public, briefs, _rules(settings, names, first), f"How to act:\n{how_to(actions)}"]
    return "\n\n".join(part for part in parts if part)


def _item_story(deal: Items) -> str:
    pool = ", ".join(f"{item.name} {item.count}" for item in deal.items)
    rule = f"Two people divide between them: {pool}. Every unit goes to one of the two."
    return f"{deal.story}\n{rule}" if deal.story else rule


def _listing(deal: Price, names: Names) -> str:
    category = f" ({deal.category})" if deal.category else ""
    head = f"{names[0]} may buy from {names[1]}: {deal.title}{category}, listed at {deal.listing_price}."
    return f"{head}\nThe listing says: {deal.description}" if deal.description else head


def brief(settings: NegotiationSettings, terms: Terms, names: Names, seat: Seat, *, addressed: bool) -> str:
    """Return the private side of `seat`, `addressed` to it, or about it for viewers who may see everything."""
    deal = settings.deal
    who, other = names[seat], names[1 - seat]
    if isinstance(deal, Items):
        side = deal.sides[seat]
        worth = [_worth(item.name, side.values[item.name], side.reasons.get(item.name, "")) for item in deal.items]
        whole, alone = number(terms.maximum(seat)), number(side.walk_away)
        lines = [*worth, f"Everything together would be {whole} points, no deal is {alone} points."]
    else:
        target = deal.sides[seat]
        verb = "pay" if seat == 0 else "get"
        lines = [f"Hoped for: to {verb} {target.target}." + (f" {target.reason}" if target.reason else "")]
        lines.append(
            f"A deal at that price is worth 1, at the price {other if addressed else 'the other'} hopes for 0, in "
            "between in proportion; no deal is 0."
        )
    head = (
        f"You are {who}, negotiating with {other}. Only you know what follows about your side."
        if addressed
        else f"The private side of {who}:"
    )
    mixed = _mixed(settings, other) if addressed else ""
    return "\n".join([head, *lines, *([mixed] if mixed else [])])


def _worth(name: str, value: int, reason: str) -> str:
    return f"{name}: {value} point{'' if value == 1 else 's'} a unit." + (f" {reason}" if reason else "")


def _mixed(settings: NegotiationSettings, other: str) -> str:
    weight = settings.prosocial
    if not weight:
        return ""
    return f"Your result is {number(100 - 100 * weight)} % your own and {number(100 * weight)} % that of {other}."


def _rules(settings: NegotiationSettings, names: Names, first: Seat) -> str:
    return (
        f"You take turns and {names[first]} begins. One message a turn, at most {settings.max_chars} characters. "
        "A proposal must be answered: accept, reject or walk away; who rejects speaks next. "
        f"After {settings.turn_limit} turns of both together without an accepted proposal there is no deal."
    )


# --- what happens ----------------------------------------------------------------------------------------------------


def proposal(
    settings: NegotiationSettings, terms: Terms, names: Names, by: Seat, deal: Deal, reader: Seat | None
) -> str:
    """Return the line after a proposal, as `reader` sees it."""
    other = 1 - by
    subject = "You propose" if reader == by else f"{names[by]} proposes"
    if isinstance(settings.deal, Items):
        shares = terms.shares(by, deal)
        receiver = "you" if reader == other else names[other]
        line = f"{subject} to keep {shares[by]}; {receiver} would get {shares[other]}."
    else:
        line = f"{subject} a price of {deal['price']}."
    if reader is None:
        return line
    line += f" {_value(settings, terms, reader, by, deal)}"
    return line if reader == by else f"{line} Accept, reject or walk away."


def _value(settings: NegotiationSettings, terms: Terms, reader: Seat, by: Seat, deal: Deal) -> str:
    """Return what a deal is worth to its reader; a price is compared with the reader's target only."""
    if isinstance(settings.deal, Items):
        return f"For you: {number(terms.points(reader, by, deal))} of {number(terms.maximum(reader))} points."
    reached = terms.points(reader, by, deal) == terms.maximum(reader)
    return "It is your target or better." if reached else "It is short of your target."


def agreement(
    settings: NegotiationSettings, terms: Terms, names: Names, by: Seat, deal: Deal, reader: Seat | None
) -> str:
    """Return the end message of a deal, as `reader` sees it."""
    if isinstance(settings.deal, Items):
        shares = terms.shares(by, deal)
        line = f"Deal: {names[0]} gets {shares[0]}; {names[1]} gets {shares[1]}."
    else:
        line = f"Deal: {names[0]} buys for {deal['price']}."
    return line if reader is None else f"{line} {_value(settings, terms, reader, by, deal)}"


def no_deal(settings: NegotiationSettings, terms: Terms, why: str, reader: Seat | None, *, lost: bool = False) -> str:
    """Return the end message without a deal; `lost` readers gave up the game and get nothing."""
    line = f"{why} There is no deal."
    if reader is None or not isinstance(settings.deal, Items):
        return line
    return (
        f"{line} For you: {number(0 if lost else terms.walk_away(reader))} of {number(terms.maximum(reader))} points."
    )


def all_points(terms: Terms, names: Names, points: Sequence[float]) -> str:
    """Return both sides' points, for viewers who may see everything."""
    return " ".join(
        f"{names[seat]}: {number(points[seat])} of {number(terms.maximum(seat))} points." for seat in (0, 1)
    )


def remaining(left: int) -> str:
    """Return the reminder near the end, or nothing."""
    return {2: "Two turns remain.", 1: "One turn remains."}.get(left, "")
