"""Finds the JSON in a reply: the whole answer, the last fence, the last span, then repair.

Nothing is invented: prose never becomes JSON, a reply cut by the token limit is never completed,
valid JSON is never touched. The time is linear in the length of the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pytest_tsuka.text.brackets import Brackets, too_deep
from pytest_tsuka.text.json_repair import mend
from pytest_tsuka.text.json_strict import Parsed, StrictParser, parse_whole
from pytest_tsuka.text.json_types import JsonValue

MAX_BYTES = 4 * 1024 * 1024
MAX_DOCUMENTS = 20_000  # what opens like JSON in one reply; more is noise, and looking costs time

How = Literal["whole", "fence", "prose", "repaired"]


@dataclass(frozen=True, slots=True)
class FoundJson:
    """The JSON of an answer, and what it took to get it."""

    value: JsonValue
    how: How
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """The whole answer was JSON and nothing had to be overlooked."""
        return self.how == "whole" and not self.notes


@dataclass(frozen=True, slots=True)
class NoJson:
    """Why an answer holds no usable JSON."""

    reason: str


def find_json(text: str, *, truncated: bool = False) -> FoundJson | NoJson:
    """The JSON in a normalised answer by the rules of the fixture format, section 4."""
    text = text.strip()
    if len(text) > MAX_BYTES // 4 and len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return NoJson(f"the answer is larger than {MAX_BYTES // 1024 // 1024} MiB")
    if (whole := parse_whole(text)) is not None:
        return _found_whole(whole, truncated=truncated)
    if truncated:
        return NoJson("the answer was cut by the token limit, and cut JSON is never completed")
    if not any(bracket in text for bracket in "{["):
        return NoJson("the answer holds no JSON object or array")
    marks = list(_FENCE_LINE.finditer(text))
    brackets = Brackets(text)
    return (
        _last_fence(text, marks)
        or _last_span(text, brackets)
        or _repaired(text, marks, brackets)
        or NoJson("the answer holds no JSON that parses or could be repaired")
    )


def _found_whole(whole: Parsed, *, truncated: bool) -> FoundJson | NoJson:
    if truncated and not isinstance(whole.value, (dict, list)):
        return NoJson("the answer was cut by the token limit")
    if isinstance(whole.value, str):
        inner = parse_whole(whole.value.strip())
        if inner is not None and isinstance(inner.value, (dict, list)):
            return FoundJson(inner.value, "repaired", ("double-encoded, one layer removed", *inner.flags))
    return FoundJson(whole.value, "whole", whole.flags)


# --- fences ---------------------------------------------------------------------------------

_FENCE_LINE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*", re.MULTILINE)
_INLINE_FENCE = re.compile(r"```[ \t]*(?:json\w*)?[ \t]*(?=[{\[])", re.IGNORECASE)
_FENCE_END = re.compile(r"\s*(?:`{3,}|~{3,}|\Z)")


def _last_fence(text: str, marks: list[re.Match[str]]) -> FoundJson | None:
    """The last fenced block that is JSON from its first character to its closing line.

    The JSON itself says where the block ends, since a value may hold fences.
    """
    last: int | None = None
    at = 0
    for mark in marks or list(_INLINE_FENCE.finditer(text)):
        if mark.start() < at:
            continue
        start = _skip_space(text, mark.end())
        end = _decode_at(text, start)
        if end is not None and _FENCE_END.match(text, end):
            last, at = start, end
    return _found_at(text, last, "fence", "taken from a code fence") if last is not None else None


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _found_at(text: str, start: int, how: How, *notes: str) -> FoundJson:
    parser = StrictParser()
    value, _ = parser.at(text, start)
    return FoundJson(value, how, (*notes, *dict.fromkeys(parser.flags)))


def _last_fence_body(text: str, marks: list[re.Match[str]]) -> str | None:
    """The body of the last block, for repair: opening and closing lines taken in turn."""
    body: str | None = None
    opening: re.Match[str] | None = None
    for mark in marks:
        if opening is None:
            opening = mark
        elif not mark.group(2) and _rest_of_line(text, mark) == "":
            body, opening = text[opening.end() : mark.start()], None
    if opening is not None:
        body = text[opening.end() :]
    if body is None:
        return None
    body = body.strip()
    return body[:-3].rstrip() if body.endswith("```") else body


def _rest_of_line(text: str, mark: re.Match[str]) -> str:
    end = text.find("\n", mark.end())
    return text[mark.end() : end if end >= 0 else len(text)].strip()


# --- spans in prose -------------------------------------------------------------------------

_JSON_START = re.compile(r"\{\s*[\"}]|\[\s*[\"{\[\]\dtfn-]")
_JSON_LIKE = re.compile(r"\{\s*(?:[\"']|//|/\*|\}|[A-Za-z_][\w-]*\s*:(?!//))|\[\s*(?:[\"'{\[\]]|-?\d|true|false|null)")
# Any opening brace, and a bracket that opens a line, if what follows can begin a document.
_OPENING = re.compile(rf"(?:(?=\{{)|^[ \t]*(?=\[))(?P<document>{_JSON_LIKE.pattern})", re.MULTILINE)
_PLAIN_DECODER = json.JSONDecoder()


def _decode_at(text: str, start: int, brackets: Brackets | None = None) -> int | None:
    """Where the object or array at `start` ends, or None if it is none.

    The text is decoded in growing windows: an error costs what was read, not the whole reply
    (json's own errors count lines from the beginning).
    """
    if not _JSON_START.match(text, start):
        return None
    size = 256
    while True:
        window = text[start : start + size]
        try:
            return start + _PLAIN_DECODER.raw_decode(window)[1]
        except json.JSONDecodeError as error:
            unfinished = error.pos >= len(window) - 16 or error.msg.startswith("Unterminated")
            if not unfinished or start + size >= len(text):
                return None
        except (ValueError, RecursionError):
            return None
        if brackets is None:
            brackets = Brackets(text)
        if brackets.too_deep(start):
            return None
        size *= 8


def _last_span(text: str, brackets: Brackets) -> FoundJson | NoJson | None:
    """The last JSON document standing in prose, never a part of a broken larger one."""
    last: int | None = None
    documents = at = looked_at = 0
    while (match := _OPENING.search(text, at)) is not None:
        looked_at += 1
        if looked_at > MAX_DOCUMENTS:
            return NoJson(f"the answer opens more than {MAX_DOCUMENTS} JSON documents")
        start = match.start("document")
        end = _decode_at(text, start, brackets)
        if end is None:
            at = brackets.region_end(start)
            continue
        at = end
        if text[start] == "{" or _line_is_over(text, end):
            last, documents = start, documents + 1
    if last is None:
        return None
    many = [f"{documents} JSON documents found, the last one counts"] if documents > 1 else []
    return _found_at(text, last, "prose", "text around the JSON", *many)


def _line_is_over(text: str, end: int) -> bool:
    line_end = text.find("\n", end)
    return not text[end : line_end if line_end >= 0 else len(text)].strip()


# --- repair ---------------------------------------------------------------------------------


_STRAY_QUOTES = re.compile(r"([}\]])[\"'`\s]+\Z")


def repair_whole(text: str) -> Parsed | None:
    """A broken JSON object or array mended, or None where a mend would invent or lose data."""
    if not text.startswith(("{", "[")) or too_deep(text):
        return None
    if text.count("{") + text.count("[") > MAX_DOCUMENTS:
        return None  # noise: mending it would cost seconds
    text = _STRAY_QUOTES.sub(r"\1", text)
    mended = mend(text, _strict_or_raise)
    if mended is None:
        return None
    value, steps = mended
    return Parsed(value, steps)


def _strict_or_raise(text: str) -> JsonValue:
    parsed = parse_whole(text)
    if parsed is None:
        raise ValueError("not JSON")
    return parsed.value


def _repaired(text: str, marks: list[re.Match[str]], brackets: Brackets) -> FoundJson | None:
    for candidate, note in _broken_documents(text, marks, brackets):
        mended = repair_whole(candidate)
        if mended is not None:
            return FoundJson(mended.value, "repaired", (note, *mended.flags))
    return None


def _broken_documents(text: str, marks: list[re.Match[str]], brackets: Brackets) -> Iterator[tuple[str, str]]:
    if text[0] in "{[" and brackets.region_end(0) == len(text):
        yield text, "repaired"
        return
    body = _last_fence_body(text, marks)
    if body:
        yield body, "repaired inside a code fence"
    start = _last_line_opening(text, brackets)
    if start is None:
        return
    end = brackets.region_end(start)
    if text[start] == "{" or _line_is_over(text, end):
        yield text[start:end].rstrip(), "repaired with text around it"


_LINE_OPENING = re.compile(r"^[ \t]*([{\[])", re.MULTILINE)


def _last_line_opening(text: str, brackets: Brackets) -> int | None:
    """The last bracket that opens a line and is not inside a document opened earlier."""
    last: int | None = None
    at = 0
    while match := _LINE_OPENING.search(text, at):
        at = match.end()
        if _JSON_LIKE.match(text, match.start(1)):
            last = match.start(1)
            at = brackets.region_end(last)
    return last
