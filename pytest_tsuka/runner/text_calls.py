"""Tool calls that a model only wrote as text: recognised, so that the report can say so.

Every shape here was seen in the field. A shape gives the place where a call's JSON (or its
parameter tags) begins; the JSON itself is parsed, never searched for its closing tag, since an
argument may hold that tag.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

from pytest_tsuka.conversation import ToolCall
from pytest_tsuka.text.json_types import JsonObject, JsonValue

_DECODER = json.JSONDecoder(strict=False)
_OPENERS = re.compile(
    r"<\|?(?:tool_call|tool_calls|function_call|functioncall|tool_use|tool)\|?>\s*"
    r"|\[TOOL_CALLS\]\s*|\[TOOL_REQUEST\]\s*|<\|python_tag\|>\s*|<\|?action_start\|?>[^\n{]*"
    r"|<｜tool▁calls?▁begin｜>\s*|functools(?=\s*\[)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(?=\{)"
    r"|<function=([\w.-]+)>\s*(?=\{)"
    r"|to=functions\.([\w.-]+)[^{\n]*?(?=\{)"
    r"|<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*(?=\{)"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.-]+)[^{]*?(?=\{)"
)
_TAGGED = re.compile(
    r"<function=([\w.-]+)>(.*?)(?:</function>|$)|<invoke\s+name=\"([\w.-]+)\"\s*>(.*?)(?:</invoke>|$)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>|<parameter\s+name=\"([\w.-]+)\"[^>]*>\n?(.*?)\n?</parameter>",
    re.DOTALL,
)
_CLOSERS = re.compile(r"</(?:tool_call|function_call|tool_use)>", re.IGNORECASE)
_PYTHON_CALL = re.compile(r"<\|python_tag\|>\s*([\w.]+?)(?:\.call)?\((.*?)\)", re.DOTALL)
_BLOCK = re.compile(r"^[ \t]*(?:```[\w-]*[ \t]*\n?)?[ \t]*(?=[\[{])", re.MULTILINE)


def find_text_calls(text: str, offered: tuple[str, ...]) -> tuple[ToolCall, ...]:
    """The calls written in `text`; `offered` are the names a bare JSON block may use."""
    if not any(mark in text for mark in ("{", "<function=", "<invoke", "<|python_tag|>")):
        return ()
    for shape in (_named, _opened, _tagged, _python, _orphan_closing):
        if found := tuple(shape(text)):
            return found
    return tuple(call for call in _bare_blocks(text) if call.name in offered)


def _call(value: JsonValue) -> Iterator[ToolCall]:
    """The calls a JSON value stands for: `{name, arguments}`, wrapped in `function`, or a list."""
    if isinstance(value, list):
        for item in value:
            yield from _call(item)
        return
    if not isinstance(value, dict):
        return
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or value.get("tool") or value.get("tool_name") or inner
    if isinstance(name, str):
        for key in ("arguments", "parameters", "args", "input"):
            if key in value:
                yield _written(name, value[key])
                return


def _written(name: str, arguments: JsonValue) -> ToolCall:
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):
            arguments = json.loads(arguments)
    known: JsonObject | None = arguments if isinstance(arguments, dict) else None
    return ToolCall(
        name=name.removeprefix("functions."),
        arguments=known,
        raw_arguments=json.dumps(arguments, ensure_ascii=False),
        problem=None if known is not None else "its arguments are not an object",
        as_text=True,
    )


def _json_at(text: str, start: int) -> tuple[JsonValue, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def _named(text: str) -> Iterator[ToolCall]:
    for match in _NAMED.finditer(text):
        name = next(g for g in match.groups() if g)
        if (decoded := _json_at(text, match.end())) and isinstance(decoded[0], dict):
            yield _written(name, decoded[0])


def _opened(text: str) -> Iterator[ToolCall]:
    at = 0
    while match := _OPENERS.search(text, at):
        at = match.end()
        while decoded := _json_at(text, at):
            yield from _call(decoded[0])
            at = decoded[1]
            if not (more := re.compile(r"\s*[;,]?\s*(?=[{\[])").match(text, at)):
                break
            at = more.end()


def _tagged(text: str) -> Iterator[ToolCall]:
    for match in _TAGGED.finditer(text):
        name, body = (match[1], match[2]) if match[1] else (match[3], match[4])
        arguments: JsonObject = {}
        for parameter in _PARAMETER.finditer(body):
            key, value = (parameter[1], parameter[2]) if parameter[1] else (parameter[3], parameter[4])
            decoded = _json_at(value, 0)
            arguments[key] = decoded[0] if decoded and decoded[1] == len(value) else value
        yield _written(name, arguments)


def _python(text: str) -> Iterator[ToolCall]:
    for match in _PYTHON_CALL.finditer(text):
        pairs = re.findall(r"(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^,]+)", match[2])
        yield _written(match[1], {key: _python_value(value.strip()) for key, value in pairs})


def _python_value(text: str) -> JsonValue:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    decoded = _json_at(text, 0)
    return decoded[0] if decoded and decoded[1] == len(text) else text


def _orphan_closing(text: str) -> Iterator[ToolCall]:
    """Small quantised models drop the opening tag; the closing one still shows the intent."""
    closing = _CLOSERS.search(text)
    if not closing:
        return
    for match in _BLOCK.finditer(text, 0, closing.start()):
        if decoded := _json_at(text, match.end()):
            yield from _call(decoded[0])


def _bare_blocks(text: str) -> Iterator[ToolCall]:
    at = 0
    while match := _BLOCK.search(text, at):
        decoded = _json_at(text, match.end())
        at = decoded[1] if decoded else match.end() + 1
        if decoded:
            yield from _call(decoded[0])
