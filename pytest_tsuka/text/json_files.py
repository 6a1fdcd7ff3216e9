"""JSON files that people write, read as the standard has it; what is wrong with one has a place."""

from __future__ import annotations

import json
import math
from typing import Any

from pytest_tsuka.errors import Problem
from pytest_tsuka.text.json_paths import leaves


class Unreadable(Exception):
    """What keeps a file from being read, for whoever knows the file's name."""

    def __init__(self, where: str, what: str) -> None:
        self.problem = Problem(where, what)


def read_json(raw: bytes) -> Any:
    """JSON as the standard has it: UTF-8, no NaN, no key twice. Raises Unreadable."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise Unreadable(f"line {line}", f"not UTF-8: byte 0x{raw[error.start]:02x}; save it as UTF-8") from None

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise Unreadable("", f"the key {twice!r} stands twice in one object")
        return made

    def no_constant(token: str) -> Any:
        raise Unreadable("", f"{token} is not JSON")

    try:
        data = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
        for path, value in leaves(data):
            if isinstance(value, float) and not math.isfinite(value):
                raise Unreadable(path, "the number is larger than any that can be computed with (about 1.8e308)")
        return data
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno}, column {error.colno}", f"not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise Unreadable("", f"not usable JSON: {error}") from None
