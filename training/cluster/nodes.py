"""Whether the nodes of a joined cluster can run what the driver runs: versions, code and clock.

`BadInput` names the node and what differs there; a clock that is off is a warning. `OutsideError`: a node died, or did
not answer in time.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING

from training.errors import BadInput, OutsideError

if TYPE_CHECKING:
    from training.cluster.processes import Cluster

PACKAGE = Path(__file__).resolve().parents[1]
FIELD = "cluster.address"
ALWAYS = ("ray", "torch", "transformers")
"""Distributions whose versions must be the same on all nodes, whatever the run does."""
MOST_CLOCK_DIFFERENCE_S = 5.0
PAUSE_S = 1.0
"""Seconds until nodes are asked again of which one has died."""
ADDRESS = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b")
ADDRESS_6 = re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?<!\.)(?![\w:])")


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a process says of its node: versions by name (empty: not installed), a hash of the code, Unix time."""

    versions: Mapping[str, str]
    code: str
    at: float


def report(packages: Collection[str]) -> NodeReport:
    """Return the report of this process, with the versions of these distributions."""
    versions = {"Python": platform.python_version()} | {name: _version(name) for name in packages}
    return NodeReport(versions, code_hash(), time.time())


@functools.cache
def code_hash() -> str:
    """Return a hash of the names and contents of the modules of `training`; caches of Python do not count."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(PACKAGE)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def check(cluster: Cluster, packages: Collection[str], deadline: float) -> list[str]:
    """Ask every node, also one that is full; return warnings. `deadline` is by the monotonic clock.

    A node that has just died is still listed for some seconds: the others are asked again until it is not.
    """
    import ray

    gone = (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError, ray.exceptions.WorkerCrashedError)
    while True:
        try:
            return _check(cluster, packages, deadline)
        except BadInput as error:
            if not isinstance(error.__cause__, gone):
                raise
            if time.monotonic() > deadline:
                raise OutsideError(str(error)) from error
        time.sleep(PAUSE_S)


def _check(cluster: Cluster, packages: Collection[str], deadline: float) -> list[str]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    names = (*ALWAYS, *packages)
    expected, warnings = report(names), []
    probe = ray.remote(num_cpus=0, max_retries=0)(report)
    nodes, asked_at = cluster.nodes(), time.time()
    asked = [
        probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote(names)
        for node in nodes
    ]
    for node, answer in zip(nodes, asked, strict=True):
        where = f"node {node.name} of the cluster"
        try:
            answered: NodeReport = ray.get(answer, timeout=max(1.0, deadline - time.monotonic()))
        except ray.exceptions.GetTimeoutError as error:
            raise OutsideError(f"{where} did not run a first task in time") from error
        except ray.exceptions.RayError as error:
            raise BadInput(f"{where} cannot run Parley: {one_line(error)}", FIELD) from error
        compare(answered, expected, where)
        if off := clock_warning(answered.at, asked_at, time.time(), where):
            warnings.append(off)
    return warnings


def compare(answered: NodeReport, expected: NodeReport, where: str) -> None:
    """Raise `BadInput` naming what differs from the driver's report."""
    for name, ours in expected.versions.items():
        theirs = answered.versions[name]
        if theirs != ours:
            has, have = (f"{name} {version}" if version else f"no {name}" for version in (theirs, ours))
            raise BadInput(f"{where} has {has}, this process {have}: they must be the same", FIELD)
    if answered.code != expected.code:
        why = f"{where} has other code of Parley ({answered.code}) than this process ({expected.code})"
        raise BadInput(f"{why}: have the same checkout everywhere", FIELD)


def clock_warning(at: float, asked_at: float, answered_at: float, where: str) -> str:
    """Return that a node's clock is off, if it stated a time well before it was asked or after it had answered."""
    off = at - asked_at if at < asked_at else max(0.0, at - answered_at)
    if abs(off) <= MOST_CLOCK_DIFFERENCE_S:
        return ""
    return f"the clock of {where} is {abs(off):.0f} s {'behind' if off < 0 else 'ahead of'} this machine's"


def one_line(error: BaseException) -> str:
    """Return an error of Ray as one line without addresses: whoever sees a run reads it, also where alerts go."""
    return without_addresses(" ".join(str(error).split()))[:500]


def without_addresses(text: str) -> str:
    """Return a text in which ADDRESS takes the place of IP addresses, with their ports where they are IPv4."""
    return ADDRESS.sub("ADDRESS", ADDRESS_6.sub(_hidden, text))


def _hidden(match: re.Match[str]) -> str:
    """Return what takes the place of a text that looks like an IPv6 address, such as a time."""
    try:
        IPv6Address(match[0])
    except ValueError:
        return match[0]
    return "ADDRESS"
