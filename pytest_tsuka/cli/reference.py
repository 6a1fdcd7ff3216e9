"""`tsuka reference …`: the answer that a scenario is graded against, made, verified, looked at and corrected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import click

from pytest_tsuka.cli.common import Group, Place, clients, endpoint_options, place_options, project
from pytest_tsuka.errors import GoldReferenceError, SettingsError
from pytest_tsuka.gold import reference as gold
from pytest_tsuka.gold.places import set_value, value_at
from pytest_tsuka.gold.reference import Evidence, Reference, Revision
from pytest_tsuka.gold.scenario import Judge, Scenario
from pytest_tsuka.grading.ask import ask
from pytest_tsuka.grading.reference_files import locked_reference, read_reference, reference_lock, write_reference
from pytest_tsuka.grading.scenario_files import reference_file
from pytest_tsuka.grading.standings import median_run
from pytest_tsuka.report.scenarios import dollars
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_files import Unreadable, read_json
from pytest_tsuka.text.json_paths import leaves
from pytest_tsuka.text.json_types import JsonValue, shown


@click.group(cls=Group)
def reference() -> None:
    """Make, verify, look at and correct the reference of a scenario."""


def _schema(scenario: Scenario) -> Any:
    return scenario.answer_schema if scenario.kind == "enrichment" else None


def _open(place: Place, name: str, *, write: bool = False) -> tuple[Path, Scenario, Path]:
    path, scenario = place.own_scenario(name) if write else place.scenario(name)
    if not scenario.needs_reference:
        raise SettingsError(f"scenario {scenario.name!r} is of kind {scenario.kind}, which takes no reference")
    return path, scenario, reference_file(path, scenario)


def _save_new(file: Path, scenario: Scenario, output: JsonValue, source: Any, *, force: bool) -> None:
    """A new reference, not yet verified. Raises GoldReferenceError for one that cannot be."""
    from pytest_tsuka.checks.schemas import schema_problem, violations

    if scenario.kind == "schema_generation":
        if not isinstance(output, dict):
            raise GoldReferenceError("the reference of a schema_generation scenario must be a JSON Schema object")
        if problem := schema_problem(output):
            raise GoldReferenceError(f"the reference {problem}")
    elif broken := violations(output, scenario.answer_schema or {}):
        raise GoldReferenceError(f"the reference breaks the scenario's own schema: {broken}")
    if file.exists() and not force:
        raise GoldReferenceError(f"{file} exists; --force replaces it, with its revisions")
    with reference_lock(file):
        write_reference(file, Reference(output=output, source=source))
    click.echo(f"{file} written, not verified yet: read it, then 'tsuka reference verify {scenario.name}'")


force_option = click.option("--force", is_flag=True, help="Replace a reference that is there, with its revisions.")


@reference.command()
@click.argument("name")
@click.option("--model", required=True, help="A strong model: a name at the endpoint, 'embedded' or a .gguf file.")
@click.option("--effort", help="Its reasoning effort.")
@click.option(
    "--document",
    "documents",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A trusted source to hand it besides those of the scenario; repeatable.",
)
@force_option
@endpoint_options
@place_options
def generate(
    name: str,
    model: str,
    effort: str | None,
    documents: tuple[Path, ...],
    *,
    force: bool,
    base_url: str | None,
    api_key_env: str,
    place: Place,
) -> None:
    """Let a strong model answer, from the scenario's documents, as a reference to be verified."""
    _, scenario, file = _open(place, name, write=True)
    if file.exists() and not force:
        raise GoldReferenceError(f"{file} exists; --force replaces it, with its revisions")
    sources = (*scenario.documents, *(d.read_text(encoding="utf-8") for d in documents))
    messages = scenario.messages
    if sources:
        told = "\n\n".join(["Use these sources, and what they say where anything differs:", *sources])
        messages = (*messages, {"role": "user", "content": told})
    exact, backend = clients(base_url, api_key_env).judge(Judge(model=model, effort=effort))

    async def answer() -> Any:
        async with backend:
            return await ask(messages, exact, effort or "none", backend, f"reference {scenario.name}")

    output = asyncio.run(answer())
    cost = project().cost(exact, output.usage)
    click.echo(f"{exact} answered in {output.seconds:.1f} s ({dollars(cost)})")
    if output.value is None:
        raise GoldReferenceError(f"there is no JSON in the answer: {one_line(output.text[:300])}")
    _save_new(file, scenario, output.value, "generated", force=force)


@reference.command()
@click.argument("name")
@click.argument("file", type=click.File("rb"), default="-")
@force_option
@place_options
def paste(name: str, file: Any, *, force: bool, place: Place) -> None:
    """Take the JSON of FILE (or of standard input) as the reference."""
    _, scenario, target = _open(place, name, write=True)
    _save_new(target, scenario, _json(file.read()), "pasted", force=force)


@reference.command()
@click.argument("name")
@click.argument("model")
@click.option("--effort", help="Which of its results, if there are several.")
@force_option
@place_options
def record(name: str, model: str, effort: str | None, *, force: bool, place: Place) -> None:
    """Take an answer that MODEL gave in a run as the reference."""
    _, scenario, target = _open(place, name, write=True)
    with place.records() as records:
        found = [
            r
            for r in records.results(scenario.name, scenario.question_key)
            if r.model == model and effort in (None, r.effort)
        ]
    usable = [(r, o) for r in found for o in r.outputs if o.value is not None]
    if not usable:
        raise SettingsError(f"there is no answer of {model!r} with usable JSON to {scenario.name!r}")
    result = usable[0][0]
    chosen = usable[0][1]
    if result.grading:
        chosen = result.outputs[median_run([g["quality"] for g in result.grading.grades])]
    _save_new(target, scenario, chosen.value, "record", force=force)


@reference.command()
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="PATH=JSON", help="Set one value; repeatable.")
@place_options
def edit(name: str, settings: tuple[str, ...], place: Place) -> None:
    """Correct the reference in your editor ($EDITOR), or with --set. Grades are stale until graded again."""
    _, scenario, file = _open(place, name, write=True)
    current = read_reference(file, _schema(scenario))
    if settings:
        output = json.loads(json.dumps(current.output))
        for text in settings:
            path, equals, value = text.partition("=")
            if not equals:
                raise SettingsError(f"--set: {text!r} is not PATH=JSON")
            set_value(output, path, _json(value.encode()))
    else:
        written = click.edit(json.dumps(current.output, indent=2, ensure_ascii=False) + "\n", extension=".json")
        if written is None:
            click.echo("nothing was changed")
            return
        output = _json(written.encode())
    with _changing(file, scenario) as fresh:
        made = gold.edit(fresh, output)
    click.echo(f"{len(made)} values changed" if made else "nothing was changed")
    for revision in made:
        click.echo(_entry(revision))


@reference.command()
@click.argument("name")
@place_options
def verify(name: str, place: Place) -> None:
    """Vouch for the reference: only a verified one is graded against."""
    _, scenario, file = _open(place, name, write=True)
    with _changing(file, scenario) as fresh:
        gold.verify(fresh)
    click.echo(f"{file} is verified")


@reference.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Only the output, as JSON.")
@place_options
def show_reference(name: str, *, as_json: bool, place: Place) -> None:
    """Show the reference, each automatic change where it stands: what was there, what is, who and why."""
    _, scenario, file = _open(place, name)
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


@reference.command("log")
@click.argument("name")
@filter_path
@filter_evidence
@filter_single
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@place_options
def log(
    name: str, pattern: str | None, evidence: str | None, *, single_model: bool, as_json: bool, place: Place
) -> None:
    """List what changed in the reference, by passes and by people; the numbers are for 'undo'."""
    _, scenario, file = _open(place, name)
    current = read_reference(file, _schema(scenario))
    chosen = [(n, r) for n, r in enumerate(current.revisions, 1) if _fits(r, pattern, evidence, single=single_model)]
    if as_json:
        click.echo(json.dumps([{"number": n, **r.model_dump()} for n, r in chosen], indent=1, ensure_ascii=False))
        return
    for number, revision in chosen:
        click.echo(f"{number:4}  {_entry(revision)}")
    if not chosen:
        click.echo("no changes" if not current.revisions else "no change is like that")


@reference.command("reject")
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
    _, scenario, file = _open(place, name, write=True)
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


@reference.command("undo")
@click.argument("name")
@click.argument("number", type=int)
@place_options
def undo(name: str, number: int, place: Place) -> None:
    """Take back entry NUMBER of the log: a change, or the rejection of one."""
    _, scenario, file = _open(place, name, write=True)
    with _changing(file, scenario) as fresh:
        entry = gold.undo(fresh, number)
        now = value_at(fresh.output, entry.path)
    click.echo(one_line(f"{entry.path}: {shown(now, 100)} again"))


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


def _json(raw: bytes) -> Any:
    try:
        return read_json(raw)
    except Unreadable as error:
        raise SettingsError(f"this is not JSON: {error.problem}") from None


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
