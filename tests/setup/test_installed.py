"""The packages of all locks can live in one environment: none overwrites another's files."""

import csv
import sysconfig
from collections import defaultdict
from importlib import metadata


def test_no_two_packages_install_the_same_file():
    owners = defaultdict(set)
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}  # sys.path may hold what setuptools carries
    for distribution in metadata.distributions(path=list(places)):
        folder, name = distribution.locate_file(""), distribution.metadata["Name"]
        for file, *_ in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
            if file.endswith(".py"):
                owners[f"{folder}/{file}"].add(name)
    assert owners
    assert {file: names for file, names in owners.items() if len(names) > 1} == {}
