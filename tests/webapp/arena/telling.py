"""Which functions of the site change what somebody at a table sees: each needs a case where tabs are compared."""

import inspect
import re

from webapp.arena import clock
from webapp.arena.play import hosting, model_seats, services
from webapp.arena.setup import countdowns, links, tables, waiting_room

TELLS = re.compile(
    r"hints\.send|tell_everybody\(|\bsit\(|\bfree\(|take_seat\(|submit\(|abort\(|time_out\(|begin\(|_let_stand_in\("
    r"|_go_on\(|_finish\("
    r"|\.update\(\s*deadline="
)
WITHIN = {
    "services.begin",
    "model_seats.start_clocks",
    "waiting_room.sit",
    "waiting_room.free",
    "waiting_room.tell_everybody",
}
WITHIN |= {"waiting_room.begin_if_ready"}
"""Parts of others: `begin` of the last consent and of `fill`, `start_clocks` , and what services share."""


def telling() -> set[str]:
    """Their names, as `module.function`."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (services, tables, waiting_room, countdowns, links, hosting, clock, model_seats)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and TELLS.search(inspect.getsource(function))
    }
