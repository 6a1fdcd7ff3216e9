"""`tsuka schema`, `check`, `init`, `new`: writing benchmarks and scenarios."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.gold import scenario as scenarios
from pytest_tsuka.grading.scenario_files import Scenarios, reference_file
from pytest_tsuka.scoring.vacuous import vacuous_warning
from pytest_tsuka.suite.benchmark import Category
from pytest_tsuka.suite.files import json_schema, read_suite, standard_suite, suite_files
from pytest_tsuka.text.escape import one_line, printable

SKELETONS: dict[str, dict[str, Any]] = {
    "instruction": {
        "prompt": "Name the capital of France in one word, without punctuation.",
        "checks": [{"type": "word_count", "value": 1}, {"type": "regex", "value": "^Paris$", "weight": 2}],
    },
    "json": {
        "prompt": 'Answer with JSON only: {"city": the capital of France, "country": its country code}.',
        "checks": [
            {"type": "json_valid", "strict": True},
            {"type": "json_path_equals", "path": "city", "value": "Paris", "weight": 2},
            {"type": "json_path_regex", "path": "country", "value": "^FR$"},
        ],
    },
    "toolCalling": {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "The weather in a city now",
                    "parameters": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                        "additionalProperties": False,
                    },
                },
            }
        ],
        "prompt": "Do I need an umbrella in Oslo?",
        "checks": [
            {"type": "tool_called", "value": "weather"},
            {"type": "tool_arg_equals", "arg": "city", "value": "Oslo", "weight": 2},
            {"type": "tool_args_valid"},
        ],
    },
    "scenario": {
        "kind": "enrichment",
        "prompt": "Fill in this record:\n{entity}\nfollowing this schema:\n{schema}",
        "entity": {"city": "Paris"},
        "schema": {
            "type": "object",
            "properties": {"country": {"type": "string"}, "river": {"type": "string"}},
        },
    },
}


@click.command()
@click.argument("what", type=click.Choice(["benchmark", "scenario"]), default="benchmark")
def schema(what: str) -> None:
    """Print the JSON Schema of a benchmark (or scenario) file, for editors."""
    made = json_schema() if what == "benchmark" else scenarios.json_schema()
    click.echo(json.dumps(made, indent=2, ensure_ascii=False))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("benchmarks"))
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
def check(folder: Path, *, strict: bool) -> None:
    """Check the benchmarks and scenarios of FOLDER without a model.

    Every problem with its place, and a warning for a benchmark that pays an answer nobody gave.
    """
    if not folder.is_dir():
        raise SettingsError(f"there is no folder {folder}: 'tsuka init' makes one")
    suite = read_suite(folder)
    problems, warnings = list(suite.errors.values()), []
    for path, benchmark in suite.benchmarks.items():
        if message := vacuous_warning(benchmark):
            warnings.append(f"{path.name}: {message}")
    found = Scenarios(folder / "scenarios")
    problems += list(found.errors.values())
    for name, scenario in found.items():
        reference = reference_file(found.files[name], scenario)
        if scenario.needs_reference and not reference.exists():
            warnings.append(f"{found.files[name].name}: has no reference yet (tsuka reference generate|paste {name})")
    for problem in problems:
        click.echo(click.style(printable(str(problem)), fg="red"))
    for warning in warnings:
        click.echo(click.style(f"warning: {one_line(warning)}", fg="yellow"))
    click.echo(
        f"{len(suite.benchmarks)} benchmarks and {len(found)} scenarios are valid, {len(problems)} are not;"
        f" {len(warnings)} warnings; suite {suite.tests_hash}"
    )
    sys.exit(int(bool(problems) or (strict and bool(warnings))))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("benchmarks"))
def init(folder: Path) -> None:
    """Copy the standard suite and its scenarios to FOLDER, with their schemas for your editor.

    The copies have the hash of the originals until you change them. Nothing is overwritten.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SettingsError(f"{folder} is not empty: nothing was copied")
    source = standard_suite()
    shutil.copytree(source / "scenarios", folder / "scenarios")
    for path in suite_files(source):
        shutil.copy(path, folder / path.name)
    schemas = folder / "schemas"
    schemas.mkdir()
    for name, made in (("benchmark", json_schema()), ("scenario", scenarios.json_schema())):
        (schemas / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{len(suite_files(folder))} benchmarks and their scenarios copied to {folder}")
    _link_schemas(folder)


def _link_schemas(folder: Path) -> None:
    """VS Code and its relatives complete and check the files; an existing settings file is left as it is."""
    settings = Path(".vscode") / "settings.json"
    links = {
        "json.schemas": [
            {"fileMatch": [f"/{folder.as_posix()}/*.json"], "url": f"./{folder.as_posix()}/schemas/benchmark.json"},
            {
                "fileMatch": [f"/{folder.as_posix()}/scenarios/*.json", "!*.reference.json"],
                "url": f"./{folder.as_posix()}/schemas/scenario.json",
            },
        ]
    }
    text = json.dumps(links, indent=2)
    if folder.is_absolute():
        return
    if settings.exists():
        click.echo(f"{settings} exists; for completion in the editor add to it:\n{text}")
        return
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(text + "\n", encoding="utf-8")
    click.echo(f"{settings} tells the editor of their schemas")


@click.command()
@click.argument("what", type=click.Choice(list(SKELETONS)))
@click.argument("name")
@click.option(
    "--benchmarks", "folder", type=click.Path(path_type=Path), default=Path("benchmarks"), show_default=True,
    help="Folder of the suite.",
)  # fmt: skip
def new(what: str, name: str, folder: Path) -> None:
    """Write a valid benchmark (or scenario) called NAME to start from."""
    if not re.fullmatch(r"[\w.-]+", name):
        raise SettingsError(f"{name!r} cannot be a file's name: letters, digits, '.', '-' and '_' only")
    place = folder / "scenarios" if what == "scenario" else folder
    path = place / f"{name}.json"
    if path.exists():
        raise SettingsError(f"{path} exists")
    head: dict[str, Any] = {"name": name, "description": ""}
    if what != "scenario":
        category: Category = what  # type: ignore[assignment]  # the choices are the categories
        head["category"] = category
    place.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, **SKELETONS[what]}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    more = f"; make its reference with 'tsuka reference generate|paste {name}'" if what == "scenario" else ""
    click.echo(f"{path} written{more}")
