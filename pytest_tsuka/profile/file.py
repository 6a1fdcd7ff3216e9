"""models_profile.json as a file: read, changed under its lock, replaced whole, never overwritten when damaged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pytest_tsuka.errors import ProfileError
from pytest_tsuka.files import InUse, locked, write_atomically
from pytest_tsuka.text.json_types import JsonObject


class Damaged(Exception):
    """What makes a file no file of profiles."""


def read_profiles(file: Path) -> JsonObject:
    raw = file.read_bytes()
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from None
    if not isinstance(data, dict):
        raise Damaged("it is not one JSON object")
    for part in ("profiles", "recommendations"):
        if not isinstance(data.get(part, {}), dict):
            raise Damaged(f"{part!r} is not an object")
    return data


def update_profiles(file: Path, change: Callable[[JsonObject], None]) -> list[str]:
    """Reads, changes and replaces the file under its lock; returns warnings for people.

    What `change` does not touch survives as it was. A damaged file is moved aside, never
    overwritten. Raises OSError if the folder cannot be written, ProfileError if the lock is held
    by another run for too long.
    """
    warnings: list[str] = []
    file.parent.mkdir(parents=True, exist_ok=True)
    target = file.resolve()  # a link stays a link
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(target))
        except InUse as error:
            raise ProfileError(str(error)) from None
        try:
            data = read_profiles(target)
        except FileNotFoundError:
            data = {}
        except Damaged as error:
            aside = _free_name(target)
            target.replace(aside)
            warnings.append(f"{file} was damaged ({error}); it was kept as {aside.name}, a new one is written")
            data = {}
        data.setdefault("profiles", {})
        data.setdefault("recommendations", {})
        change(data)
        write_atomically(target, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return warnings


def is_profile_file(file: Path) -> bool:
    """Whether a file holds profiles (and not a run's results)."""
    try:
        data = read_profiles(file)
    except (OSError, Damaged):
        return False
    return "profiles" in data and "verdicts" not in data


def _free_name(target: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1000):
        aside = target.with_name(f"{target.name}.damaged-{stamp}" + (f"-{number}" if number else ""))
        if not aside.exists():
            return aside
    raise ProfileError(f"{target}: too many damaged copies beside it")
