"""Structured answers graded against a verified reference: field by field, lists as sets.

Everything in here is pure: similarities come in as vectors that were made before, `judge` builds
questions and reads verdicts but asks nobody.
"""

from __future__ import annotations

from pytest_tsuka.gold.consolidation import consolidate
from pytest_tsuka.gold.fields import Field, Scoring, fields_of
from pytest_tsuka.gold.grading import Grade, LeafGrade, grade
from pytest_tsuka.gold.ladder import Comparison, Vectors, compare
from pytest_tsuka.gold.ranking import RankedResult, Ranking, rank
from pytest_tsuka.gold.reference import (
    Finding,
    Reference,
    Revision,
    read_reference,
    reject,
    write_reference,
)

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
