"""Structured answers graded against a verified reference: field by field, lists as sets.

Everything in here is pure: similarities come in as vectors that were made before, `judge` builds
questions and reads verdicts but asks nobody.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tsuka.gold.comparison import Comparison, Vectors, compare
    from pytest_tsuka.gold.consolidation import consolidate
    from pytest_tsuka.gold.enrichment import Grade, LeafGrade, grade
    from pytest_tsuka.gold.fields import Field, Scoring, fields_of
    from pytest_tsuka.gold.ranking import RankedResult, Ranking, rank
    from pytest_tsuka.gold.reference import (
        Finding,
        Reference,
        Revision,
        read_reference,
        reject,
        write_reference,
    )

_HOME = {
    "Comparison": "comparison",
    "Field": "fields",
    "Finding": "reference",
    "Grade": "enrichment",
    "LeafGrade": "enrichment",
    "RankedResult": "ranking",
    "Ranking": "ranking",
    "Reference": "reference",
    "Revision": "reference",
    "Scoring": "fields",
    "Vectors": "comparison",
    "compare": "comparison",
    "consolidate": "consolidation",
    "fields_of": "fields",
    "grade": "enrichment",
    "rank": "ranking",
    "read_reference": "reference",
    "reject": "reference",
    "write_reference": "reference",
}
"""The module of each name: imported when first asked for, since a run without scenarios needs none of them."""

__all__ = [
    "Comparison",
    "Field",
    "Finding",
    "Grade",
    "LeafGrade",
    "RankedResult",
    "Ranking",
    "Reference",
    "Revision",
    "Scoring",
    "Vectors",
    "compare",
    "consolidate",
    "fields_of",
    "grade",
    "rank",
    "read_reference",
    "reject",
    "write_reference",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
