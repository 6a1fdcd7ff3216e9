"""`tsuka rescore`, `rank` and `history`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.cli.common import Place, clients, endpoint_options, json_option, place_options, project, show
from pytest_tsuka.conversation import Usage
from pytest_tsuka.errors import GoldReferenceError, SettingsError, unknown_name
from pytest_tsuka.grading.standings import Standings, standings
from pytest_tsuka.grading.verified import verified_reference
from pytest_tsuka.grading.walk import Graded, grade_scenario
from pytest_tsuka.report.scenarios import DEFINITIONS, dollars, fields, revisions, table
from pytest_tsuka.text.escape import one_line

prices_option = click.option(
    "--prices", type=click.Path(path_type=Path), help="JSON file: {model: {in, out}}, dollars per million tokens."
)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--model", "models", multiple=True, help="Grade only the answers of this model; repeatable.")
@prices_option
@endpoint_options
@place_options
def rescore(
    names: tuple[str, ...],
    models: tuple[str, ...],
    prices: Path | None,
    base_url: str | None,
    api_key_env: str,
    place: Place,
) -> None:
    """Grade the kept answers of scenarios again. No model under test is called.

    The judge is asked only what it was not asked before.
    """
    failed = False
    own, folder = project(prices), place.scenarios
    with place.records() as records:
        for name in names or tuple(folder):
            path, scenario = folder.named(name)
            kept = records.models(scenario.name, own.completed(scenario).question_key)
            if not names and not kept:
                continue
            if unknown := [m for m in models if m not in {model for model, _ in kept}]:
                raise SettingsError(unknown_name("model", unknown[0], sorted({model for model, _ in kept})))
            try:
                graded = grade_scenario(
                    path,
                    scenario,
                    records,
                    clients(base_url, api_key_env),
                    own,
                    kind="rescore",
                    improve=not place.packaged,
                    only={(m, e) for m, e in kept if not models or m in models},
                )
            except GoldReferenceError as unusable:  # the others can be graded all the same
                failed = _complain(str(unusable))
                continue
            failed = _show_graded(graded) or failed
    for path, error in folder.errors.items():
        if not names:
            failed = _complain(f"{path.name}: {error}")
    sys.exit(int(failed))


def _show_graded(graded: Graded) -> bool:
    """The table of a scenario that was graded, and what is to be said; whether something went wrong."""
    click.echo(click.style(f"{graded.scenario.name}", bold=True))
    for line in [*table(graded.standings), *revisions(graded.outcome.revisions, graded.scenario.name)]:
        show(line)
    for note in graded.outcome.notes:
        click.echo(f"note: {one_line(note)}")
    problems = list(graded.problems())
    for problem in problems:
        _complain(problem)
    return bool(problems)


def _complain(text: str) -> bool:
    click.echo(click.style(one_line(text), fg="red"), err=True)
    return True


@click.command()
@click.argument("name")
@click.option("--detail", is_flag=True, help="Every field of each model's median answer, with the rung that decided.")
@click.option("--model", help="Only this model's fields (with --detail).")
@click.option("--explain", is_flag=True, help="Say what the columns mean for this kind of scenario.")
@prices_option
@json_option
@place_options
def rank(
    name: str,
    *,
    detail: bool,
    model: str | None,
    explain: bool,
    prices: Path | None,
    as_json: bool,
    place: Place,
) -> None:
    """Rank all results of the scenario NAME by quality, speed and cost."""
    with place.records() as records:
        path, scenario = place.scenario(name)
        found: Standings = standings(scenario, verified_reference(path, scenario), records, project(prices))
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
        return
    for line in table(found):
        show(line)
    if explain:
        for column, meaning in DEFINITIONS[scenario.kind].items():
            click.echo(f"{column}: {meaning}")
    if model and model not in {row.model for row in found.rows}:
        raise SettingsError(unknown_name("model", model, sorted({row.model for row in found.rows})))
    for row in found.rows if detail or model else ():
        if model in (None, row.model):
            for line in fields(row):
                show(line)


@click.command()
@click.argument("name", required=False)
@click.option("--pass", "pass_id", help="Every judge call of this grading pass: what was asked, what it answered.")
@json_option
@place_options
def history(name: str | None, pass_id: str | None, *, as_json: bool, place: Place) -> None:
    """List grading passes with their judge calls and what they cost, the newest first."""
    with place.records() as records:
        passes = records.passes(place.scenario(name)[1].name if name else None)
        calls = records.calls(pass_id) if pass_id else []
        unknown = bool(pass_id) and not records.has_pass(str(pass_id))
    if unknown:
        raise SettingsError(f"there is no pass {pass_id}; 'tsuka history' lists them")
    if as_json:
        data: Any = [{"model": m, "at": at, **call} for m, at, call in calls] if pass_id else passes
        click.echo(json.dumps(data, indent=1, ensure_ascii=False))
    elif pass_id:
        for model, at, call in calls:
            _show_call(model, at, call)
    elif not passes:
        click.echo("no grading pass yet")
    for entry in passes if not as_json and not pass_id else ():
        _show_pass(entry)


def _show_pass(entry: dict[str, Any]) -> None:
    state = "" if entry["finished"] else ", broken off"
    judge = entry.get("judge")
    asked = f"judge {judge}: {entry.get('calls', 0)} calls {dollars(entry.get('cost'))}, " if judge else "no judge, "
    took = f"{entry['finished'] - entry['started']:.1f} s" if entry["finished"] else ""
    click.echo(
        one_line(
            f"{entry['id']}  {_when(entry['started'])}  {entry['scenario']} ({entry['kind']}{state}) {took}  {asked}"
            f"{entry.get('cached', 0)} from the cache, {entry.get('revisions', 0)} revisions;"
            f" {', '.join(entry.get('models', ()))}"
        )
    )
    for label, why in entry.get("failed", {}).items():
        click.echo(click.style(one_line(f"    {label} was not graded: {why}"), fg="red"))


def _show_call(model: str, at: float, call: dict[str, Any]) -> None:
    usage = Usage(**call["usage"])
    order = ", sides swapped" if call["swapped"] else ""
    tokens = f"{_known(usage.prompt_tokens)} + {_known(usage.completion_tokens)} tokens"
    click.echo(
        click.style(
            one_line(f"{_when(at)}  {call['about']} for {model}{order}: {tokens}, {dollars(call['cost'])}"), bold=True
        )
    )
    for message in call["messages"]:
        click.echo(f"  {message['role']}: {one_line(str(message['content']))}")
    if call["problem"]:
        click.echo(click.style(f"  {one_line(call['problem'])}", fg="red"))
    click.echo(f"  judge: {one_line(call['reply'] or 'no answer')}")


def _known(count: int | None) -> str:
    return "?" if count is None else str(count)


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
