"""The page of the shop, for people: all that can be clicked, and the facts of the page's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from training.games.shop import words
from training.games.shop.products import Product, Value
from training.games.shop.visit import BACK, BUY, NEXT, PREVIOUS, TEXTS, View, Visit, labels
from training.views import Entries, Entry, Option, Passage, Passages, SearchField, Zone


def zones(visit: Visit, *, searches: SearchField, presses: bool) -> tuple[Zone, ...]:
    """Return the search field, and the results or the product of the page; with buttons only if one `presses` them.

    What ends the visit comes last, as the first button of a new page may have the focus.
    """
    if visit.view == "search":
        return (searches,)
    shown = _results(visit, presses=presses) if visit.product is None else _page(visit, visit.product, presses=presses)
    return (searches, *shown)


# --- results ---------------------------------------------------------------------------------------------------------


def _results(visit: Visit, *, presses: bool) -> Iterator[Zone]:
    products = tuple(_card(product, presses=presses) for product in visit.shown())
    if not products:
        yield Entries(title="Results", entries=(Entry(name=words.NOTHING_FOUND),))
    else:
        yield Entries(title=f"Results, page {visit.page} of {visit.pages}", entries=products, shape="cards")
    yield from _links(visit, presses=presses)


def _card(product: Product, *, presses: bool) -> Entry:
    options = (Option(label="View", choice=product.id),) if presses else ()
    return Entry(name=product.title, detail=(words.dollars(product.price), product.id), options=options)


# --- a product -------------------------------------------------------------------------------------------------------


def _page(visit: Visit, product: Product, *, presses: bool) -> Iterator[Zone]:
    """Yield the product with its options, the texts that were read, and the purchase."""
    head = Entry(name=product.title, detail=(words.dollars(product.price_with(visit.chosen)), product.id))
    yield Entries(title="Product", entries=(head,), shape="item")
    for name, values in product.options.items():
        yield _option(visit, product, name, values, presses=presses and visit.view == "product")
    read = [view for view in TEXTS if (product.id, view) in visit.read]
    if read:
        texts = (Passage(title=view.capitalize(), text=words.text_of(view, product)) for view in read)
        yield Passages(title="About this product", passages=tuple(texts))
    yield from _links(visit, presses=presses)
    if presses and BUY in visit.links:
        yield _purchase(visit, product)


def _option(visit: Visit, product: Product, name: str, values: Sequence[Value], *, presses: bool) -> Entries:
    links = labels(product)
    chosen = visit.chosen.get(name)
    entries = tuple(
        Entry(
            name=value.name,
            detail=(f"+{words.dollars(value.extra)}",) if value.extra else (),
            picked=value.name == chosen,
            choice=links[name, value.name] if presses else "",
        )
        for value in values
    )
    return Entries(title=f"{_heading(name)}: {chosen or 'not chosen'}", entries=entries, shape="chips")


def _purchase(visit: Visit, product: Product) -> Entries:
    """Return the price of the product as it is now, what was chosen of each option, and the button that buys it."""
    detail = tuple(f"{_heading(name)}: {visit.chosen.get(name, 'not chosen')}" for name in product.options)
    price = words.dollars(product.price_with(visit.chosen))
    buy = Entry(name=price, detail=detail, options=(Option(label="Buy now", choice=BUY),))
    return Entries(title="Your purchase", entries=(buy,), shape="item")


def _heading(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]}"


# --- other pages -----------------------------------------------------------------------------------------------------


def _links(visit: Visit, *, presses: bool) -> Iterator[Entries]:
    """Yield the buttons to other pages, if there are any."""
    if not presses:
        return
    links = tuple(
        Entry(name=link_label(visit.view, link), choice=link)
        for link in (*TEXTS, NEXT, PREVIOUS, BACK)
        if link in visit.links
    )
    yield Entries(title="Other pages", entries=links, shape="chips")


def link_label(view: View, link: str) -> str:
    """Return what the button of a link to another page says on a page of this kind."""
    if link == BACK:
        return "New search"
    if link == PREVIOUS and view != "results":
        return "Back to the results" if view == "product" else "Back to the product"
    return link.capitalize()
