"""HTTP connections in lanes: each request takes an idle one and gives it back, without looking at the others.

httpx's own pool looks at all its connections for every request it starts or ends, which with 32 in
flight costs more than the request itself. Here every lane is such a pool with one connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx


class Lanes(httpx.AsyncBaseTransport):
    """As many connections as there are requests at once; the one used last is taken first, so it is warm."""

    def __init__(self) -> None:
        self._ssl = httpx.create_ssl_context()
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._all: list[httpx.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        lane = self._idle.pop() if self._idle else self._open()
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            # A lane whose request failed or was cancelled has closed its connection and makes a new one.
            self._idle.append(lane)
            raise
        response.stream = _Stream(cast("httpx.AsyncByteStream", response.stream), self._idle, lane)
        return response

    def _open(self) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        lane = httpx.AsyncHTTPTransport(verify=self._ssl, limits=limits)
        self._all.append(lane)
        return lane

    async def aclose(self) -> None:
        for lane in self._all:
            await lane.aclose()


class _Stream(httpx.AsyncByteStream):
    """A response's body that gives its lane back when it is closed."""

    def __init__(
        self, body: httpx.AsyncByteStream, idle: list[httpx.AsyncHTTPTransport], lane: httpx.AsyncHTTPTransport
    ) -> None:
        self._body = body
        self._idle = idle
        self._lane: httpx.AsyncHTTPTransport | None = lane

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            yield part

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            if self._lane is not None:
                self._idle.append(self._lane)
                self._lane = None
