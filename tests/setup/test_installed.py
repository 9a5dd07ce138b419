"""The packages of all locks can live in one environment: none overwrites another's files."""

import sysconfig
from collections import defaultdict
from importlib import metadata


def test_no_two_packages_install_the_same_file():
    owners = defaultdict(set)
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}  # sys.path may hold what setuptools carries
    for distribution in metadata.distributions(path=list(places)):
        for file in distribution.files or ():
            if file.suffix == ".py" and "__pycache__" not in file.parts:
                owners[str(distribution.locate_file(file))].add(distribution.metadata["Name"])
    assert owners
    assert {file: names for file, names in owners.items() if len(names) > 1} == {}
