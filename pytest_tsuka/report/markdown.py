"""A run, or the difference of two, as Markdown for a pull request. Text of models and names is never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tsuka.report.scenarios import dollars
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.numbers import number_text, score_text

MOST_ITEMS = 30
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$:@-])")


def escaped(text: object) -> str:
    """Text that Markdown shows as it is: no link, no mention, no HTML, no break of a table."""
    return _SPECIAL.sub(r"\\\1", one_line(str(text)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all but the first column are aligned right."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def summary(document: Mapping[str, Any]) -> str:
    """A whole run: verdict, scores per effort, failed items, scenarios."""
    parts = []
    for model in document["models"]:
        parts.append(f"### {escaped(model['model'])}: {escaped(model['tier'] or 'no tier')}\n")
        if model["recommendedEffort"]:
            parts.append(f"Recommended effort: **{model['recommendedEffort']}**\n")
        rows = [
            [e["effort"], *(score_text(e["scores"][c]) for c in CATEGORY_NAMES), escaped(e["tier"] or "–")]
            for e in model["efforts"]
        ]
        parts.append(table(["effort", *CATEGORY_NAMES, "tier"], rows))
        if model.get("holdsBack"):
            why = [f"- {escaped(line.strip())}" for line in model["holdsBack"]["why"]]
            parts.append("\n".join([f"What holds it back from {escaped(model['holdsBack']['tier'])}:\n", *why]) + "\n")
        parts += [f"{escaped(line)}\n" for line in (*model.get("remarks", ()), *model.get("saturation", ()))]
    if document["gate"] is not None:
        parts.append(f"**Gate {'met' if document['gate']['met'] else 'not met'}**\n")
        lines = [f"- {escaped(line)}" for failure in document["gate"]["failures"] for line in failure]
        parts.append("\n".join(lines) + "\n" if lines else "")
    failed = [v for v in document["verdicts"] if v["outcome"] != "passed"]
    if failed:
        rows = [
            [escaped(v["benchmark"]), escaped(v["model"]), v["effort"], score_text(v["score"]), escaped(v["outcome"])]
            for v in failed[:MOST_ITEMS]
        ]
        more = f"\n{len(failed) - MOST_ITEMS} more\n" if len(failed) > MOST_ITEMS else ""
        listed = table(["benchmark", "model", "effort", "score", "outcome"], rows)
        parts.append(
            f"<details><summary>{len(failed)} of {len(document['verdicts'])} items below full score</summary>\n\n"
            f"{listed}{more}\n</details>\n"
        )
    parts += [_scenario(scenario) for scenario in document.get("scenarios", ())]
    return "\n".join(part for part in parts if part)


def _scenario(scenario: Mapping[str, Any]) -> str:
    rows = [
        [
            escaped(r["model"]),
            r["effort"],
            number_text(r["score"]),
            number_text(r["quality"]),
            score_text(r["completeness"]),
            score_text(r["correctness"]),
            number_text(r["secondsPerAnswer"], unit=" s"),
            dollars(r["costPerAnswer"]),
            "stale" if r["stale"] else "",
        ]
        for r in scenario["results"]
    ]
    head = ["model", "effort", "score", "quality", "complete", "correct", "time", "cost", ""]
    return f"### Scenario {escaped(scenario['scenario'])}\n\n{table(head, rows)}"
