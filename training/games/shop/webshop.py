"""Reads the files of WebShop (Yao et al. 2022): `items_shuffle*.json`, `items_ins_v2*.json`, `items_human_ins*.json`.

As in WebShop, entries without a proper number and repeated numbers are skipped, a product without a price costs 100
dollars, and options do not change the price. Unlike there nothing is drawn anew in each process: a product with a range
of prices costs the middle, and the price limit of an instruction is drawn from the product's number. All other errors
in the files raise `BadInput` with file, entry and field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import file_digest, sha256
from itertools import islice
from itertools import product as combinations
from pathlib import Path
from random import Random
from typing import Any

from pydantic import ValidationError

from training.errors import BadInput
from training.games.actions import clean
from training.games.shop.products import Catalogue, Product, Value
from training.games.shop.settings import Goal
from training.reading import explain
from training.seeding import rng

PRODUCTS, ATTRIBUTES, HUMAN = "items_shuffle*.json", "items_ins_v2*.json", "items_human_ins*.json"
LONGEST_ID = 10
PRICE = 100.0
"""Dollars of a product without a price."""
MOST_GOALS = 100_000
"""Goals of a file of instructions at most: a few options of a product have more combinations than memory holds."""


def read(folder: Path) -> Catalogue:
    """Return the catalogue of a folder, named after it. Without `HUMAN` its goals are the synthetic instructions."""
    patterns = (PRODUCTS, ATTRIBUTES, HUMAN) if any(folder.glob(HUMAN)) else (PRODUCTS, ATTRIBUTES)
    files = [_file(folder, pattern) for pattern in patterns]
    names = [_name(path) for path in files]
    kinds = (list, dict, dict)
    described, *instructed = (_load(*each) for each in zip(files, kinds, names, strict=False))
    products = dict(_products(described, instructed[0], names))
    if not products:
        raise BadInput("no entry has a proper number in `asin`", names[0])
    goals = (_human_goals if HUMAN in patterns else _synthetic_goals)(products, instructed[-1], names[-1])
    return Catalogue(folder.name, _digest(files), products, tuple(goals))


def goals(catalogue: Catalogue, path: Path) -> tuple[list[Goal], list[str]]:
    """Return the goals of a file of instructions, and the numbers of products there that the catalogue does not have.

    The file is as `HUMAN`, with a list of instructions for each product, or as `ATTRIBUTES`, with one object for each.
    """
    instructed = _load(path, dict, path.name)
    by_people = any(isinstance(entry, list) for entry in instructed.values())
    wanted = (_human_goals if by_people else _synthetic_goals)(catalogue.products, instructed, path.name)
    drawn = list(islice(wanted, MOST_GOALS + 1))
    if len(drawn) > MOST_GOALS:
        raise BadInput(f"more than {MOST_GOALS} goals: leave out products with many combinations of options", path.name)
    return drawn, [asin for asin in instructed if asin not in catalogue.products]


def _name(path: Path) -> str:
    """Return a file's name as errors show it, which people on other machines read."""
    return f"{path.parent.name}/{path.name}"


def _file(folder: Path, pattern: str) -> Path:
    """Return the one file of a pattern."""
    files = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    if len(files) != 1:
        raise BadInput(f"needs one file {pattern}, not {len(files)}", folder.name)
    return files[0]


def _digest(files: list[Path]) -> str:
    """Return one hash of several files with their names."""
    whole = sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(f"{file_digest(file, 'sha256').hexdigest()}  {path.name}\n".encode())
    return whole.hexdigest()


def _load(path: Path, kind: type, name: str) -> Any:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON in UTF-8: {error}", name) from error
    if not isinstance(data, kind):
        raise BadInput(f"expected {'a list of products' if kind is list else 'an object by asin'}", name)
    return data


# --- products --------------------------------------------------------------------------------------------------------


def _products(entries: list[Any], instructed: Mapping[str, Any], files: list[str]) -> Iterator[tuple[str, Product]]:
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        where = f"{files[0]}, entry {number}"
        asin = _need(entry, "asin", where)
        if asin not in seen and 0 < len(asin) <= LONGEST_ID and asin != "nan":
            seen.add(asin)
            attributes = _texts(instructed.get(asin, {}), "attributes", f"{files[1]}, entry {asin}", needed=False)
            yield asin, _product(entry, asin, attributes, where)


def _product(entry: Mapping[str, Any], asin: str, attributes: tuple[str, ...], where: str) -> Product:
    description = "" if entry.get("full_description") is None else _need(entry, "full_description", where)
    features = entry.get("small_description")
    if isinstance(features, str) or features is None:
        features = (clean(features or ""),)
    else:
        features = _texts(entry, "small_description", where)
    title = clean(_need(entry, "name", where))
    if not title:
        raise BadInput("empty", f"{where}, name")
    return Product(
        id=asin,
        title=title,
        category=clean(_need(entry, "product_category", where)),
        query=clean(_need(entry, "query", where)).lower(),
        price=_price(entry.get("pricing"), f"{where}, pricing"),
        attributes=attributes,
        options=_options(entry.get("customization_options"), f"{where}, customization_options"),
        features=tuple(feature for feature in features if feature),
        description=clean(description),
    )


def _price(pricing: Any, where: str) -> float:
    """Return the price in dollars: the middle of a range such as `$8.00 - $12.00`."""
    if not pricing:
        return PRICE
    numbers = re.findall(r"\$\s*(\d[\d,]*(?:\.\d+)?)", pricing) if isinstance(pricing, str) else []
    if not numbers:
        raise BadInput(f"expected prices such as $12.50, not {str(pricing)[:60]!r}", where)
    prices = [float(number.replace(",", "")) for number in numbers[:2]]
    return round(sum(prices) / len(prices), 2)


def _options(options: Any, where: str) -> dict[str, tuple[Value, ...]]:
    """Return the values of each option, in a form in which they can be clicked."""
    if not options:
        return {}
    if not isinstance(options, dict):
        raise BadInput("expected an object of lists", where)
    options_by_name: dict[str, tuple[Value, ...]] = {}
    for name, contents in options.items():
        if contents is not None and not isinstance(contents, list):
            raise BadInput("expected a list of values", f"{where}.{name}")
        values = (_need(entry, "value", f"{where}.{name}.{at}") for at, entry in enumerate(contents or ()))
        names = dict.fromkeys(_clickable(value.replace("/", " | ")) for value in values)
        if any(names) and _clickable(name):
            options_by_name[_clickable(name)] = tuple(Value(value) for value in names if value)
    return options_by_name


def _clickable(text: str) -> str:
    """Return a text in lower case that no parser takes for a tag."""
    return clean(re.sub(r"[<>]", " ", text)).lower()


# --- goals -----------------------------------------------------------------------------------------------------------


def _human_goals(products: Mapping[str, Product], instructed: Mapping[str, Any], file: str) -> Iterator[Goal]:
    """Yield the goals that people wrote, in the order of the products; one without attributes is skipped."""
    for asin in (asin for asin in products if asin in instructed):
        if not isinstance(instructed[asin], list):
            raise BadInput("expected a list of instructions", f"{file}, entry {asin}")
        for number, entry in enumerate(instructed[asin]):
            where = f"{file}, entry {asin}.{number}"
            text = _need(entry, "instruction", where).strip().strip(".")
            attributes = _texts(entry, "instruction_attributes", where)
            options = entry.get("instruction_options")
            chosen = tuple(options.values()) if isinstance(options, dict) else options
            values = _texts({**entry, "instruction_options": chosen}, "instruction_options", where)
            if attributes:
                yield _goal(products[asin], text, attributes, values, number, where)


def _synthetic_goals(products: Mapping[str, Product], instructed: Mapping[str, Any], file: str) -> Iterator[Goal]:
    """Yield a goal for each combination of options of every product with an instruction."""
    for asin, product in products.items():
        where = f"{file}, entry {asin}"
        entry = instructed.get(asin, {})
        if not isinstance(entry, dict) or entry.get("instruction") is None:
            continue
        text = _need(entry, "instruction", where)
        attributes = _texts(entry, "instruction_attributes", where)
        names = sorted(product.options)
        for number, combination in enumerate(combinations(*(product.options[name] for name in names))):
            pairs = [f"{name}: {value.name}" for name, value in zip(names, combination, strict=True)]
            wanted = f" with {', and '.join(pairs)}" if pairs else ""
            values = tuple(value.name for value in combination)
            yield _goal(product, text + wanted, attributes, values, number, where)


def _goal(
    product: Product, text: str, attributes: tuple[str, ...], options: tuple[str, ...], number: int, where: str
) -> Goal:
    limit = price_limit(product.price, rng(0, "webshop", product.id, number))
    price = "" if limit is None else f", and price lower than {limit:.2f} dollars"
    try:
        return Goal(
            instruction=clean(text) + price,
            product=product.id,
            attributes=attributes,
            options=options,
            price_limit=limit,
        )
    except ValidationError as error:
        field, why = explain(error)
        raise BadInput(why, f"{where}, {field}") from error


def price_limit(price: float, chance: Random) -> float | None:
    """Return the higher of two of the next four multiples of 10 above a price; None where fewer than two are left."""
    above = [10.0 * tens for tens in range(1, 100) if 10.0 * tens > price][:4]
    return max(chance.sample(above, 2)) if len(above) >= 2 else None


# --- fields ----------------------------------------------------------------------------------------------------------


def _need(entry: Any, field: str, where: str) -> str:
    """Return a text field."""
    if not isinstance(entry, dict):
        raise BadInput("expected an object", where)
    if not isinstance(entry.get(field), str):
        raise BadInput("missing" if field not in entry else "expected a string", f"{where}, {field}")
    return str(entry[field])


def _texts(entry: Any, field: str, where: str, *, needed: bool = True) -> tuple[str, ...]:
    """Return a list of texts, cleaned, without empty ones; nothing for a field that is missing and not needed."""
    if not isinstance(entry, dict):
        raise BadInput("expected an object", where)
    if field not in entry and not needed:
        return ()
    texts = entry.get(field)
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise BadInput("missing" if field not in entry else "expected a list of strings", f"{where}, {field}")
    return tuple(text for text in map(clean, texts) if text)
