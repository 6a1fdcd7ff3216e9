"""`tsuka models`, `pull`, `doctor`: what there is to measure, and whether it can be."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

import click

from pytest_tsuka.backends.http.urls import read_base_url
from pytest_tsuka.backends.models import chat_models, list_models
from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.backends.weights import SMOLLM2, ensure_weights, find_weights
from pytest_tsuka.cli.common import api_key, endpoint, endpoint_options
from pytest_tsuka.conversation import Exchange
from pytest_tsuka.efforts import EFFORTS
from pytest_tsuka.errors import BackendError, EffortRefused, closest
from pytest_tsuka.protocols import Request
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_types import JsonObject

LOCAL = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""The usual ports of servers on this machine."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@endpoint_options
def models(*, as_json: bool, base_url: str | None, api_key_env: str) -> None:
    """List the chat models that can be measured: at the endpoint, or at the usual local servers.

    Without --base-url (or $OPENAI_BASE_URL) the ports of Ollama, LM Studio, llama.cpp and vLLM are tried.
    """
    url = endpoint(base_url)
    places = {"endpoint": url} if url else {name: f"http://localhost:{port}" for name, port in LOCAL.items()}
    # Whatever listens at a usual port gets no key: local servers need none.
    found = asyncio.run(_offers(places, api_key(api_key_env) if url else ""))
    weights = find_weights()
    if as_json:
        data: Any = [{"server": n, "baseUrl": places[n], "models": m, "problem": p} for n, (m, p) in found.items()]
        click.echo(json.dumps({"servers": data, "embedded": str(weights) if weights else None}, indent=1))
        return
    for name, (names, problem) in found.items():
        if problem and url:
            raise BackendError(problem)
        if problem:
            continue
        click.echo(click.style(f"{name} at {read_base_url(places[name]).shown}", bold=True))
        for model in names:
            click.echo(f"  {one_line(model)}")
        if names:
            click.echo(one_line(f"  measure one: pytest --tsuka-model={names[0]} --tsuka-base-url={places[name]}"))
        else:
            click.echo("  no chat model")
    if not url and all(problem for _, problem in found.values()):
        click.echo("no server answers at the usual local ports")
    state = "ready" if weights else f"to be fetched, {SMOLLM2.download // 1_000_000} MB (tsuka pull)"
    click.echo(click.style("in this process", bold=True))
    click.echo(f"  embedded ({SMOLLM2.model}): {state}; needs pip install 'pytest-tsuka[embedded]'")


async def _offers(places: dict[str, str], key: str) -> dict[str, tuple[list[str], str | None]]:
    async def ask(name: str, url: str) -> tuple[str, tuple[list[str], str | None]]:
        try:
            return name, (chat_models(await list_models(url, api_key=key, timeout=5.0)), None)
        except BackendError as error:
            return name, ([], str(error))

    return dict(await asyncio.gather(*(ask(name, url) for name, url in places.items())))


@click.command()
def pull() -> None:
    """Fetch the weights of the embedded model now, instead of in the first run."""
    path = ensure_weights(lambda line: click.echo(line))
    click.echo(f"{SMOLLM2.model}: {path}")


# --- doctor --------------------------------------------------------------------------------

TOOL: JsonObject = {
    "type": "function",
    "function": {
        "name": "current_time",
        "description": "The time in a city now",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass
class Finding:
    """One thing looked at: whether it is well, what was seen, what to do."""

    what: str
    well: bool | None
    seen: str
    advice: str = ""


@click.command()
@click.argument("model", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@endpoint_options
def doctor(model: str | None, *, as_json: bool, base_url: str | None, api_key_env: str) -> None:
    """Find out whether MODEL can be measured at the endpoint, with one request for each thing.

    Looks at endpoint, key, model, each effort level, tools, streaming and usage figures. Exit status
    1 when it cannot be measured.
    """
    url = endpoint(base_url) or "http://localhost:11434/v1"
    found = asyncio.run(_examine(url, api_key(api_key_env), api_key_env, model))
    if as_json:
        click.echo(json.dumps([f.__dict__ for f in found], indent=1, ensure_ascii=False))
    for finding in found if not as_json else ():
        mark, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("!", "yellow")}[finding.well]
        click.echo(click.style(one_line(f"{mark} {finding.what}: {finding.seen}"), fg=colour))
        if finding.advice:
            click.echo(f"    {one_line(finding.advice)}")
    sys.exit(int(any(f.well is False for f in found)))


async def _examine(url: str, key: str, variable: str, model: str | None) -> list[Finding]:
    found = [
        Finding("key", True, f"{variable} is set")
        if key
        else Finding("key", None, f"{variable} is not set", "local servers need none; others: export it")
    ]
    names: list[str] = []
    try:
        names = chat_models(await list_models(url, api_key=key))
        found.append(Finding("endpoint", True, f"{read_base_url(url).shown} lists {len(names)} chat models"))
    except BackendError as error:
        found.append(Finding("endpoint", None, str(error), "some servers list nothing; the model is tried anyway"))
    if model is None and not names:
        return [*found, Finding("model", False, "none was named and none is listed", "tsuka doctor MODEL")]
    name = model or names[0]
    if names and name not in names:
        near = closest(name, names)
        advice = f"did you mean {near!r}?" if near else f"it lists: {', '.join(names[:8])}"
        found.append(Finding("model", None, f"{name!r} is not among the listed models", advice))
    limits = Limits(timeout=120, retries=1)
    async with OpenAIBackend(url, api_key=key, limits=limits, params={"max_tokens": 64}) as backend:
        plain = await _ask(backend, name, "none")
        if isinstance(plain, EffortRefused):
            found.append(Finding("efforts", None, f"'none' is refused: {plain}", "--tsuka-effort leaves it out"))
        elif isinstance(plain, BackendError):
            return [*found, Finding("model", False, str(plain))]
        else:
            found += _read_plain(name, plain, backend.parameters(name))
        found.append(_efforts(await asyncio.gather(*(_ask(backend, name, e) for e in EFFORTS[1:]))))
        found.append(_tools(await _ask(backend, name, "none", tools=True)))
    async with OpenAIBackend(url, api_key=key, limits=limits, stream=True, params={"max_tokens": 64}) as streaming:
        found.append(_streaming(await _ask(streaming, name, "none")))
    return found


async def _ask(backend: OpenAIBackend, model: str, effort: str, *, tools: bool = False) -> Exchange | BackendError:
    prompt = "What time is it in Oslo? Use the tool." if tools else "Reply with the word yes."
    try:
        return await backend.complete(
            Request(
                model, effort, ({"role": "user", "content": prompt},), tools=(TOOL,) if tools else (), label="doctor"
            )
        )
    except BackendError as error:
        return error


def _read_plain(name: str, exchange: Exchange, parameters: JsonObject) -> list[Finding]:
    reply = read_reply(exchange)
    said = reply.text[:60] or "nothing"
    found = [Finding("model", bool(reply.text) or None, f"{name} says {said!r} in {exchange.timing.seconds:.1f} s")]
    if refused := parameters.get("refused"):
        found.append(Finding("parameters", None, f"refused and left out: {refused}", "noted in the profile"))
    usage = exchange.usage
    if usage.completion_tokens is None:
        advice = "tokens, cost and the recommendation by tokens will be unknown"
        found.append(Finding("usage", None, "no token counts are reported", advice))
    else:
        found.append(Finding("usage", True, f"{usage.prompt_tokens} + {usage.completion_tokens} tokens reported"))
    return found


def _efforts(answers: list[Exchange | BackendError]) -> Finding:
    refused = [e for e, a in zip(EFFORTS[1:], answers, strict=True) if isinstance(a, EffortRefused)]
    failed = [str(a) for a in answers if isinstance(a, BackendError) and not isinstance(a, EffortRefused)]
    thought = [
        e
        for e, a in zip(EFFORTS[1:], answers, strict=True)
        if isinstance(a, Exchange) and (a.usage.reasoning_tokens or read_reply(a).reasoning)
    ]
    if failed:
        return Finding("efforts", None, failed[0])
    if len(refused) == len(answers):
        return Finding("efforts", None, "all are refused", "measure with --tsuka-effort=none --tsuka-effort-style=off")
    if refused:
        return Finding("efforts", True, f"refused: {', '.join(refused)}; they are skipped")
    if not thought:
        advice = "levels may have no effect; the run tells, or try another --tsuka-effort-style"
        return Finding("efforts", None, "all are accepted, no reasoning was seen", advice)
    return Finding("efforts", True, f"reasoning seen at {', '.join(thought)}")


def _tools(answer: Exchange | BackendError) -> Finding:
    if isinstance(answer, BackendError):
        return Finding("tools", None, str(answer), "toolCalling cannot be measured at this endpoint")
    reply = read_reply(answer, ("current_time",))
    if reply.tool_calls:
        return Finding("tools", True, f"calls {reply.tool_calls[0].name}({reply.tool_calls[0].raw_arguments})")
    if reply.text_calls:
        advice = "the server's tool parser is off or does not fit; --tsuka-text-calls accepts it"
        return Finding("tools", None, "the call was written as text", advice)
    return Finding("tools", None, "no tool was called", "one question proves nothing; the benchmarks tell")


def _streaming(answer: Exchange | BackendError) -> Finding:
    if isinstance(answer, BackendError):
        return Finding("streaming", None, str(answer), "leave --tsuka-stream out")
    first = answer.timing.first_token_seconds
    if first is None:
        return Finding("streaming", None, "asked for, answered whole", "--tsuka-stream gains nothing here")
    lost = "" if answer.usage.completion_tokens is not None else ", but without token counts"
    return Finding("streaming", True, f"first token after {first:.2f} s{lost}")
