"""Anthropic's Messages API: thinking blocks go back with their signatures, results as blocks of a user message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tsuka.backends.apis.base import Said, StreamError, count, sum_known, usable_arguments
from pytest_tsuka.backends.apis.pieces import joined
from pytest_tsuka.conversation import Usage
from pytest_tsuka.efforts import api_effort_fields
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue

VERSION = "2023-06-01"
BLOCKS = "anthropic_content"
"""The field of an assistant message that keeps the blocks as they came."""
MAX_TOKENS = 16_384
"""The API wants a limit. This one leaves room for the largest thinking budget and an answer."""
BUDGETS = {"low": 1024, "medium": 4096, "xhigh": 12_288}
"""Tokens of thinking for models that know no effort levels (style `thinking_budget`); 1,024 is the API's least."""
_ENDS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Anthropic:
    """`/messages`."""

    name = "anthropic"
    route = "messages"
    required = frozenset({"max_tokens"})
    defaults: JsonObject = {}  # noqa: RUF012 - the API of today knows no temperature

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def effort_fields(self, style: str, effort: str) -> JsonObject:
        """Levels of effort where thinking adapts to them; budgets of thinking on request."""
        off: JsonObject = {"thinking": {"type": "disabled"}}
        adaptive: JsonObject = {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        if style == "thinking_budget":
            return off if effort == "none" else {"thinking": {"type": "enabled", "budget_tokens": BUDGETS[effort]}}
        return api_effort_fields(self.name, style, off if effort == "none" else adaptive)

    def body(
        self, request: Request, params: Mapping[str, JsonValue], effort: JsonObject, *, stream: bool
    ) -> JsonObject:
        system = [m["content"] for m in request.messages if m["role"] == "system"]
        body: JsonObject = {"model": request.model, "max_tokens": MAX_TOKENS, "messages": _messages(request)}
        if system:
            body["system"] = "\n\n".join(system)
        if request.tools:
            body["tools"] = [_tool(tool["function"]) for tool in request.tools]
        for name, value in params.items():
            body["max_tokens" if name == "max_completion_tokens" else name] = value
        body |= effort
        if stream:
            body["stream"] = True
        return body

    def probe(self, model: str) -> JsonObject:
        return {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}

    def played_back(self, body: JsonObject) -> tuple[JsonObject, ...]:
        """Nothing: what this API says goes back as it is or not at all."""
        return ()

    def read(self, body: JsonObject) -> Said | None:
        content = body.get("content")
        if not isinstance(content, list) or body.get("type", "message") != "message":
            return None
        blocks = [block for block in content if isinstance(block, dict)]
        calls = [
            {"id": b.get("id"), "type": "function", "function": {"name": b.get("name"), "arguments": b.get("input")}}
            for b in blocks
            if b.get("type") == "tool_use"
        ]
        message: JsonObject = {"role": "assistant", "content": _text(blocks, "text"), BLOCKS: blocks}
        if thoughts := _text(blocks, "thinking"):
            message["reasoning"] = thoughts
        if calls:
            message["tool_calls"] = calls
        stop = body.get("stop_reason")
        if stop == "refusal":
            message["refusal"] = _why_refused(body) or message["content"] or "refused"
        return Said(message, _ENDS.get(stop, stop) if isinstance(stop, str) else None, _usage(body.get("usage")))

    def stream(self) -> AnthropicStream:
        return AnthropicStream()


def _tool(function: JsonObject) -> JsonObject:
    kept = {"description": function["description"]} if function.get("description") else {}
    return {"name": function["name"], **kept, "input_schema": {"type": "object", **(function.get("parameters") or {})}}


def _messages(request: Request) -> list[JsonObject]:
    """User and assistant in turn: what one side says in several messages becomes blocks of one."""
    made: list[JsonObject] = []
    for message in request.messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = list(_blocks(message))
        if not blocks:
            continue
        if made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        else:
            made.append({"role": role, "content": blocks})
    return made


def _blocks(message: JsonObject) -> Iterator[JsonObject]:
    if message["role"] == "tool":
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return
    calls = list(message.get("tool_calls") or ())
    kept = message.get(BLOCKS)
    if not isinstance(kept, list):
        if message.get("content"):
            yield {"type": "text", "text": message["content"]}
        yield from map(_call, calls)
        return
    # Thinking must not be the last thing said: without the call it led to it stays out.
    said_more = bool(calls) or any(b.get("type") not in ("thinking", "redacted_thinking", "tool_use") for b in kept)
    for block in kept:
        if block.get("type") == "tool_use":
            if calls:
                yield block | _call(calls.pop(0))
        elif block.get("type") == "text":
            if block.get("text"):  # an empty one is an error in a request
                yield block
        elif said_more:
            yield block
    yield from map(_call, calls)  # calls that the model only wrote as text


def _call(call: JsonObject) -> JsonObject:
    arguments = json.loads(usable_arguments(call))
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}


def _text(blocks: list[JsonObject], kind: str) -> str:
    return "".join(b[kind] for b in blocks if b.get("type") == kind and isinstance(b.get(kind), str))


def _why_refused(body: JsonObject) -> str:
    details = body.get("stop_details")
    return str(details.get("explanation") or "") if isinstance(details, dict) else ""


def _usage(usage: Any) -> Usage:
    """Tokens read from or written to a cache are prompt tokens as well."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(sum_known(*(count(usage.get(n)) for n in _USAGE)), count(usage.get("output_tokens")), count(thinking))


class AnthropicStream:
    """Blocks grow by deltas; the message's end brings how it ended and what it used."""

    def __init__(self) -> None:
        self.started = self.finished = False
        self._message: JsonObject = {}
        self._blocks: dict[Any, JsonObject] = {}
        self._inputs: dict[Any, str] = {}

    def feed(self, event: JsonObject) -> None:
        match event.get("type"):
            case "error":
                raise StreamError(event)
            case "message_start" if isinstance(event.get("message"), dict):
                self._message = dict(event["message"])
            case "content_block_start" if isinstance(event.get("content_block"), dict):
                self._blocks[event.get("index")] = dict(event["content_block"])
            case "content_block_delta" if isinstance(event.get("delta"), dict):
                self.started = True
                self._delta(event.get("index"), event["delta"])
            case "message_delta":
                delta, usage = event.get("delta"), event.get("usage")
                self._message |= delta if isinstance(delta, dict) else {}
                if isinstance(usage, dict):
                    known = {k: v for k, v in usage.items() if v is not None}
                    self._message["usage"] = {**(self._message.get("usage") or {}), **known}
            case "message_stop":
                self.finished = True
            case None if event.get("error"):
                raise StreamError(event)

    def _delta(self, index: Any, delta: JsonObject) -> None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        if delta.get("type") == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
            return
        for key, value in delta.items():
            if key == "citation":
                block["citations"] = [*(block.get("citations") or ()), value]
            elif key != "type":
                block[key] = joined(block.get(key), value, key)

    def body(self) -> JsonObject:
        for index, text in self._inputs.items():
            if text.strip():  # as text: arguments that are cut off or broken are read as any others are
                self._blocks[index]["input"] = text
        return {"type": "message", **self._message, "content": list(self._blocks.values())}
