"""Grades one answer at a time, asking the judge what is open until nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.consolidation import consolidate
from pytest_tsuka.gold.consultation import Backing, Consultation, judged
from pytest_tsuka.gold.enrichment import Grade, grade
from pytest_tsuka.gold.judge import Asked
from pytest_tsuka.gold.reference import Finding, Reference, Revision
from pytest_tsuka.gold.samples import grade_sample
from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.gold.schemas import grade_schema
from pytest_tsuka.grading.judge_panel import Panel
from pytest_tsuka.store.records import Output
from pytest_tsuka.text.json_types import JsonObject, JsonValue


@dataclass
class Grader:
    """What all answers of a scenario are graded with in one pass."""

    scenario: Scenario
    vectors: Vectors | None
    threshold: float
    backing: Backing
    panel: Panel | None

    async def grade(self, output: Output, reference: JsonValue, model: str, label: str, *, count: bool = True) -> Grade:
        """Raises GradingError when the judge fails. `count` adds to what was answered without asking."""
        asked = 0
        while True:
            seen: list[Asked] = []
            graded, unanswered = self._once(output, reference, model, seen)
            if not unanswered:
                if self.panel and count:
                    self.panel.note_cached(label, len({_identity(q) for q in seen}) - asked)
                return graded
            assert self.panel
            asked += await self.panel.ask(unanswered, label)

    def _once(self, output: Output, reference: JsonValue, model: str, seen: list[Asked]) -> tuple[Grade, list[Asked]]:
        scenario = self.scenario
        consultation = self._consultation(seen)
        if scenario.kind == "schema_generation":
            base: JsonObject = reference if isinstance(reference, dict) else {}
            samples = scenario.samples or ()
            graded = grade_schema(output.value, base, samples, vectors=self.vectors, threshold=self.threshold)
        elif scenario.kind == "sample_generation":
            rubric = None
            if consultation and isinstance(output.value, dict):
                rubric = consultation.rubric(scenario.request or "", output.value)
            graded = grade_sample(output.value, scenario.request or "", scenario.answer_schema, rubric)
        else:
            graded = grade(
                output.value,
                reference,
                scenario.answer_schema,
                scenario.fields(self.threshold),
                vectors=self.vectors,
                judge=consultation.judge if consultation else None,
                backed=self.backing.for_model(model),
            )
        return graded, consultation.open if consultation else []

    def _consultation(self, seen: list[Asked]) -> Consultation | None:
        if self.panel is None:
            return None
        panel = self.panel

        def known(question: Asked) -> Sequence[str] | None:
            seen.append(question)
            return panel.known(question)

        return Consultation(known, self.scenario.answer_schema, self.scenario.documents)

    def duels(self, reference: Reference, findings: Sequence[Finding]) -> tuple[list[Revision], list[Asked]]:
        """Consolidates, and the questions between claimed values that are still open."""
        consultation = self._consultation([])

        def duel(path: str, leading: JsonValue, other: JsonValue) -> bool:
            if consultation is None:
                return False
            question = consultation.question(path, other, leading)
            replies = consultation.known(question)
            if replies is None:
                consultation.open.append(question)
                return False
            verdicts = [judged(question, reply, swapped=n == 1) for n, reply in enumerate(replies)]
            return all(v.candidate_correct and not v.reference_correct for v in verdicts)

        made = consolidate(reference, findings, duel=duel)
        return made, consultation.open if consultation else []


def _identity(question: Asked) -> Any:
    return question.key("", "")
