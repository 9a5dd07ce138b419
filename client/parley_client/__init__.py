"""The Python client of Parley's REST API; `Client` is the beginning, and every failure is a `ParleyError`."""

from parley_client.client import Client
from parley_client.errors import (
    Conflict,
    Invalid,
    NotFound,
    ParleyError,
    RunFailed,
    TimedOut,
    Unauthorised,
    Unavailable,
)

__all__ = [
    "Client",
    "Conflict",
    "Invalid",
    "NotFound",
    "ParleyError",
    "RunFailed",
    "TimedOut",
    "Unauthorised",
    "Unavailable",
]
