"""A negotiation as people see it: what lies on the table, who gets what, what it is worth to the viewer."""

from __future__ import annotations

from training.games.negotiation.settings import Items, NegotiationSettings, Price
from training.games.negotiation.terms import Deal, ItemTerms, Terms
from training.games.negotiation.words import Names, number
from training.games.prose import count
from training.records import Seat, Viewer
from training.views import Brief, Item, PriceScale, Tray, Zone

Offer = tuple[Seat, Deal]
"""Who proposes, and what."""


def zones(
    settings: NegotiationSettings, terms: Terms, viewer: Viewer, offer: Offer | None, *, proposes: bool, agreed: bool
) -> tuple[Zone, ...]:
    """Return the items or the price, with the standing proposal or the deal; `proposes`: the viewer may propose now."""
    action = terms.propose().name if proposes else ""
    deal = settings.deal
    if isinstance(deal, Price):
        return (_price(deal, viewer, offer, action, agreed=agreed),)
    assert isinstance(terms, ItemTerms)
    return (_tray(deal, terms, viewer, offer, action, agreed=agreed),)


def _tray(deal: Items, terms: ItemTerms, viewer: Viewer, offer: Offer | None, action: str, *, agreed: bool) -> Tray:
    side = deal.sides[viewer] if viewer in (0, 1) else None
    shares = [terms.units(seat, *offer) for seat in (0, 1)] if offer is not None else []
    return Tray(
        title="What is divided",
        items=tuple(
            Item(
                name=item.name,
                count=item.count,
                worth=None if side is None else side.values[item.name],
                reason="" if side is None else side.reasons.get(item.name, ""),
                offered=tuple(share[at] for share in shares),
                suggested=(item.count + 1) // 2,
            )
            for at, item in enumerate(deal.items)
        ),
        action=action,
        most=None if side is None else terms.maximum(viewer),
        alone=None if side is None else terms.walk_away(viewer),
        by=offer[0] if offer is not None else None,
        agreed=agreed,
        worth=None if side is None or offer is None else terms.points(viewer, *offer),
    )


def _price(deal: Price, viewer: Viewer, offer: Offer | None, action: str, *, agreed: bool) -> PriceScale:
    return PriceScale(
        title=f"{deal.title}, listed at {deal.listing_price}",
        about=deal.description,
        listing=deal.listing_price,
        low=0,
        high=deal.ceiling,
        target=deal.sides[viewer].target if viewer in (0, 1) else None,
        action=action,
        offer=int(offer[1]["price"]) if offer is not None else None,
        by=offer[0] if offer is not None else None,
        agreed=agreed,
    )


def story(settings: NegotiationSettings, names: Names) -> str:
    """Return the situation that everybody knows."""
    deal = settings.deal
    if isinstance(deal, Items):
        pool = ", ".join(f"{item.count} {item.name}" for item in deal.items)
        rule = f"{names[0]} and {names[1]} divide {pool}."
        return f"{deal.story}\n{rule}" if deal.story else rule
    return f"{names[0]} may buy from {names[1]}: {deal.title}, listed at {deal.listing_price}."


def rules(settings: NegotiationSettings, names: Names, first: Seat) -> tuple[str, ...]:
    """Return the rules for people."""
    return (
        f"You take turns, and {names[first]} begins. In your turn you say something, propose a deal, or walk away.",
        "A proposal is answered: accept it, reject it and speak next, or walk away.",
        f"After {settings.turn_limit} turns of both together there is no deal.",
        "Only you know what things are worth to you.",
    )


def brief(settings: NegotiationSettings, terms: Terms, names: Names, seat: Seat) -> Brief:
    """Return the private side of a seat."""
    deal, other = settings.deal, names[1 - seat]
    weight = settings.prosocial
    mixed = (
        (f"Your result is {number(100 - 100 * weight)} % your own and {number(100 * weight)} % that of {other}.",)
        if weight
        else ()
    )
    if isinstance(deal, Price):
        target = deal.sides[seat]
        verb = "buy" if seat == 0 else "sell"
        reason = (target.reason,) if target.reason else ()
        worth = f"A deal at that price is worth 1 to you, at the price {other} hopes for 0; no deal is 0."
        return Brief(title=f"You hope to {verb} for {target.target}", text=(*reason, worth, *mixed), emblem="point")
    side = deal.sides[seat]
    worth_of = tuple(
        f"{item.name}: {count(side.values[item.name], 'point')} each."
        + (f" {side.reasons[item.name]}" if item.name in side.reasons else "")
        for item in deal.items
    )
    alone = f"Everything would be {number(terms.maximum(seat))} points; no deal is {number(terms.walk_away(seat))}."
    return Brief(title="What things are worth to you", text=(*worth_of, alone, *mixed), emblem="point")


def ask(names: Names, seat: Seat, *, answers: bool) -> str:
    """Return what a seat is to do now."""
    if answers:
        return f"Answer {names[1 - seat]}'s proposal: accept it, reject it, or walk away."
    return "Say something, or propose a deal."


def proposal(settings: NegotiationSettings, terms: Terms, by: Seat, deal: Deal, reader: Viewer) -> str:
    """Return what the proposer does, read after its name, with what the deal is worth to the reader."""
    worth = f" ({_worth(settings, terms, by, deal, reader)})" if reader in (0, 1) else ""
    if isinstance(settings.deal, Price):
        return f"proposes a price of {deal['price']}{worth}"
    kept = ", ".join(f"{deal[item.name]} {item.name}" for item in settings.deal.items)
    return f"proposes to keep {kept}{worth}"


def _worth(settings: NegotiationSettings, terms: Terms, by: Seat, deal: Deal, reader: Seat) -> str:
    points = terms.points(reader, by, deal)
    if isinstance(settings.deal, Price):
        return "your target or better" if points == terms.maximum(reader) else "short of your target"
    return f"{number(points)} of {number(terms.maximum(reader))} points for you"


def headline(
    settings: NegotiationSettings, terms: Terms, names: Names, offer: Offer | None, viewer: Viewer, *, lost: bool
) -> str:
    """Return how it ended for a viewer; `offer` is the deal, None without one, and `lost` readers gave up.

    Of a price a side reads no points: they would tell the other's target.
    """
    if viewer not in (0, 1):
        return f"{'A deal' if offer is not None else 'No deal'} between {names[0]} and {names[1]}."
    if isinstance(settings.deal, Price):
        if offer is None:
            return "No deal."
        return f"A deal at {offer[1]['price']}: {_worth(settings, terms, *offer, viewer)}."
    alone = 0.0 if lost else terms.walk_away(viewer)
    points = alone if offer is None else terms.points(viewer, *offer)
    head = "No deal" if offer is None else "A deal"
    return f"{head}: you get {number(points)} of {number(terms.maximum(viewer))} points."
