"""The page of the shop as a board, for people: all that can be clicked, and the facts of the page's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.games.shop import words
from training.games.shop.products import Product, Value
from training.games.shop.visit import BACK, BUY, NEXT, PREVIOUS, TEXTS, Visit, labels
from training.views import Cell, Cells


def zones(visit: Visit) -> tuple[Cells, ...]:
    """Return the page: results, or a product with its options or one of its texts; nothing for the search page.

    What ends the visit comes last, as the first button of a new page may have the focus.
    """
    if visit.view == "search":
        return ()
    shown = (_results(visit),) if visit.product is None else _page(visit, visit.product)
    pages = [link for link in (*TEXTS, NEXT, PREVIOUS, BACK) if link in visit.links]
    links = {"Other pages": pages, "Purchase": [BUY] if BUY in visit.links else []}
    return (*shown, *(_links(title, listed) for title, listed in links.items() if listed))


def _links(title: str, listed: Sequence[str]) -> Cells:
    return Cells(title=title, rows=(tuple(Cell(text=link.capitalize(), choice=link) for link in listed),))


def _page(visit: Visit, product: Product) -> tuple[Cells, ...]:
    price = Cell(text=words.dollars(product.price_with(visit.chosen)))
    head = Cells(title=product.title, rows=((Cell(text=product.id), price),))
    if visit.view in TEXTS:
        return (head, Cells(title=visit.view.capitalize(), rows=((Cell(text=words.text_of(visit, product)),),)))
    return (head, *(_option(visit, product, name, values) for name, values in product.options.items()))


def _results(visit: Visit) -> Cells:
    rows = tuple(
        (Cell(text=product.title, label=f"{product.title}, {product.id}", choice=product.id), _price(product))
        for product in visit.shown()
    )
    if not rows:
        return Cells(title="Results", rows=((Cell(text="Nothing was found."),),))
    return Cells(title=f"Results, page {visit.page} of {visit.pages}", rows=rows)


def _price(product: Product) -> Cell:
    return Cell(text=words.dollars(product.price))


def _option(visit: Visit, product: Product, name: str, values: Sequence[Value]) -> Cells:
    shown = labels(product)
    return Cells(
        title=f"{name[:1].upper()}{name[1:]}: {visit.chosen.get(name, 'nothing chosen yet')}",
        rows=(tuple(_value(value, shown[name, value.name], visit.chosen, name) for value in values),),
    )


def _value(value: Value, link: str, chosen: Mapping[str, str], name: str) -> Cell:
    extra = f" (+{words.dollars(value.extra)})" if value.extra else ""
    text = f"{value.name}{extra}"
    if chosen.get(name) == value.name:
        return Cell(text=f"✓ {text}", label=f"{text}, chosen", choice=link)
    return Cell(text=text, choice=link)
