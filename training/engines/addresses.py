"""Where a remote model may live: an allow-list of addresses, and a transport that cannot be led elsewhere.

An address is refused (`BadInput`) unless it lies under an entry of the allow-list. The transport resolves the name
itself, refuses link-local, metadata, multicast and unspecified addresses, connects to exactly what it checked (so a
second DNS answer changes nothing), follows no redirect, reads no proxy settings, and bounds an answer's size and time.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx2
from openai import OpenAIError

from training.errors import BadInput

VARIABLE = "MODEL_ADDRESSES"
"""Environment variable with the allowed addresses, separated by commas or spaces."""

IPAddress = IPv4Address | IPv6Address

# Instance metadata outside the link-local ranges: Alibaba, Azure's host agent, Oracle, and EC2 over IPv6.
METADATA = frozenset(
    ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
NAT64 = IPv6Network("64:ff9b::/96")

# What a request may carry. The client would add headers that it finds in its own environment variables.
HEADERS = frozenset(
    ("host", "accept", "authorization", "connection", "content-length", "content-type", "transfer-encoding")
)


class Refused(OpenAIError):
    """The request or its answer was refused by us. The client passes its own error type on without a retry."""


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


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]


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


async def resolve(host: str, port: int) -> IPAddress:
    """Return the address to connect to; raise `Refused` if any answer for `host` is a forbidden one."""
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpx2.ConnectError(f"{host} does not resolve: {error}") from error
    addresses = [ip_address(str(answer[4][0]).partition("%")[0]) for answer in answers]
    for address in addresses:
        if why := refusal(address, host):
            raise Refused(f"{host} leads to {address}, {why}")
    if not addresses:
        raise httpx2.ConnectError(f"{host} does not resolve")
    return addresses[0]


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects only to what `allowed` covers; one exchange takes at most `timeout_s` seconds and `max_bytes` bytes.

    The Host header and the TLS name stay those of the address, while the connection goes to the checked number.
    Raises `Refused` (not retried) for a forbidden address or an answer that is too large or compressed, and
    `httpx2.ReadTimeout` for one that is too slow, however steadily it drips.
    """

    def __init__(self, allowed: AllowList, timeout_s: float, max_bytes: int) -> None:
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._inner = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` and return the whole answer, read."""
        if not self._allowed.covers(request.url):
            raise Refused(f"{request.url.host} is not an allowed model address")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no complete answer within {self._timeout_s:g} s", request=request) from error

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        address = await resolve(host, request.url.port or _origin(request.url)[2])
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=str(address)),
            headers=[*((k, v) for k, v in request.headers.items() if k in HEADERS), ("accept-encoding", "identity")],
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        response = await self._inner.handle_async_request(pinned)
        try:
            body = await self._read(response)
        finally:
            await response.aclose()
        return httpx2.Response(response.status_code, headers=response.headers, content=body, request=request)

    async def _read(self, response: httpx2.Response) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Refused("the answer is compressed, which was not asked for")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_bytes:
                raise Refused(f"the answer is larger than {self._max_bytes} bytes")
        return bytes(body)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
