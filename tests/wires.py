"""Fake servers for each API: what a model is to say, in the words of that API, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.endpoint import Answer, Json, Received

APIS = ("chat", "responses", "anthropic")
ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}


@dataclass
class Says:
    """One turn of a model. `calls` are (name, arguments); `signature` is what the server wants back with them."""

    text: str = ""
    calls: list[tuple[str, Json]] = field(default_factory=list)
    thinking: str = ""
    signature: str = "c2lnbmVk"
    refusal: str = ""
    cut: bool = False


def api_of(received: Received) -> str:
    return next(api for api, route in ROUTES.items() if received.path == route)


def turns_so_far(received: Received) -> int:
    """How many turns the model has had already."""
    items = received.body.get("input", ())
    if items:
        own = [i for i in items if isinstance(i, dict)]
        return sum(i.get("type") in ("function_call", "message") or i.get("role") == "assistant" for i in own)
    return sum(m["role"] == "assistant" for m in received.body["messages"])


def answer(api: str, says: Says, *, stream: bool) -> Answer:
    body = {"chat": _chat, "responses": _responses, "anthropic": _anthropic}[api](says)
    if not stream:
        return Answer(json=body)
    events = {"chat": _chat_events, "responses": _responses_events, "anthropic": _anthropic_events}[api](body)
    return Answer(events=[(0.0, event) for event in events])


def speaking(api: str, script: Callable[[int, Received], Says | Answer]) -> Callable[[Received], Answer]:
    """A server of one API only: `script(turn, received)` says what the model answers, other routes are 404."""

    def serve(received: Received) -> Answer:
        if received.path != ROUTES[api]:
            return Answer(404, json={"detail": "Not Found"})
        said = script(turns_so_far(received), received)
        return answer(api, said, stream=bool(received.body.get("stream"))) if isinstance(said, Says) else said

    return serve


# --- whole answers -------------------------------------------------------------------------


def _chat(says: Says) -> Json:
    message: Json = {"role": "assistant", "content": says.text or None, "refusal": says.refusal or None}
    if says.thinking:
        message["reasoning_content"] = says.thinking
    if says.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
                "extra_content": {"google": {"thought_signature": says.signature}},
            }
            for n, (name, arguments) in enumerate(says.calls)
        ]
    finish = "length" if says.cut else "tool_calls" if says.calls else "stop"
    return {
        "id": "r1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9},
    }


def _responses(says: Says) -> Json:
    output: list[Json] = []
    if says.thinking:
        summary = [{"type": "summary_text", "text": says.thinking}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": says.signature})
    if says.text or says.refusal:
        part: Json = {"type": "refusal", "refusal": says.refusal}
        if says.text:
            part = {"type": "output_text", "text": says.text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for n, (name, arguments) in enumerate(says.calls):
        call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name}
        output.append({**call, "arguments": json.dumps(arguments), "status": "completed"})
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete" if says.cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if says.cut else None,
        "error": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 4,
            "total_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 2 if says.thinking else 0},
        },
    }


def _anthropic(says: Says) -> Json:
    content: list[Json] = []
    if says.thinking:
        content.append({"type": "thinking", "thinking": says.thinking, "signature": says.signature})
    if says.text:
        content.append({"type": "text", "text": says.text})
    content += [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments}
        for n, (name, arguments) in enumerate(says.calls)
    ]
    details = {"type": "refusal", "category": None, "explanation": says.refusal} if says.refusal else None
    stop = "max_tokens" if says.cut else "refusal" if says.refusal else "tool_use" if says.calls else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_details": details,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 4},
    }


# --- streams -------------------------------------------------------------------------------


def _event(data: Json, *, named: bool = False) -> str:
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _halves(text: str) -> Iterator[str]:
    yield from (part for part in (text[: len(text) // 2], text[len(text) // 2 :]) if part)


def _chat_events(body: Json) -> Iterator[str]:
    def chunk(delta: Json, finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(
            {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
        )

    message = body["choices"][0]["message"]
    yield chunk({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content", "refusal"):
        for piece in _halves(message.get(key) or ""):
            yield chunk({key: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = list(_halves(call["function"]["arguments"]))
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": arguments[0]}}
        yield chunk({"tool_calls": [head]})
        for piece in arguments[1:]:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, body["choices"][0]["finish_reason"])
    usage = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    yield _event({**usage, "usage": body["usage"]})
    yield "data: [DONE]\n\n"


def _responses_events(body: Json) -> Iterator[str]:
    sequence = iter(range(1000))

    def event(kind: str, **more: Any) -> str:
        return _event({"type": kind, "sequence_number": next(sequence), **more}, named=True)

    yield event("response.created", response={**body, "status": "in_progress", "output": []})
    for index, item in enumerate(body["output"]):
        yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        if item["type"] == "message" and item["content"][0]["type"] == "output_text":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            for piece in _halves(item["content"][0]["text"]):
                yield event("response.output_text.delta", delta=piece, logprobs=[], **place)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.incomplete" if body["status"] == "incomplete" else "response.completed", response=body)


def _anthropic_events(body: Json) -> Iterator[str]:
    start = {**body, "content": [], "stop_reason": None, "stop_details": None}
    yield _event({"type": "message_start", "message": start}, named=True)
    yield _event({"type": "ping"}, named=True)
    for index, block in enumerate(body["content"]):
        empty: Json = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}
        opened = {**block, **empty[block["type"]]}
        yield _event({"type": "content_block_start", "index": index, "content_block": opened}, named=True)
        deltas: list[Json] = []
        match block["type"]:
            case "thinking":
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _halves(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                deltas = [{"type": "text_delta", "text": piece} for piece in _halves(block["text"])]
            case "tool_use":
                text = json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_halves(text))]
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta}, named=True)
        yield _event({"type": "content_block_stop", "index": index}, named=True)
    end = {k: body[k] for k in ("stop_reason", "stop_sequence", "stop_details")}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 4}}, named=True)
    yield _event({"type": "message_stop"}, named=True)
