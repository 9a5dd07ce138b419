"""Every sentence of the shop, made from the settings, the page and the purchase."""

from __future__ import annotations

from collections.abc import Mapping

from training.games.actions import clean, how_to
from training.games.prose import count, listed
from training.games.shop.products import Product
from training.games.shop.reward import Reward
from training.games.shop.settings import Goal
from training.games.shop.visit import BACK, BUY, NEXT, PREVIOUS, TEXTS, View, Visit, labels
from training.records import Action, Argument

LONGEST = 2000
"""Characters of a description or of features that a page shows."""
TASK = (
    "This is an online shop in text. A customer visits it to buy one product that fits this instruction as well as "
    "possible:"
)
SCORING = (
    "It ends with the purchase; without one the score is 0. A purchase scores the share of all that is wanted "
    "(attributes, options, the price limit) that it fulfils, times a factor for the kind of product."
)
NOTHING_FOUND = "Nothing was found."
SEARCH = Action(
    name="search",
    args=(Argument(name="words", kind="text"),),
    text="private",
    label="Search, on the search page",
)
CLICK = Action(
    name="click",
    args=(Argument(name="value", kind="text"),),
    text="private",
    label="Click on something that the page offers, on all other pages",
)


def dollars(price: float) -> str:
    """Return `$41.50`."""
    return f"${price:,.2f}"


# --- the first message -----------------------------------------------------------------------------------------------


def opening(name: str, goal: Goal, turn_limit: int, *, addressed: bool, target: Product | None = None) -> str:
    """Return the rules with the instruction, `addressed` to the customer or not.

    With `target` they include the goal, for viewers who may see it.
    """
    parts = [
        f"You are {name}." if addressed else "",
        f"{TASK}\n{clean(goal.instruction)}",
        secrets(goal, target) if target else "",
        f"The visit has at most {count(turn_limit, 'turn')}, each of one search or one click. {SCORING}",
        f"How to act:\n{how_to((SEARCH, CLICK))}",
    ]
    return "\n\n".join(part for part in parts if part)


def secrets(goal: Goal, target: Product) -> str:
    """Return from what the instruction was made, and what scores, for viewers who may see it."""
    limit = "no price limit" if goal.price_limit is None else f"at most {dollars(goal.price_limit)}"
    best = "" if goal.best is None else f" The best purchase scores {goal.best:.2f}."
    wanted = [*(f"attribute {text}" for text in goal.attributes), *(f"option {text}" for text in goal.options), limit]
    return f"The instruction was made from {target.id} ({target.title}). Wanted: {', '.join(wanted)}.{best}"


# --- pages -----------------------------------------------------------------------------------------------------------


def page(visit: Visit, left: int) -> str:
    """Return what the customer sees, with the number of turns left."""
    turns = f"Turns left: {left}."
    if visit.view == "search":
        return f"This is the search page. {turns}"
    if visit.view == "results":
        return f"{_results(visit)}\n{turns}"
    assert visit.product is not None
    show = _product if visit.view == "product" else _text
    return f"{show(visit, visit.product)}\n{turns}"


def _results(visit: Visit) -> str:
    if not visit.results:
        return f"{NOTHING_FOUND} You can click: {BACK}."
    head = f"Page {visit.page} of {visit.pages}, {count(len(visit.results), 'result')}:"
    lines = [f"{product.id} {product.title}, {dollars(product.price)}" for product in visit.shown()]
    others = [link for link in (NEXT, PREVIOUS, BACK) if link in visit.links]
    return "\n".join([head, *lines, f"You can click: the number of a product, {', '.join(others)}."])


def _product(visit: Visit, product: Product) -> str:
    shown = labels(product)
    lines = [f"{product.id} {product.title}", f"Price: {dollars(product.price_with(visit.chosen))}"]
    for name, values in product.options.items():
        texts = [f"{shown[name, value.name]}{f' (+{dollars(value.extra)})' if value.extra else ''}" for value in values]
        lines.append(f"{name}: {', '.join(texts)}")
    if product.options:
        lines.append(f"Chosen: {_chosen(visit.chosen) or 'nothing yet'}.")
    values_too = "a value of an option, " if product.options else ""
    lines.append(f"You can click: {values_too}{', '.join((*TEXTS, PREVIOUS, BACK, BUY))}.")
    return "\n".join(lines)


def _chosen(chosen: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in chosen.items())


def _text(visit: Visit, product: Product) -> str:
    text = text_of(visit.view, product)
    return f"{visit.view.capitalize()} of {product.id}:\n{text}\nYou can click: {PREVIOUS}, {BACK}."


def text_of(view: View, product: Product) -> str:
    """Return the description or the features of a product, cut at `LONGEST`."""
    text = product.description if view == "description" else "\n".join(product.features)
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]}…") or "none"


# --- what happens ----------------------------------------------------------------------------------------------------


def unchosen(name: str, tag: str) -> str:
    """Return what is played for a customer who does not answer."""
    return f"{name} does not answer, so this is played: {tag}"


def bought(name: str, visit: Visit, goal: Goal, reward: Reward) -> str:
    """Return the end of a visit with a purchase."""
    assert visit.product is not None
    options = f" ({_chosen(visit.chosen)})" if visit.chosen else ""
    price = dollars(visit.product.price_with(visit.chosen))
    return (
        f"{name} buys {visit.product.id}{options} for {price}. Score {reward.total:.2f}: {listed(parts(goal, reward))}."
    )


def parts(goal: Goal, reward: Reward) -> list[str]:
    """Return the parts of a reward in words; those that the goal asks for."""
    every = [
        f"{reward.attributes} of {count(len(goal.attributes), 'attribute')}" if goal.attributes else "",
        f"{reward.options} of {count(len(goal.options), 'option')}" if goal.options else "",
        f"the price is {'within' if reward.price else 'above'} the limit" if goal.price_limit is not None else "",
        f"the kind of product counts {reward.kind:g}",
    ]
    return [part for part in every if part]


def nothing_bought(why: str) -> str:
    """Return the end of a visit without a purchase."""
    return f"{why} Nothing is bought. Score 0."


def gives_up(name: str) -> str:
    """Return why a forfeited visit ends."""
    return f"{name} gives up."


def out_of_turns(turn_limit: int) -> str:
    """Return why a visit ends without a purchase."""
    return f"All {turn_limit} turns are used up." if turn_limit > 1 else "The only turn is used up."
