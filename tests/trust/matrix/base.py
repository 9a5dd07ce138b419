"""How an address says who may use it, with their own object and with somebody else's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MEMBERS = ("player", "annotator", "researcher", "admin")
RESEARCHERS = ("researcher", "admin")
ANNOTATORS = ("annotator", "researcher", "admin")
EVERYONE = (*MEMBERS, "guest")
NOBODY = ()
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Route:
    """One HTTP route. Everybody who is not named gets 404; who is not signed in is sent to the sign-in page.

    `make(owner)` makes the object that the address names, owned by `owner`, and returns the address's arguments.
    `own` are the roles that may use the route for their own object, `other` for somebody else's; a route without
    object has the same in both (`own` alone). `data` is a body, or makes one of the address's arguments. `public`
    routes need no session. A page that takes several methods has a route for each.
    """

    name: str
    own: tuple[str, ...]
    other: tuple[str, ...] | None = None
    method: str = "GET"
    make: Callable[[Any], dict[str, Any]] | None = None
    data: dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]] = field(default_factory=dict)
    public: bool = False
    status: int = 0  # what a public route answers, where it is not 200 or a redirect
    kind: str = "page"  # page | api (refuses with 401 instead of a redirect)

    def body(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The requests that are sent to the address with these arguments."""
        return self.data(arguments) if callable(self.data) else self.data


@dataclass(frozen=True)
class SocketRoute:
    """One socket route: `make(owner)` makes the object and returns the path; roles as above."""

    pattern: str
    make: Callable[[Any], str]
    own: tuple[str, ...]
    other: tuple[str, ...] = NOBODY
