"""What an error answer means: whose trouble it is, in the server's own words and with the likely cause."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pytest_tsuka.backends.trouble import Kind, Sent, Trouble
from pytest_tsuka.text.json_types import JsonObject, shorten

LONGEST_WAIT = 120.0
"""Seconds of Retry-After that are waited for; a server that asks for more has said no."""


@dataclass(frozen=True, slots=True)
class NotJson:
    """A body that is no JSON: why, how it begins, and whether it is a web page."""

    why: str
    text: str = ""
    page: bool = False


def value_start(data: Any) -> str:
    """The beginning of a value, for a message."""
    try:
        return shorten(json.dumps(data, ensure_ascii=False), 300)
    except (ValueError, RecursionError):
        return "a value nested too deeply to show"


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
_NO_TOOLS = (
    r"(?:not|n't) support(?:ed)? (?:\w+ ){0,2}?[`'\"]?"
    r"(?:tools?\b|tool[ _-]?(?:use|call)|functions?\b|function[ _-]?call)"
    r"|\b(?:tools?|tool[ _-]?(?:use|calls?|calling)|functions?|function[ _-]?(?:calls?|calling))[`'\"]?(?: \w+){0,2}"
    r" (?:is|are)(?: not|n't) (?:supported|available|enabled|allowed)"
    r"|no endpoints? (?:found )?(?:that|which) support tool"
    r"|(?:unsupported|unrecognized|unknown|unexpected) (?:\w+ ){0,4}?(?:supplied)?:? ?[`'\"]?tools[`'\"]?(?![\w.\[])"
    r"|\btools[`'\"]?: (?:extra|unknown|unexpected)"
)
_NOT_ALL_TOOLS = (
    r"parallel|stream|tool_choice|strict|combin|together|in the same"
    r"|\btools?\b.{0,40}\bwith (?:reason|think|response|json|this param)"
)
_OWN_CALL = (
    r"(?:pars|decod|deserializ)\w* (?:\w+ ){0,3}?(?:tool|function)[ _-]?calls?\b"
    r"|(?:invalid|malformed|broken|incomplete) (?:json in )?(?:tool|function)[ _-]?calls?\b"
    r"|(?:tool|function)[ _-]?calls?\b.{0,60}(?:not valid|invalid|malformed|(?:not|n't) be parsed|unparsable)"
    r"|failed to parse (?:input at pos|(?:the )?(?:model\S* )?(?:output|response|generation))"
    r"|tool_use_failed|failed to call a function|failed_generation|malformed_function_call"
    r"|unexpected tokens remaining in message header"
    r"|model (?:has )?(?:produced|generated|output|returned) (?:an? )?(?:invalid|malformed)"
)
_OUR_HISTORY = r"messages?\b ?[\[.(]\d|\btool[ _]call[ _]?ids?\b|\binput\[\d"
_START_OPTION = r"(?<![\w-])--[a-z][a-z0-9]+(?:-[a-z0-9]+)*"
_CONTENT_FILTER = (
    r"content[ _-]?filter|content[ _-](?:management )?policy|content_policy|responsible ?ai|data_inspection_failed"
)
_ONLY_ELSEWHERE = r"(?:only|not) (?:\w+ ){0,5}?(?:v1)?/(?:responses|messages|chat/completions)\b"
_DEMANDED = r"missing|required|must (?:always )?be|passed back|\bneed(?:s|ed)?\b|expected"
_NOT_WANTED = (
    r"(?:must|should|may|can|do|does|is|are)(?: ?not|n't)|cannot|un(?:supported|known|expected|recognized)|forbidden"
)
_REPLACED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NEVER_DROPPED = {"model", "messages", "input", "tools", "stream"}
_TOO_MANY = {429, 503, 529}
_OVERLOADED = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_REQUEST_IS_WRONG = {400, 404, 405, 415, 422, 501}
_STATUS_OF = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
}
"""For errors that come without a status, in streams and in answers that say 200."""


def read_error(status: int, headers: dict[str, str], data: Any, sent: Sent) -> Trouble:
    """The Trouble behind an error status, in the server's own words and with the likely cause."""
    if not isinstance(data, NotJson):
        return classified(status, error_text(data), data, headers, sent)
    kind = "non-JSON " if data.text or data.page else ""
    text = "" if data.page else shorten(data.text or "", 200)
    if about_model := _about_the_model(status, text, None, f"HTTP {status}: {text}", sent):
        return about_model
    if status == 404:
        return Trouble(Kind.ROUTE, f"{kind}404 from {sent.url}; is /v1 missing in the base URL?", page=data.page)
    if status == 405:
        return Trouble(Kind.ROUTE, f"HTTP 405 from {sent.url}{_tail(text)}; is that the right address?")
    if status in _OVERLOADED:
        said = f"HTTP {status} from {sent.url}{_tail(text)}"
        return Trouble(Kind.AGAIN, said, retry_after(headers), too_many=status in _TOO_MANY)
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        return Trouble(Kind.ENDPOINT, f"HTTP {status} from {sent.url}: redirected to {where}, use that as the base URL")
    return classified(status, text or f"no message from {sent.url}", None, headers, sent)


def _tail(text: str) -> str:
    return f": {text}" if text else ""


def error_text(data: Any) -> str:
    """The message in any of the shapes in which servers put it."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "; ".join(filter(None, (error_text(item) for item in data[:3])))
    if not isinstance(data, dict):
        return value_start(data)
    for key in ("error", "message", "detail", "msg", "errors", "error_message"):
        value = data.get(key)
        if isinstance(value, str) and value.strip():
            return _with_place(value.strip(), data)
        if isinstance(value, (dict, list)) and value:
            return error_text(value)
    return value_start(data)


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


def classified(status: int, text: str, data: Any, headers: dict[str, str], sent: Sent) -> Trouble:
    """What kind of trouble a status and its words are; the first rule that fits decides."""
    text = shorten(text, 600)
    said = f"HTTP {status}: {text}"
    everything = f"{text} {_codes(data)}"
    if status in (402, 429) and _says(_QUOTA, everything):
        return Trouble(Kind.ENDPOINT, f"{said} (the quota of this key is used up)")
    if about_model := _about_the_model(status, text, data, said, sent):
        return about_model
    if status in _REQUEST_IS_WRONG and (refused := _refused_field(text, _codes(data), _param(data), said, sent)):
        return refused
    if status in (401, 403):
        cause = "is the API key right?" if status == 401 else "may this key use this model?"
        return Trouble(Kind.ENDPOINT if status == 401 else Kind.MODEL, f"{said} ({cause})")
    if status in (400, 404, 405) and _says(_ONLY_ELSEWHERE, text):
        return Trouble(Kind.ROUTE, f"{said} (see --tsuka-api)")
    if status in (404, 405):
        if status == 404 and "model" in everything.lower():
            return Trouble(Kind.MODEL, f"{said} (is {sent.body.get('model')!r} the model's exact name?)")
        return Trouble(Kind.ROUTE, f"{said} (is {sent.url} the right address?)")
    if status == 503 and _says(_LOADING, text):
        return Trouble(Kind.LOADING, said, retry_after(headers))
    if status in _OVERLOADED:
        wait = retry_after(headers)
        if wait is not None and wait > LONGEST_WAIT:
            return Trouble(Kind.ENDPOINT, f"{said} (Retry-After asks for {wait:.0f} s, which is not waited for)")
        return Trouble(Kind.AGAIN, said, wait, too_many=status in _TOO_MANY)
    return Trouble(Kind.ITEM, said)


def _about_the_model(status: int, text: str, data: Any, said: str, sent: Sent) -> Trouble | None:
    """What the model did or cannot do, which is measured, and what its server was not told to do."""
    everything = f"{text} {_codes(data)}"
    if status in (400, 403, 422) and _says(_CONTENT_FILTER, everything):
        return Trouble(Kind.FILTERED, said)
    if not sent.tools:
        return None
    options = re.findall(_START_OPTION, text)
    if options and _says(r"tool|function|jinja", text):
        names = " ".join(dict.fromkeys(options))
        return Trouble(Kind.ITEM, f"{said} (the server takes no tools as it was started: start it with {names})")
    if status in _REQUEST_IS_WRONG and _says(_NO_TOOLS, text) and not _says(_NOT_ALL_TOOLS, text):
        return Trouble(Kind.NO_TOOLS, said)
    own_call = _says(_OWN_CALL, f"{everything} {_raw(data)}") and not _says(_OUR_HISTORY, text)
    return Trouble(Kind.CALL, said) if own_call and status in (400, 422, 424, 500, 502) else None


def _raw(data: Any) -> str:
    """The names of an error's own fields: `failed_generation` is one that says it all."""
    error = data.get("error") if isinstance(data, dict) else None
    return " ".join(error) if isinstance(error, dict) else ""


def status_in(error: JsonObject) -> int:
    """The status of an error that came without one: by its code or its type, else 500."""
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return next((_STATUS_OF[str(error.get(k))] for k in ("type", "code") if str(error.get(k)) in _STATUS_OF), 500)


def _param(data: Any) -> str:
    error = data.get("error") if isinstance(data, dict) else None
    sources = [s for s in (error, data) if isinstance(s, dict)]
    return next((str(s["param"]) for s in sources if isinstance(s.get("param"), str)), "")


def _refused_field(text: str, codes: str, param: str, said: str, sent: Sent) -> Trouble | None:
    """Which field of the request the server will not have: the effort, one to leave out, or one of its own."""
    everything = f"{codes} {text}"
    own = {name for part in sent.api.played_back(sent.body) for name in part} - _PART_OF_THE_API
    about_history = _says(r"messages|assistant|\binput\b", everything)
    named = _first_named(own - (set() if about_history else set(sent.body)), everything)
    if named and (_says(_NOT_WANTED, text) or not _says(_DEMANDED, text)):
        return Trouble(Kind.PLAYED_BACK, said, parameter=named)
    effort_keys = sent.effort_keys
    about_another = param in sent.body and param not in effort_keys
    if effort_keys and not about_another and _says(_EFFORT, everything):
        return Trouble(Kind.EFFORT, said, parameter=effort_keys[0])
    if not _says(_REFUSAL, everything):
        return None
    # The parameter named first is the refused one: "max_tokens is not supported, use max_completion_tokens".
    kept = _NEVER_DROPPED | sent.api.required
    name = _first_named([key for key in sent.body if key not in kept], everything)
    if name is None:
        return None
    if name in effort_keys:
        return Trouble(Kind.EFFORT, said, parameter=name)
    other = _REPLACED.get(name)
    replacement = other if other and other not in sent.body and other in everything else None
    return Trouble(Kind.PARAMETER, said, parameter=name, replacement=replacement)


_PART_OF_THE_API = frozenset({"role", "content", "tool_calls", "id", "type", "function", "name", "arguments"})
"""Fields of turns that every request has: without them a turn would say something else."""


def _first_named(names: Iterable[str], text: str) -> str | None:
    """The name that stands first in a text, as a whole word."""
    places = [
        (match.start(), name)
        for name in names
        if (match := re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", text))
    ]
    return min(places)[1] if places else None


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
