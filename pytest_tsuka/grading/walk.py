"""One scenario graded, told and ranked: what a run does at its end, and `tsuka rescore` whenever it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.grading.clients import Clients
from pytest_tsuka.grading.passes import GradingPass, PassOutcome
from pytest_tsuka.grading.project import Project
from pytest_tsuka.grading.standings import Standings, standings
from pytest_tsuka.grading.verified import verified_reference
from pytest_tsuka.store.records import Records


@dataclass(frozen=True)
class Graded:
    """What came of a pass, and how all answers to the scenario rank now."""

    scenario: Scenario
    outcome: PassOutcome
    standings: Standings

    def problems(self) -> Iterator[str]:
        """What could not be graded and why, in words."""
        for label, why in self.outcome.failed.items():
            yield (
                f"{self.scenario.name}: {label} was not graded: {why}"
                f" (grade it later: tsuka rescore {self.scenario.name})"
            )
        yield from self.outcome.problems


def grade_scenario(
    path: Path,
    scenario: Scenario,
    records: Records,
    clients: Clients,
    project: Project,
    *,
    kind: str,
    improve: bool,
    only: Collection[tuple[str, str]],
) -> Graded:
    """Grades the kept answers of the given (model, effort) pairs. Raises GoldReferenceError without a usable reference.

    `kind` says in the record why there was a pass, `improve` whether the reference may be changed by it.
    """
    own = GradingPass(path, scenario, records, clients, project, kind=kind, improve=improve)
    outcome = own.run(set(only))
    return Graded(scenario, outcome, standings(scenario, verified_reference(path, scenario), records, project))
