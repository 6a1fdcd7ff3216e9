"""What an HTTP answer means: an exchange to score, or a trouble with its cause and what to do about it."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pytest_tsuka.conversation import Exchange, Timing, Usage
from pytest_tsuka.text.json_types import JsonObject, shorten

LONGEST_WAIT = 120.0
"""Seconds of Retry-After that are waited for; a server that asks for more has said no."""


class Kind(Enum):
    """What to do about a trouble."""

    AGAIN = "again"  # transient: retry with back-off
    LOADING = "loading"  # the model is being loaded: wait for it
    PARAMETER = "parameter"  # a parameter is refused: once more without it
    EFFORT = "effort"  # the effort level is refused: the level is skipped
    ITEM = "item"  # this request alone is wrong
    MODEL = "model"  # every request for this model will end alike
    ENDPOINT = "endpoint"  # every request to this endpoint will end alike


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no answer."""

    kind: Kind
    message: str
    retry_after: float | None = None
    parameter: str | None = None
    replacement: str | None = None
    stalled: bool = False
    too_many: bool = False
    """The endpoint has too much to do: 429 or 503."""


def read_answer(
    status: int,
    headers: dict[str, str],
    body: bytes,
    *,
    url: str,
    seconds: float,
    sent: JsonObject,
    effort_keys: tuple[str, ...] = (),
) -> Exchange | Trouble:
    """An Exchange from a whole response, or the Trouble it stands for. `headers` have lower-case names."""
    data = _decode(body)
    if status != 200 and not 200 <= status < 300:
        return read_error(status, headers, body, data, url=url, sent=sent, effort_keys=effort_keys)
    if isinstance(data, _NotJson):
        if data.page:
            return Trouble(Kind.ENDPOINT, f"got a web page from {url}, check the base URL (does it end in /v1?)")
        return Trouble(Kind.AGAIN, f"{data.why} from {url}")
    return read_completion(data, seconds=seconds, sent=sent, effort_keys=effort_keys)


def read_completion(
    data: Any, *, seconds: float, sent: JsonObject, effort_keys: tuple[str, ...] = ()
) -> Exchange | Trouble:
    """An Exchange from a decoded 200 body, or the Trouble that it holds none."""
    if not isinstance(data, dict):
        return Trouble(Kind.ITEM, f"no choices in response: {_start(data)}")
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        return _no_choice(data, sent, effort_keys)
    finish = choice.get("finish_reason")
    if finish == "error":
        return Trouble(Kind.AGAIN, f"the server ended the reply with an error: {_start(data)}")
    return Exchange(
        message=choice["message"],
        finish_reason=finish if isinstance(finish, str) else None,
        usage=read_usage(data.get("usage")),
        timing=read_timing(data.get("timings"), seconds),
    )


def _no_choice(data: dict[str, Any], sent: JsonObject, effort_keys: tuple[str, ...]) -> Trouble:
    """A 200 without an answer; gateways put an upstream error there, with its status in it."""
    error = data.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return _classified(status, _error_text(data), data, {}, sent=sent, effort_keys=effort_keys)
    return Trouble(Kind.ITEM, f"no choices in response: {_start(data)}")


def _start(data: Any) -> str:
    try:
        return shorten(json.dumps(data, ensure_ascii=False), 300)
    except (ValueError, RecursionError):
        return "a value nested too deeply to show"


# --- bodies --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _NotJson:
    why: str
    text: str = ""
    page: bool = False


def _decode(body: bytes) -> Any:
    if not body.strip():
        return _NotJson("an empty response")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _NotJson(f"response is not valid UTF-8 JSON (first bytes {body[:4].hex(' ')} ...)")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start = text.lstrip()[:300]
        page = bool(re.match(r"<(!doctype|html|head|body|\?xml)", start, re.IGNORECASE))
        return _NotJson(f"response is not JSON (it begins with {shorten(start, 80)!r})", start, page)


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return int(value)


def read_usage(usage: Any) -> Usage:
    """Token counts; what the server does not report stays None."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else usage.get("reasoning_tokens")
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(reasoning))


def read_timing(timings: Any, seconds: float, first_token: float | None = None) -> Timing:
    """Wall-clock seconds, and the server's own figures where it gives them (llama.cpp's `timings`)."""
    if not isinstance(timings, dict):
        return Timing(seconds, first_token)
    figures = {k: v for k, v in timings.items() if isinstance(v, (int, float)) and math.isfinite(v)}
    service = (figures.get("prompt_ms", 0.0) + figures.get("predicted_ms", 0.0)) / 1000
    return Timing(seconds, first_token, service or None, figures.get("predicted_per_second") or None)


# --- errors --------------------------------------------------------------------------------

# Read by `re` when a server first complains: most runs never need them.
_QUOTA = (
    r"insufficient_quota|exceeded your current quota|no credit|out of credit|insufficient (?:balance|credit|fund)"
    r"|billing|payment required|credit balance"
)
_LOADING = r"(?s)load(?:ing|ed)?\b.*model|model.*\bload(?:ing)?\b|starting up|warming up"
_EFFORT = r"reasoning[_ .]?effort|reasoning\.effort|enable_thinking|\bthink\b|\beffort\b|does not support thinking"
_REFUSAL = (
    r"unsupported|not supported|does not support|doesn't support|not accepted|unrecognized|unknown|unexpected"
    r"|not permitted|not allowed|invalid|extra (?:inputs|fields)|only|must be|cannot|deprecated"
    r"|use '?max_|validation error"
)
_REPLACED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NEVER_DROPPED = {"model", "messages", "tools", "stream"}
_TOO_MANY = {429, 503, 529}
_OVERLOADED = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}


def read_error(
    status: int,
    headers: dict[str, str],
    body: bytes,
    data: Any,
    *,
    url: str,
    sent: JsonObject,
    effort_keys: tuple[str, ...],
) -> Trouble:
    """The Trouble behind an error status, in the server's own words and with the likely cause."""
    if isinstance(data, _NotJson):
        kind = "non-JSON " if data.text or data.page else ""
        text = "" if data.page else shorten(data.text or "", 200)
        if status == 404:
            return Trouble(Kind.ENDPOINT, f"{kind}404 from {url}; is /v1 missing in the base URL?")
        if status in _OVERLOADED:
            said = f"HTTP {status} from {url}{_tail(text)}"
            return Trouble(Kind.AGAIN, said, retry_after(headers), too_many=status in _TOO_MANY)
        if 300 <= status < 400:
            where = headers.get("location", "elsewhere")
            return Trouble(Kind.ENDPOINT, f"HTTP {status} from {url}: redirected to {where}, use that as the base URL")
        return _classified(status, text or f"no message from {url}", None, headers, sent=sent, effort_keys=effort_keys)
    return _classified(status, _error_text(data), data, headers, sent=sent, effort_keys=effort_keys, url=url)


def _tail(text: str) -> str:
    return f": {text}" if text else ""


def _error_text(data: Any) -> str:
    """The message in any of the shapes in which servers put it."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "; ".join(filter(None, (_error_text(item) for item in data[:3])))
    if not isinstance(data, dict):
        return _start(data)
    for key in ("error", "message", "detail", "msg", "errors", "error_message"):
        value = data.get(key)
        if isinstance(value, str) and value.strip():
            return _with_place(value.strip(), data)
        if isinstance(value, (dict, list)) and value:
            return _error_text(value)
    return _start(data)


def _with_place(text: str, data: dict[str, Any]) -> str:
    """FastAPI's validation errors name the field in `loc`, OpenAI's in `param`."""
    loc = data.get("loc")
    if isinstance(loc, list):
        return f"{'.'.join(map(str, loc))}: {text}"
    metadata = data.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        return f"{text}: {shorten(metadata['raw'], 300)}"
    return text


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _codes(data: Any) -> str:
    """Every code, type and parameter name of an error body, for recognising what it is about."""
    error = data.get("error") if isinstance(data, dict) else None
    sources = [s for s in (data, error) if isinstance(s, dict)]
    return " ".join(str(s.get(k)) for s in sources for k in ("code", "type", "param", "status") if s.get(k))


def _classified(
    status: int,
    text: str,
    data: Any,
    headers: dict[str, str],
    *,
    sent: JsonObject,
    effort_keys: tuple[str, ...],
    url: str = "the endpoint",
) -> Trouble:
    text = shorten(text, 600)
    said = f"HTTP {status}: {text}"
    codes = _codes(data)
    if status in (402, 429) and _says(_QUOTA, f"{text} {codes}"):
        return Trouble(Kind.ENDPOINT, f"{said} (the quota of this key is used up)")
    if status in (400, 404, 405, 415, 422, 501):
        refused = _refused_parameter(text, codes, _param(data), sent, effort_keys)
        if refused:
            return Trouble(refused[0], said, parameter=refused[1], replacement=refused[2])
    if status in (401, 403):
        cause = "is the API key right?" if status == 401 else "may this key use this model?"
        return Trouble(Kind.ENDPOINT if status == 401 else Kind.MODEL, f"{said} ({cause})")
    if status == 404:
        about_model = "model" in f"{text} {codes}".lower()
        cause = f"is {sent.get('model')!r} the model's exact name?" if about_model else f"is {url} the right address?"
        return Trouble(Kind.MODEL if about_model else Kind.ENDPOINT, f"{said} ({cause})")
    if status == 503 and _says(_LOADING, text):
        return Trouble(Kind.LOADING, said, retry_after(headers))
    if status in _OVERLOADED:
        wait = retry_after(headers)
        if wait is not None and wait > LONGEST_WAIT:
            return Trouble(Kind.ENDPOINT, f"{said} (Retry-After asks for {wait:.0f} s, which is not waited for)")
        return Trouble(Kind.AGAIN, said, wait, too_many=status in _TOO_MANY)
    return Trouble(Kind.ITEM, said)


def _param(data: Any) -> str:
    error = data.get("error") if isinstance(data, dict) else None
    sources = [s for s in (error, data) if isinstance(s, dict)]
    return next((str(s["param"]) for s in sources if isinstance(s.get("param"), str)), "")


def _refused_parameter(
    text: str, codes: str, param: str, sent: JsonObject, effort_keys: tuple[str, ...]
) -> tuple[Kind, str, str | None] | None:
    """Which parameter of the request the server will not have: the effort, or one to leave out."""
    everything = f"{codes} {text}"
    about_another = param in sent and param not in effort_keys
    if effort_keys and not about_another and _says(_EFFORT, everything):
        return Kind.EFFORT, effort_keys[0], None
    if not _says(_REFUSAL, everything):
        return None
    candidates = [k for k in sent if k not in _NEVER_DROPPED and k not in effort_keys]
    # The parameter named first is the refused one: "max_tokens is not supported, use max_completion_tokens".
    places = [
        (match.start(), k)
        for k in candidates
        if (match := re.search(rf"(?<![A-Za-z_]){re.escape(k)}(?![A-Za-z_])", everything))
    ]
    if not places:
        return None
    name = min(places)[1]
    other = _REPLACED.get(name)
    replacement = other if other and other not in sent and other in everything else None
    return Kind.PARAMETER, name, replacement


def retry_after(headers: dict[str, str], now: float | None = None) -> float | None:
    """Seconds that Retry-After asks for: a number or an HTTP date; None for neither."""
    value = headers.get("retry-after", "").strip()
    if milliseconds := headers.get("retry-after-ms", "").strip():
        with contextlib.suppress(ValueError):
            value = str(float(milliseconds) / 1000)
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError):
            return None
        seconds = when.timestamp() - (time.time() if now is None else now)
    return max(0.0, seconds) if math.isfinite(seconds) else None
