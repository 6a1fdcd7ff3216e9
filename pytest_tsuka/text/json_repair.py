"""Mends JSON that a model wrote almost right, and refuses whatever a mend would invent or lose.

First the mends that guess nothing (raw control characters, stray backslashes, comments, trailing
commas), then `json-repair`, whose result is accepted only when every key and every string of it
stands in the source and none of the source's words is missing from it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pytest_tsuka.text.json_types import JsonValue

Parse = Callable[[str], JsonValue]

LIBRARY_LIMIT = 32 * 1024  # characters; json-repair is too slow for hostile megabytes

_STRING = r'"(?:[^"\\]|\\.)*+"'
_STRING_OR_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)|(?<![\w\"'])#[^\n]*", re.DOTALL)
_STRING_OR_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', re.DOTALL)
_CONTROL = re.compile("[\x00-\x1f]")


def mend(text: str, parse: Parse) -> tuple[JsonValue, tuple[str, ...]] | None:
    """(value, steps taken), or None. `text` starts with a bracket; `parse` raises ValueError."""
    if cut_off(text):
        return None
    steps: list[str] = []
    for name, step in (
        ("control characters or backslashes inside strings", _mend_strings),
        ("comments", lambda t: _STRING_OR_COMMENT.sub(lambda m: m.group(1) or " ", t)),
        ("trailing commas", lambda t: _STRING_OR_COMMA.sub(lambda m: m.group(1) or "", t)),
        ("missing closing brackets", _close),
    ):
        changed = step(text)
        if changed != text:
            text = changed
            steps.append(name)
            try:
                return parse(text), tuple(steps)
            except ValueError:
                continue
    return _by_library(text, parse, steps)


def _mend_strings(text: str) -> str:
    def string(match: re.Match[str]) -> str:
        body = _BAD_ESCAPE.sub(lambda m: m.group() if m.group(1) else r"\\", match.group())
        return _CONTROL.sub(lambda m: json.dumps(m.group())[1:-1], body)

    return _STRINGS.sub(string, text)


_TOKENS = re.compile(rf"{_STRING}|\"|[{{}}\[\],:]|[^\s\"{{}}\[\],:]+", re.DOTALL)


class _Scan(NamedTuple):
    """The closers still owed, whether the text ends inside a string, and its last two tokens."""

    owed: list[str]
    in_string: bool
    last: str
    before_last: str


def _scan(text: str) -> _Scan:
    owed: list[str] = []
    last = before = ""
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token == '"':
            return _Scan(owed, in_string=True, last=token, before_last=last)
        if token in "{[":
            owed.append("}" if token == "{" else "]")
        elif owed and token == owed[-1]:
            owed.pop()
        before, last = last, token
    return _Scan(owed, in_string=False, last=last, before_last=before)


def cut_off(text: str) -> bool:
    """Whether the text ends in the middle of a value: closing it would make data up.

    Closers alone may be added, after a value that is visibly complete.
    """
    scan = _scan(text)
    if scan.in_string:
        return True
    if not scan.owed or scan.last in ("}", "]", "true", "false", "null"):
        return False
    if scan.last.startswith('"'):
        return scan.owed[-1] == "}" and scan.before_last != ":"
    return not scan.last.endswith("'")


def _close(text: str) -> str:
    scan = _scan(text)
    return text if scan.in_string else text + "".join(reversed(scan.owed))


_WORD = re.compile(r"\w+")
_NOT_DATA = frozenset({"true", "false", "null", "none", "nan", "infinity", "undefined"})


def _by_library(text: str, parse: Parse, steps: list[str]) -> tuple[JsonValue, tuple[str, ...]] | None:
    import json_repair

    if len(text) > LIBRARY_LIMIT:
        return None
    source = _STRING_OR_COMMENT.sub(lambda m: m.group(1) or " ", text)
    try:
        value: JsonValue = json_repair.loads(source, skip_json_loads=True)  # type: ignore[assignment]
        value = parse(json.dumps(value))
    except (ValueError, RecursionError, TypeError, IndexError):
        return None
    if not isinstance(value, dict if text[0] == "{" else list) or not _faithful(source, value):
        return None
    return value, (*steps, "quotes, keys or separators")


def _faithful(source: str, value: JsonValue) -> bool:
    """Every key is followed by a colon in the source, every string stands in it, no word is lost."""
    read = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", _unescaped, source)
    kept: Counter[str] = Counter()
    empty = 0
    for kind, leaf in _leaves(value):
        if kind == "key" and not re.search(rf"(?<!\w){re.escape(leaf)}[\"'\u201c\u201d\u2019]?\s*:", read):
            return False
        if leaf not in read and leaf not in source:
            return False
        kept.update(_data_words(leaf))
        empty += leaf == ""
    if empty > read.count('""') + read.count("''"):
        return False  # a missing value was filled in
    wanted = Counter(_data_words(read))
    return not (wanted - kept)


def _unescaped(match: re.Match[str]) -> str:
    if match.group(1):
        return chr(int(match.group(1), 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(match.group(2), match.group(2))


def _data_words(text: str) -> list[str]:
    """Words that carry data: numbers are compared by their digits, literals of any dialect are not."""
    return [w.lstrip("0") or "0" for w in _WORD.findall(text.casefold()) if w not in _NOT_DATA]


def _leaves(value: JsonValue) -> Iterator[tuple[str, str]]:
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key in item:
                yield "key", key
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str):
            yield "string", item
        elif item is not None and not isinstance(item, bool):
            text = json.dumps(item)
            yield from (("number", part) for part in _WORD.findall(text))
