"""Paths into JSON (`a.b[0].c`, `["a.b"].c`, `[-1]`, optional leading `$`) and typed equality."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Container, Iterator
from functools import lru_cache

from pytest_tsuka.text.json_types import ABSENT, Found, JsonValue, is_absent, json_type
from pytest_tsuka.text.normalise import normalise_operand

_STEP = re.compile(
    r"""\.?\[\s*(?P<index>-?\d+)\s*\]
      | \.?\[\s*(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]
      | \.?(?P<key>[^.\[\]"'\s][^.\[\]"']*)""",
    re.VERBOSE,
)


_STRUCTURE = re.compile(r"""[.\[\]"'\s]|^\$""")
"""What cannot stand in a bare key of a path."""


class PathError(ValueError):
    """A path that cannot be read; the text shows where."""


@lru_cache(maxsize=4096)
def parse_path(path: str) -> tuple[str | int, ...]:
    """Keys and indices of a path; the empty path and `$` are the whole document."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") and path[1:2] in ("", ".", "[") else 0
    if path[:1] == ".":
        raise PathError(f"the path {path!r} begins with a dot")
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (match["key"] and steps and path[at] != "."):
            raise PathError(
                f"the path {path!r} cannot be read from character {at} on ({path[at:]!r});"
                ' write a.b[0].c, or ["a.b"] for a key with a dot'
            )
        if match["index"]:
            steps.append(int(match["index"]))
        elif quoted := match["quoted"]:
            steps.append(_unquote(quoted))
        else:
            steps.append(match["key"])
        at = match.end()
    return tuple(steps)


def member_path(path: str, key: str | int) -> str:
    """The path of a member of what stands at `path`, as `parse_path` reads it."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key or _STRUCTURE.search(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def leaves(value: JsonValue, path: str = "", stop: Container[str] = ()) -> Iterator[tuple[str, JsonValue]]:
    """Every value that holds no other, with its path: scalars, empty arrays and objects, and what is at `stop`."""
    if path in stop or not value or not isinstance(value, (dict, list)):
        yield path, value
        return
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(member, member_path(path, key), stop)


def _unquote(quoted: str) -> str:
    if quoted[0] == "'":
        return re.sub(r"\\(.)", r"\1", quoted[1:-1])
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted[1:-1]


def look_up(document: Found, path: str) -> Found:
    """The value at a path, or ABSENT. Only own keys of objects and indices of arrays count."""
    value = document
    for step in parse_path(path):
        if isinstance(value, dict) and isinstance(step, str):
            value = _member(value, step)
        elif isinstance(value, dict):  # {"0": …} is reached by [0] as well as by .0
            value = value.get(str(step), ABSENT)
        elif isinstance(value, list):
            index = int(step) if isinstance(step, int) or re.fullmatch(r"\d+", step) else None
            inside = index is not None and -len(value) <= index < len(value)
            value = value[index] if inside and index is not None else ABSENT
        else:
            return ABSENT
    return value


def _member(value: dict[str, JsonValue], key: str) -> Found:
    if key in value:
        return value[key]
    wanted = unicodedata.normalize("NFC", key)
    return next((v for k, v in value.items() if unicodedata.normalize("NFC", k) == wanted), ABSENT)


def equal(found: Found, expected: JsonValue, *, lenient: bool = False, written: bool = False) -> bool:
    """Typed, deep equality of JSON values.

    Numbers by value (relative tolerance 1e-9, integers exactly), a boolean is never a number,
    absent equals nothing, strings NFC-normalised, objects regardless of key order, arrays in order.
    `lenient` also takes a number or boolean written as a string, and a number for a string.
    `written` compares strings in the normal form of an answer's text: straight apostrophes, plain
    spaces, nothing invisible.
    """
    if is_absent(found):
        return False
    kinds = json_type(found), json_type(expected)
    if kinds[0] != kinds[1]:
        return lenient and _leniently(found, expected)
    if isinstance(expected, bool) or expected is None:
        return found is expected
    if isinstance(expected, (int, float)):
        return isinstance(found, (int, float)) and same_number(found, expected)
    if isinstance(expected, str):
        return isinstance(found, str) and _same_text(found, expected, written=written)
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(equal(f, e, lenient=lenient, written=written) for f, e in zip(found, expected, strict=True))
        )
    return isinstance(found, dict) and _same_object(found, expected, lenient=lenient, written=written)


def _same_text(found: str, expected: str, *, written: bool) -> bool:
    if _nfc(found) == _nfc(expected):
        return True
    return written and normalise_operand(found) == normalise_operand(expected)


def _same_object(found: dict[str, JsonValue], expected: dict[str, JsonValue], *, lenient: bool, written: bool) -> bool:
    left = {_nfc(k): v for k, v in found.items()}
    right = {_nfc(k): v for k, v in expected.items()}
    return left.keys() == right.keys() and all(
        equal(left[k], v, lenient=lenient, written=written) for k, v in right.items()
    )


def same_number(a: float, b: float) -> bool:
    """Equal by value; two integers exactly, anything with a fraction within 1e-9 of its size."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    if (isinstance(a, int) and abs(a) > 2**53) or (isinstance(b, int) and abs(b) > 2**53):
        return False  # an integer that a float cannot hold is compared exactly
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=0.0)


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _leniently(found: Found, expected: JsonValue) -> bool:
    """Number or boolean written as a string, and a number where a string was expected."""
    if isinstance(found, str) and isinstance(expected, bool):
        return found.strip() == ("true" if expected else "false")
    if isinstance(found, str) and isinstance(expected, (int, float)):
        text = found.strip()
        return _NUMBER.fullmatch(text) is not None and same_number(json.loads(text), expected)
    if isinstance(found, (int, float)) and not isinstance(found, bool) and isinstance(expected, str):
        return _leniently(expected, found)
    return False
