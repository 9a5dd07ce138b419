"""The way to a first move: what is counted, and the limits."""

from typing import Any

from bench import first


def visit(who: str, taps: int, seconds: float, nexts: int = 2) -> dict[str, Any]:
    return {
        "who": who,
        "game": "tic_tac_toe",
        "first": {"taps": taps, "seconds": seconds},
        "next": {"taps": nexts, "seconds": 1.0},
    }


def test_the_summary_has_the_most_taps_and_the_median_seconds() -> None:
    visits = [visit("guest", 3, 2.0), visit("guest", 2, 4.0), visit("guest", 3, 9.0), visit("account", 5, 7.0)]
    result = first.summary(visits)
    assert result["guest_first"] == {"taps": 3, "median_s": 4.0, "spread_s": [2.0, 9.0]}
    assert result["account_first"] == {"taps": 5, "median_s": 7.0, "spread_s": [7.0, 7.0]}
    assert result["ok"] is True
    assert "first move, without an account: 3 taps, 4.0 s (2.0 to 9.0)" in first.show(result)


def test_a_tap_or_a_second_too_many_is_reported() -> None:
    account = visit("account", 5, 7.0)
    assert first.summary([visit("guest", 4, 2.0), account])["ok"] is False
    assert first.summary([visit("guest", 3, 20.5), account])["ok"] is False
    assert first.summary([visit("guest", 3, 2.0, nexts=3), account])["ok"] is False
