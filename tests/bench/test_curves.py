"""What the bench of long curves counts as within its limit."""

import pytest

from bench import curves

VISIT = {"drawn_ms": 900.0, "page_ms": 90.0, "data_ms": 300.0, "data_kb": 150.0, "points": 599}


@pytest.mark.parametrize("slow, ok", [(1, True), (2, False)])
def test_the_median_visit_decides(slow, ok):
    result = curves.summary([{**VISIT, "drawn_ms": 1500.0}] * slow + [VISIT] * (3 - slow))
    assert result["ok"] is ok
    assert "slowest 1500" in curves.show(result)
