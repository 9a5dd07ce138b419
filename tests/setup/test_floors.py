"""Trust 11: nothing pinned or installed is below a version with a known hole, and the check would notice."""

import re
from importlib import metadata

import pytest
from packaging.version import Version

from tools import locks

FILES = [lock.path for lock in locks.LOCKS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_lock_is_above_the_floors(path):
    pinned = locks.pins(path.read_text())
    assert pinned, f"{path} pins nothing"
    assert locks.below(locks.floors(), pinned) == []


@pytest.mark.parametrize("floor", locks.floors(), ids=lambda floor: floor.package)
def test_a_planted_old_version_is_found(floor):
    old = "0.0.0.1"
    planted = f"{floor.package}=={old} \\\n    --hash=sha256:00\nharmless==1.0\n"
    assert locks.below(locks.floors(), locks.pins(planted)) == [
        f"{floor.package} {old} is below {floor.version} ({', '.join(floor.advisories)})"
    ]


def test_an_old_version_of_a_real_lock_is_found():
    text = (locks.REQUIREMENTS / "base.txt").read_text()
    planted, count = re.subn(r"(?m)^django==\S+", "django==5.2.10", text)
    assert count == 1
    (sentence,) = locks.below(locks.floors(), locks.pins(planted))
    assert sentence.startswith("django 5.2.10 is below 5.2.18 (CVE-")


def test_versions_are_compared_as_versions_not_as_text():
    planted = locks.pins("django==5.2.9\n")
    assert planted == {"django": {Version("5.2.9")}}
    assert len(locks.below(locks.floors(), planted)) == 1


def test_a_series_with_backported_fixes_has_a_floor_of_its_own():
    """CVE-2026-0994 was fixed in protobuf 6.33.5 and 5.29.6: 5.29.5 follows nested messages beyond its limit."""
    outcomes = {"5.29.5": 1, "5.29.6": 0, "6.33.4": 1, "6.33.5": 0, "4.25.9": 1, "7.0.0": 0}
    floors = [floor for floor in locks.floors() if floor.package == "protobuf"]
    assert {version: len(locks.below(floors, {"protobuf": {Version(version)}})) for version in outcomes} == outcomes


def test_every_floor_names_a_package_that_some_lock_pins():
    pinned = set().union(*(locks.pins(path.read_text()) for path in FILES))
    assert [floor.package for floor in locks.floors() if floor.package not in pinned] == []


def test_every_floor_gives_its_reason():
    floors = locks.floors()
    assert floors
    for floor in floors:
        assert floor.advisories, floor.package
        assert all(re.fullmatch(r"(CVE|PYSEC)-\d{4}-\d+", name) for name in floor.advisories), floor.package


def test_what_is_installed_is_above_the_floors():
    installed = {d.metadata["Name"].lower().replace("_", "-"): {Version(d.version)} for d in metadata.distributions()}
    assert locks.below(locks.floors(), installed) == []
