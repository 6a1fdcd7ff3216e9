"""Numbers as people read them: one formatter for scores, one for everything that may be unknown."""

from __future__ import annotations

import math

UNKNOWN = "–"


def score_text(score: float | None, digits: int = 2) -> str:
    """A score for display, cut and never rounded up: it never shows a threshold that it did not reach."""
    if score is None:
        return UNKNOWN
    scale = 10.0**digits
    # What counts as reached in spite of a float artefact (1e-9, see scoring.tiers) is shown as reached.
    return f"{math.floor(score * scale + scale * 1e-9) / scale:.{digits}f}"


def number_text(value: float | None, form: str = ".1f", unit: str = "") -> str:
    """A figure, or a dash where it is not known."""
    return UNKNOWN if value is None else f"{value:{form}}{unit}"


def percent_text(share: float | None) -> str:
    """A share as a whole percentage; only what is all is 100 %, and only what is nothing is 0 %."""
    if share is None:
        return UNKNOWN
    if 0 < share < 1:
        return f"{min(99, max(1, round(share * 100)))}%"
    return f"{share:.0%}"
