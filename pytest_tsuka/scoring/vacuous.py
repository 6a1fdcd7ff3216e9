"""The guard against benchmarks that pay for nothing: an empty reply, or an apology."""

from __future__ import annotations

from pytest_tsuka.checks.base import Subject
from pytest_tsuka.conversation import Reply
from pytest_tsuka.scoring.tiers import weighted_share
from pytest_tsuka.suite.benchmark import Benchmark

APOLOGY = "I'm sorry, but I can't help with that. Mi dispiace, ma non posso aiutarti con questa richiesta."
VACUOUS_SHARE = 0.25


def vacuous_share(benchmark: Benchmark, text: str = "") -> float:
    """The score that a reply which says nothing useful would earn, with every step reached."""
    subject = Subject(Reply(text=text, raw_text=text, finish_reason="stop"), benchmark.tools)
    checks = (check for step in benchmark.all_steps for check in step.checks)
    return weighted_share((check.apply(subject).passed, check.weight) for check in checks)


def vacuous_warning(benchmark: Benchmark) -> str | None:
    """Why a benchmark gives points away, or None."""
    for what, text in (("an empty reply", ""), ("a stock apology", APOLOGY)):
        share = vacuous_share(benchmark, text)
        if share > VACUOUS_SHARE:
            return (
                f"{benchmark.name}: {what} earns {share:.0%} of the weight;"
                " add checks that only a right answer passes, or give the negative ones less weight"
            )
    return None
