"""What the requests of a conversation took, in the ways in which speed can be told from it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tsuka.conversation import Exchange
from pytest_tsuka.text.json_types import JsonObject

ALONE, STREAMED, SHARED = "alone", "streamed", "shared"


def timed(exchanges: Sequence[Exchange]) -> JsonObject:
    """Tokens and the seconds they took, per way to measure; each ratio is tokens per second of one stream."""
    found = {f"{how}_{what}": 0.0 for how in (ALONE, STREAMED, SHARED) for what in ("tokens", "seconds")}
    for exchange in exchanges:
        tokens, timing = exchange.usage.completion_tokens, exchange.timing
        if not tokens:
            continue
        whole: tuple[float, float] = (tokens, timing.seconds)
        if timing.tokens_per_second:  # the server's own, without the prompt and its queue
            whole = (tokens, tokens / timing.tokens_per_second)
        elif timing.first_token_seconds is not None and tokens > 1:
            whole = (tokens - 1, timing.seconds - timing.first_token_seconds)
            _add(found, STREAMED, whole)
        _add(found, SHARED, whole)
        if timing.at_once == 1:
            _add(found, ALONE, whole)
    return dict(found)


def _add(found: dict[str, float], how: str, tokens_and_seconds: tuple[float, float]) -> None:
    found[f"{how}_tokens"] += tokens_and_seconds[0]
    found[f"{how}_seconds"] += tokens_and_seconds[1]
