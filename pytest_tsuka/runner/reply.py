"""From the message a server sent to the reply that checks see, whatever shape it came in."""

from __future__ import annotations

import json
import re

from pytest_tsuka.conversation import Exchange, Reply, ToolCall
from pytest_tsuka.errors import closest
from pytest_tsuka.runner.text_calls import find_text_calls
from pytest_tsuka.text.json_types import JsonObject, JsonValue, json_type, shorten
from pytest_tsuka.text.normalise import normalise, without_surrogates

_THINKING = r"(?:think|thinking|reasoning|thought)(?:\s[^<>]*)?"
_OPEN = re.compile(rf"\s*<{_THINKING}(/?)>", re.IGNORECASE)
_TAG = re.compile(rf"<(/?){_THINKING}>", re.IGNORECASE)


def read_reply(exchange: Exchange, offered: tuple[str, ...] = (), *, accept_text_calls: bool = False) -> Reply:
    """The normalised reply. `offered` are the names of the tools the request carried."""
    message = exchange.message
    raw = content_text(message.get("content"))
    if not raw and isinstance(refusal := message.get("refusal"), str):
        raw = refusal
    reasoning, answer = split_thinking(raw)
    apart = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(apart, str) and apart.strip():
        reasoning = apart.strip() if not reasoning else f"{apart.strip()}\n{reasoning}"
    text = normalise(answer)
    calls = tuple(read_call(call) for call in _listed_calls(message))
    written = () if calls else find_text_calls(text, offered)
    if written and accept_text_calls:
        calls, written = written, ()
    notes = (*exchange.notes, *_notes(text, reasoning, calls, written, offered))
    return Reply(
        text=text,
        raw_text=without_surrogates(raw),
        answer=answer,
        reasoning=without_surrogates(reasoning),
        tool_calls=calls,
        text_calls=written,
        finish_reason=exchange.finish_reason,
        notes=notes,
    )


def content_text(content: JsonValue) -> str:
    """`content` as text: null is empty, of a list of parts the text parts are joined."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    pieces: list[str] = []
    for part in content:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
            text = part.get("text")
            if isinstance(text, dict):
                text = text.get("value")
            pieces.append(text if isinstance(text, str) else "")
    return "".join(pieces)


def split_thinking(text: str) -> tuple[str, str]:
    """(reasoning, answer): leading thinking blocks are reasoning, a tag met later is text.

    An opening tag that is never closed swallows the rest; a closing tag without an opening one
    swallows all before it.
    """
    thoughts: list[str] = []
    text = text.lstrip("\ufeff")
    orphan_closing = True
    while opening := _OPEN.match(text):
        orphan_closing = False
        start = opening.end()
        if opening.group(1):  # <think/>
            text = text[start:]
            continue
        tags = list(_TAG.finditer(text, start))
        closing = next((tag for tag in tags if tag.group(1)), None)
        if closing is None:
            thoughts.append(text[start:])
            text = ""
            break
        thoughts.append(text[start : closing.start()])
        # A thought that opened a second block will be closed twice.
        orphan_closing = tags[0] is not closing
        text = text[closing.end() :]
    first = _TAG.search(text)
    if orphan_closing and first and first.group(1):
        thoughts.append(text[: first.start()])
        text = text[first.end() :]
    return "\n".join(t.strip() for t in thoughts if t.strip()), text


def _listed_calls(message: JsonObject) -> list[JsonObject]:
    """The function objects of `tool_calls`, or of the legacy `function_call`, ids included."""
    listed = message.get("tool_calls")
    if isinstance(listed, dict):
        listed = [listed]
    found: list[JsonObject] = []
    for call in listed if isinstance(listed, list) else []:
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        body: JsonObject = function if isinstance(function, dict) else call
        found.append({**body, "id": call.get("id")})
    legacy = message.get("function_call")
    if not found and isinstance(legacy, dict):
        found.append({**legacy, "id": None})
    return found


def read_call(function: JsonObject) -> ToolCall:
    """One call with its arguments decoded; what cannot be used is kept raw with its problem."""
    name, call_id = function.get("name"), function.get("id")
    arguments, raw, problem, repaired = read_arguments(function.get("arguments"))
    return ToolCall(
        name=without_surrogates(name).strip() if isinstance(name, str) else "",
        arguments=arguments,
        raw_arguments=raw,
        id=call_id if isinstance(call_id, str) else "",
        problem=problem,
        repaired=repaired,
    )


def read_arguments(value: JsonValue) -> tuple[JsonObject | None, str, str | None, bool]:
    """(arguments, raw text, problem, repaired) for every form in which servers send them."""
    if value is None:
        return {}, "", None, False
    if isinstance(value, dict):
        return value, json.dumps(value, ensure_ascii=False), None, False
    if not isinstance(value, str):
        raw = json.dumps(value)
        return None, raw, f"its arguments are {_article(json_type(value))}, not an object", False
    if not value.strip():
        return {}, value, None, False
    return _read_argument_text(value)


def _read_argument_text(raw: str) -> tuple[JsonObject | None, str, str | None, bool]:
    from pytest_tsuka.text.json_find import repair_whole
    from pytest_tsuka.text.json_strict import parse_whole

    parsed = parse_whole(raw.strip())
    repaired = False
    if parsed is None:
        parsed = repair_whole(raw.strip())
        repaired = True
    if parsed is None:
        return None, raw, f"its arguments are cut off or no JSON: {shorten(raw)}", False
    value = parsed.value
    if isinstance(value, str):  # encoded twice, as some gateways do
        inner = parse_whole(value.strip()) if value.strip() else None
        if not value.strip():
            return {}, raw, None, False
        value = inner.value if inner is not None else value
    if value is None:
        return {}, raw, None, repaired
    if not isinstance(value, dict):
        return None, raw, f"its arguments are {_article(json_type(value))}, not an object", repaired
    return value, raw, None, repaired


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _notes(
    text: str,
    reasoning: str,
    calls: tuple[ToolCall, ...],
    written: tuple[ToolCall, ...],
    offered: tuple[str, ...],
) -> list[str]:
    notes: list[str] = []
    if not text and not calls and reasoning:
        notes.append(
            f"content is empty; {len(reasoning)} characters of reasoning"
            " (if the answer is in there, look at the server's reasoning parser)"
        )
    for call in calls:
        if call.name not in offered:
            near = closest(call.name, offered)
            hint = f" (closest offered: {near!r})" if near else " (no tool was offered)" if not offered else ""
            notes.append(f"the model called unknown tool {call.name!r}{hint}")
        if call.problem:
            notes.append(f"call of {call.name!r}: {call.problem}")
        elif call.repaired:
            notes.append(f"call of {call.name!r}: its arguments were repaired")
    if written:
        names = ", ".join(repr(call.name) for call in written)
        notes.append(f"a call of {names} was written as text, not made: an agent could not have executed it")
    return notes
