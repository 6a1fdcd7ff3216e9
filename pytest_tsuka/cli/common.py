"""What the commands share: where suite, store and endpoint are, and errors as people should see them."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from pytest_tsuka.errors import BenchmarkError, SettingsError, TsukaError
from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.grading.clients import Clients
from pytest_tsuka.grading.project import Project, read_project
from pytest_tsuka.grading.scenario_files import Scenarios, reference_file
from pytest_tsuka.report.scenarios import Line
from pytest_tsuka.store.database import Store
from pytest_tsuka.store.records import Records
from pytest_tsuka.suite.files import standard_suite
from pytest_tsuka.text.escape import printable
from pytest_tsuka.text.json_files import Unreadable, read_json

Command = TypeVar("Command", bound=Callable[..., Any])


class Group(click.Group):
    """A group whose commands end with a sentence, not a traceback, when the package says what is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, BenchmarkError) as error:
            raise click.UsageError(printable(str(error))) from None
        except TsukaError as error:
            raise click.ClickException(printable(str(error))) from None
        except (OSError, sqlite3.Error) as error:
            raise click.ClickException(printable(f"{error}")) from None


@dataclass(frozen=True)
class Place:
    """Where a command finds the suite's scenarios and the store."""

    benchmarks: Path
    store: Path

    @property
    def packaged(self) -> bool:
        """Whether the scenarios are those that ship with the package: they are read, never changed."""
        return not self.benchmarks.is_dir()

    @property
    def folder(self) -> Path:
        """The suite's folder, or that of the standard suite."""
        return standard_suite() if self.packaged else self.benchmarks

    @property
    def scenarios(self) -> Scenarios:
        return Scenarios(self.folder / "scenarios")

    def scenario(self, name: str) -> tuple[Path, Scenario]:
        """A scenario by name. Raises SettingsError with the closest name."""
        return self.scenarios.named(name)

    def own_scenario(self, name: str) -> tuple[Path, Scenario]:
        """The same, for commands that write beside it."""
        if self.packaged:
            raise SettingsError(
                f"there is no folder {self.benchmarks}, and the packaged scenarios are not changed: copy them with"
                f" 'tsuka init {self.benchmarks}' first"
            )
        return self.scenario(name)

    def reference(self, name: str, *, write: bool = False) -> tuple[Scenario, Path]:
        """A scenario that is graded against a reference, and the reference's file. Raises SettingsError."""
        path, scenario = self.own_scenario(name) if write else self.scenario(name)
        if not scenario.needs_reference:
            raise SettingsError(f"scenario {scenario.name!r} is of kind {scenario.kind}, which takes no reference")
        return scenario, reference_file(path, scenario)

    @contextmanager
    def records(self, *, must_exist: bool = True) -> Iterator[Records]:
        """The store's grading half. Raises SettingsError when there is none yet."""
        if must_exist and not self.store.is_file():
            raise SettingsError(f"{self.store} does not exist yet: run scenarios first (pytest --tsuka-model=NAME)")
        store = Store(self.store)
        try:
            yield Records(store)
        finally:
            store.close()


def place_options(command: Command) -> Command:
    """`--benchmarks` and `--store`, handed on as one Place."""

    def wrapped(*args: Any, benchmarks: Path, store: Path, **kwargs: Any) -> Any:
        return command(*args, place=Place(benchmarks, store), **kwargs)

    functools.update_wrapper(wrapped, command)  # what options stand below goes along
    folder = click.option(
        "--benchmarks",
        type=click.Path(path_type=Path),
        default=Path("benchmarks"),
        show_default=True,
        help="Folder of the suite; its scenarios are in the folder 'scenarios' inside it.",
    )
    file = click.option(
        "--store",
        type=click.Path(path_type=Path),
        default=Path(".tsuka/tsuka.db"),
        show_default=True,
        help="Database of runs.",
    )
    return cast("Command", folder(file(wrapped)))


def endpoint_options(command: Command) -> Command:
    """`--base-url` and `--api-key-env`: the endpoint of judges and embedders that name none of their own."""
    url = click.option("--base-url", help="OpenAI-compatible endpoint [default: $OPENAI_BASE_URL].")
    key = click.option(
        "--api-key-env", default="OPENAI_API_KEY", show_default=True, help="Environment variable with the API key."
    )
    return url(key(command))


def endpoint(base_url: str | None) -> str | None:
    """The endpoint that was named, on the command line or in the environment."""
    return base_url or os.environ.get("OPENAI_BASE_URL") or None


def api_key(variable: str) -> str:
    return os.environ.get(variable, "")


def clients(base_url: str | None, api_key_env: str) -> Clients:
    """Judges and embedders as scenarios name them."""
    return Clients(endpoint(base_url) or "http://localhost:11434/v1", api_key(api_key_env))


def project(prices: Path | None = None) -> Project:
    """The settings of the project the command is called in."""
    return read_project(Path.cwd(), prices)


def show(line: Line) -> None:
    """A line of a report, coloured where the terminal can."""
    click.echo(click.style(line.text, bold=line.bold or None, fg=line.colour or None))


json_option = click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")


def given_json(raw: bytes) -> Any:
    """What a person typed, pasted or wrote in an editor. Raises SettingsError."""
    try:
        return read_json(raw)
    except Unreadable as error:
        raise SettingsError(f"this is not JSON: {error.problem}") from None
