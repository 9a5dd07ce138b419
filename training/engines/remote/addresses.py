"""Where a remote model may live and which key it is sent: an allow-list, and numbers that no name may lead to.

An address is refused (`BadInput`) unless it is a plain http(s) base under an entry of the list, and a secret unless
such an entry names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx2

from training.engines.remote.config import RemoteConfig, check_secret_name
from training.errors import BadInput

VARIABLE = "MODEL_ADDRESSES"
"""Environment variable with the allowed addresses, separated by commas or spaces.

`ADDRESS=SOME_API_KEY` says that the key in the variable SOME_API_KEY may be sent there, `ADDRESS` alone that none may.
An address that several keys may be sent to is listed once with each.
"""

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
class Entry:
    """One line of the list: a base address, and the name of the secret that may be sent there; empty = none."""

    url: httpx2.URL
    secret: str = ""

    @classmethod
    def of(cls, text: str) -> Entry:
        """Read `ADDRESS` or `ADDRESS=SOME_API_KEY`; raise `BadInput` for either that is malformed."""
        address, _, secret = text.partition("=")
        if not secret and text.endswith("="):
            raise BadInput("after = comes the name of the secret that may be sent there", address)
        try:
            return cls(parse_address(address), check_secret_name(secret))
        except ValueError as error:
            raise BadInput(str(error), address) from error

    def covers(self, url: httpx2.URL) -> bool:
        """Return whether scheme, host and port of `url` are the entry's and its path lies under the entry's."""
        return _origin(url) == _origin(self.url) and url.path.startswith(self.url.path)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The addresses that may be spoken to, and the secrets that may be sent there."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> AllowList:
        """Build from texts such as `https://models.example/v1=MODELS_API_KEY`; raise `BadInput` for a wrong one."""
        return cls(tuple(Entry.of(text) for text in entries))

    @classmethod
    def from_environment(cls) -> AllowList:
        """Read `MODEL_ADDRESSES`; without it nothing is allowed."""
        return cls.of(os.environ.get(VARIABLE, "").replace(",", " ").split())

    def check(self, address: str, secret: str = "") -> httpx2.URL:
        """Return the parsed address; raise `BadInput` if no entry covers it, or none that does names the secret."""
        url = parse_address(address)
        covering = [entry for entry in self.entries if entry.covers(url)]
        if not covering:
            raise BadInput(
                f"not on the list of allowed model addresses; an administrator adds it to {VARIABLE}", address
            )
        if secret and secret not in {entry.secret for entry in covering}:
            raise BadInput(
                f"{secret} may not be sent to {url.host}; an administrator allows it by the entry "
                f"{str(url).rstrip('/')}={secret} in {VARIABLE}",
                "secret",
            )
        return url

    def covers(self, url: httpx2.URL) -> bool:
        """Return whether `url` lies under an entry."""
        return any(entry.covers(url) for entry in self.entries)


def check_remote(remote: RemoteConfig, section: str) -> None:
    """Raise `BadInput` at `section.address` or `section.secret` unless the environment's list allows the two."""
    try:
        AllowList.from_environment().check(remote.address, remote.secret)
    except BadInput as error:
        raise BadInput(error.why, f"{section}.{'secret' if error.where == 'secret' else 'address'}") from error


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
        explicit = _says_loopback(host)
        return None if explicit else "a loopback address behind another name (list it as 127.0.0.1 or localhost)"
    if address.is_multicast or address.is_unspecified or address.is_reserved:
        return "not the address of one machine"
    return None


def _says_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
