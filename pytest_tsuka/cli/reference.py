"""`tsuka reference …`: the answer that a scenario is graded against, made here, looked after in `revisions`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.cli.common import Group, Place, clients, endpoint_options, given_json, place_options, project
from pytest_tsuka.cli.revisions import edit, log, reject, show_reference, undo, verify
from pytest_tsuka.errors import GoldReferenceError, SettingsError
from pytest_tsuka.gold.reference import Reference
from pytest_tsuka.gold.scenario import Judge, Scenario
from pytest_tsuka.grading.ask import ask
from pytest_tsuka.grading.reference_files import reference_lock, write_reference
from pytest_tsuka.grading.standings import median_run
from pytest_tsuka.report.scenarios import dollars
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_types import JsonValue


@click.group(cls=Group)
def reference() -> None:
    """Make, verify, look at and correct the reference of a scenario."""


for command in (edit, verify, show_reference, log, reject, undo):
    reference.add_command(command)


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
    scenario, file = place.reference(name, write=True)
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
    scenario, target = place.reference(name, write=True)
    _save_new(target, scenario, given_json(file.read()), "pasted", force=force)


@reference.command()
@click.argument("name")
@click.argument("model")
@click.option("--effort", help="Which of its results, if there are several.")
@force_option
@place_options
def record(name: str, model: str, effort: str | None, *, force: bool, place: Place) -> None:
    """Take an answer that MODEL gave in a run as the reference."""
    scenario, target = place.reference(name, write=True)
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
