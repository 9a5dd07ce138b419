"""Reads WebShop's instructions as scenarios of `shop`: `items_human_ins.json` or `items_ins_v2*.json`.

The catalogue with the products is a folder of PARLEY_HOME/catalogues. Products that it does not have are notices.
Source: Yao et al., "WebShop", NeurIPS 2022.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pydantic import Field

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games.log import Settings
from training.games.prose import NAMES
from training.games.shop import webshop
from training.games.shop.catalogues import named
from training.games.shop.settings import CATALOGUE_NAME
from webapp.scenarios.importers.reading import Progress, Reading, check_line, check_regular, noted, scenario_of


class WebshopOptions(Settings):
    """Options of an import of WebShop's instructions."""

    catalogue: str = Field(
        default="",
        pattern=rf"^({CATALOGUE_NAME})?$",
        description="The folder in PARLEY_HOME/catalogues with the products, and the attributes, of the instructions.",
    )


def read(path: Path, progress: Progress, options: WebshopOptions) -> Reading:
    """Read every instruction about a product of the catalogue."""
    check_regular(path)
    if not options.catalogue:
        raise BadInput("the instructions need a catalogue: name a folder in PARLEY_HOME/catalogues", "catalogue")
    try:
        catalogue = named(options.catalogue)
    except BadInput as error:
        raise BadInput(error.why, "catalogue") from error
    reading = Reading()
    goals, unknown = webshop.goals(catalogue, path)
    numbers = Counter[str]()
    for done, goal in enumerate(goals, 1):
        key = f"{goal.product}-{numbers[goal.product]}"
        numbers[goal.product] += 1
        with noted(reading, f"{path.name}, {key}"):
            settings = {"catalogue": catalogue.name, "sha256": catalogue.sha256, "goal": goal.model_dump(mode="json")}
            data = {"id": f"webshop-{key}", "game": "shop", "settings": settings, "seats": [NAMES[0]]}
            line = DatasetLine(scenario=scenario_of(data, key))
            check_line(line, key)
            reading.lines.append(line)
        progress(done, len(goals))
    for asin in unknown:
        reading.notice(f"{path.name}, {asin}", f"the catalogue {catalogue.name} has no such product; left out")
    if not goals:
        reading.error(BadInput("no instruction is about a product of the catalogue", path.name))
    return reading
