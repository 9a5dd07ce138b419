"""The allow-list of remote models' addresses and their keys, and the IP addresses to which no name may resolve.

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

`ADDRESS=SOME_API_KEY` allows the key in the variable SOME_API_KEY to be sent there, `ADDRESS` alone allows no key. An
address with several allowed keys is listed once with each.
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
    """Return the port, or the scheme's default port."""
    return url.port or {"http": 80, "https": 443}[url.scheme]


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, port_of(url)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list: a base address, and the name of the secret that may be sent there (empty = none)."""

    url: httpx2.URL
    secret: str = ""

    @classmethod
    def of(cls, text: str) -> Entry:
        """Parse `ADDRESS` or `ADDRESS=SOME_API_KEY`; raise `BadInput` if either part is malformed."""
        address, _, secret = text.partition("=")
        if not secret and text.endswith("="):
            raise BadInput("after = comes the name of the secret that may be sent there", address)
        try:
            return cls(parse_address(address), check_secret_name(secret))
        except ValueError as error:
            raise BadInput(str(error), address) from error

    def covers(self, url: httpx2.URL) -> bool:
        """Return whether `url` has the entry's scheme, host and port, and a path under the entry's path."""
        return _origin(url) == _origin(self.url) and url.path.startswith(self.url.path)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The allowed addresses, and the secrets that may be sent to each.

    Messages call an address by its `noun`, and name the `variable` in which an administrator adds one.
    """

    entries: tuple[Entry, ...]
    noun: str = "model"
    variable: str = VARIABLE

    @classmethod
    def of(cls, entries: Iterable[str], *, noun: str = "model", variable: str = VARIABLE) -> AllowList:
        """Parse texts such as `https://models.example/v1=MODELS_API_KEY`; raise `BadInput` for an invalid one."""
        return cls(tuple(Entry.of(text) for text in entries), noun, variable)

    @classmethod
    def from_environment(cls) -> AllowList:
        """Read the variable `MODEL_ADDRESSES`; if it is not set, no address is allowed."""
        return cls.of(os.environ.get(VARIABLE, "").replace(",", " ").split())

    def check(self, address: str, secret: str = "") -> httpx2.URL:
        """Return the parsed address; raise `BadInput` unless an entry covers it and allows the secret."""
        url = parse_address(address)
        covering = [entry for entry in self.entries if entry.covers(url)]
        if not covering:
            raise BadInput(
                f"not on the list of allowed {self.noun} addresses; an administrator adds it to {self.variable}",
                address,
            )
        if secret and secret not in {entry.secret for entry in covering}:
            raise BadInput(
                f"{secret} may not be sent to {url.host}; an administrator allows it by the entry "
                f"{str(url).rstrip('/')}={secret} in {self.variable}",
                "secret",
            )
        return url

    def covers(self, url: httpx2.URL) -> bool:
        """Return whether an entry covers `url`."""
        return any(entry.covers(url) for entry in self.entries)


def check_remote(remote: RemoteConfig, section: str) -> None:
    """Raise `BadInput` at `section.address` or `section.secret` unless the environment's list allows both."""
    try:
        AllowList.from_environment().check(remote.address, remote.secret)
    except BadInput as error:
        raise BadInput(error.why, f"{section}.{'secret' if error.where == 'secret' else 'address'}") from error


def refusal(address: IPAddress, host: str) -> str | None:
    """Return the reason to refuse a connection to `address`, to which `host` resolved; None if it is allowed.

    IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) is treated as the embedded IPv4 address. Private networks are
    allowed, because the allow-list names them. A loopback address is allowed only if `host` itself is loopback.
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
