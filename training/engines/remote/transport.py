"""The HTTP transport of remote models: it connects only to checked addresses, and limits answers in size and time.

It resolves names itself and connects to exactly the IP address that it checked (so DNS rebinding has no effect),
follows no redirects, and reads no proxy settings.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import cache
from ipaddress import ip_address

import httpx2
from openai import OpenAIError

from training.engines.remote.addresses import AllowList, IPAddress, port_of, refusal

# What a request may carry. The client would add headers that it finds in its own environment variables.
HEADERS = frozenset(
    ("host", "accept", "authorization", "connection", "content-length", "content-type", "transfer-encoding")
)


class Refused(OpenAIError):
    """This transport refused the request or its answer. The client raises it without a retry."""


async def resolve(host: str, port: int) -> list[IPAddress]:
    """Return the IP addresses of `host`, at least one; raise `Refused` if any of them is forbidden."""
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
    return list(dict.fromkeys(addresses))


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects only to addresses in `allowed`; one exchange takes at most `timeout_s` seconds and `max_bytes` bytes.

    The Host header and the TLS name are those of the URL, while the connection goes to the checked IP address. Raises
    `Refused` (not retried) for a forbidden address or an answer that is too large or compressed, and
    `httpx2.ReadTimeout` for an answer that takes too long in total, even if bytes keep arriving.
    """

    def __init__(self, allowed: AllowList, timeout_s: float, max_bytes: int) -> None:
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._inner = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` and return the completely read answer."""
        if not self._allowed.covers(request.url):
            raise Refused(f"{request.url.host} is not an allowed {self._allowed.noun} address")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no complete answer within {self._timeout_s:g} s", request=request) from error

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._connect(request, await resolve(request.url.host, port_of(request.url)))
        try:
            body = await self._read(response)
        finally:
            await response.aclose()
        return httpx2.Response(response.status_code, headers=response.headers, content=body, request=request)

    async def _connect(self, request: httpx2.Request, addresses: list[IPAddress]) -> httpx2.Response:
        """Send the request to the first checked IP address that accepts a connection."""
        headers = [*((k, v) for k, v in request.headers.items() if k in HEADERS), ("accept-encoding", "identity")]
        extensions = {**request.extensions, "sni_hostname": request.url.host}
        for place, address in enumerate(addresses, 1):
            url = request.url.copy_with(host=str(address))
            pinned = httpx2.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)
            try:
                return await self._inner.handle_async_request(pinned)
            except httpx2.ConnectError:
                if place == len(addresses):
                    raise
        raise httpx2.ConnectError(f"{request.url.host} does not resolve")

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
