"""A grading pass: stored answers of a scenario in, grades, findings and a better reference out.

No model under test is called. A result is graded whole or not at all.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sqlite3
import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pytest_tsuka.errors import BackendError, GoldReferenceError, GradingError, SettingsError
from pytest_tsuka.gold.calibration import calibrate
from pytest_tsuka.gold.calibration import texts as calibration_texts
from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.consultation import Backing, short_texts
from pytest_tsuka.gold.enrichment import plain_grade
from pytest_tsuka.gold.families import same_family
from pytest_tsuka.gold.findings import findings_of
from pytest_tsuka.gold.reference import Finding, Reference, Revision, baseline
from pytest_tsuka.gold.scenario import Judge, Scenario
from pytest_tsuka.gold.schemas import described_texts, sample_findings
from pytest_tsuka.grading.clients import Clients
from pytest_tsuka.grading.embed import embed_texts
from pytest_tsuka.grading.grader import Grader
from pytest_tsuka.grading.judge_panel import Panel
from pytest_tsuka.grading.project import Project
from pytest_tsuka.grading.reference_files import locked_reference, read_reference, write_reference
from pytest_tsuka.grading.scenario_files import reference_file
from pytest_tsuka.grading.verified import verified_reference
from pytest_tsuka.store.records import Grading, Records, Result
from pytest_tsuka.text.json_types import JsonObject, JsonValue

JUDGE_AT_ONCE = 4


@dataclass
class PassOutcome:
    """What came of a pass. `failed` maps "model@effort" to why it has no score."""

    scenario: str
    pass_id: str
    graded: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    revisions: list[Revision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def label_of(model: str, effort: str) -> str:
    return f"{model}@{effort}"


@dataclass
class GradingPass:
    """One pass over one scenario.

    `improve` says whether what models found may be written into the reference.
    """

    path: Path
    scenario: Scenario
    records: Records
    clients: Clients
    project: Project
    kind: str = "run"
    improve: bool = True

    def run(self, only: Collection[tuple[str, str]] | None = None) -> PassOutcome:
        """Grades the stored results, or those of the given (model, effort) pairs.

        Raises GoldReferenceError without a usable verified reference.
        """
        self.scenario = self.project.completed(self.scenario)
        reference = verified_reference(self.path, self.scenario)
        outcome = PassOutcome(self.scenario.name, uuid.uuid4().hex[:12])
        stored = [r for r in self.records.results(self.scenario.name, self.scenario.question_key) if r.outputs]
        wanted = [r for r in stored if only is None or (r.model, r.effort) in only]
        if not wanted:
            outcome.notes.append(f"{self.scenario.name}: there are no answers to grade")
            return outcome
        record = self._record(wanted, outcome)
        self.records.begin_pass(outcome.pass_id, self.scenario.name, self.kind, record)
        try:
            asyncio.run(self._grade(reference, stored, wanted, outcome, record))
        except (GradingError, BackendError, SettingsError, sqlite3.Error) as error:
            for result in wanted:
                label = label_of(result.model, result.effort)
                if label not in outcome.graded:
                    outcome.failed.setdefault(label, str(error))
        finally:
            record |= {"failed": outcome.failed, "graded": outcome.graded, "revisions": len(outcome.revisions)}
            self.records.end_pass(outcome.pass_id, record)
        return outcome

    @property
    def _judge(self) -> Judge | None:
        """The judge, of the kinds of scenario that have something to ask."""
        return None if self.scenario.kind == "schema_generation" else self.scenario.scoring.judge

    def _record(self, wanted: Sequence[Result], outcome: PassOutcome) -> JsonObject:
        scoring = self.scenario.scoring
        judge = self._judge
        for model in sorted({r.model for r in wanted}):
            if judge and same_family(judge.model, model):
                outcome.notes.append(
                    f"{self.scenario.name}: the judge {judge.model} is of the family of {model}, which it may favour:"
                    " prefer one from a provider that is not under test"
                )
        if judge and self.records.check(judge.model, judge.effort or "none") is None:
            outcome.notes.append(
                f"{self.scenario.name}: the judge {judge.model} was never checked"
                f" (tsuka judge check {self.scenario.name})"
            )
        return {
            "judge": judge.model if judge else None,
            "judgeEffort": judge.effort if judge else None,
            "embedding": scoring.embedding.model if scoring.embedding else None,
            "models": [label_of(r.model, r.effort) for r in wanted],
        }

    # --- in the loop -----------------------------------------------------------------------

    async def _grade(
        self,
        reference: Reference | None,
        stored: Sequence[Result],
        wanted: Sequence[Result],
        outcome: PassOutcome,
        record: JsonObject,
    ) -> None:
        async with AsyncExitStack() as stack:
            panel = await self._panel(stack, outcome.pass_id)
            vectors, threshold = await self._vectors(reference, stored)
            backing = Backing(self.scenario.documents, [(r.model, o.value) for r in stored for o in r.outputs])
            grader = Grader(self.scenario, vectors, threshold, backing, panel)
            record["threshold"] = threshold if vectors else None
            found = await asyncio.gather(*(self._grade_one(grader, reference, r, outcome) for r in wanted))
            if reference is not None:
                findings = [finding for own in found for finding in own]
                others = [r for r in stored if r not in wanted]
                await self._improve(grader, reference, others, findings, outcome)
            if panel:
                tallies = panel.tallies.values()
                costs = [t.cost for t in tallies]
                record["calls"], record["cached"] = sum(t.calls for t in tallies), sum(t.cached for t in tallies)
                record["cost"] = None if None in costs else sum(c for c in costs if c is not None)

    async def _panel(self, stack: AsyncExitStack, pass_id: str) -> Panel | None:
        judge = self._judge
        if judge is None:
            return None
        model, backend = await asyncio.to_thread(self.clients.judge, judge)
        await stack.enter_async_context(backend)
        return Panel(judge, model, backend, self.records, self.project, pass_id, JUDGE_AT_ONCE)

    async def _vectors(self, reference: Reference | None, stored: Sequence[Result]) -> tuple[Vectors | None, float]:
        """Vectors of everything short in answers and reference, in one batch, and the cosine that counts."""
        scoring = self.scenario.scoring
        if scoring.embedding is None or reference is None:
            return None, 1.0
        of = described_texts if self.scenario.kind == "schema_generation" else short_texts
        values = [reference.output, baseline(reference), *(o.value for r in stored for o in r.outputs)]
        wanted = list(dict.fromkeys(text for value in values for text in of(value)))
        by_name = isinstance(scoring.strictness, str)
        vectors = await embed_texts(
            self.records, self.clients, scoring.embedding, [*wanted, *(calibration_texts() if by_name else [])]
        )
        if not by_name:
            return vectors, float(scoring.strictness)
        return vectors, calibrate(vectors).thresholds[str(scoring.strictness)]

    async def _grade_one(
        self, grader: Grader, reference: Reference | None, result: Result, outcome: PassOutcome
    ) -> list[Finding]:
        """Grades one result and returns what it found against the reference as people left it."""
        label = label_of(result.model, result.effort)
        started = time.monotonic()
        findings: list[Finding] = []
        try:
            grades = [
                await grader.grade(output, reference.output if reference else None, result.model, label)
                for output in result.outputs
            ]
            if reference is not None:
                findings = await self._findings(grader, baseline(reference), result, label, outcome.pass_id)
        except GradingError as error:
            outcome.failed[label] = str(error)
            return []
        tally = grader.panel.tallies[label] if grader.panel else None
        grading = Grading(
            grades=tuple(json.loads(json.dumps(plain_grade(g))) for g in grades),
            pass_id=outcome.pass_id,
            scoring=self.scenario.scoring_key,
            edition=reference.edition if reference else "",
            at=time.time(),
            seconds=time.monotonic() - started,
            judge_calls=tally.calls if tally else 0,
            cached=tally.cached if tally else 0,
            judge_cost=tally.cost if tally else 0.0,
            exact_only=grader.vectors is None and reference is not None,
            threshold=grader.threshold if grader.vectors else None,
        )
        self.records.add_grading(result.id, grading)
        outcome.graded.append(label)
        return findings

    # --- the reference ---------------------------------------------------------------------

    async def _improve(
        self,
        grader: Grader,
        reference: Reference,
        others: Sequence[Result],
        findings: list[Finding],
        outcome: PassOutcome,
    ) -> None:
        """Findings of every stored answer against what people left, so that the order of passes changes nothing."""
        base = baseline(reference)
        for result in others if self.improve else ():
            label = label_of(result.model, result.effort)
            try:
                findings += await self._findings(grader, base, result, label, outcome.pass_id)
            except GradingError as error:
                outcome.problems.append(f"{self.scenario.name}: what {label} found was left out: {error}")
        if not self.improve:
            if findings:
                outcome.notes.append(
                    f"{self.scenario.name}: {len(findings)} findings against the reference were not written: these"
                    " are the packaged scenarios; copy them into your project to let their references improve"
                )
            return
        await self._write(grader, findings, reference.edition, outcome)

    async def _findings(
        self, grader: Grader, base: JsonValue, result: Result, label: str, pass_id: str
    ) -> list[Finding]:
        """What the answers of a result say against `base`. Raises GradingError."""
        scenario, found = self.scenario, []
        for output in result.outputs:
            if output.value is None:
                continue
            if scenario.kind == "schema_generation" and isinstance(base, dict):
                found += sample_findings(output.value, base, scenario.samples or (), result.model, pass_id)
            elif scenario.kind == "enrichment" and grader.panel is not None:
                graded = await grader.grade(output, base, result.model, label, count=False)
                found += findings_of(graded, output.value, base, scenario.answer_schema, result.model, pass_id)
        return found

    async def _write(self, grader: Grader, findings: Sequence[Finding], edition: str, outcome: PassOutcome) -> None:
        """Consolidates on the file as it is now, under its lock, unless a person changed it meanwhile."""
        file = reference_file(self.path, self.scenario)
        schema = self.scenario.answer_schema if self.scenario.kind == "enrichment" else None
        try:
            trial = read_reference(file, schema)
            while open_questions := grader.duels(copy.deepcopy(trial), findings)[1]:
                assert grader.panel
                await grader.panel.ask(open_questions, "reference")
            with locked_reference(file, schema) as fresh:
                if fresh.edition != edition:
                    outcome.notes.append(f"{file.name} was changed during the pass: nothing was written to it")
                    return
                before = fresh.model_dump()
                outcome.revisions, unanswered = grader.duels(fresh, findings)
                if unanswered:
                    outcome.notes.append(f"{file.name} was revised by another pass meanwhile; grade again to add to it")
                    outcome.revisions = []
                    return
                if fresh.model_dump() != before:
                    write_reference(file, fresh)
        except (OSError, GoldReferenceError, GradingError) as error:
            outcome.revisions = []
            outcome.problems.append(f"the reference of {self.scenario.name} was not improved: {error}")
