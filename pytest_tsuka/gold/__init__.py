"""Structured answers graded against a verified reference: field by field, lists as sets.

Everything in here is pure: similarities come in as vectors that were made before, `judge` builds
questions and reads verdicts but asks nobody.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tsuka.gold.comparison import Comparison as Comparison
    from pytest_tsuka.gold.comparison import Vectors as Vectors
    from pytest_tsuka.gold.comparison import compare as compare
    from pytest_tsuka.gold.consolidation import consolidate as consolidate
    from pytest_tsuka.gold.enrichment import Grade as Grade
    from pytest_tsuka.gold.enrichment import LeafGrade as LeafGrade
    from pytest_tsuka.gold.enrichment import grade as grade
    from pytest_tsuka.gold.fields import Field as Field
    from pytest_tsuka.gold.fields import Scoring as Scoring
    from pytest_tsuka.gold.fields import fields_of as fields_of
    from pytest_tsuka.gold.ranking import RankedResult as RankedResult
    from pytest_tsuka.gold.ranking import Ranking as Ranking
    from pytest_tsuka.gold.ranking import rank as rank
    from pytest_tsuka.gold.reference import Finding as Finding
    from pytest_tsuka.gold.reference import Reference as Reference
    from pytest_tsuka.gold.reference import Revision as Revision
    from pytest_tsuka.gold.reference import reject as reject

_HOME = {
    "Comparison": "gold.comparison",
    "Field": "gold.fields",
    "Finding": "gold.reference",
    "Grade": "gold.enrichment",
    "LeafGrade": "gold.enrichment",
    "RankedResult": "gold.ranking",
    "Ranking": "gold.ranking",
    "Reference": "gold.reference",
    "Revision": "gold.reference",
    "Scoring": "gold.fields",
    "Vectors": "gold.comparison",
    "compare": "gold.comparison",
    "consolidate": "gold.consolidation",
    "fields_of": "gold.fields",
    "grade": "gold.enrichment",
    "rank": "gold.ranking",
    "read_reference": "grading.reference_files",
    "reject": "gold.reference",
    "write_reference": "grading.reference_files",
}
"""The module of each name: imported when first asked for, since a run without scenarios needs none of them.

Reading and writing a reference's file belongs to `grading`; the names stand here for users."""

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"pytest_tsuka.{_HOME[name]}"), name)
