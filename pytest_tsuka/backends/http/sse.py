"""Event streams: bytes to the JSON objects that the events carry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from pytest_tsuka.text.json_types import JsonObject


class StreamBroken(Exception):
    """The stream says something that makes the reply unusable."""


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[JsonObject | None]:
    """The object of each event, None for `[DONE]`. Raises StreamBroken, or UnicodeDecodeError.

    Event streams are UTF-8 whatever the header says or leaves out.
    """
    buffer = b""
    data: list[bytes] = []
    async for chunk in chunks:
        buffer += chunk
        *lines, buffer = buffer.replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line.strip() and data:
                yield _read(data)
                data = []
    if buffer.startswith(b"data:"):
        data.append(buffer[5:].strip())
    if data:
        yield _read(data)


def _read(data: list[bytes]) -> JsonObject | None:
    text = b"\n".join(data).decode("utf-8")
    if text.strip() == "[DONE]":
        return None
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        raise StreamBroken(f"an event is not JSON: {text[:80]!r}") from None
    if not isinstance(event, dict):
        raise StreamBroken(f"an event is no object: {text[:80]!r}")
    return event
