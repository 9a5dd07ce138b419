"""Where a remote model may live: an allow-list of addresses, and numbers that no name may lead to.

An address is refused (`BadInput`) unless it is a plain http(s) base under an entry of the list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx2

from training.errors import BadInput

VARIABLE = "MODEL_ADDRESSES"
"""Environment variable with the allowed addresses, separated by commas or spaces."""

IPAddress = IPv4Address | IPv6Address

# Instance metadata outside the link-local ranges: Alibaba, Azure's host agent, Oracle, and EC2 over IPv6.
METADATA = frozenset(
    ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
NAT64 = IPv6Network("64:ff9b::/96")


def parse_address(text: str) -> httpx2.URL:
    """Return the base address as a URL whose path ends in `/`; raise `BadInput` if it is not a plain http(s) base."""
    try:
        url = httpx2.URL(text.strip())
    except httpx2.InvalidURL as error:
        raise BadInput(f"not an address: {error}", text) from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise BadInput("an address starts with http:// or https:// and a host", text)
    if url.userinfo or url.query or url.fragment:
        raise BadInput("an address carries no user name, password, query or fragment", url.host)
    # The text as written: parsing has already folded dots and decoded escapes in `url`.
    if any(mark in text.partition("://")[2] for mark in ("..", "%", "\\", "//")):
        raise BadInput("an address has a plain path", text)
    return url.copy_with(path=url.path.rstrip("/") + "/")


def port_of(url: httpx2.URL) -> int:
    """Return the port, also where it is the scheme's usual one."""
    return url.port or {"http": 80, "https": 443}[url.scheme]


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, port_of(url)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The addresses that may be spoken to: scheme, host and port must be equal, the path must lie under the entry's."""

    entries: tuple[httpx2.URL, ...]

    @classmethod
    def of(cls, addresses: Iterable[str]) -> AllowList:
        """Build from texts such as `https://models.example.org/v1`; raise `BadInput` for one that is malformed."""
        return cls(tuple(parse_address(text) for text in addresses))

    @classmethod
    def from_environment(cls) -> AllowList:
        """Read `MODEL_ADDRESSES`; without it nothing is allowed."""
        return cls.of(os.environ.get(VARIABLE, "").replace(",", " ").split())

    def check(self, address: str) -> httpx2.URL:
        """Return the parsed address; raise `BadInput` if no entry covers it."""
        url = parse_address(address)
        if not self.covers(url):
            raise BadInput(
                f"not on the list of allowed model addresses; an administrator adds it to {VARIABLE}", address
            )
        return url

    def covers(self, url: httpx2.URL) -> bool:
        """Return whether `url` lies under an entry."""
        return any(_origin(url) == _origin(entry) and url.path.startswith(entry.path) for entry in self.entries)


def refusal(address: IPAddress, host: str) -> str | None:
    """Return why a connection to `address`, which `host` resolved to, is refused; None if it is fine.

    IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) is judged as the IPv4 address it leads to. Private networks are
    fine: the allow-list names them. A loopback answer is fine only where the list says loopback itself.
    """
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return refusal(inner, host)
    if address.is_link_local or address in METADATA:
        return "a link-local or metadata address"
    if address.is_loopback:
        wanted = _says_loopback(host)
        return None if wanted else "a loopback address behind another name (list it as 127.0.0.1 or localhost)"
    if address.is_multicast or address.is_unspecified or address.is_reserved:
        return "not the address of one machine"
    return None


def _says_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
