"""What the sockets of the table's bench must have read, and from when on it counts."""

import pytest

from bench.table import Tab, times
from training.errors import ParleyError

WRITTEN = {(1, 1): 10.0, (1, 2): 20.0, (1, 3): 29.5}
"""When the lines of match 1 were written; the watch ends at 30."""


def test_a_line_takes_as_long_as_until_a_socket_reads_it_once_all_are_open():
    early, late = Tab(1, [(1, 11.0), (2, 20.25)]), Tab(1, [(1, 12.0), (2, 20.5), (3, 29.75)])
    assert times([early, late], WRITTEN, 30.0) == [250.0, 500.0, 250.0]


@pytest.mark.parametrize(
    "read",
    [[], [(1, 11.0)], [(1, 11.0), (3, 29.6)], [(2, 20.1), (1, 20.1)], [(1, 11.0), (1, 11.0), (2, 20.1)]],
    ids=["nothing", "not the last lines", "not the second", "in another order", "one twice"],
)
def test_a_socket_that_lost_repeated_or_reordered_lines_fails_the_bench(read):
    whole = Tab(1, [(1, 11.0), (2, 20.1)])
    with pytest.raises(ParleyError):
        times([whole, Tab(1, read)], WRITTEN, 30.0)
