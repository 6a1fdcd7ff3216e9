"""How good a judge is: pairs with known verdicts, each asked in both orders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pytest_tsuka.gold.credit import unblind
from pytest_tsuka.gold.judge import Question
from pytest_tsuka.gold.verdicts import Verdict, read_verdict
from pytest_tsuka.text.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class KnownVerdict:
    """A question with its answer: whether the candidate and the reference are correct."""

    question: Question
    candidate_correct: bool
    reference_correct: bool


@cache
def known_verdicts() -> tuple[KnownVerdict, ...]:
    """The shipped set: names, numbers, free text with documents, both right, both wrong, values that give orders."""
    text = resources.files("pytest_tsuka.gold").joinpath("judge_check.json").read_text(encoding="utf-8")
    found = []
    for case in json.loads(text)["cases"]:
        place = case.get("place", "")
        if "item" in case:
            place += f"\nit belongs to the list item {json.dumps(case['item'])}"
        candidate, reference = case["values"]
        documents = tuple(case.get("documents", ()))
        question = Question(case["field"], candidate, reference, place.strip(), documents, case.get("numeric", False))
        found.append(KnownVerdict(question, *case["correct"]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What a check found. Shares are of the replies (accuracy) or of the pairs that were answered in both orders.

    `flips` is how often the verdict changed with the order; `first_side` how often the side shown
    first was called the better one, of all replies that preferred a side: 0.5 is unbiased.
    """

    replies: int
    malformed: int
    accuracy: float
    flips: float
    first_side: float | None
    wrong: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {
            "replies": self.replies,
            "malformed": self.malformed,
            "accuracy": self.accuracy,
            "flips": self.flips,
            "firstSide": self.first_side,
            "wrong": list(self.wrong),
        }


def judge_report(replies: Sequence[Sequence[str | None]]) -> JudgeReport:
    """From the replies to each known verdict, as shown and with the sides swapped; None is a failed request."""
    right = malformed = flips = pairs = 0
    preferred: list[bool] = []
    wrong = []
    for known, both in zip(known_verdicts(), replies, strict=True):
        opinions = []
        for swapped, reply in enumerate(both):
            verdict = read_verdict(reply) if reply is not None else None
            if verdict is None:
                malformed += 1
                continue
            answer = unblind(known.question, verdict, swapped=bool(swapped))
            opinions.append((answer.candidate_correct, answer.reference_correct))
            right += opinions[-1] == (known.candidate_correct, known.reference_correct)
            preferred += _preference(verdict)
        if len(opinions) == 2:
            pairs += 1
            flips += opinions[0] != opinions[1]
        if any(o != (known.candidate_correct, known.reference_correct) for o in opinions) or not opinions:
            q = known.question
            wrong.append(f"{q.field}: {q.candidate!r} / {q.reference!r}")
    total = sum(len(both) for both in replies)
    return JudgeReport(
        replies=total,
        malformed=malformed,
        accuracy=right / total if total else 0.0,
        flips=flips / pairs if pairs else 0.0,
        first_side=sum(preferred) / len(preferred) if preferred else None,
        wrong=tuple(wrong),
    )


def _preference(verdict: Verdict) -> list[bool]:
    """Whether the first side was preferred, where one was."""
    return [] if verdict.better == "same" else [verdict.better == "A"]
