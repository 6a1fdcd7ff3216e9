"""Places in an output: what stands at a path, putting a value there, where two outputs differ."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from pytest_tsuka.errors import GoldReferenceError
from pytest_tsuka.text.json_paths import look_up, parse_path
from pytest_tsuka.text.json_types import JsonValue, is_absent


def value_at(output: JsonValue, path: str) -> JsonValue:
    """The value at a path of a leaf (`cast[2].name`), None where there is none."""
    found = look_up(output, path)
    return None if is_absent(found) else cast("JsonValue", found)


def set_value(output: JsonValue, path: str, value: JsonValue) -> None:
    """Puts a value at a path and makes what is missing on the way; a list grows by one at its end."""
    steps = parse_path(path)
    target: Any = output
    for step, following in pairwise(steps):
        target = _member(target, step, [] if isinstance(following, int) else {}, path)
    last = steps[-1] if steps else None
    if isinstance(target, dict) and isinstance(last, str):
        target[last] = value
    elif isinstance(target, list) and isinstance(last, int) and last <= len(target):
        target[last : last + 1] = [value]
    else:
        raise GoldReferenceError(f"the reference has no place {path!r}")


def _member(target: Any, step: str | int, empty: Any, path: str) -> Any:
    """The container at a step, made if it is not there."""
    if isinstance(target, dict) and isinstance(step, str):
        if not isinstance(target.get(step), (dict, list)):
            target[step] = empty
        return target[step]
    if isinstance(target, list) and isinstance(step, int) and step <= len(target):
        if step == len(target):
            target.append(empty)
        return target[step]
    raise GoldReferenceError(f"the reference has no place {path!r}")


def changed_paths(before: JsonValue, after: JsonValue, path: str = "") -> list[str]:
    """Where two outputs differ: leaves, and lists as a whole where their lengths do."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in (*before, *(n for n in after if n not in before)):
            inner = f"{path}.{name}" if path else name
            found += changed_paths(before.get(name), after.get(name), inner)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            p for i, (a, b) in enumerate(zip(before, after, strict=True)) for p in changed_paths(a, b, f"{path}[{i}]")
        ]
    return [] if before == after else [path]


def overlap(inner: str, outer: str) -> bool:
    """Whether a path is another one, or lies in it, or holds it."""
    a, b = parse_path(inner), parse_path(outer)
    shorter = min(len(a), len(b))
    return list(a[:shorter]) == list(b[:shorter])
