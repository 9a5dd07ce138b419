"""Where a resumed run finds too little room at first, it waits; a new one is refused at once."""

import pytest

from training.config import parse
from training.errors import BadInput
from training.learn import placement


@pytest.fixture
def tries(monkeypatch):
    """What each of two tries is refused with; the third fits."""
    left = [BadInput("too little memory", "cluster"), BadInput("too few GPUs", "cluster")]

    def fitted(config, cluster, device):
        if left:
            raise left.pop(0)
        return config, device

    monkeypatch.setattr(placement, "_fitted", fitted)
    monkeypatch.setattr(placement, "PAUSE_S", 0.01)
    return left


def test_a_resumed_run_waits_for_room(tries, caplog):
    assert placement.placed(parse({}), None, "cpu", resumed=True)[1] == "cpu"
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "cluster: too little memory",
        "cluster: too few GPUs",
    ]


def test_a_resumed_run_does_not_wait_for_ever(tries, monkeypatch):
    monkeypatch.setattr(placement, "WAIT_S", 0.0)
    with pytest.raises(BadInput, match="too little memory"):
        placement.placed(parse({}), None, "cpu", resumed=True)


def test_a_new_run_is_refused_at_once(tries):
    with pytest.raises(BadInput, match="too little memory"):
        placement.placed(parse({}), None, "cpu")
    assert len(tries) == 1
