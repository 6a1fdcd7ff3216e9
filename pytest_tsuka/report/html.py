"""One self-contained HTML page of a run, made from its result file. No network, no text of a model ever markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.report.charts import cost_chart, legend, score_chart
from pytest_tsuka.report.scenarios import DEFINITIONS, MARKS, dollars
from pytest_tsuka.scoring.outcomes import OUTCOMES
from pytest_tsuka.scoring.speed import Speed
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.text.escape import printable
from pytest_tsuka.text.json_paths import leaves
from pytest_tsuka.text.numbers import number_text, percent_text, score_text

TEXT_BUDGET = 4_000_000
"""Characters of model text on the page in all: long texts are cut in the middle, the result file has them whole."""
TEXTS, SHORTEST, LONGEST = 3, 400, 20_000


def html_page(document: Mapping[str, Any]) -> str:
    """The page of a result document (`--tsuka-json`). Raises SettingsError when the extra `html` is missing."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise SettingsError(f"the HTML report needs {error.name}: pip install 'pytest-tsuka[html]'") from None
    environment = Environment(
        loader=PackageLoader("pytest_tsuka", "report/templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    limit = max(SHORTEST, min(LONGEST, TEXT_BUDGET // max(1, TEXTS * len(document["verdicts"]))))
    environment.filters |= {
        "safe_text": lambda text: printable(str(text)),
        "shortened": lambda text: _shortened(printable(str(text)), limit),
        "as_json": lambda value: printable(json.dumps(value, ensure_ascii=False)),
        "pretty": lambda value: _shortened(printable(json.dumps(value, ensure_ascii=False, indent=2)), limit),
        "score": score_text,
        "number": number_text,
        "dollars": dollars,
        "percent": percent_text,
    }
    environment.tests["indented"] = lambda line: line.startswith("  ")
    style, script = _asset("report.css"), _asset("report.js")
    models = [_model(model, document["tiers"], Markup) for model in document["models"]]
    return environment.get_template("report.html.j2").render(
        document=document,
        models=models,
        verdicts=document["verdicts"],
        scenarios=[_scenario(scenario) for scenario in document.get("scenarios", ())],
        efforts=sorted({v["effort"] for v in document["verdicts"]}, key=("none", "low", "medium", "xhigh").index),
        categories=CATEGORY_NAMES,
        outcomes=sorted({v["outcome"] for v in document["verdicts"]}),
        definitions=DEFINITIONS,
        marks=MARKS,
        outcome_marks={outcome.name: outcome.mark for outcome in OUTCOMES},
        style=Markup(style),
        script=Markup(script),
        script_hash=_hash(script),
    )


@cache
def _asset(name: str) -> str:
    return resources.files("pytest_tsuka.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The script's hash for the content security policy: nothing else runs, whatever a model wrote."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out, the result file has them …\n{text[-half:]}"


def _model(model: Mapping[str, Any], tiers: Mapping[str, Any], markup: Any) -> dict[str, Any]:
    """A model with its charts, of the efforts that have scores."""
    efforts = [e for e in model["efforts"] if any(s is not None for s in e["scores"].values())]
    charts = [
        (title, drawn)
        for title, drawn in (
            ("Scores per effort, with the thresholds of the tiers", score_chart(efforts, tiers) if efforts else None),
            ("Score against tokens per reply", cost_chart(efforts, "avgCompletionTokens", "tokens per reply")),
            ("Score against time", cost_chart(efforts, "seconds", "seconds, wall time")),
        )
        if drawn
    ]
    lines = [(markup(colour), label) for colour, label in legend(tiers)]
    return {
        **model,
        "speed": _speed(model["efforts"]),
        "charts": [(title, markup(drawn), lines if n == 0 else []) for n, (title, drawn) in enumerate(charts)],
    }


def _speed(efforts: Sequence[Mapping[str, Any]]) -> str:
    """What tok/s and time mean here; nothing for files of earlier versions, which do not say."""
    bases = [e["tokensPerSecondBasis"] for e in efforts if e.get("tokensPerSecondBasis")]
    ways = dict.fromkeys(Speed(0.0, basis["how"], basis["concurrency"]).words() for basis in bases)
    together = [
        f"{number_text(whole['tokensPerSecond'])} at {e['effort']} with {number_text(whole['concurrency'])} at once"
        for e in efforts
        if (whole := e.get("throughput"))
    ]
    in_all = f"; all streams together: {', '.join(together)}" if together else ""
    return f"tok/s: {', '.join(ways)}{in_all}; time: wall time of the effort" if ways else ""


def _scenario(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario with its reference as leaves, each with the revision that stands there."""
    reference = scenario.get("reference")
    if reference is None:
        return {**scenario, "leaves": []}
    revisions = {r["path"]: r for r in reference["revisions"]}
    found = leaves(reference["output"], stop=revisions)
    return {**scenario, "leaves": [(path, value, revisions.get(path)) for path, value in found]}
