"""The page of the shop as a board, for people: products and options to choose from. Its facts are those of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.games.shop import words
from training.games.shop.products import Product, Value
from training.games.shop.visit import TEXTS, Visit, labels
from training.records import Cell, Zone


def zones(visit: Visit) -> tuple[Zone, ...]:
    """Return the page: results, or a product with its options or one of its texts; nothing for the search page."""
    if visit.view == "results":
        return _results(visit)
    if visit.product is None:
        return ()
    product = visit.product
    price = words.dollars(product.price_with(visit.chosen))
    head = Zone(title=product.title, rows=((Cell(text=product.id), Cell(text=price)),))
    if visit.view in TEXTS:
        return (head, Zone(title=visit.view.capitalize(), rows=((Cell(text=words.text_of(visit, product)),),)))
    return (head, *(_option(visit, product, name, values) for name, values in product.options.items()))


def _results(visit: Visit) -> tuple[Zone, ...]:
    rows = tuple(
        (Cell(text=product.title, label=f"{product.title}, {product.id}", choice=product.id), _price(product))
        for product in visit.shown()
    )
    return (Zone(title=f"Results, page {visit.page} of {visit.pages}", rows=rows),) if rows else ()


def _price(product: Product) -> Cell:
    return Cell(text=words.dollars(product.price))


def _option(visit: Visit, product: Product, name: str, values: Sequence[Value]) -> Zone:
    shown = labels(product)
    return Zone(
        title=f"{name}: {visit.chosen.get(name, 'nothing chosen yet')}",
        rows=(tuple(_value(value, shown[name, value.name], visit.chosen, name) for value in values),),
    )


def _value(value: Value, link: str, chosen: Mapping[str, str], name: str) -> Cell:
    extra = f" (+{words.dollars(value.extra)})" if value.extra else ""
    text = f"{value.name}{extra}"
    if chosen.get(name) == value.name:
        return Cell(text=f"✓ {text}", label=f"{text}, chosen", choice=link)
    return Cell(text=text, choice=link)
