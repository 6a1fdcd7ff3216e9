"""An httpx transport for many requests at once to one endpoint: h11 speaks HTTP/1.1, asyncio holds the sockets.

httpx's own transport looks at all its connections for every request it starts or ends, and asks each layer under it
for timeouts and locks; with 32 in flight that costs ten times what the request itself does (`perf/items.py`). Here a
request takes an idle connection and gives it back. Proxies, HTTP/2 and the limits of httpx's pool are not its business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import cached_property

import h11
import httpx

LONGEST_HEAD = 100 * 1024
"""Bytes of status line and headers."""
MOST_UNREAD = 1 << 20
"""Bytes of a body that wait to be read before the sender is made to wait."""


class AsyncHTTP11Transport(httpx.AsyncBaseTransport):
    """As many connections as there are requests at once; the one used last is taken first, so it is warm.

    Of a request's timeouts `connect` alone is kept; whoever awaits the answer bounds the rest. Raises
    what httpx's own transport does.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx.create_ssl_context()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        origin = (url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))
        idle = self._idle.setdefault(origin, [])
        while idle and idle[-1].closed:
            idle.pop()
        connection = idle.pop() if idle else await self._connected(origin, request)
        try:
            await connection.send(request)
            head = await connection.response()
        except (OSError, h11.ProtocolError) as error:
            connection.abort()
            raise _as_httpx(error, request) from error
        except BaseException:  # above all cancelled
            connection.abort()
            raise
        body = _Body(connection, idle, request)
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=body)

    async def _connected(self, origin: tuple[str, str, int], request: httpx.Request) -> _Connection:
        scheme, host, port = origin
        if scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"the URL begins with neither http:// nor https:// ({scheme!r})")
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("connect")):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    host,
                    port,
                    ssl=self._tls if scheme == "https" else None,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time", request=request) from error
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        return connection

    async def aclose(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        await asyncio.sleep(0)  # sockets are closed in the loop's next round
        self._idle.clear()


class _Connection(asyncio.Protocol):
    """One connection: h11's state machine, fed by the socket."""

    closed = False
    _asked = False
    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._news: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._unread = 0
        self._reading = True

    # --- called by the loop ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._asked:  # what nobody asked for must not be taken for the next answer
            self.abort()
            return
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > MOST_UNREAD and self._reading:
            self._reading = False
            self._transport.pause_reading()
        _wake(self._news)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._error = error
        if error is None and self._http.their_state is not h11.ERROR:
            self._http.receive_data(b"")
        _wake(self._news)
        _wake(self._writable)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writable)
        self._writable = None

    # --- called by the transport -------------------------------------------------------------

    async def send(self, request: httpx.Request) -> None:
        self._asked = True
        target = request.url.raw_path
        head = h11.Request(method=request.method, target=target, headers=request.headers.raw)
        parts = [self._http.send(head), self._http.send(h11.Data(await request.aread()))]
        parts.append(self._http.send(h11.EndOfMessage()))
        self._transport.write(b"".join(part for part in parts if part))
        if self._writable:
            await self._writable

    async def response(self) -> h11.Response:
        """Status and headers; interim responses are passed over."""
        while not isinstance(event := await self.event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the server ended the connection without an answer")
            if event.status_code == 101:
                raise h11.RemoteProtocolError("the server answers in another protocol")
        return event

    async def event(self) -> object:
        """The next thing that the server said."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._error:
                raise self._error
            self._unread = 0
            if not self._reading:
                self._reading = True
                self._transport.resume_reading()
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        return event

    def ready_again(self) -> bool:
        """Whether another request can follow; closes the connection where none can."""
        done = (self._http.our_state, self._http.their_state) == (h11.DONE, h11.DONE)
        if self.closed or not done or self._http.trailing_data[0]:
            self.abort()
            return False
        self._http.start_next_cycle()
        self._asked = False
        return True

    def close(self) -> None:
        self.closed = True
        self._transport.close()

    def abort(self) -> None:
        self.closed = True
        self._transport.abort()


class _Body(httpx.AsyncByteStream):
    """A response's body, which gives its connection back when it is closed."""

    def __init__(self, connection: _Connection, idle: list[_Connection], request: httpx.Request) -> None:
        self._connection = connection
        self._idle = idle
        self._request = request
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while isinstance(event := await self._connection.event(), h11.Data):
                yield bytes(event.data)
        except (OSError, h11.ProtocolError) as error:
            self._connection.abort()
            raise _as_httpx(error, self._request) from error

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            if self._connection.ready_again():
                self._idle.append(self._connection)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting and not waiting.done():
        waiting.set_result(None)


def _as_httpx(error: OSError | h11.ProtocolError, request: httpx.Request) -> httpx.HTTPError:
    """The exception of httpx's own for what a socket or h11 raised."""
    if isinstance(error, h11.RemoteProtocolError):
        return httpx.RemoteProtocolError(str(error), request=request)
    if isinstance(error, h11.LocalProtocolError):
        return httpx.LocalProtocolError(str(error), request=request)
    return httpx.ReadError(str(error), request=request)
