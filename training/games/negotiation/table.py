"""A negotiation as people see it: what lies on the table, who gets what, what it is worth to the viewer.

The two seats have a side of their own; of the other viewers, spectators know neither side, and the rest know both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from training.analysis import Frontier, Proposal
from training.games.negotiation.settings import Items, NegotiationSettings, Price
from training.games.negotiation.terms import Deal, ItemTerms, Terms
from training.games.negotiation.words import Names, number
from training.games.prose import count, listed
from training.records import SPECTATOR, Seat, Viewer
from training.views import Brief, Item, PriceScale, Tray, Zone

Offer = tuple[Seat, Deal]
"""Who proposes, and what."""

SIDES = (0, 1)
"""The viewers with a side."""

DEALS = ("buy", "sell")
"""What each seat of a bargain does."""


def zones(
    settings: NegotiationSettings,
    terms: Terms,
    viewer: Viewer,
    offer: Offer | None,
    made: Sequence[Offer],
    *,
    proposes: bool,
    agreed: bool,
) -> tuple[Zone, ...]:
    """Return the items or the price, with the standing proposal or the deal; `made` are all proposals so far.

    `proposes`: the viewer may propose now, and begins with what the proposal before gave it.
    """
    action = terms.propose().name if proposes else ""
    deal = settings.deal
    if isinstance(deal, Price):
        return (_price(deal, viewer, offer, made, action, agreed=agreed),)
    assert isinstance(terms, ItemTerms)
    return (_tray(deal, terms, viewer, offer, made[-1] if made else None, action, agreed=agreed),)


def _tray(
    deal: Items,
    terms: ItemTerms,
    viewer: Viewer,
    offer: Offer | None,
    latest: Offer | None,
    action: str,
    *,
    agreed: bool,
) -> Tray:
    side = deal.sides[viewer] if viewer in SIDES else None
    shares = [terms.units(seat, *offer) for seat in SIDES] if offer is not None else []
    begin = terms.units(viewer, *latest) if latest is not None else [(item.count + 1) // 2 for item in deal.items]
    return Tray(
        title="What is divided",
        items=tuple(
            Item(
                name=item.name,
                count=item.count,
                worth=None if side is None else side.values[item.name],
                reason="" if side is None else side.reasons.get(item.name, ""),
                offered=tuple(share[at] for share in shares),
                suggested=begin[at] if action else 0,
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


def _price(
    deal: Price, viewer: Viewer, offer: Offer | None, made: Sequence[Offer], action: str, *, agreed: bool
) -> PriceScale:
    prices = [(seat, int(proposal["price"])) for seat, proposal in made]
    price = int(offer[1]["price"]) if offer is not None else None
    return PriceScale(
        title=f"{deal.title}, listed at {deal.listing_price}",
        about=deal.description,
        listing=deal.listing_price,
        low=0,
        high=deal.ceiling,
        target=deal.sides[viewer].target if viewer in SIDES else None,
        action=action,
        suggested=(prices[-1][1] if prices else deal.listing_price) if action else None,
        offer=price,
        rejected=tuple(prices if offer is None else prices[:-1]),
        worth=_compared(deal, price, viewer) if price is not None and viewer in SIDES else "",
        by=offer[0] if offer is not None else None,
        agreed=agreed,
    )


# --- the situation ---------------------------------------------------------------------------------------------------


def story(settings: NegotiationSettings, names: Names) -> str:
    """Return the situation that everybody knows."""
    deal = settings.deal
    if isinstance(deal, Items):
        rule = f"{names[0]} and {names[1]} divide {listed(amount(item.name, item.count) for item in deal.items)}."
        return f"{deal.story}\n{rule}" if deal.story else rule
    category = f" ({deal.category})" if deal.category else ""
    return f"{names[0]} may buy from {names[1]}: {deal.title}{category}, listed at {deal.listing_price}."


def rules(settings: NegotiationSettings, names: Names, first: Seat) -> tuple[str, ...]:
    """Return the rules for people."""
    if isinstance(settings.deal, Items):
        alone = "each side keeps what no deal is worth to it"
        worth: tuple[str, ...] = (
            "A thing may be worth more to one side than to the other. Each side knows its own points alone.",
        )
    else:
        alone = "it is worth 0 to both"
        worth = (
            f"{names[0]} buys and {names[1]} sells. Each hopes for a price that the other does not know.",
            "To each side a deal is worth 1 at its own price, 0 at that of the other, and between them in proportion.",
        )
    return (
        f"You take turns, and {names[first]} begins. In a turn you say something, propose a deal, or walk away.",
        "A proposal is answered: accept it, reject it and speak next, or walk away.",
        f"There are {settings.turn_limit} turns, those of both together.",
        f"There is no deal after the last turn or once somebody walks away: {alone}.",
        *worth,
    )


def brief(settings: NegotiationSettings, terms: Terms, names: Names, viewer: Viewer) -> Brief | None:
    """Return the private side of a seat; nothing for spectators, both sides for viewers who may see everything."""
    if viewer == SPECTATOR:
        return None
    deal = settings.deal
    if viewer not in SIDES:
        both = tuple(_side(deal, terms, names, seat) for seat in SIDES)
        return Brief(title="Both sides", text=both, emblem="point")
    other, weight = names[1 - viewer], settings.prosocial
    mixed = (
        (f"Your result is {number(100 - 100 * weight)} % your own and {number(100 * weight)} % that of {other}.",)
        if weight
        else ()
    )
    if isinstance(deal, Price):
        target = deal.sides[viewer]
        reason = (target.reason,) if target.reason else ()
        worth = f"A deal at that price is worth 1 to you, at the price {other} hopes for 0; no deal is 0."
        title = f"You hope to {DEALS[viewer]} for {target.target}"
        return Brief(title=title, text=(*reason, worth, *mixed), emblem="point")
    alone = f"Everything would be {_points(terms.maximum(viewer))}; no deal is {number(terms.walk_away(viewer))}."
    return Brief(title="What things are worth to you", text=(*_worths(deal, viewer), alone, *mixed), emblem="point")


def _worths(deal: Items, seat: Seat) -> tuple[str, ...]:
    """Return what a unit of each item is worth to a seat, and why."""
    side, lines = deal.sides[seat], []
    for item in deal.items:
        each = "" if item.count == 1 else " each"
        lines.append(f"{item.name}: {count(side.values[item.name], 'point')}{each}. {side.reasons.get(item.name, '')}")
    return tuple(line.strip() for line in lines)


def _points(points: float) -> str:
    return f"{number(points)} point{'' if points == 1 else 's'}"


def _side(deal: Items | Price, terms: Terms, names: Names, seat: Seat) -> str:
    """Return the private side of a seat for viewers who may see everything."""
    if isinstance(deal, Price):
        side = deal.sides[seat]
        return f"{names[seat]} hopes to {DEALS[seat]} for {side.target}. {side.reason}".strip()
    alone = f"No deal: {_points(terms.walk_away(seat))}."
    return "\n".join((f"Worth to {names[seat]}", *_worths(deal, seat), alone))


def ask(names: Names, seat: Seat, left: int, *, answers: bool) -> str:
    """Return what a seat is to do now, with `left` turns to go."""
    if answers:
        how = "accept it, or there is no deal" if left == 1 else "accept it, reject it, or walk away"
        return f"Answer {names[1 - seat]}'s proposal: {how}."
    return "Say a last word: it is too late for a deal." if left == 1 else "Say something, or propose a deal."


# --- what happens ----------------------------------------------------------------------------------------------------


def proposal(settings: NegotiationSettings, terms: Terms, names: Names, offer: Offer, reader: Viewer) -> str:
    """Return what the proposer does, read after its name, with what the deal is worth to the reader.

    The proposer reads a whole sentence, which needs no name before it.
    """
    by, deal = offer
    worth = "" if reader == SPECTATOR else f" ({_worth(settings, terms, names, offer, reader)})"
    offers, keeps = ("You offer", "keep") if reader == by else ("offers", "keeps")
    if not isinstance(terms, ItemTerms):
        return f"{offers} to {DEALS[by]} for {deal['price']}{worth}"
    other = "you" if reader == 1 - by else names[1 - by]
    kept, left = (_goods(terms, seat, offer) for seat in (by, 1 - by))
    return f"{offers} {other} {left}, and {keeps} {kept}{worth}"


def amount(name: str, units: int) -> str:
    """Return so many units of an item. Scenarios name items in the singular or the plural, and both read well."""
    return f"{name} × {units}"


def _goods(terms: ItemTerms, seat: Seat, offer: Offer) -> str:
    """Return what a seat gets, as a list in a sentence."""
    units, others = terms.units(seat, *offer), terms.units(1 - seat, *offer)
    if not any(others):
        return "everything"
    goods = [amount(argument.name, n) for n, argument in zip(units, terms.propose().args, strict=True) if n]
    return listed(goods) if goods else "nothing"


def _worth(settings: NegotiationSettings, terms: Terms, names: Names, offer: Offer, reader: Viewer) -> str:
    """Return what a deal is worth to its reader, or to both sides."""
    points = [number(terms.points(seat, *offer)) for seat in SIDES]
    if reader not in SIDES:
        return f"{points[0]} for {names[0]}, {points[1]} for {names[1]}"
    if isinstance(settings.deal, Items):
        return f"{points[reader]} of {number(terms.maximum(reader))} points for you"
    return _compared(settings.deal, int(offer[1]["price"]), reader)


def _compared(deal: Price, price: int, seat: Seat) -> str:
    """Return what a price is to a seat, which compares it with its own target only."""
    difference = price - deal.sides[seat].target
    better = -difference if seat == 0 else difference
    if not better:
        return "your target"
    return f"better than your target by {better}" if better > 0 else f"short of your target by {-better}"


def headline(
    settings: NegotiationSettings,
    terms: Terms,
    names: Names,
    offer: Offer | None,
    points: Sequence[float],
    viewer: Viewer,
    *,
    gave_up: bool = False,
) -> str:
    """Return how it ended for a viewer.

    `offer` is the deal, None without one; `points` are those of both seats; `gave_up`: the viewer did.
    """
    if gave_up:
        return "You gave up: no deal, and no points for you."
    if isinstance(settings.deal, Price):
        return _price_headline(settings, terms, names, offer, viewer)
    shares = [f"{number(points[seat])} of {number(terms.maximum(seat))} points" for seat in SIDES]
    if viewer in SIDES:
        return f"No deal: you keep {shares[viewer]}." if offer is None else f"Deal: you get {shares[viewer]}."
    if viewer == SPECTATOR:
        assert isinstance(terms, ItemTerms)
        got = [f"{names[seat]} gets {_goods(terms, seat, offer)}" for seat in SIDES] if offer else []
        return f"Deal: {got[0]}, and {got[1]}." if offer is not None else "No deal."
    return f"{'No deal' if offer is None else 'Deal'}: {names[0]} gets {shares[0]}, and {names[1]} {shares[1]}."


def _price_headline(
    settings: NegotiationSettings, terms: Terms, names: Names, offer: Offer | None, viewer: Viewer
) -> str:
    """Return how a bargain ended. A side reads no points: they would tell the other's target."""
    assert isinstance(settings.deal, Price)
    head = "No deal" if offer is None else f"Deal at {offer[1]['price']}"
    if viewer in SIDES:
        return f"{head}." if offer is None else f"{head}: {_worth(settings, terms, names, offer, viewer)}."
    if viewer == SPECTATOR:
        return f"{head}." if offer is None else f"Deal: {names[0]} buys for {offer[1]['price']}."
    buyer, seller = settings.deal.sides
    return f"{head}: {names[0]} hoped for {buyer.target}, and {names[1]} for {seller.target}."


# --- afterwards ------------------------------------------------------------------------------------------------------

MOST_OUTCOMES = 400
"""Possible deals that are drawn one by one; of more, only the efficient ones."""


def frontier(terms: Terms, made: Sequence[Offer], *, agreed: bool) -> Frontier:
    """Return what could have been agreed on, with the proposals that were made."""
    outcomes = terms.outcomes()
    return Frontier(
        title="What could have been agreed on",
        outcomes=outcomes if len(outcomes) <= MOST_OUTCOMES else (),
        efficient=efficient(outcomes),
        proposals=tuple(
            Proposal(by=by, points=(terms.points(0, by, deal), terms.points(1, by, deal))) for by, deal in made
        ),
        alone=(terms.walk_away(0), terms.walk_away(1)),
        most=(terms.maximum(0), terms.maximum(1)),
        agreed=agreed,
    )


def efficient(outcomes: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the outcomes that no other improves for one seat without harm to the other, by rising first points."""
    best: list[tuple[float, float]] = []
    for first, second in sorted(outcomes, reverse=True):
        if not best or second > best[-1][1]:
            best.append((first, second))
    return tuple(reversed(best))
