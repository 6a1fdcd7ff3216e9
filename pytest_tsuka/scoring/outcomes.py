"""What can become of an item: every class with its symbol and what it means for scores and tier, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_tsuka.conversation import Reply

PASSED, FAILED, TRUNCATED = "passed", "failed", "truncated"
REFUSED_BY_MODEL, FILTERED = "refused by the model", "content filter"
MALFORMED_CALL, NO_TOOLS = "malformed call", "no tool calls"
REFUSED, ERROR = "refused", "error"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One class. `letter` is what pytest prints for the item.

    `scored` says whether it is a score, and `tier` what it means for the tier of the effort; `applies` tells
    by a reply whether a conversation below full score belongs to it.
    """

    name: str
    letter: str
    score: str
    tier: str
    scored: bool = True
    applies: Callable[[Reply], bool] | None = None

    @property
    def mark(self) -> str:
        """What reports show beside an item: a sign for right and wrong, the letter for all else."""
        return {".": "✓", "F": "✗"}.get(self.letter, self.letter)


OUTCOMES = (
    Outcome(
        NO_TOOLS,
        "N",
        "0: the endpoint offers this model no tools; it is asked with tools no more",
        "counts; `small` where toolCalling decides",
        applies=lambda reply: reply.no_tools,
    ),
    Outcome(
        REFUSED_BY_MODEL,
        "R",
        "every check of the turn fails, negative ones too: a refusal is no answer; its text is shown",
        "counts",
        applies=lambda reply: reply.refused,
    ),
    Outcome(
        FILTERED,
        "B",
        "every check of the turn fails: a filter of the endpoint's kept the answer back",
        "counts",
        applies=lambda reply: reply.filtered,
    ),
    Outcome(
        MALFORMED_CALL,
        "M",
        "every check of the turn fails: after all retries the server still cannot read the model's call",
        "counts",
        applies=lambda reply: reply.malformed_call,
    ),
    Outcome(
        TRUNCATED,
        "T",
        "weighted share of the checks; JSON cut by the token limit is invalid",
        "counts",
        applies=lambda reply: reply.truncated,
    ),
    Outcome(FAILED, "F", "weighted share of the checks", "counts"),
    Outcome(PASSED, ".", "1", "counts"),
    Outcome(
        REFUSED,
        "s",
        "none: the endpoint refuses the effort level, the item is skipped",
        "none for this level; the others are measured",
        scored=False,
    ),
    Outcome(
        ERROR,
        "E",
        "none, neither 0 nor a pass: the endpoint could not be asked (status after retries, timeout, no JSON)",
        "impossible for this level",
        scored=False,
    ),
)
"""In the order in which the first that applies is an item's class."""

SCORED = tuple(outcome.name for outcome in OUTCOMES if outcome.scored)
"""The outcomes that are scores. An endpoint's trouble never is."""


def outcome_named(name: str) -> Outcome:
    """The class of a name; an unknown one, of a file from another version, reads as failed."""
    return next((o for o in OUTCOMES if o.name == name), next(o for o in OUTCOMES if o.name == FAILED))
