"""A fake OpenAI-compatible endpoint: a real asyncio HTTP server on loopback whose answers are made to order."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Json = dict[str, Any]


@dataclass
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json
    number: int

    @property
    def effort(self) -> str:
        return str(self.body.get("reasoning_effort", ""))

    @property
    def prompt(self) -> str:
        """The last user message."""
        return str(next((m["content"] for m in reversed(self.body["messages"]) if m["role"] == "user"), ""))


@dataclass
class Answer:
    """What goes back. `cut` closes the connection after that many body bytes; `hang` never answers."""

    status: int = 200
    json: Any = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    reset: bool = False
    hang: bool = False
    events: list[tuple[float, str]] | None = None


def call(name: str, arguments: Any = None, call_id: str | None = "c1") -> Json:
    """A tool call as servers send it; arguments that are no string are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    made: Json = {"type": "function", "function": {"name": name, "arguments": text}}
    return made if call_id is None else {**made, "id": call_id}


def completion(
    text: str | None = None,
    calls: list[Json] | None = None,
    *,
    finish: str | None = None,
    usage: Any = "default",
    message: Json | None = None,
    **more: Any,
) -> Json:
    """A chat completion body."""
    said = message or {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    body: Json = {
        "id": "r1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
        **more,
    }
    if usage == "default":
        body["usage"] = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
    elif usage is not None:
        body["usage"] = usage
    return body


Script = Callable[[Received], Answer | Json | str]


class FakeEndpoint:
    """Serves `script` until left. `requests` are all that arrived, `most_in_flight` the high-water mark."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Received] = []
        self.in_flight = self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-endpoint", daemon=True)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> FakeEndpoint:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 24)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (received := await self._read(reader)) is not None:
                self.requests.append(received)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    keep = await self._answer(received, writer)
                finally:
                    self.in_flight -= 1
                if not keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Received | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines) if k}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        return Received(method, path, headers, json.loads(raw) if raw else {}, len(self.requests))

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> bool:
        """Writes the answer; returns whether the connection stays open."""
        answer = self.script(received)
        if isinstance(answer, str):
            answer = Answer(json=completion(answer))
        elif isinstance(answer, dict):
            answer = Answer(json=answer)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.hang:
            await asyncio.sleep(3600)
        if answer.reset:
            writer.transport.abort()
            return False
        if answer.events is not None:
            return await self._stream(answer, writer)
        body = answer.body if answer.body is not None else json.dumps(answer.json).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
        head = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode() + body[: answer.cut])
        await writer.drain()
        return answer.cut is None

    async def _stream(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        headers = {"content-type": "text/event-stream", "connection": "close", **answer.headers}
        head = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode())
        for delay, event in answer.events or ():
            await asyncio.sleep(delay)
            writer.write(event.encode("utf-8"))
            await writer.drain()
        return False


def error(status: int, message: str, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    """An error answer in OpenAI's shape."""
    return Answer(status=status, json={"error": {"message": message, **fields}}, headers=headers or {})
