"""One item in words: its failure, what the model said, its figures for JUnit."""

from __future__ import annotations

from typing import Any

from pytest_tsuka.scoring.verdict import RunVerdict, Verdict, failed_checks, headline, operands_text
from pytest_tsuka.text.escape import one_line, printable
from pytest_tsuka.text.numbers import score_text


def worst_run(verdict: Verdict) -> RunVerdict:
    return min(verdict["runs"], key=lambda run: run["score"])


def failure_lines(verdict: Verdict) -> list[str]:
    """What an author of a benchmark or a user of a model needs to see: score, failed checks, notes."""
    run = worst_run(verdict)
    lines = [headline(verdict["score"] or 0.0, run), f"{verdict['model']} at effort {verdict['effort']}"]
    if len(verdict["runs"]) > 1:
        scores = ", ".join(score_text(r["score"]) for r in verdict["runs"])
        lines.append(f"scores of {len(verdict['runs'])} runs: {scores}; the lowest is shown")
    for check in failed_checks(run):
        step = f"step {check['step'] + 1}: " if _steps(run) > 1 else ""
        lines.append(f"  ✗ {step}{check['type']} {operands_text(check)} (weight {check['weight']:g})")
        lines.append(f"      {check['reason']}")
    lines.extend(f"  note: {note}" for note in run["notes"])
    return [one_line(line) for line in lines]


def _steps(run: RunVerdict) -> int:
    return len(run["conversation"])


def reply_text(verdict: Verdict, most: int = 1500) -> str:
    """What the model said in its worst run, for the section under a failure."""
    lines: list[str] = []
    for number, turn in enumerate(worst_run(verdict)["conversation"]):
        reply: Any = turn.get("reply")
        if not reply:
            continue
        prefix = f"[{number + 1}] " if _steps(worst_run(verdict)) > 1 else ""
        for call in reply["tool_calls"]:
            lines.append(f"{prefix}calls {call.get('name')}({call.get('raw_arguments', '')})")
        if reply.get("refusal"):
            lines.append(f"{prefix}refuses: {reply['refusal']}")
        if reply["text"]:
            lines.append(f"{prefix}{reply['text']}")
    text = printable("\n".join(lines))
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} more characters (see --tsuka-json)"


def properties(verdict: Verdict) -> list[tuple[str, str]]:
    """An item's figures for JUnit: score, weight, tokens, seconds and every check."""
    found: dict[str, object] = {
        "tsuka.outcome": verdict["outcome"],
        "tsuka.score": "" if verdict["score"] is None else score_text(verdict["score"], 3),
        "tsuka.weight": f"{verdict['weight']:g}",
        "tsuka.category": verdict["category"],
        "tsuka.effort": verdict["effort"],
        "tsuka.model": verdict["model"],
    }
    if verdict["runs"]:
        run = worst_run(verdict)
        found["tsuka.seconds"] = f"{sum(r['timing']['seconds'] or 0 for r in verdict['runs']):.3f}"
        tokens = [r["usage"]["completion_tokens"] for r in verdict["runs"]]
        if all(t is not None for t in tokens):
            found["tsuka.tokens"] = sum(t for t in tokens if t is not None)
        for number, check in enumerate(run["checks"]):
            outcome = "pass" if check["passed"] else f"fail: {check['reason']}"
            found[f"tsuka.check.{number}"] = f"{check['type']} {operands_text(check)} x{check['weight']:g} {outcome}"
    return [(name, one_line(str(value))) for name, value in found.items() if value != ""]
