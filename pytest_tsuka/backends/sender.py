"""One request over the wire: its answer, whole or as a stream, or the trouble it met."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import httpx

from pytest_tsuka.backends.answers import read_answer, read_completion, stream_error
from pytest_tsuka.backends.apis.base import StreamError
from pytest_tsuka.backends.http.client import Wire
from pytest_tsuka.backends.http.failures import transport_trouble
from pytest_tsuka.backends.http.sse import StreamBroken, events
from pytest_tsuka.backends.http.urls import HIDDEN
from pytest_tsuka.backends.trouble import Kind, Sent, Trouble
from pytest_tsuka.conversation import Exchange
from pytest_tsuka.text.json_types import JsonObject


class Sender:
    """Sends one request once. `timeout` bounds the whole answer, `idle` a stream's silence, both in seconds."""

    def __init__(
        self, wire: Wire, provider: str, *, key: str, secrets: Sequence[str], timeout: float, idle: float
    ) -> None:
        self._wire = wire
        self._provider = provider
        self._key = key
        self._secrets = secrets
        self._timeout = timeout
        self._idle = idle

    async def close(self) -> None:
        await self._wire.close()

    async def send(self, sent: Sent) -> Exchange | Trouble:
        """What came of it; no failure of the wire or of the endpoint is raised."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(sent, start)
        except TimeoutError:
            return self._broken(f"no complete answer within {self._timeout:g} s", stalled=True)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            return transport_trouble(error, self._provider)

    def _broken(self, what: str, *, stalled: bool = False) -> Trouble:
        return Trouble(Kind.AGAIN, f"{self._provider}: {what}", stalled=stalled)

    async def _exchange(self, sent: Sent, start: float) -> Exchange | Trouble:
        response = await self._wire.post(sent.api, self._key, sent.body)
        try:
            kind = response.headers.get("content-type", "")
            if response.status_code == 200 and kind.startswith("text/event-stream"):
                return await self._read_stream(response, sent, start)
            content = self._without_secrets(await response.aread())
        finally:
            await response.aclose()
        headers = {k.lower(): v for k, v in response.headers.items()}
        return read_answer(response.status_code, headers, content, sent=sent, seconds=time.perf_counter() - start)

    def _without_secrets(self, body: bytes) -> bytes:
        """A server may echo the key in an answer as well as in an error; it goes no further than here."""
        for secret in self._secrets:
            if secret.encode() in body:
                body = body.replace(secret.encode(), HIDDEN.encode())
        return body

    async def _read_stream(self, response: httpx.Response, sent: Sent, start: float) -> Exchange | Trouble:
        reply = sent.api.stream()
        first: float | None = None
        done = False
        stream = events(response.aiter_bytes())
        try:
            while True:
                try:
                    async with asyncio.timeout(self._idle):
                        event = await anext(stream)
                except StopAsyncIteration:
                    break
                except TimeoutError:
                    return self._broken(f"the stream was silent for {self._idle:g} s", stalled=True)
                if event is None:
                    done = True
                    continue
                reply.feed(event)
                if first is None and reply.started:
                    first = time.perf_counter() - start
        except StreamError as error:
            body: JsonObject = json.loads(self._without_secrets(json.dumps(error.body).encode()))
            return stream_error(body, sent)
        except (StreamBroken, UnicodeDecodeError) as error:
            return self._broken(str(error))
        if not (done or reply.finished):
            return self._broken("the stream ended before the reply was complete")
        data: Any = reply.body()
        if any(secret in str(data) for secret in self._secrets):
            data = json.loads(self._without_secrets(json.dumps(data, ensure_ascii=False).encode()))
        return read_completion(data, sent=sent, seconds=time.perf_counter() - start, first_token=first)
