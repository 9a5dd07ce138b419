"""What a node must have in common with the driver, and a clock that is off."""

import shutil

import pytest

from training.cluster import nodes
from training.cluster.nodes import NodeReport, clock_warning, compare, without_addresses
from training.errors import BadInput

OURS = NodeReport({"Python": "3.11.7", "ray": "2.60.0", "torch": "2.13.0", "vllm": "0.32.0"}, "abc", 1000.0)


@pytest.mark.parametrize(
    "theirs, named",
    [
        ({"ray": "2.59.0"}, "has ray 2.59.0, this process ray 2.60.0"),
        ({"Python": "3.12.1"}, "has Python 3.12.1, this process Python 3.11.7"),
        ({"torch": "2.11.0"}, "has torch 2.11.0, this process torch 2.13.0"),
        ({"vllm": ""}, "has no vllm, this process vllm 0.32.0"),
    ],
)
def test_other_versions_are_named_with_their_node(theirs, named):
    compare(OURS, OURS, "node a (10.0.0.5)")
    answered = NodeReport({**OURS.versions, **theirs}, "abc", 1000.0)
    with pytest.raises(BadInput) as caught:
        compare(answered, OURS, "node a (10.0.0.5)")
    assert caught.value.why == f"node a (10.0.0.5) {named}: they must be the same"
    assert caught.value.where == "cluster.address"


def test_other_code_is_named_with_its_node():
    with pytest.raises(BadInput, match=r"node a has other code of Parley \(abd\) than this process \(abc\)"):
        compare(NodeReport(OURS.versions, "abd", 1000.0), OURS, "node a")


def test_the_hash_of_the_code_is_that_of_its_modules_alone(tmp_path, monkeypatch):
    shutil.copytree(nodes.PACKAGE / "cluster", tmp_path / "training", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(nodes, "PACKAGE", tmp_path / "training")
    first = nodes.code_hash.__wrapped__()
    (tmp_path / "training" / "__pycache__").mkdir()
    (tmp_path / "training" / "notes.txt").touch()
    assert nodes.code_hash.__wrapped__() == first
    with (tmp_path / "training" / "fit.py").open("a") as file:
        file.write("# changed\n")
    assert nodes.code_hash.__wrapped__() != first


@pytest.mark.parametrize(
    "at, warning",
    [
        (105.0, ""),  # while it was asked
        (96.0, ""),
        (114.0, ""),
        (93.0, "the clock of node a is 7 s behind this machine's"),
        (122.0, "the clock of node a is 12 s ahead of this machine's"),
    ],
)
def test_a_clock_that_is_off_by_more_than_five_seconds_is_named(at, warning):
    """Asked at 100 and answered at 110, by the driver's clock."""
    assert clock_warning(at, 100.0, 110.0, "node a") == warning


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Connection closed by peer [10.0.0.5]:37337", "Connection closed by peer [ADDRESS]:37337"),
        ("connect to 10.0.0.5<45123> returned", "connect to ADDRESS<45123> returned"),
        ("ray start at 10.0.0.5:6379.", "ray start at ADDRESS."),
        ("peer [fd00:ec2::254]:80 and ::1, fe80::1.", "peer [ADDRESS]:80 and ADDRESS, ADDRESS."),
        ("peer [::ffff:10.0.0.5]:80", "peer [ADDRESS]:80"),
        ("2.13.0 at 21:05:33: std::bad_alloc in pair.cc:547", "2.13.0 at 21:05:33: std::bad_alloc in pair.cc:547"),
    ],
)
def test_errors_are_shown_without_addresses(text, shown):
    assert without_addresses(text) == shown
