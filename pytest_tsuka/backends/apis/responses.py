"""OpenAI's Responses API, without state at the server: what it said goes back to it item by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tsuka.backends.apis.base import Said, StreamError, count, usable_arguments
from pytest_tsuka.conversation import FILTER_FINISH, Usage
from pytest_tsuka.efforts import api_effort_fields
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue

OUTPUT = "responses_output"
"""The field of an assistant message that keeps the items as they came."""
_MOST_TOKENS = ("max_tokens", "max_completion_tokens")
_ENDS = {"max_output_tokens": "length", "content_filter": FILTER_FINISH}
_LAST = ("response.completed", "response.incomplete", "response.failed")


class Responses:
    """`/responses`, with `store: false` and the reasoning encrypted, to be played back."""

    name = "responses"
    route = "responses"
    required: frozenset[str] = frozenset()
    defaults: JsonObject = {"temperature": 0}  # noqa: RUF012

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def effort_fields(self, style: str, effort: str) -> JsonObject:
        return api_effort_fields(self.name, style, {"reasoning": {"effort": effort}})

    def body(
        self, request: Request, params: Mapping[str, JsonValue], effort: JsonObject, *, stream: bool
    ) -> JsonObject:
        body: JsonObject = {
            "model": request.model,
            "input": [item for message in request.messages for item in _items(message)],
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if request.tools:
            body["tools"] = [_tool(tool["function"]) for tool in request.tools]
        for name, value in params.items():
            body["max_output_tokens" if name in _MOST_TOKENS else name] = value
        body |= effort
        if stream:
            body["stream"] = True
        return body

    def probe(self, model: str) -> JsonObject:
        return {"model": model, "input": "Hi", "max_output_tokens": 16, "store": False}

    def played_back(self, body: JsonObject) -> tuple[JsonObject, ...]:
        """Nothing: what this API says goes back as it is or not at all."""
        return ()

    def read(self, body: JsonObject) -> Said | None:
        output = body.get("output")
        if not isinstance(output, list) or body.get("status") == "failed":
            return None
        items = [item for item in output if isinstance(item, dict)]
        text, refusal, thoughts, calls = "", "", "", []
        for item in items:
            match item.get("type"):
                case "message":
                    text += _joined(item, "output_text", "text")
                    refusal += _joined(item, "refusal", "refusal")
                case "reasoning":
                    thoughts += _joined(item, "reasoning_text", "text") or _joined(
                        item, "summary_text", "text", "summary"
                    )
                case "function_call":
                    function = {"name": item.get("name"), "arguments": item.get("arguments")}
                    calls.append({"id": item.get("call_id"), "type": "function", "function": function})
        if not items and body.get("status") not in ("completed", "incomplete"):
            return None
        message: JsonObject = {"role": "assistant", "content": text, OUTPUT: items}
        message |= {"refusal": refusal} if refusal else {}
        message |= {"reasoning": thoughts} if thoughts else {}
        message |= {"tool_calls": calls} if calls else {}
        return Said(message, _finish(body, bool(calls)), _usage(body.get("usage")))

    def stream(self) -> ResponsesStream:
        return ResponsesStream()


def _tool(function: JsonObject) -> JsonObject:
    """Not strict: that would change the schema which the checks hold arguments against."""
    kept = {"description": function["description"]} if function.get("description") else {}
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return {"type": "function", "name": function["name"], **kept, "parameters": parameters, "strict": False}


def _items(message: JsonObject) -> Iterator[JsonObject]:
    """The input items of a message; an assistant's own items as they came, its calls as the history has them."""
    role = message["role"]
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif role != "assistant":
        yield {"role": role, "content": message["content"]}
    elif isinstance(kept := message.get(OUTPUT), list):
        yield from _kept_items(kept, list(message.get("tool_calls") or ()))
    else:
        if message.get("content"):
            yield {"role": "assistant", "content": message["content"]}
        for call in message.get("tool_calls") or ():
            yield _call(call)


def _kept_items(kept: list[JsonObject], calls: list[JsonObject]) -> Iterator[JsonObject]:
    """Reasoning goes back only with what it led to: a call that is left out takes the reasoning before it along."""
    waiting: list[JsonObject] = []
    for item in kept:
        if item.get("type") == "reasoning":
            waiting.append(item)
            continue
        if item.get("type") == "function_call":
            if calls:
                yield from waiting
                yield item | _call(calls.pop(0))
        else:
            yield from waiting
            yield item
        waiting = []
    yield from map(_call, calls)  # calls that the model only wrote as text


def _call(call: JsonObject) -> JsonObject:
    name = call["function"]["name"]
    return {"type": "function_call", "call_id": call["id"], "name": name, "arguments": usable_arguments(call)}


def _joined(item: JsonObject, kind: str, field: str, name: str = "content") -> str:
    parts = item.get(name)
    found = (p for p in parts if isinstance(p, dict) and p.get("type") == kind) if isinstance(parts, list) else ()
    return "".join(part[field] for part in found if isinstance(part.get(field), str))


def _finish(body: JsonObject, called: bool) -> str:  # noqa: FBT001
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if body.get("status") == "incomplete" or reason:
        return _ENDS.get(str(reason), str(reason or "incomplete"))
    return "tool_calls" if called else "stop"


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("output_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(count(usage.get("input_tokens")), count(usage.get("output_tokens")), count(reasoning))


class ResponsesStream:
    """The last event holds the whole response; items are collected for servers that leave them out there."""

    def __init__(self) -> None:
        self.started = self.finished = False
        self._items: list[JsonObject] = []
        self._response: JsonObject = {}

    def feed(self, event: JsonObject) -> None:
        kind = str(event.get("type", ""))
        if kind == "error" or (not kind and event.get("error")):
            raise StreamError(event if isinstance(event.get("error"), dict) else {"error": event})
        if kind.endswith(".delta"):
            self.started = True
        if kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            self._items.append(event["item"])
        if kind in _LAST and isinstance(event.get("response"), dict):
            self._response = event["response"]
            self.finished = self.started = True
            if kind == "response.failed":
                raise StreamError(self._response)

    def body(self) -> JsonObject:
        return {**self._response, "output": self._response.get("output") or self._items}
