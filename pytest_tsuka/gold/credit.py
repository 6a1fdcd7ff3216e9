"""The credit that a judge's verdicts come to, once it is known again who A and B were. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_tsuka.gold.comparison import Comparison
from pytest_tsuka.gold.judge import Question
from pytest_tsuka.gold.verdicts import Verdict

PARTIAL, POOR = 0.5, 0.1
"""Credit of a correct but weaker answer, and the most that a wrong one gets."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict in terms of candidate and reference."""

    candidate_correct: bool
    reference_correct: bool
    better: Literal["candidate", "reference", "same"]
    tolerance: float | None = None
    reason: str = ""


def unblind(question: Question, verdict: Verdict, *, swapped: bool = False) -> Judged:
    """Who A and B were."""
    if not question.has_sides:
        return Judged(verdict.a_correct, False, "candidate", reason=verdict.reason)
    first = question.candidate_is_a != swapped
    correct = (verdict.a_correct, verdict.b_correct) if first else (verdict.b_correct, verdict.a_correct)
    sides: dict[str, Literal["candidate", "reference", "same"]] = {
        "A": "candidate" if first else "reference",
        "B": "reference" if first else "candidate",
        "same": "same",
    }
    return Judged(*correct, sides[verdict.better], verdict.tolerance, verdict.reason)


def settle(question: Question, answers: Sequence[Judged]) -> Comparison:
    """The credit that one answer, or two in opposite orders, comes to.

    Equal or better, or the reference wrong: 1. Weaker but correct: partial. Wrong: at most a tenth.
    Answers that disagree leave the value undecided: a judge that follows the position decides nothing.
    """
    credits = [_credit(question, answer) for answer in answers]
    opinions = {(a.candidate_correct, a.reference_correct, a.better) for a in answers}
    if len(answers) > 1 and len(opinions) > 1 and len(set(credits)) > 1:
        return Comparison("judge", 0.0, undecided=True, note="the judge's two orders disagree")
    return Comparison("judge", credits[0], note=answers[0].reason, evidence=_evidence(question, answers))


def _evidence(question: Question, answers: Sequence[Judged]) -> str:
    """What the answers say against the reference, if they all say it."""
    if not all(a.candidate_correct for a in answers):
        return ""
    if not question.has_sides:
        return "filled_blank"
    if all(not a.reference_correct for a in answers):
        return "judged_wrong"
    return "better" if all(a.better == "candidate" for a in answers) else ""


def _credit(question: Question, answer: Judged) -> float:
    if not question.has_sides:
        return float(answer.candidate_correct)
    if not answer.candidate_correct:
        if question.numeric and answer.tolerance is not None and _within(question, answer.tolerance):
            return PARTIAL
        return 0.0 if answer.reference_correct else POOR
    if not answer.reference_correct or answer.better in ("candidate", "same"):
        return 1.0
    return PARTIAL


def _within(question: Question, tolerance: float) -> bool:
    a, b = question.candidate, question.reference
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return numbers and tolerance > 0 and abs(float(a) - float(b)) <= tolerance * abs(float(b))  # type: ignore[arg-type]
