"""Products and the catalogue that holds them; plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from training.games.shop.search import Index
from training.games.shop.settings import Goal


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an option, and the dollars that it adds to the price."""

    name: str
    extra: float = 0.0


@dataclass(frozen=True, slots=True)
class Product:
    """One product. `category` is a path such as `Clothing › Shoes › Running Shoes`; `price` is in dollars.

    `query` names the kind of product. `attributes` are for the reward; pages show the other fields.
    """

    id: str
    title: str
    category: str
    query: str
    price: float
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[Value, ...]]
    features: tuple[str, ...]
    description: str

    def price_with(self, chosen: Mapping[str, str]) -> float:
        """Return the price in dollars with the chosen values of options."""
        extras = (
            value.extra for name, values in self.options.items() for value in values if chosen.get(name) == value.name
        )
        return round(self.price + sum(extras), 2)

    def text(self) -> str:
        """Return what the search reads."""
        options = (f"{name} {value.name}" for name, values in self.options.items() for value in values)
        return " ".join((self.title, self.description, *self.features, *options))


@dataclass(frozen=True)
class Catalogue:
    """Products by number, the goals made for them, and the hash of the files that held both."""

    name: str
    sha256: str
    products: Mapping[str, Product]
    goals: tuple[Goal, ...]

    @cached_property
    def index(self) -> Index:
        """The search index, built at the first search."""
        return Index({product.id: product.text() for product in self.products.values()})
