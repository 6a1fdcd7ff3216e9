"""`tsuka reference edit`, `verify`, `show`, `log`, `reject`, `undo`: a reference that is there, and its revisions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import click

from pytest_tsuka.cli.common import (
    Place,
    given_json,
    json_option,
    place_options,
)
from pytest_tsuka.errors import GoldReferenceError, SettingsError
from pytest_tsuka.gold import reference as gold
from pytest_tsuka.gold.places import set_value, value_at
from pytest_tsuka.gold.reference import Evidence, Reference, Revision
from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.grading.reference_files import locked_reference, read_reference, write_reference
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_paths import leaves
from pytest_tsuka.text.json_types import shown


@click.command()
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="PATH=JSON", help="Set one value; repeatable.")
@place_options
def edit(name: str, settings: tuple[str, ...], place: Place) -> None:
    """Correct the reference in your editor ($EDITOR), or with --set. Grades are stale until graded again."""
    scenario, file = place.reference(name, write=True)
    current = read_reference(file, _schema(scenario))
    if settings:
        output = json.loads(json.dumps(current.output))
        for text in settings:
            path, equals, value = text.partition("=")
            if not equals:
                raise SettingsError(f"--set: {text!r} is not PATH=JSON")
            set_value(output, path, given_json(value.encode()))
    else:
        written = click.edit(json.dumps(current.output, indent=2, ensure_ascii=False) + "\n", extension=".json")
        if written is None:
            click.echo("nothing was changed")
            return
        output = given_json(written.encode())
    with _changing(file, scenario) as fresh:
        made = gold.edit(fresh, output)
    click.echo(f"{len(made)} values changed" if made else "nothing was changed")
    for revision in made:
        click.echo(_entry(revision))


@click.command()
@click.argument("name")
@place_options
def verify(name: str, place: Place) -> None:
    """Vouch for the reference: only a verified one is graded against."""
    scenario, file = place.reference(name, write=True)
    with _changing(file, scenario) as fresh:
        gold.verify(fresh)
    click.echo(f"{file} is verified")


@click.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Only the output, as JSON.")
@place_options
def show_reference(name: str, *, as_json: bool, place: Place) -> None:
    """Show the reference, each automatic change where it stands: what was there, what is, who and why."""
    scenario, file = place.reference(name)
    current = read_reference(file, _schema(scenario))
    if as_json:
        click.echo(json.dumps(current.output, indent=2, ensure_ascii=False))
        return
    state = f"verified {current.verified_at or ''}".strip() if current.verified else "not verified"
    click.echo(f"{file.name}: {state}, {current.source}, {len(current.standing)} values changed by passes")
    standing = current.standing
    for path, value in leaves(current.output, stop=standing):
        revision = standing.get(path)
        if revision is None:
            click.echo(one_line(f"  {path}: {shown(value, 100)}"))
            continue
        before = click.style(one_line(shown(revision.before, 100)), strikethrough=True, fg="red")
        after = click.style(one_line(shown(revision.after, 100)), fg="green", bold=True)
        click.echo(f"  {one_line(path)}: {before} {after}  {_why(revision)}")
    for path in current.rejected_paths:
        click.echo(one_line(f"  {path} is kept out of passes (rejected)"))


filter_path = click.option("--path", "pattern", metavar="PATTERN", help="Only paths like this ('cast*', '*.role').")
filter_evidence = click.option("--evidence", type=click.Choice([*get_args(Evidence)]), help="Only this evidence.")
filter_single = click.option("--single-model", is_flag=True, help="Only changes that a single model stands for.")


@click.command("log")
@click.argument("name")
@filter_path
@filter_evidence
@filter_single
@json_option
@place_options
def log(
    name: str, pattern: str | None, evidence: str | None, *, single_model: bool, as_json: bool, place: Place
) -> None:
    """List what changed in the reference, by passes and by people; the numbers are for 'undo'."""
    scenario, file = place.reference(name)
    current = read_reference(file, _schema(scenario))
    chosen = [(n, r) for n, r in enumerate(current.revisions, 1) if _fits(r, pattern, evidence, single=single_model)]
    if as_json:
        click.echo(json.dumps([{"number": n, **r.model_dump()} for n, r in chosen], indent=1, ensure_ascii=False))
        return
    for number, revision in chosen:
        click.echo(f"{number:4}  {_entry(revision)}")
    if not chosen:
        click.echo("no changes" if not current.revisions else "no change is like that")


@click.command("reject")
@click.argument("name")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@filter_path
@filter_evidence
@filter_single
@click.option("--all", "everything", is_flag=True, help="Every change that a pass made.")
@place_options
def reject(
    name: str,
    paths: tuple[str, ...],
    pattern: str | None,
    evidence: str | None,
    *,
    single_model: bool,
    everything: bool,
    place: Place,
) -> None:
    """Take back changes that passes made: the value before comes back, the path stays out of later passes."""
    scenario, file = place.reference(name, write=True)
    filtered = bool(pattern or evidence or single_model or everything)
    if bool(paths) == filtered:
        raise click.UsageError("name the paths, or choose them with --path, --evidence, --single-model or --all")
    with _changing(file, scenario) as fresh:
        chosen = paths or tuple(
            path for path, r in fresh.standing.items() if _fits(r, pattern, evidence, single=single_model)
        )
        undone = gold.reject(fresh, chosen)
    for revision in undone:
        click.echo(
            one_line(f"{revision.path}: {shown(revision.after, 80)} rejected, {shown(revision.before, 80)} again")
        )
    if not undone:
        click.echo("no change is like that")


@click.command("undo")
@click.argument("name")
@click.argument("number", type=int)
@place_options
def undo(name: str, number: int, place: Place) -> None:
    """Take back entry NUMBER of the log: a change, or the rejection of one."""
    scenario, file = place.reference(name, write=True)
    with _changing(file, scenario) as fresh:
        entry = gold.undo(fresh, number)
        now = value_at(fresh.output, entry.path)
    click.echo(one_line(f"{entry.path}: {shown(now, 100)} again"))


def _schema(scenario: Scenario) -> Any:
    return scenario.answer_schema if scenario.kind == "enrichment" else None


@contextmanager
def _changing(file: Path, scenario: Scenario) -> Iterator[Reference]:
    """The reference as it is now, under its lock; written when the block ends well."""
    schema = _schema(scenario)
    with locked_reference(file, schema) as current:
        yield current
        _check(current, schema)
        write_reference(file, current)


def _check(current: Reference, schema: Any) -> None:
    from pytest_tsuka.checks.schemas import violations

    if schema is not None and (broken := violations(current.output, schema)):
        raise GoldReferenceError(f"that would break the scenario's own schema: {broken}")


def _fits(revision: Revision, pattern: str | None, evidence: str | None, *, single: bool) -> bool:
    if single and (len(revision.models) != 1 or revision.evidence == "person"):
        return False
    if evidence is not None and revision.evidence != evidence:
        return False
    return pattern is None or fnmatchcase(revision.path, pattern.replace("[", "[[]"))


def _entry(revision: Revision) -> str:
    state = " (rejected)" if revision.rejected else " (replaced by a person)" if revision.superseded else ""
    change = f"{shown(revision.before, 60)} → {shown(revision.after, 60)}"
    return one_line(f"{revision.at}  {revision.path}: {change}{state}  {_why(revision)}")


def _why(revision: Revision) -> str:
    if revision.evidence == "person":
        return "by a person"
    count = len(revision.models)
    models = f"{count} model{'s' * (count != 1)}: {', '.join(revision.models)}"
    said = f": {revision.rationale}" if revision.rationale else ""
    return one_line(f"[{revision.evidence}, {models}]{said}")
