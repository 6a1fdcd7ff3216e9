"""Validation errors as places in a benchmark file and sentences that its author understands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from pytest_tsuka.checks import Registry
from pytest_tsuka.errors import Problem, closest, unknown_name
from pytest_tsuka.text.json_types import json_type, shown


def located(error: ValidationError, data: Any, model: type[BaseModel], registry: Registry) -> list[Problem]:
    """pydantic's errors as places in the file and sentences its author understands.

    `model` is the file's; `registry` knows the fields of each check type.
    """
    by_place: dict[str, list[str]] = {}
    entries = error.errors(include_url=False)
    for entry in entries:
        loc = tuple(part for part in entry["loc"] if _is_place(part))
        if entry["type"] == "too_short" and any(e["loc"][: len(loc)] == loc != e["loc"] for e in entries):
            continue  # only short because a member is wrong, which is said already
        where, what = _json_place(loc), _sentence(entry, data, model, registry)
        if entry["type"] == "value_error" and not loc:
            where, what = _split_place(what)
        sentences = by_place.setdefault(where, [])
        if what not in sentences:
            sentences.append(what)
    return [Problem(where, _either(sentences)) for where, sentences in by_place.items()]


def _either(sentences: list[str]) -> str:
    """Alternatives of a union as one sentence: "must be A or B, found C"."""
    if len(sentences) > 1 and all(s.startswith("must be ") for s in sentences):
        wanted = [s.removeprefix("must be ").partition(", found ")[0] for s in sentences]
        return f"must be {' or '.join(wanted)}, found {sentences[0].partition(', found ')[2]}"
    return "; ".join(sentences)


_UNION_TAGS = re.compile(
    r"str|int|bool|float|(?:list|dict|literal|tuple|constrained|function|model|nullable)[\[-].*", re.S
)


def _is_place(part: Any) -> bool:
    """Union members appear in pydantic's locations; they are no place in the file."""
    return isinstance(part, int) or _UNION_TAGS.fullmatch(str(part)) is None


def _json_place(loc: tuple[Any, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _split_place(sentence: str) -> tuple[str, str]:
    place, colon, rest = sentence.partition(": ")
    return (place, rest) if colon and place.startswith("steps[") else ("", sentence)


def _sentence(entry: Any, data: Any, model: type[BaseModel], registry: Registry) -> str:
    kind, found, context = entry["type"], entry.get("input"), entry.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(str(entry["loc"][-1]), entry["loc"], data, model, registry)
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(context.get("error", entry["msg"]))
    if kind == "literal_error":
        allowed = str(context.get("expected", ""))
        near = closest(str(found), [a.strip("'") for a in allowed.replace(" or ", ", ").split(", ")])
        hint = f"; did you mean {near!r}?" if near else ""
        return f"must be {allowed}, found {kind_of(found)}{hint}"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    message = entry["msg"].replace("Input should be", "must be")
    return f"{message[0].lower()}{message[1:]}, found {kind_of(found)}"


def _unknown_field(name: str, loc: tuple[Any, ...], data: Any, model: type[BaseModel], registry: Registry) -> str:
    if isinstance(data, dict) and isinstance(data.get("type"), str) and data["type"] in registry and len(loc) == 1:
        return unknown_name("field", name, _field_names(registry[data["type"]]))
    owner = _model_at(model, [part for part in loc[:-1] if _is_place(part)])
    return unknown_name("field", name, _field_names(owner)) if owner else f"unknown field {name!r}"


def _model_at(model: type[BaseModel], path: list[Any]) -> type[BaseModel] | None:
    """The model of the object at a place inside a model's data."""
    for part in path:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        inner = next(_models_in(field.annotation), None) if field else None
        if inner is None:
            return None
        model = inner
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def kind_of(value: Any) -> str:
    if isinstance(value, (BaseModel, tuple)):
        return type(value).__name__
    return f"{json_type(value)} {shown(value, 60)}"
