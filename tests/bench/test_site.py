"""What the measurements of the site make of their readings."""

import re
import subprocess

import pytest

from bench import site_conditions, sockets, start
from bench.__main__ import parser


def test_quantiles_of_each_run_and_their_spread():
    runs = [[float(n) for n in range(101)], [float(n) / 2 for n in range(101)], [float(n) / 4 for n in range(101)]]
    quantiles = sockets.summary(runs)
    assert quantiles["p50_ms"] == {"runs": [50.0, 25.0, 12.5], "median": 25.0, "spread": [12.5, 50.0]}
    assert quantiles["p95_ms"]["runs"] == [95.0, 47.5, 23.75]
    assert quantiles["ok"] is False, "the median run has p50 25 and p95 47.5 ms"
    assert "p95: 47.5 ms (runs from 23.8 to 95.0)" in sockets.show(quantiles)
    assert sockets.summary(runs[2:])["ok"] is True, "p50 12.5 and p95 23.75 ms"


@pytest.mark.parametrize("late, ok", [(0, True), (9, True), (11, False)])
def test_the_limit_of_the_95th_percentile_counts_beside_that_of_the_median(late, ok):
    """Of 200 moves 5 per cent are ten."""
    assert sockets.summary([[10.0] * (200 - late) + [40.0] * late])["ok"] is ok


def test_the_conditions_name_command_commit_machine_and_load(monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench", "move", "--moves", "20", "--json"])
    loads = iter([(0.5, 1.0, 2.0), (1.75, 1.0, 2.0)])
    monkeypatch.setattr("os.getloadavg", lambda: next(loads))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    result = site_conditions.measured(lambda: {"p50_ms": 1.0})
    where = result["conditions"]
    assert result["p50_ms"] == 1.0
    assert where["command"] == "python -m bench move --moves 20 --json"
    assert (where["load_before"], where["load_after"], where["cores"]) == (0.5, 1.75, 2)
    assert site_conditions.idle(where), "a quarter per core"
    assert not site_conditions.idle({**where, "load_before": 0.51})


def test_a_commit_with_changes_is_marked(tmp_path, monkeypatch):
    monkeypatch.setattr(site_conditions, "ROOT", tmp_path)
    assert site_conditions.commit() == "unknown"
    (tmp_path / "docs").mkdir()
    code, page = tmp_path / "code.py", tmp_path / "docs" / "page.md"
    for file in (code, page):
        file.write_text("1")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    page.write_text("2")
    assert re.fullmatch("[0-9a-f]{8,}", site_conditions.commit()), "the numbers' own page is no code"
    code.write_text("2")
    assert site_conditions.commit().endswith("+")


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
