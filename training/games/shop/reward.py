"""WebShop's reward for a purchase (Yao et al. 2022, section 3; details as in the released environment).

It differs from the released environment in two parts, so that it needs no language model and no list of colours: the
words of a title that count are those that are no function words or numbers (there: nouns, by spaCy's part-of-speech
tags), and of the values of options those with a basic colour word are compared by that word (there: by about a hundred
colours). thefuzz's token set ratio is computed with the standard library's `SequenceMatcher`, which thefuzz uses where
no faster library is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from training.games.shop.products import Product
from training.games.shop.settings import Goal

SIMILAR = 85
"""Two phrases match if their token set ratio, in percent, is above this."""
COLOURS = tuple(re.findall(r"\w+", "black blue brown gold gray green grey orange pink purple red silver white yellow"))
"""Basic colour words; the first one in a value counts."""
FUNCTION_WORDS = frozenset(re.findall(r"\w+", "a an and as at by for from in of on or per the to with without"))


@dataclass(frozen=True, slots=True)
class Reward:
    """The parts of a reward: factor of the kind of product, matching attributes and options, price within the limit."""

    kind: float
    attributes: int
    options: int
    price: bool
    total: float


def reward(product: Product, chosen: Mapping[str, str], goal: Goal, target: Product) -> Reward:
    """Return the reward in [0, 1] for buying `product` with the chosen values of options.

    `target` is the product from which the goal was made.
    """
    kind = kind_factor(product, target)
    attributes = sum(has_attribute(product, attribute) for attribute in goal.attributes)
    options = sum(any(same_value(value, wanted) for value in chosen.values()) for wanted in goal.options)
    price = goal.price_limit is None or product.price_with(chosen) <= goal.price_limit
    share = (attributes + options + price) / (len(goal.attributes) + len(goal.options) + 1)
    return Reward(kind, attributes, options, price, kind * share)


def kind_factor(product: Product, target: Product) -> float:
    """Return how far a product is of the target's kind: 0, 0.1, 0.5 or 1, by titles, categories and queries."""
    wanted = nouns(target.title)
    overlap = len(wanted & nouns(product.title)) / len(wanted) if wanted else 0.2
    if overlap < 0.1:
        return 0.1 if overlap else 0.0
    shared = set(_path(product.category)) & set(_path(target.category))
    return 1.0 if product.query == target.query or len(shared) >= 2 or overlap > 0.2 else 0.5


def _path(category: str) -> list[str]:
    return [part.strip() for part in category.split("›")]


@lru_cache(maxsize=4096)
def nouns(title: str) -> frozenset[str]:
    """Return the words of a title that may be nouns, in lower case."""
    return frozenset(re.findall(r"[^\W\d_]{2,}", title.lower())) - FUNCTION_WORDS


def has_attribute(product: Product, attribute: str) -> bool:
    """Return whether the attribute is similar to one of the product's, or stands literally in one of its texts."""
    if any(similar(of_product, attribute) for of_product in product.attributes):
        return True
    texts = (product.title, " ".join(product.features), product.description)
    return any(attribute.lower() in text.lower() for text in texts)


def same_value(chosen: str, wanted: str) -> bool:
    """Return whether a chosen value of an option is similar to a wanted one; of colours the basic word counts."""
    return similar(_colour(chosen), _colour(wanted))


@lru_cache(maxsize=4096)
def _colour(value: str) -> str:
    present = set(re.findall(r"\w+", value.lower()))
    return next((colour for colour in COLOURS if colour in present), value)


@lru_cache(maxsize=65536)
def similar(first: str, second: str) -> bool:
    """Return whether the token set ratio of two phrases is above `SIMILAR`.

    The ratio is the best of three: the shared words against each phrase, and the phrases against each other. Words are
    sorted, with the shared ones first.
    """
    a, b = (set(re.findall(r"\w+", phrase.lower())) for phrase in (first, second))
    if not a or not b:
        return False
    shared, *phrases = (sorted(a & b), sorted(a & b) + sorted(a - b), sorted(a & b) + sorted(b - a))
    texts = [" ".join(part) for part in (shared, *phrases)]
    pairs = ((texts[0], texts[1]), (texts[0], texts[2]), (texts[1], texts[2]))
    return any(round(100 * SequenceMatcher(None, x, y).ratio()) > SIMILAR for x, y in pairs if x and y)
