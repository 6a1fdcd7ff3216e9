"""From what was given for an option to what a run needs: one reader each. Raises SettingsError with option and mend."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.efforts import EFFORTS

if TYPE_CHECKING:
    from pytest_tsuka.backends.models import Model
    from pytest_tsuka.scoring.gate import Requirement
    from pytest_tsuka.scoring.tiers import TierPolicy


@dataclass(frozen=True, slots=True)
class Given:
    """What was given for an option, and what reading it may hang on.

    `name` is the option as the user wrote it, `on_command_line` whether it stands there or in the ini file.
    """

    name: str
    value: Any
    config: pytest.Config
    policy: TierPolicy
    on_command_line: bool

    @property
    def base(self) -> Path:
        """An option is relative to where pytest was started, an ini value to the rootdir."""
        return self.config.invocation_params.dir if self.on_command_line else self.config.rootpath


Reader = Callable[[Given], Any]


def as_it_is(given: Given) -> Any:
    return given.value


def at_least(least: float) -> Reader:
    """A number that is not below `least`."""

    def read(given: Given) -> Any:
        from pytest_tsuka.errors import SettingsError

        if not given.value >= least:
            raise SettingsError(f"{given.name} must be at least {least:g}, found {given.value:g}")
        return given.value

    return read


def seconds(given: Given) -> float:
    from pytest_tsuka.errors import SettingsError

    if not given.value > 0:
        raise SettingsError(f"{given.name} must be more than 0 seconds")
    return float(given.value)


def one_of(*names: str) -> Reader:
    """One of these names; argparse has checked the command line, the ini file is checked here."""

    def read(given: Given) -> str:
        from pytest_tsuka.errors import SettingsError, unknown_name

        if given.value not in names:
            key = given.name.removeprefix("--").replace("-", "_")
            kind = "API" if key == "tsuka_api" else key.removeprefix("tsuka_").replace("_", " ")
            raise SettingsError(f"{key}: {unknown_name(kind, given.value, names)}")
        return str(given.value)

    return read


def path(given: Given) -> Path:
    return given.base / Path(given.value).expanduser()


def path_or_none(given: Given) -> Path | None:
    return path(given) if given.value else None


def page(given: Given) -> Path | None:
    """Told now and not after the run, when what writes the page is not installed."""
    from pytest_tsuka.errors import SettingsError

    for module in ("jinja2", "pygal") if given.value else ():
        if find_spec(module) is None:
            raise SettingsError(f"{given.name} needs {module}: pip install 'pytest-tsuka[html]'")
    return path_or_none(given)


def suite(given: Given) -> Path:
    """The folder as it was asked for; only the default one may be missing."""
    from pytest_tsuka.errors import SettingsError

    folder: Path = given.config.rootpath / given.value
    if not folder.is_dir() and given.value != "benchmarks":
        raise SettingsError(f"{given.name}: no such folder: {folder}")
    return folder


def github_summary(given: Given) -> Path | None:
    name = os.environ.get("GITHUB_STEP_SUMMARY") if given.value else None
    return Path(name) if name else None


def base_url(given: Given) -> str:
    from pytest_tsuka.backends.http.urls import read_base_url

    url = given.value or os.environ.get("OPENAI_BASE_URL") or "http://localhost:11434/v1"
    read_base_url(url)
    return str(url)


def models(given: Given) -> tuple[Model, ...]:
    """The models named; `all` is found out later, by asking the endpoint."""
    from pytest_tsuka.backends.models import read_model

    return tuple(dict.fromkeys(read_model(name) for name in given.value if name != "all"))


def requirements(given: Given) -> tuple[Requirement, ...]:
    from pytest_tsuka.scoring.gate import read_requirement

    return tuple(read_requirement(text, given.policy) for text in given.value)


def efforts(given: Given) -> tuple[str, ...]:
    """Levels in ascending cost, from any mix of commas and repeats."""
    from pytest_tsuka.errors import SettingsError, unknown_name

    asked = [level.strip() for text in given.value for level in text.split(",") if level.strip()]
    for level in asked:
        if level not in EFFORTS:
            raise SettingsError(f"{given.name}: {unknown_name('effort', level, EFFORTS)}")
    if not asked:
        raise SettingsError(f"{given.name} names no level (allowed: {', '.join(EFFORTS)})")
    return tuple(level for level in EFFORTS if level in asked)


def efforts_or_none(given: Given) -> tuple[str, ...]:
    return efforts(given) if given.value else ()


_RESERVED = ("model", "messages", "input", "tools", "stream", "stream_options", "reasoning_effort", "store")


def params(given: Given) -> dict[str, Any]:
    """Request parameters from KEY=VALUE, the value as JSON; plain words need no quotes."""
    from pytest_tsuka.errors import SettingsError

    found: dict[str, Any] = {}
    for text in given.value:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise SettingsError(f"{given.name}: {text!r} is not KEY=VALUE")
        if key in _RESERVED:
            raise SettingsError(f"{given.name}: {key!r} is set by the run itself")
        try:
            found[key] = json.loads(value)
        except ValueError:
            if value[:1] in '[{"':
                raise SettingsError(f"{given.name}: the value of {key!r} is not JSON: {value}") from None
            found[key] = value
    return found
