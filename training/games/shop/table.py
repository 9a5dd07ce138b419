"""What people read of a visit besides its page: the rules, what to do now, what was done and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from training.games.prose import count
from training.games.shop import words
from training.games.shop.reward import Reward
from training.games.shop.settings import Goal
from training.games.shop.visit import BACK, BUY, NEXT, PREVIOUS, TEXTS, Visit
from training.records import ArgValue

ASK: Mapping[str, str] = {
    "search": "Search the shop for what you need.",
    "results": "Open a product, look at another page, or search again.",
    "product": "Choose the options that fit and buy it, or look further.",
    **dict.fromkeys(TEXTS, "Go back to the product, or search again."),
}
"""What to do on each kind of page."""

SCORING = (
    "The reward is the share of all that is wanted (attributes, options, the price limit) that the purchase fulfils, "
    "times a factor from 0 to 1 for the kind of product."
)


def rules(turn_limit: int) -> tuple[str, ...]:
    """Return the rules for a person at a screen."""
    turns = f"You have {count(turn_limit, 'turn')}. Each search and each button takes one."
    return (
        "Search the shop, open products, and buy the one that fits your task best. The purchase ends the visit.",
        f"{turns} Without a purchase the reward is 0.",
        "Choose options such as colour and size before you buy; some change the price.",
        "Description and features of a product can be opened on its page, one turn each.",
        SCORING,
    )


# --- what was done ---------------------------------------------------------------------------------------------------


def deed(visit: Visit, action: str, args: Mapping[str, ArgValue]) -> str:
    """Return what the customer does next on this page, read after its name."""
    if action == "search":
        return f"searches for “{args['words']}”"
    link = str(args["value"])
    if link in visit.catalogue.products and visit.view == "results":
        return f"opens {visit.catalogue.products[link].title}"
    if visit.view == "product" and link not in (PREVIOUS, BACK, BUY, *TEXTS):
        return f"chooses {link}"
    return {
        NEXT: "goes to the next page",
        PREVIOUS: _back(visit),
        BACK: "goes back to the search",
        BUY: "buys it",
    }.get(link, f"reads the {link}")


def _back(visit: Visit) -> str:
    if visit.view == "results":
        return "goes to the previous page"
    return f"goes back to the {'results' if visit.view == 'product' else 'product'}"


def arrival(visit: Visit) -> str:
    """Return what a move has led to, in one sentence; nothing where the page shows it."""
    if visit.view == "results":
        if not visit.results:
            return words.NOTHING_FOUND
        where = f", page {visit.page} of {visit.pages}" if visit.pages > 1 else ""
        return f"{count(len(visit.results), 'result')}{where}."
    if visit.view == "product" and visit.product is not None:
        return f"It costs {words.dollars(visit.product.price_with(visit.chosen))}."
    return ""


def score(goal: Goal, reward: Reward) -> str:
    """Return the reward of a purchase with its parts."""
    *parts, _ = words.parts(goal, reward)
    kind = "the right kind of product" if reward.kind == 1 else f"times {reward.kind:g} for the kind of product"
    return f"Reward {figure(reward.total)} of 1: {', '.join((*parts, kind))}."


# --- the end ---------------------------------------------------------------------------------------------------------


def headline(reward: Reward | None) -> str:
    """Return how a visit has ended."""
    return f"Bought: reward {figure(reward.total)} of 1." if reward else "Nothing bought: reward 0 of 1."


def purchase(name: str, visit: Visit) -> str:
    """Return what was bought."""
    assert visit.product is not None
    options = f" ({', '.join(visit.chosen.values())})" if visit.chosen else ""
    return f"{name} bought {visit.product.title}{options} for {words.dollars(visit.product.price_with(visit.chosen))}."


def figure(reward: float) -> str:
    """Return a number with at most two decimals: `0.67`, `1`."""
    return f"{reward:.2f}".rstrip("0").rstrip(".")
