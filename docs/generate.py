"""Writes what is generated from the code: the pages under docs/reference/ and the schemas in the package.

Run `python docs/generate.py`; a test fails when what is written is not what the code says.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.checks import BUILT_IN
from pytest_tsuka.cli import main
from pytest_tsuka.gold import scenario
from pytest_tsuka.plugin import hookspecs
from pytest_tsuka.plugin.options import OPTIONS
from pytest_tsuka.scoring.outcomes import OUTCOMES
from pytest_tsuka.suite.files import json_schema

ROOT = Path(__file__).resolve().parents[1]
PROFILE_FIELDS = {
    "model": "exact name",
    "provider": "the endpoint without credentials, or `embedded:FILE`",
    "tier": "the highest tier whose thresholds all hold",
    "scores": "`instruction`, `json`, `toolCalling`, 0 to 1, unrounded",
    "tokensPerSecond": "completion tokens per second of one stream, null when unknown",
    "tokensPerSecondBasis": "how that was measured: `alone` at the endpoint, `streamed` (first to last token) or"
    " `shared`; and how many requests were in flight",
    "throughput": "tokens per second of all streams together, and how many were in flight on average",
    "testedAt": "UTC, ISO 8601",
    "benchmarkVersion": "raised when a score changes meaning",
    "testsHash": "hash of the suite's files; another hash invalidates the profile",
    "suite": "where those files are, relative to this one, or `pytest-tsuka:standard`: `ModelProfiles.load` reads them",
    "testResults": "name, category and score of each benchmark",
    "reasoningEffort": "`none`, `low`, `medium` or `xhigh`",
    "avgCompletionTokens": "completion tokens per request",
    "repeats": "conversations per benchmark",
    "tierStability": "share of the repeats whose own tier is the tier, null without repeats",
    "requests": "requests in all",
    "promptTokens": "in all, null when not reported",
    "completionTokens": "in all, null when not reported",
    "latency": "seconds per request: `p50`, `p95`",
    "cost": "dollars for all requests, null without a price or token counts",
    "parameters": "what requests carried besides the conversation, and what the endpoint refused",
    "wallSeconds": "seconds during which some conversation at this effort was held",
    "effortHonoured": "whether the effort made a difference; null when it could not be told",
    "outcomes": "how many items came to which [outcome](outcomes.md)",
    "jsonClean": "share of json replies that were JSON and nothing else",
}
RESULT_FIELDS = {
    "format": "raised when a field changes meaning",
    "generator": "name and version",
    "started": "UTC, ISO 8601",
    "finished": "UTC, ISO 8601",
    "interrupted": "whether the run was broken off",
    "testsHash": "hash of the suite's files",
    "benchmarkVersion": "raised when a score changes meaning",
    "tiers": "each tier with its thresholds, from the lowest",
    "models": "per model: recommended effort, tier, what holds it back, and per effort scores and figures",
    "gate": "null without a gate; else whether it is met, and what keeps it shut",
    "benchmarks": "name and category of everything a complete run holds",
    "verdicts": "every item: outcome, score, checks with reasons, the conversation as it was, usage and timing",
    "scenarios": "per scenario: ranking, every result with its graded fields, the reference with its revisions",
}


def checks() -> Iterator[str]:
    yield "# Checks\n"
    yield "Every check has `type` and `weight` (default 1). An empty reply passes no negative check.\n"
    for name, check in BUILT_IN.items():
        yield f"## `{name}`\n"
        yield _prose(check.__doc__)
        fields = {f.alias or n: f for n, f in check.model_fields.items() if n not in ("type", "weight")}
        if fields:
            yield "| operand | | type |\n|---|---|---|"
            for field, info in fields.items():
                required = "required" if info.is_required() else f"default `{json.dumps(info.default)}`"
                yield f"| `{field}` | {required} | {_type(check, field)} |"
            yield ""


def _type(check: Any, field: str) -> str:
    schema = check.model_json_schema(by_alias=True)["properties"][field]
    options = schema.get("anyOf", [schema])
    kinds = [o.get("type", "any") if "const" not in o else json.dumps(o["const"]) for o in options]
    names = [
        ", ".join(json.dumps(v) for v in option["enum"]) if "enum" in option else kind
        for option, kind in zip(options, kinds, strict=True)
    ]
    return " or ".join(dict.fromkeys(str(n) for n in names))


def options() -> Iterator[str]:
    yield "# Options\n"
    yield "Each option has an ini key, in `[tool.pytest]` or `pytest.ini`; the command line goes first.\n"
    yield "| option | ini key | default | |\n|---|---|---|---|"
    for option in OPTIONS:
        flag = f"`{option.flag}`" + (f", `--no-{option.flag[2:]}`" if option.negatable else "")
        value = f" {option.metavar}" if option.metavar else ""
        default = option.default if not isinstance(option.default, list) else " ".join(option.default)
        text = option.help.replace("%%", "%").replace("|", "\\|")
        yield f"| {flag}{value} | `{option.key}` | {f'`{default}`' if default not in ('', None) else ''} | {text} |"


def hooks() -> Iterator[str]:
    yield "# Hooks\n"
    yield "Implemented in the root `conftest.py` or in a plugin; a misspelt name is an error.\n"
    for name, hook in vars(hookspecs).items():
        if name.startswith("pytest_tsuka_"):
            yield f"## `{name}`\n"
            yield f"```python\ndef {name}{_plain(hook)}: ...\n```\n"
            text = inspect.cleandoc(hook.__doc__ or "")
            prose, _, example = text.partition("::\n")
            yield _prose(prose + ("." if example and not prose.endswith(".") else ""))
            if example.strip():
                code = re.sub(r"\n\n(?=(?:def|class|@) ?)", "\n\n\n", inspect.cleandoc(example))
                yield f"```python\n{code}\n```\n"


def _plain(hook: Any) -> str:
    return str(inspect.signature(hook)).replace("'", "")


def commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "Exit status: 0 done, 1 done but something failed or could not be graded, 2 wrong use.\n"
    for words, command in _walk(main, ("tsuka",)):
        yield f"## `{' '.join(words)}`\n"
        context = click.Context(command, info_name=" ".join(words), max_content_width=100, terminal_width=100)
        yield f"```text\n{command.get_help(context)}\n```\n"


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _walk(command.commands[name], (*words, name))
    else:
        yield words, command


def files() -> Iterator[str]:
    yield "# Files\n"
    yield "## `models_profile.json`\n"
    yield "`profiles` by `model@effort`, and `recommendations`: the cheapest effort of the best tier, by model.\n"
    yield from _fields(PROFILE_FIELDS)
    yield "## The result file (`--tsuka-json`)\n"
    yield from _fields(RESULT_FIELDS)


def outcomes() -> Iterator[str]:
    yield "# Outcomes\n"
    yield (
        "What can become of an item. Below full score the first class that fits is the item's; `tsuka.outcome` in JUnit"
        " and `outcome` in the result file name it. A score counts in the tier; an error makes a tier impossible.\n"
    )
    yield "| outcome | pytest | reports | score | tier of the level |\n|---|---|---|---|---|"
    for outcome in sorted(OUTCOMES, key=lambda o: _ORDER.index(o.name) if o.name in _ORDER else len(_ORDER)):
        yield f"| {outcome.name} | `{outcome.letter}` | {outcome.mark} | {outcome.score} | {outcome.tier} |"
    yield ""
    yield (
        "Under a gate an item below full score is PARTIAL (`p`, or the letter of its class) and does not fail the run."
        " A server that was started without its switch for tools is an error, which names the switch.\n"
    )


_ORDER = ("passed", "failed", "truncated")


def _fields(fields: dict[str, str]) -> Iterator[str]:
    yield "| field | |\n|---|---|"
    for name, meaning in fields.items():
        yield f"| `{name}` | {meaning} |"
    yield ""


def _prose(text: str | None) -> str:
    return re.sub(r"``?([^`]+)``?", r"`\1`", inspect.cleandoc(text or "")) + "\n"


def generated() -> dict[Path, str]:
    """Every generated file with its text."""
    pages = {
        "checks": checks,
        "options": options,
        "hooks": hooks,
        "commands": commands,
        "files": files,
        "outcomes": outcomes,
    }
    found = {
        ROOT / "docs" / "reference" / f"{name}.md": "\n".join(lines()).rstrip() + "\n" for name, lines in pages.items()
    }
    for name, schema in (("benchmark", json_schema()), ("scenario", scenario.json_schema())):
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        found[ROOT / "pytest_tsuka" / "schemas" / f"{name}.json"] = text
    return found


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
