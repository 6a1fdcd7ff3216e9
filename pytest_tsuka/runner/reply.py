"""From the message a server sent to the reply that checks see, whatever shape it came in."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pytest_tsuka.conversation import REFUSAL_FINISH, Exchange, Reply, ToolCall
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
    content = read_content(message.get("content"))
    raw = content.text
    said_apart = message.get("refusal")
    refusal = said_apart if isinstance(said_apart, str) and said_apart.strip() else content.refusal
    if exchange.finish_reason == REFUSAL_FINISH:
        refusal = refusal or raw
    reasoning, answer = split_thinking(raw)
    apart = message.get("reasoning_content") or message.get("reasoning")
    thoughts = [apart if isinstance(apart, str) else "", content.thinking, reasoning]
    reasoning = "\n".join(dict.fromkeys(t.strip() for t in thoughts if t.strip()))
    refusal = without_surrogates(refusal).strip()
    ended = Reply("", finish_reason=exchange.finish_reason, refusal=refusal, notes=exchange.notes)
    if ended.no_answer is not None:  # what was said instead of an answer, or before a filter cut it off, is none
        answer = ""
    text = normalise(answer)
    calls = tuple(read_call(function_of(call)) for call in listed_calls(message))
    written = () if calls else find_text_calls(text, offered)
    if written and accept_text_calls:
        calls, written = written, ()
    notes = (*exchange.notes, *_notes(ended, text, reasoning, calls, written, offered))
    return Reply(
        text=text,
        raw_text=without_surrogates(raw),
        answer=answer,
        reasoning=without_surrogates(reasoning),
        tool_calls=calls,
        text_calls=written,
        finish_reason=exchange.finish_reason,
        notes=notes,
        refusal=ended.refusal,
    )


class Content(NamedTuple):
    """What the blocks of `content` hold: the answer's text, thinking, a refusal."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""


_KIND_OF_BLOCK = {
    "text": "text",
    "output_text": "text",
    "thinking": "thinking",
    "reasoning": "thinking",
    "reasoning_text": "thinking",
    "refusal": "refusal",
}


def read_content(content: JsonValue) -> Content:
    """`content` in any form: null is empty, of a list of blocks those of a kind are joined."""
    if isinstance(content, str):
        return Content(content)
    blocks = [content] if isinstance(content, dict) else content
    found: dict[str, list[str]] = {"text": [], "thinking": [], "refusal": []}
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, str):
            found["text"].append(block)
        elif isinstance(block, dict) and (kind := _KIND_OF_BLOCK.get(str(block.get("type", "text")))):
            found[kind].append(_block_text(block, kind))
    return Content(**{kind: "".join(pieces) for kind, pieces in found.items()})


def _block_text(block: JsonObject, kind: str) -> str:
    """A block's text stands under its kind or under `text`: a string, `{"value": …}`, or blocks again."""
    value = next((block[key] for key in (kind, "text", "reasoning", "summary") if key in block), "")
    if isinstance(value, dict):
        value = value.get("value", "")
    if isinstance(value, list):
        return "".join(_block_text(b, kind) if isinstance(b, dict) else str(b) for b in value)
    return value if isinstance(value, str) else ""


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


def listed_calls(message: JsonObject) -> list[JsonObject]:
    """The calls as the server sent them: of `tool_calls`, else the legacy `function_call`."""
    listed = message.get("tool_calls")
    if isinstance(listed, dict):
        listed = [listed]
    found = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    legacy = message.get("function_call")
    return found or ([{"function": legacy}] if isinstance(legacy, dict) else [])


def function_of(call: JsonObject) -> JsonObject:
    """Name, arguments and id of a call, wherever the server put them."""
    function = call.get("function")
    body: JsonObject = function if isinstance(function, dict) else call
    return {**body, "id": call.get("id")}


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
    ended: Reply,
    text: str,
    reasoning: str,
    calls: tuple[ToolCall, ...],
    written: tuple[ToolCall, ...],
    offered: tuple[str, ...],
) -> list[str]:
    notes: list[str] = []
    if ended.no_answer is not None:
        said = any(note.startswith(ended.no_answer) for note in ended.notes)  # by the backend, with the server's words
        notes += [] if said else [shorten(ended.no_answer, 400)]
    elif not text and not calls and reasoning:
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
