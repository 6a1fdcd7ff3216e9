"""What a run came to, worked out from its verdicts alone: scores, gate, document, properties. Pure, no pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tsuka.report.results import result_document
from pytest_tsuka.scoring.gate import GateFailure, Requirement, judge_gate
from pytest_tsuka.scoring.results import Expectation, ModelResult, summarise
from pytest_tsuka.scoring.verdict import Verdict
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from pytest_tsuka.grading.standings import Standings


@dataclass(frozen=True)
class Gate:
    """What a run must reach. `effort` None means each model's recommended one."""

    requirements: tuple[Requirement, ...]
    effort: str | None = None
    on_lower_bound: bool = False

    @property
    def asked(self) -> str:
        """As the user wrote it."""
        return ", ".join(requirement.text for requirement in self.requirements)


@dataclass(frozen=True)
class FinishedRun:
    """All that a run ended with. `expectation` None means that it measured no model; `started` is an epoch time."""

    verdicts: Sequence[Verdict]
    expectation: Expectation | None
    tests_hash: str
    started: float
    interrupted: bool = False
    gate: Gate | None = None
    standings: Sequence[Standings] = ()
    scenario_properties: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    concurrency: int = 1


@dataclass(frozen=True)
class Summary:
    """What is told and written at the end. `gate_failures` None: there was no gate, or the run was interrupted."""

    run: FinishedRun
    results: list[ModelResult]
    gate_failures: list[GateFailure] | None
    notes: list[str]

    @property
    def measured(self) -> bool:
        """Whether any effort of any model was measured completely, which makes a profile."""
        return any(model.measured for model in self.results)

    def document(self) -> JsonObject:
        """The result file, from which page and Markdown are made too."""
        return result_document(
            self.run.verdicts,
            self.results,
            tests_hash=self.run.tests_hash,
            started=self.run.started,
            interrupted=self.run.interrupted,
            gate=self.gate_failures,
            scenarios=self.run.standings,
            categories=self.run.expectation.categories if self.run.expectation else {},
        )

    def properties(self) -> dict[str, str]:
        """JUnit's suite properties."""
        values = {"tsuka.testsHash": self.run.tests_hash}
        for model in self.results:
            prefix = f"tsuka.{model.model}." if len(self.results) > 1 else "tsuka."
            best = model.recommended
            values[prefix + "model"] = model.model
            values[prefix + "tier"] = (best.tier if best else None) or "none"
            values[prefix + "recommendedEffort"] = best.effort if best else "none"
            values |= {f"{prefix}tier.{effort.effort}": effort.tier or "none" for effort in model.efforts}
        values |= self.run.scenario_properties
        if self.gate_failures is not None:
            values["tsuka.gate"] = "failed" if self.gate_failures else "met"
        return values


def settle(run: FinishedRun) -> Summary:
    """Scores, tiers, gate. Writes nothing."""
    results = summarise(run.expectation, run.verdicts) if run.expectation else []
    failures = None
    if run.gate and not run.interrupted:
        gate = run.gate
        failures = judge_gate(gate.requirements, results, effort=gate.effort, on_lower_bound=gate.on_lower_bound)
    notes = []
    if run.workers > run.concurrency:
        notes.append(
            f"{run.workers} workers play {run.workers} conversations at once, more than"
            f" --tsuka-concurrency={run.concurrency}"
        )
    return Summary(run, results, failures, notes)
