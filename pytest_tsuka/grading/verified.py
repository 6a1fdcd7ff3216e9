"""The reference that a scenario is graded against: there, of the right form, and verified by a person."""

from __future__ import annotations

from pathlib import Path

from pytest_tsuka.errors import GoldReferenceError
from pytest_tsuka.gold.reference import Reference
from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.grading.reference_files import read_reference
from pytest_tsuka.grading.scenario_files import reference_file


def verified_reference(path: Path, scenario: Scenario) -> Reference | None:
    """The reference a scenario is graded against, None for a kind that takes none. Raises GoldReferenceError."""
    file = reference_file(path, scenario)
    if not scenario.needs_reference:
        if file.exists():
            raise GoldReferenceError(f"{file.name}: a {scenario.kind} scenario takes no reference: delete this file")
        return None
    command = f"tsuka reference generate|paste {scenario.name}"
    if not file.exists():
        raise GoldReferenceError(
            f"scenario {scenario.name!r} has no reference ({file.name}): make one with '{command}',"
            f" then 'tsuka reference verify {scenario.name}'"
        )
    reference = read_reference(file, scenario.answer_schema if scenario.kind == "enrichment" else None)
    if not reference.verified:
        raise GoldReferenceError(
            f"the reference of scenario {scenario.name!r} ({file.name}) is not verified: read it"
            f" ('tsuka reference show {scenario.name}'), then 'tsuka reference verify {scenario.name}'"
        )
    return reference
