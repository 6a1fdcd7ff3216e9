"""The transport under the endpoint, over real sockets: it reads what httpx's own transport reads, and fails as that does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tsuka.backends.http.transport import MOST_UNREAD, AsyncHTTP11Transport

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a server that handles each connection with `serve`."""

    handling: set[asyncio.Task[None] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                await serve(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    running = await asyncio.start_server(handle, "localhost", 0, ssl=tls, family=socket.AF_INET)
    try:
        port = running.sockets[0].getsockname()[1]
        yield f"{'https' if tls else 'http'}://localhost:{port}/v1/x?a=b"
    finally:
        running.close()
        await asyncio.sleep(0.01)
        for task in handling:
            assert task
            task.cancel()
        await asyncio.gather(*(task for task in handling if task), return_exceptions=True)


async def request_head(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    await reader.readexactly(length)
    return head


def answers(*wire: bytes, close: bool = True) -> Serve:
    """Answers each request with these pieces, each sent by itself, then closes the connection or not."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_head(reader)
            for piece in wire:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if close:
                return

    return serve


async def post(transport: httpx.AsyncBaseTransport, url: str, body: bytes = b"{}") -> tuple[object, ...]:
    """What came back: status, headers and body, or the name of the exception."""
    async with httpx.AsyncClient(transport=transport, timeout=5, trust_env=False) as client:
        try:
            response = await client.post(url, content=body)
        except httpx.HTTPError as error:
            return (type(error).__name__,)
        return response.status_code, response.headers.multi_items(), response.content


async def both(serve: Serve, body: bytes = b"{}") -> tuple[tuple[object, ...], tuple[object, ...]]:
    """(this transport's outcome, httpx's own) with the same server."""
    async with server(serve) as url:
        return await post(AsyncHTTP11Transport(), url, body), await post(httpx.AsyncHTTPTransport(), url, body)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "wire",
    [
        OK + b"Content-Length: 3\r\n\r\nabc",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        OK + b"\r\nas long as the connection is open",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        OK + b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
        OK + b"Content-Length: 30\r\n\r\ncut",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab",
        OK + b"Transfer-Encoding: chunked\r\n\r\nno length",
        OK[:9],
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        OK + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=[
        "length",
        "chunked",
        "until closed",
        "1.0",
        "interim answers",
        "no content",
        "redirect",
        "header twice",
        "cut short",
        "cut in a chunk",
        "no chunk length",
        "cut in the status",
        "nothing",
        "another protocol",
        "endless header",
        "no gzip",
    ],
)
def test_any_answer_means_what_it_means_to_httpx(wire: bytes) -> None:
    ours, theirs = asyncio.run(both(answers(wire)))
    assert ours == theirs


chunks = st.lists(st.binary(min_size=1, max_size=50), max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    parts=chunks,
    framing=st.sampled_from(["length", "chunked", "close"]),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    drop=st.integers(0, 30),
)
def test_cut_anywhere_and_ended_anywhere_it_reads_what_httpx_reads(
    parts: list[bytes], framing: str, cuts: list[int], drop: int
) -> None:
    body = b"".join(parts)
    if framing == "chunked":
        coded = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts)
        wire = OK + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\n\r\n"
    else:
        length = b"Content-Length: %d\r\n" % len(body) if framing == "length" else b""
        wire = OK + length + b"\r\n" + body
    wire = wire[: len(wire) - drop] if drop > 20 else wire
    places = sorted({0, len(wire), *(c for c in cuts if c < len(wire))})
    ours, theirs = asyncio.run(both(answers(*(wire[a:b] for a, b in pairwise(places)))))
    assert ours == theirs


def test_a_connection_is_used_again_and_one_that_the_server_closed_is_not() -> None:
    accepted = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        for _ in range(3):
            await request_head(reader)
            writer.write(OK + b"Content-Length: 1\r\n\r\nx")

    async def main() -> None:
        async with server(serve) as url, httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client:
            for number in range(6):
                assert (await client.post(url)).text == "x"
                if number == 2:
                    await asyncio.sleep(0.05)  # the server's end arrives
            assert accepted == 2

    asyncio.run(main())


def test_what_nobody_asked_for_is_never_taken_for_the_next_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(OK + b"Content-Length: 5\r\n\r\nright")
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 5\r\n\r\nwrong")  # and the connection stays
        await asyncio.sleep(5)

    async def main() -> None:
        async with server(serve) as url, httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client:
            assert (await client.post(url)).text == "right"
            await asyncio.sleep(0.1)
            assert (await client.post(url)).text == "right"

    asyncio.run(main())


def test_more_than_was_announced_ends_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(OK + b"Content-Length: 2\r\n\r\nok" + OK + b"Content-Length: 5\r\n\r\nwrong")
        await reader.read()

    async def main() -> None:
        async with server(serve) as url, httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client:
            assert [(await client.post(url)).text for _ in range(2)] == ["ok", "ok"]

    asyncio.run(main())


def test_a_body_that_is_not_wanted_any_more_closes_the_connection() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(OK + b"Content-Length: 1000\r\n\r\nbegun")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()

    async def main() -> None:
        async with server(serve) as url, httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client:
            async with client.stream("POST", url) as response:
                assert response.status_code == 200
            await asyncio.wait_for(ended.wait(), 5)

    asyncio.run(main())


def test_a_request_that_is_cancelled_ends_at_the_server_too() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()

    async def main() -> None:
        async with server(serve) as url, httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.post(url)
            async with asyncio.timeout(5):
                await ended.wait()

    asyncio.run(main())


def test_large_bodies_go_both_ways_and_a_slow_reader_holds_the_sender_back() -> None:
    size = 30 * MOST_UNREAD
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_head(reader)
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * MOST_UNREAD)
            await writer.drain()
            sent += MOST_UNREAD

    async def main() -> None:
        async with (
            server(serve) as url,
            httpx.AsyncClient(transport=AsyncHTTP11Transport()) as client,
            client.stream("POST", url, content=b"y" * size) as response,
        ):
            await asyncio.sleep(0.3)
            assert sent < size  # not all of it is in memory
            assert len(await response.aread()) == size

    asyncio.run(main())


def test_nobody_there_is_a_connect_error_and_a_reset_a_read_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.transport.abort()

    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        assert await post(AsyncHTTP11Transport(), url) == ("ConnectError",)
        async with server(reset) as url:
            assert await post(AsyncHTTP11Transport(), url) == await post(httpx.AsyncHTTPTransport(), url)

    asyncio.run(main())


def test_a_server_that_accepts_no_connection_is_given_up_in_time() -> None:
    async def main() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            others = [socket.socket() for _ in range(4)]
            for other in others:
                other.setblocking(False)
                other.connect_ex(full.getsockname())
            url = f"http://127.0.0.1:{full.getsockname()[1]}/"
            async with httpx.AsyncClient(transport=AsyncHTTP11Transport(), timeout=0.2) as client:
                with pytest.raises(httpx.ConnectTimeout):
                    await client.post(url)
            for other in others:
                other.close()

    asyncio.run(main())


def test_tls_by_the_certificates_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    serve = answers(OK + b"Content-Length: 6\r\n\r\nsecret", close=False)

    async def asked() -> tuple[object, ...]:
        async with server(serve, context) as url:
            return await post(AsyncHTTP11Transport(), url)

    assert asyncio.run(asked()) == ("ConnectError",)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert asyncio.run(asked())[::2] == (200, b"secret")
