"""What an HTTP answer means: an exchange to score, or a trouble."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

from pytest_tsuka.backends.error_answers import NotJson, classified, error_text, read_error, status_in, value_start
from pytest_tsuka.backends.trouble import Kind, Sent, Trouble
from pytest_tsuka.conversation import Exchange, Timing
from pytest_tsuka.text.json_types import JsonObject, shorten


def read_answer(status: int, headers: dict[str, str], body: bytes, *, sent: Sent, seconds: float) -> Exchange | Trouble:
    """An Exchange from a whole response, or the Trouble it stands for. `headers` have lower-case names."""
    data = decoded(body)
    if status != 200 and not 200 <= status < 300:
        return read_error(status, headers, data, sent)
    if isinstance(data, NotJson):
        if data.page:
            why = f"got a web page from {sent.url}, check the base URL (does it end in /v1?)"
            return Trouble(Kind.ENDPOINT, why, page=True)
        return Trouble(Kind.AGAIN, f"{data.why} from {sent.url}")
    return read_completion(data, sent=sent, seconds=seconds)


def read_completion(data: Any, *, sent: Sent, seconds: float, first_token: float | None = None) -> Exchange | Trouble:
    """An Exchange from a decoded 200 body, or the Trouble that it holds none."""
    said = sent.api.read(data) if isinstance(data, dict) else None
    if said is None:
        return _no_reply(data, sent)
    if said.finish_reason == "error":
        return Trouble(Kind.AGAIN, f"the server ended the reply with an error: {value_start(data)}")
    timing = read_timing(said.timings, seconds, first_token)
    return Exchange(said.message, said.finish_reason, said.usage, timing)


def _no_reply(data: Any, sent: Sent) -> Trouble:
    """A 200 without an answer; gateways put an upstream error there, with its status in it."""
    if isinstance(data, dict) and isinstance(data.get("error"), dict):
        return classified(status_in(data["error"]), error_text(data), data, {}, sent)
    return Trouble(Kind.AGAIN, f"no choices in response: {value_start(data)}")


def stream_error(body: JsonObject, sent: Sent) -> Trouble:
    """What a stream says went wrong: the same as in a whole answer."""
    trouble = _no_reply(body if isinstance(body.get("error"), dict) else {"error": {"message": error_text(body)}}, sent)
    return replace(trouble, message=f"the stream says: {trouble.message}")


# --- bodies --------------------------------------------------------------------------------


def decoded(body: bytes) -> Any:
    if not body.strip():
        return NotJson("an empty response")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return NotJson(f"response is not valid UTF-8 JSON (first bytes {body[:4].hex(' ')} ...)")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start = text.lstrip()[:300]
        page = bool(re.match(r"<(!doctype|html|head|body|\?xml)", start, re.IGNORECASE))
        return NotJson(f"response is not JSON (it begins with {shorten(start, 80)!r})", start, page)


def read_timing(timings: Any, seconds: float, first_token: float | None = None) -> Timing:
    """Wall-clock seconds, and the server's own figures where it gives them (llama.cpp's `timings`)."""
    if not isinstance(timings, dict):
        return Timing(seconds, first_token)
    figures = {k: v for k, v in timings.items() if isinstance(v, (int, float)) and math.isfinite(v)}
    service = (figures.get("prompt_ms", 0.0) + figures.get("predicted_ms", 0.0)) / 1000
    return Timing(seconds, first_token, service or None, figures.get("predicted_per_second") or None)
