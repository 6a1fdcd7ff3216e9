"""Event streams: chunks put together to the one completion they are pieces of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pytest_tsuka.text.json_types import JsonObject


class StreamBroken(Exception):
    """The stream ended, or said something, that makes the reply unusable."""


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each event. Event streams are UTF-8 whatever the header says or leaves out."""
    buffer = b""
    data: list[bytes] = []
    async for chunk in chunks:
        buffer += chunk
        *lines, buffer = buffer.replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line.strip() and data:
                yield b"\n".join(data).decode("utf-8")
                data = []
    if buffer.startswith(b"data:"):
        data.append(buffer[5:].strip())
    if data:
        yield b"\n".join(data).decode("utf-8")


class Completion:
    """Collects the deltas of the first choice into a message."""

    def __init__(self) -> None:
        self.finished = False
        self._text: dict[str, list[str]] = {
            "content": [],
            "reasoning_content": [],
            "reasoning": [],
            "refusal": [],
        }
        self._calls: dict[Any, JsonObject] = {}
        self._body: JsonObject = {}
        self._finish: str | None = None

    @property
    def started(self) -> bool:
        """Whether any token has arrived."""
        return bool(self._calls) or any(self._text.values())

    def feed(self, event: str) -> None:
        """One event. Raises StreamBroken for an error event or one that is no JSON."""
        if event.strip() == "[DONE]":
            self.finished = True
            return
        try:
            chunk = json.loads(event)
        except ValueError:
            raise StreamBroken(f"an event is not JSON: {event[:80]!r}") from None
        if not isinstance(chunk, dict):
            raise StreamBroken(f"an event is no object: {event[:80]!r}")
        if chunk.get("error"):
            raise StreamBroken(f"the stream says: {json.dumps(chunk['error'])[:300]}")
        for key in ("usage", "timings", "id", "model"):
            if chunk.get(key) is not None:
                self._body[key] = chunk[key]
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])

    def _choice(self, choice: dict[str, Any]) -> None:
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
            self.finished = True
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return
        for key, pieces in self._text.items():
            if isinstance(delta.get(key), str) and delta[key]:
                pieces.append(delta[key])
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._call(call)

    def _call(self, call: dict[str, Any]) -> None:
        """A piece of a call: by its index, else by its id, else it goes on with the last one."""
        given = call.get("id")
        if isinstance(call.get("index"), int):
            key: Any = call["index"]
            known = self._calls.get(key)
            if known and given and known["id"] and given != known["id"] and (call.get("function") or {}).get("name"):
                key = (key, given)  # some servers number every call 0
        elif given or not self._calls:
            key = given or len(self._calls)
        else:
            key = next(reversed(self._calls))
        made: Any = self._calls.setdefault(key, {"id": "", "name": "", "arguments": ""})
        function = call.get("function") if isinstance(call.get("function"), dict) else {}
        assert isinstance(function, dict)
        made["id"] = made["id"] or given or ""
        if isinstance(function.get("name"), str) and made["name"] != function["name"]:
            made["name"] += function["name"]
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            made["arguments"] = arguments
        elif isinstance(arguments, str) and isinstance(made["arguments"], str):
            made["arguments"] += arguments

    def body(self) -> JsonObject:
        """The completion as a server that does not stream would have sent it."""
        message: JsonObject = {"role": "assistant"}
        for key, pieces in self._text.items():
            if pieces or key == "content":
                message[key] = "".join(pieces)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": c["id"],
                    "type": "function",
                    "function": {"name": c["name"], "arguments": c["arguments"]},
                }
                for c in self._calls.values()
            ]
        return {**self._body, "choices": [{"index": 0, "message": message, "finish_reason": self._finish}]}
