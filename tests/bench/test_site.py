"""What the measurements of the site make of their readings."""

import pytest

from bench import sockets, start
from bench.__main__ import parser


def test_quantiles_of_each_run_and_their_spread():
    runs = [[float(n) for n in range(101)], [float(n) / 2 for n in range(101)], [float(n) / 4 for n in range(101)]]
    quantiles = sockets.summary(runs)
    assert quantiles["p50_ms"] == {"runs": [50.0, 25.0, 12.5], "median": 25.0, "spread": [12.5, 50.0]}
    assert quantiles["p95_ms"]["runs"] == [95.0, 47.5, 23.75]
    assert quantiles["ok"] is True, "the median run keeps to 50 ms"
    assert sockets.summary(runs[:1])["ok"] is False
    assert "p95: 47.5 ms (runs from 23.8 to 95.0)" in sockets.show(quantiles)


@pytest.mark.parametrize(
    "site, helps, ok", [([14, 16, 15], [0.6, 0.5, 0.4], (True, True)), ([16], [0.7], (False, False))]
)
def test_start_times_are_compared_with_their_limits(site, helps, ok):
    result = start.summary(site, helps, [0.1] * len(helps))
    assert (result["site"]["ok"], result["command"]["ok"]) == ok
    assert result["command"]["above_s"] == pytest.approx(sorted(helps)[len(helps) // 2] - 0.1)
    assert start.show(result).count("within") == 2


def test_the_commands_lead_to_their_modules():
    assert parser().parse_args(["socket"]).module == "bench.sockets"
    assert parser().parse_args(["start", "--rounds", "1"]).module == "bench.start"
