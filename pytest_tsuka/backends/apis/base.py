"""What every API is to the backend: a route, headers, a body for a request, and the reply in an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_tsuka.conversation import Usage
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer holds: an assistant message as chat completions have it, how it ended, its tokens.

    Whatever else the server put on its turn is in the message too, under names of its own, and goes back
    to the server with the next request.
    """

    message: JsonObject
    finish_reason: str | None
    usage: Usage
    timings: JsonValue = None


class StreamError(Exception):
    """The stream itself says that something went wrong; `body` is an error body as for a whole answer."""

    def __init__(self, body: JsonObject) -> None:
        super().__init__(str(body))
        self.body = body


class Stream(Protocol):
    """Puts the events of a stream together to the body that a whole answer would have had."""

    @property
    def started(self) -> bool:
        """Whether any part of the reply has arrived."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the reply is complete."""
        ...

    def feed(self, event: JsonObject) -> None:
        """One event. Raises StreamError."""
        ...

    def body(self) -> JsonObject: ...


class Api(Protocol):
    """One way to talk to an endpoint. Stateless."""

    name: str
    route: str
    required: frozenset[str]
    """Parameters that are never left out, whatever a server says about them."""
    defaults: JsonObject
    """Parameters that are sent unless the user says otherwise."""

    def headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key, and those without which the API does not answer."""
        ...

    def effort_fields(self, style: str, effort: str) -> JsonObject:
        """What a body carries to ask for an effort. Raises SettingsError for a style it does not know."""
        ...

    def body(
        self, request: Request, params: Mapping[str, JsonValue], effort: JsonObject, *, stream: bool
    ) -> JsonObject: ...

    def probe(self, model: str) -> JsonObject:
        """The smallest request, which tells whether an endpoint speaks this API."""
        ...

    def played_back(self, body: JsonObject) -> Iterable[JsonObject]:
        """The objects of a body that came from the server itself, of which it may not want some field back."""
        ...

    def read(self, body: JsonObject) -> Said | None:
        """The reply in a whole body, None where there is none."""
        ...

    def stream(self) -> Stream: ...


def count(value: Any) -> int | None:
    """A token count; None for anything that cannot be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        return None
    return int(value)


def sum_known(*values: int | None) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def usable_arguments(call: JsonObject) -> str:
    """The arguments of a call in a history, which are always a JSON object's text there."""
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else "{}"
