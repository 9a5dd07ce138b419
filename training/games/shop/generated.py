"""Generates a catalogue with its goals; equal seeds give equal catalogues.

A goal is made from a product, so that buying this product with the right options earns 1. One goal in `IMPOSSIBLE` asks
for a colour in which nothing is sold: the best purchase misses exactly that option.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from random import Random

from training.games.prose import listed
from training.games.shop.kinds import BRANDS, KINDS, UNSTOCKED, Kind, Shares
from training.games.shop.products import Catalogue, Product, Value
from training.games.shop.settings import Goal
from training.games.shop.webshop import price_limit
from training.seeding import rng

PER_KIND = 30
"""Products of each kind; 40 kinds make 1,200 products."""
GOALS = 600
IMPOSSIBLE = 12
WORDINGS = (
    "I need {article} {attributes} {noun}{options}, and price lower than {limit} dollars",
    "Find me {article} {noun} that must be {attributes}{options}, with a price lower than {limit} dollars",
    "I am looking for {article} {attributes} {noun}{options}; it must cost less than {limit} dollars",
    "Please buy {article} {attributes} {noun} for me{options}, for less than {limit} dollars",
)
REMARKS = (
    "Ships within two days.",
    "Comes with a guarantee of two years.",
    "Can be returned within 60 days.",
    "A popular present.",
    "Packed without plastic.",
)
STORIES = (
    "Made by {brand} since {year}, and every batch is tested by hand.",
    "Designed by {brand} together with customers who asked for something that lasts.",
    "For every day, from {brand}, a family business founded in {year}.",
)


def generate(name: str, seed: int) -> Catalogue:
    """Return the catalogue of a seed under a name."""
    made = [_product(kind, rng(seed, "product", kind.noun, number)) for kind in KINDS for number in range(PER_KIND)]
    rng(seed, "order").shuffle(made)
    products = [replace(product, id=f"P{number:04}") for number, product in enumerate(made, 1)]
    kinds = {kind.noun: kind for kind in KINDS}
    chosen = rng(seed, "goals").sample(products, GOALS)
    goals = [_goal(product, kinds[product.query], number, seed) for number, product in enumerate(chosen)]
    content = [[asdict(product) for product in products], [goal.model_dump() for goal in goals]]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return Catalogue(name, digest, {product.id: product for product in products}, tuple(goals))


def _product(kind: Kind, chance: Random) -> Product:
    """Return one product of a kind, without its number."""
    brand = chance.choice(BRANDS[kind.category.partition(" › ")[0]])
    attributes = tuple(chance.sample(kind.attributes, chance.choice((3, 4))))
    price = round(chance.uniform(kind.low, kind.high), 2)
    in_title = ", ".join(attributes[: chance.choice((1, 2))])
    return Product(
        id="",
        title=f"{brand} {kind.noun}, {in_title}",
        category=kind.category,
        query=kind.noun,
        price=price,
        attributes=attributes,
        options={name: _values(shares, price, chance) for name, shares in kind.options.items()},
        features=(*(f"{attribute[0].upper()}{attribute[1:]}." for attribute in attributes), chance.choice(REMARKS)),
        description=chance.choice(STORIES).format(brand=brand, year=chance.randint(1901, 2015)),
    )


def _values(shares: Shares, price: float, chance: Random) -> tuple[Value, ...]:
    """Return the values on sale: all of an option that changes the price, some of another one."""
    names = list(shares)
    if not any(shares.values()):
        on_sale = chance.sample(names, chance.randint(2, min(5, len(names))))
        names = [name for name in names if name in on_sale]
    return tuple(Value(name, round(shares[name] * price, 2)) for name in names)


def _goal(product: Product, kind: Kind, number: int, seed: int) -> Goal:
    """Return a goal that the product fulfils, or all but the colour."""
    chance = rng(seed, "goal", number)
    attributes = tuple(chance.sample(product.attributes, chance.choice((1, 2, 2, 3))))
    options = {name: chance.choice(values).name for name, values in product.options.items() if chance.random() < 0.8}
    limit = price_limit(product.price_with(options), chance)
    possible = "colour" not in product.options or number % IMPOSSIBLE != 0
    if not possible:
        options["colour"] = chance.choice(UNSTOCKED)
    parts = len(attributes) + len(options) + 1
    return Goal(
        instruction=_instruction(kind, attributes, options, limit, chance),
        product=product.id,
        attributes=attributes,
        options=tuple(options.values()),
        price_limit=limit,
        best=1.0 if possible else (parts - 1) / parts,
    )


def _instruction(
    kind: Kind, attributes: Sequence[str], options: Mapping[str, str], limit: float | None, chance: Random
) -> str:
    assert limit is not None, "no generated product is that expensive"
    wanted = listed(f"{name}: {value}" for name, value in options.items()) if options else ""
    return chance.choice(WORDINGS).format(
        article="some" if kind.plural else "a new",
        attributes=listed(attributes),
        noun=kind.noun,
        options=f" with {wanted}" if wanted else "",
        limit=f"{limit:.0f}",
    )
