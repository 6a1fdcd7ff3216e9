"""OpenAI's chat completions, which most servers speak in a dialect of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tsuka.backends.apis.base import Said, StreamError, count
from pytest_tsuka.backends.apis.pieces import joined, joined_content
from pytest_tsuka.conversation import Usage
from pytest_tsuka.efforts import effort_fields
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue


class Chat:
    """`/chat/completions`."""

    name = "chat"
    route = "chat/completions"
    required: frozenset[str] = frozenset()
    defaults: JsonObject = {"temperature": 0}  # noqa: RUF012

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def effort_fields(self, style: str, effort: str) -> JsonObject:
        return effort_fields(style, effort)

    def body(
        self, request: Request, params: Mapping[str, JsonValue], effort: JsonObject, *, stream: bool
    ) -> JsonObject:
        body: JsonObject = {"model": request.model, "messages": list(request.messages)}
        if request.tools:
            body["tools"] = list(request.tools)
        body |= {**effort, **params}
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return body

    def probe(self, model: str) -> JsonObject:
        return {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}

    def played_back(self, body: JsonObject) -> Iterator[JsonObject]:
        """Assistant messages, their calls, and the functions of those."""
        for message in body.get("messages", ()):
            if message.get("role") == "assistant":
                yield message
                for call in message.get("tool_calls") or ():
                    yield call
                    yield call["function"]

    def read(self, body: JsonObject) -> Said | None:
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            return None
        finish = choice.get("finish_reason")
        return Said(
            choice["message"],
            finish if isinstance(finish, str) else None,
            _usage(body.get("usage")),
            body.get("timings"),
        )

    def stream(self) -> ChatStream:
        return ChatStream()


CHAT = Chat()


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else usage.get("reasoning_tokens")
    return Usage(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), count(reasoning))


class ChatStream:
    """Collects the deltas of the first choice into a message."""

    def __init__(self) -> None:
        self.finished = False
        self._message: JsonObject = {}
        self._calls: dict[Any, JsonObject] = {}
        self._body: JsonObject = {}
        self._finish: str | None = None

    @property
    def started(self) -> bool:
        return bool(self._calls) or any(value for key, value in self._message.items() if key != "role")

    def feed(self, event: JsonObject) -> None:
        if event.get("error"):
            raise StreamError(event)
        for key in ("usage", "timings", "id", "model"):
            if event.get(key) is not None:
                self._body[key] = event[key]
        choices = event.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])

    def _choice(self, choice: dict[str, Any]) -> None:
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
            self.finished = True
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value if isinstance(value, list) else [value]:
                    if isinstance(call, dict):
                        self._call(call)
            elif key == "content":
                self._message[key] = joined_content(self._message.get(key), value)
            else:
                self._message[key] = joined(self._message.get(key), value, key)

    def _call(self, call: dict[str, Any]) -> None:
        """A piece of a call: by its index, else by its id, else it goes on with the last one."""
        given = call.get("id")
        function = call.get("function")
        named = isinstance(function, dict) and function.get("name")
        if isinstance(call.get("index"), int):
            key: Any = call["index"]
            known = self._calls.get(key)
            if known and given and known.get("id") and given != known["id"] and named:
                key = (key, given)  # some servers number every call 0
        elif given or not self._calls:
            key = given or len(self._calls)
        else:
            key = next(reversed(self._calls))
        before = self._calls.get(key, {})
        piece = {name: value for name, value in call.items() if name not in ("index", "function")}
        made: JsonObject = joined(before, piece)
        if isinstance(function, dict):
            made["function"] = _function(before.get("function") or {}, function)
        self._calls[key] = made

    def body(self) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": "", **self._message}
        if self._calls:
            message["tool_calls"] = list(self._calls.values())
        return {**self._body, "choices": [{"index": 0, "message": message, "finish_reason": self._finish}]}


def _function(before: JsonObject, piece: JsonObject) -> JsonObject:
    """The name may be said whole again, or go on; arguments that are an object replace what was there."""
    made: JsonObject = joined(before, {k: v for k, v in piece.items() if k not in ("name", "arguments")})
    name = piece.get("name")
    if isinstance(name, str) and before.get("name") != name:
        made["name"] = before.get("name", "") + name
    arguments, known = piece.get("arguments"), before.get("arguments", "")
    if isinstance(arguments, dict):
        made["arguments"] = arguments
    elif isinstance(arguments, str) and isinstance(known, str):
        made["arguments"] = known + arguments
    return made
