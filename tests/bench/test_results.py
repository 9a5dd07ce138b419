"""The published tables are what their raw numbers give."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from scipy import stats

from bench import results
from bench.__main__ import main

DOCS = Path("docs/results")


@pytest.mark.parametrize("page", results.PAGES)
def test_every_page_says_what_its_raw_numbers_give(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")
    lines = list(results.PAGES[page](results.raw_of(page, DOCS)))
    assert len(lines) > 3
    assert [line for line in lines if line not in text] == []


def test_a_page_that_says_otherwise_is_found(tmp_path, capsys):
    for file in DOCS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    changed = (tmp_path / "miniature.md").read_text("utf-8").replace("0.315 to 0.443", "0.341 to 0.422")
    (tmp_path / "miniature.md").write_text(changed, "utf-8")
    assert main(["results", "--dir", str(tmp_path)]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("!")]
    assert len(marked) == 1
    assert "0.315 to 0.443" in marked[0]
    (tmp_path / "toy.json").unlink()
    assert main(["results", "--dir", str(tmp_path)]) == 2


def test_the_place_for_computed_lines_is_written_and_the_rest_of_the_page_kept(tmp_path, capsys):
    for file in DOCS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    page, raw = tmp_path / "table-speed.md", tmp_path / "socket.json"
    published = page.read_text("utf-8")
    page.write_text(published.replace("| yes |", "| YES |").replace("| **no** |", "| NO |"), "utf-8")
    assert main(["results", "--dir", str(tmp_path), "--write"]) == 0
    assert page.read_text("utf-8") == published
    slow = json.loads(raw.read_text("utf-8"))
    slow["series_ms"] = [[15.1] * 95 + [24.0] * 5] * 3
    raw.write_text(json.dumps(slow), "utf-8")
    assert main(["results", "--dir", str(tmp_path), "--write"]) == 0
    capsys.readouterr()
    rows = [line for line in page.read_text("utf-8").splitlines() if "`socket`" in line]
    assert [row.split(" | ")[-3:] for row in rows] == [
        ["≤ 15 ms", "15.1 ms (15.1–15.1)", "**no** |"],
        # of 100 values the 95th percentile lies 0.05 of the way from the 95th to the 96th: 15.1 + 0.05 · 8.9 = 15.5
        ["≤ 25 ms", "15.5 ms (15.5–15.5)", "yes |"],
    ]


def test_the_stored_intervals_over_seeds_are_students_t():
    """The derived numbers beside the raw ones, by scipy's own test of a mean."""
    raw = json.loads((DOCS / "miniature.json").read_text("utf-8"))
    gains = {form: [run["difference"]["mean"] for run in row["runs"]] for form, row in raw["forms"].items()}
    for form, row in raw["forms"].items():
        expected = stats.ttest_1samp(gains[form], 0).confidence_interval(0.95)
        assert (row["gain"], *row["interval"]) == pytest.approx((fmean(gains[form]), *expected))
        assert row["n"] == 5
    for form, row in raw["gain_minus_default"].items():
        expected = stats.ttest_rel(gains[form], gains["default"]).confidence_interval(0.95)
        assert row["interval"] == pytest.approx(list(expected))


def test_the_coverage_of_students_t_is_measured(capsys):
    assert main(["intervals", "--samples", "60", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["means"]["normal"]["10"]["t"] > 0.8
    assert measured["proportions"]["0.5"]["30"]["exact"] > 0.8


def test_replications_have_an_interval_over_seeds_from_three_on():
    def run(seed, gain):
        scenarios = {
            name: {
                "a": {"points": 15.0 + gain + spread, "parse_rate": 0.96},
                "b": {"points": 15.0, "parse_rate": 0.9},
                "shared": {"agreement": 1.0},
            }
            for name, spread in (("s", -1.0), ("t", 1.0))
        }
        return {"seed": seed, "values": scenarios}

    runs = [run(0, 4.0), run(1, 5.0), run(2, 6.0)]
    assert len(list(results.replications(runs[:2], "points", 2))) == 2
    *rows, mean = results.replications(runs, "points", 2, ["agreement"])
    # two scenarios, 3 and 5: standard error 1, t with one degree of freedom is 12.7062 (tables)
    assert rows[0].startswith("| 0 | 19.00 | 15.00 | +4.00 (−8.71 to +16.71) | ")
    # 4, 5 and 6: standard error 1/√3, t with two degrees of freedom is 4.3027 (tables)
    assert mean == "| mean, n = 3 | | | +5.00 (+2.52 to +7.48) | | 0.960 (0.960 to 0.960) | |"
    *_, mean = results.replications(runs, "points", 2)
    assert mean == "| mean, n = 3 | | | +5.00 (+2.52 to +7.48) | 0.960 (0.960 to 0.960) | |"


def test_critics_are_compared_by_the_steps_to_a_reward_that_both_reached():
    def run(seed, slow):
        early, late = ([0.0] * zeros + [1.0] * (10 - zeros) for zeros in (5, 5 + slow))
        return {"seed": seed} | {
            name: {"curves": {"reward": curve}} for name, curve in (("train", early), ("train-constant", late))
        }

    *rows, steps, reward = results.critics([run(0, 1), run(1, 2), run(2, 3), {"seed": 3}], "constant")
    # the slower one's last five steps have a mean of 4, 3 and 2 fifths, at step 10; the faster one's at step 9, 8 and 7
    assert rows[0] == "| 0 | 0.800 | 9 | 10 | 0.500 | 0.400 |"
    assert [row.split(" | ")[1:4] for row in rows] == [["0.800", "9", "10"], ["0.600", "8", "10"], ["0.400", "7", "10"]]
    # 1, 2 and 3: standard error 1/√3, t with two degrees of freedom is 4.3027 (tables)
    assert steps == "steps, ridge minus constant: −2.0 (−4.5 to +0.5)"
    assert reward == "mean reward, ridge minus constant: +0.200 (−0.048 to +0.448)"


def test_what_values_explain_is_beside_what_could_be_known():
    run = {"seed": 2, "train": {"curves": {"value_r2_turn": [0.0, -0.5] + [0.5] * 4}}}
    bounds = {"2": {"bound": {"r2": 0.25, "low": -0.1, "high": 0.6, "scenarios": 9}}}
    # the means of steps 1 to 5 and 2 to 6
    assert list(results.explained([run, {"seed": 3}], bounds)) == ["| 2 | +0.250 (−0.100 to +0.600) | +0.20, +0.30 |"]


def test_what_forfeits_account_for_is_taken_off_the_difference():
    # without a deal both have 5 points; of the side that forfeits they are taken away
    def scenario(points, forfeits):
        return {side: {"points": points[at], "forfeits": forfeits[at]} for at, side in enumerate("ab")}

    runs = [
        {
            "seed": seed,
            "values": {"s": scenario((5.0, 0.0), (0.0, 1.0)), "t": scenario((20.0 + seed, 14.0), (0.0, 0.0))},
        }
        for seed in range(3)
    ]
    *rows, mean = results.deals(runs)
    assert [row.split(" (")[0] for row in rows] == [
        f"seed {seed}, without forfeits: +{3 + seed / 2:.2f}" for seed in range(3)
    ]
    # 3, 3.5 and 4: standard error 0.5/√3, t with two degrees of freedom is 4.3027 (tables)
    assert mean == "over seeds, without forfeits: +3.50 (+2.26 to +4.74)"
