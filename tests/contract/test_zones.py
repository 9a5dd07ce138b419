"""Every kind of zone has what pages and pictures need; a new one is tested by these as it is added.

`CONTRIBUTING.md` lists the parts of a zone.
"""

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.games.play import played, viewers
from tests.games.worlds import CASES
from training.analysis import AnalysisZone
from training.games import REGISTRY, make
from training.views import Cells, Zone
from webapp.arena.pictures import zones

TEMPLATES = Path(__file__).parents[2] / "templates" / "zones"
STYLES = Path(__file__).parents[2] / "static" / "css"
ZONES = get_args(Zone)
ANALYSES = get_args(get_args(AnalysisZone)[0])


def kind(zone):
    return zone.model_fields["kind"].default


@pytest.mark.parametrize("zone", [*ZONES, *ANALYSES], ids=kind)
def test_a_zone_has_a_template_that_names_it(zone):
    template = TEMPLATES / f"{kind(zone)}.html"
    assert template.is_file(), f"{zone.__name__} needs templates/zones/{template.name}"
    text = template.read_text("utf-8")
    assert text.startswith("{# "), f"{template.name} begins with a comment that says what it draws"
    assert 'aria-label="{{ zone.title }}"' in text, f"{template.name} is a section with the zone's title as its name"


def test_the_table_asks_zones_for_attributes_and_knows_no_kind():
    """A new zone says itself what room it needs, by its attributes in `CONTRIBUTING.md`."""
    css = (STYLES / "table.css").read_text("utf-8")
    kinds = {kind(zone) for zone in (*ZONES, *ANALYSES)}
    assert not set(re.findall(r"\.(?:zone-)?([a-z]+)\b(?!-)", css)) & kinds


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.stem)
def test_the_attributes_of_a_zone_have_values_that_the_table_knows(template):
    css = (STYLES / "table.css").read_text("utf-8")
    for name, value in re.findall(r'data-(use|reserve)="([^"]*)"', template.read_text("utf-8")):
        assert f'[data-{name}="{value}"]' in css


def test_kinds_differ():
    kinds = [kind(zone) for zone in (*ZONES, *ANALYSES)]
    assert sorted(set(kinds)) == sorted(kinds)


@pytest.mark.parametrize("zone", ZONES, ids=kind)
def test_a_zone_is_drawn_in_pictures_or_left_out_of_them(zone):
    why = f"name {zone.__name__} in DRAWINGS or in LEFT_OUT of webapp/arena/pictures/zones.py"
    assert (zone in zones.DRAWINGS) != (zone in zones.LEFT_OUT), why


def shown():
    """The kinds of zones on the tables of all games, at the beginning and the end."""
    for scenario in (scenario for name in REGISTRY for scenario in CASES.get(name, [])):
        game, _ = played(scenario, 3)
        for state in (make(scenario.with_seed(3)), game):
            yield from (type(zone) for viewer in viewers(scenario) for zone in state.show(viewer).zones)


def test_every_zone_is_on_the_table_of_a_game():
    """What no game shows is drawn by no test either; cells are for games of other packages."""
    missing = set(ZONES) - {Cells}
    for zone in shown():
        missing.discard(zone)
        if not missing:
            return
    pytest.fail(f"no game shows {', '.join(sorted(zone.__name__ for zone in missing))}")
