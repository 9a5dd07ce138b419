"""A customer's way through the pages of the shop: what may be clicked on each, and where it leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Literal

from training.games.shop.products import Catalogue, Product

PAGE = 10
"""Products on a page of results."""
NEXT, PREVIOUS, BACK, BUY = "next page", "previous page", "back to search", "buy now"
TextView = Literal["description", "features"]
TEXTS: tuple[TextView, ...] = ("description", "features")
"""The sub-pages of a product."""
View = Literal["search", "results", "product", "bought"] | TextView


class Visit:
    """The page at which the customer is. `links` are its clickable texts, each with what a click does.

    `chosen` are the chosen values of the product's options by name; `read` are the texts that were opened, each with
    the number of its product.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.query = ""
        self.results: tuple[str, ...] = ()
        self.page = 1
        self.chosen: dict[str, str] = {}
        self.read: set[tuple[str, TextView]] = set()
        self.search_page()

    def search_page(self) -> None:
        """Go to the page with the search field."""
        self.view: View = "search"
        self.product: Product | None = None
        self.links: dict[str, Callable[[], None]] = {}

    def search(self, query: str) -> None:
        """Search, and go to the first page of results."""
        self.query, self.results = query, self.catalogue.index.search(query)
        self._results_page(1)

    def shown(self) -> tuple[Product, ...]:
        """Return the products on the page of results."""
        first = (self.page - 1) * PAGE
        return tuple(self.catalogue.products[number] for number in self.results[first : first + PAGE])

    @property
    def pages(self) -> int:
        """The number of pages of results."""
        return -(-len(self.results) // PAGE)

    def _results_page(self, page: int) -> None:
        self.view, self.page, self.product = "results", page, None
        self.links = {product.id: partial(self._open, product) for product in self.shown()}
        if page < self.pages:
            self.links[NEXT] = partial(self._results_page, page + 1)
        if page > 1:
            self.links[PREVIOUS] = partial(self._results_page, page - 1)
        self.links[BACK] = self.search_page

    def _open(self, product: Product) -> None:
        self.chosen = {}
        self._product_page(product)

    def _product_page(self, product: Product) -> None:
        self.view, self.product = "product", product
        self.links = {label: partial(self._choose, product, *pair) for pair, label in labels(product).items()}
        for view in TEXTS:
            self.links[view] = partial(self._text_page, product, view)
        self.links |= {PREVIOUS: partial(self._results_page, self.page), BACK: self.search_page, BUY: self._buy}

    def _choose(self, product: Product, name: str, value: str) -> None:
        self.chosen = {**self.chosen, name: value}
        self._product_page(product)

    def _text_page(self, product: Product, view: TextView) -> None:
        self.view = view
        self.read.add((product.id, view))
        self.links = {PREVIOUS: partial(self._product_page, product), BACK: self.search_page}

    def _buy(self) -> None:
        self.view, self.links = "bought", {}


def labels(product: Product) -> dict[tuple[str, str], str]:
    """Return the text by which each value of an option is clicked: with the option's name if it would be ambiguous."""
    pairs = [(name, value.name) for name, values in product.options.items() for value in values]
    counts = Counter(value.lower() for _, value in pairs)
    counts.update((NEXT, PREVIOUS, BACK, BUY, *TEXTS))
    return {(name, value): value if counts[value.lower()] == 1 else f"{name} {value}" for name, value in pairs}
