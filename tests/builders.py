"""Verdicts and result files made by hand: what a run would have come to."""

from __future__ import annotations

import json
from typing import Any

from pytest_tsuka.report.results import result_document
from pytest_tsuka.scoring.results import Expectation, summarise
from pytest_tsuka.scoring.verdict import Verdict

SUITE = {"words": "instruction", "data": "json", "tools": "toolCalling"}


def verdict(name: str, *scores: float, model: str = "m", effort: str = "low", outcome: str = "") -> Verdict:
    """A verdict with a run per score; without scores an error."""

    def run(score: float) -> Any:
        checks = [
            {"step": 0, "type": "contains", "operands": {"value": str(n)}, "weight": 1.0, "passed": n < score * 4,
             "reason": f"no {n}"} for n in range(4)
        ]  # fmt: skip
        return {
            "score": score, "outcome": "passed" if score == 1 else "failed", "checks": checks, "notes": [],
            "json_replies": 0, "json_clean": 0, "conversation": [], "requests": 1, "attempts": 1,
            "usage": {"prompt_tokens": 5, "completion_tokens": 4, "reasoning_tokens": None},
            "timing": {"seconds": 1.0}, "latencies": [1.0],
        }  # fmt: skip

    mean = sum(scores) / len(scores) if scores else None
    found: Any = {
        "benchmark": name, "file": f"{name}.json", "description": "", "category": SUITE[name], "weight": 1.0,
        "model": model, "effort": effort, "provider": "p", "parameters": {}, "tests_hash": "abcd1234",
        "outcome": outcome or ("error" if mean is None else "passed" if mean == 1 else "failed"),
        "score": mean, "error": None if scores else "no answer", "runs": [run(s) for s in scores],
    }  # fmt: skip
    return found  # type: ignore[no-any-return]


def document(*verdicts: Verdict, hash_: str = "abcd1234") -> dict[str, Any]:
    """The result file of a run that came to these verdicts, as it is read back."""
    efforts = tuple(dict.fromkeys(v["effort"] for v in verdicts))
    models = tuple(dict.fromkeys(v["model"] for v in verdicts))
    results = summarise(Expectation(models, efforts, SUITE), verdicts)
    made = result_document(
        verdicts, results, tests_hash=hash_, started=0.0, interrupted=False, gate=None, categories=SUITE
    )
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def run_of(words: float, data: float, tools: float, **more: Any) -> list[Verdict]:
    return [verdict("words", words, **more), verdict("data", data, **more), verdict("tools", tools, **more)]
