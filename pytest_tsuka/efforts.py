"""The levels of reasoning effort, and the ways in which endpoints are told them."""

from __future__ import annotations

from pytest_tsuka.errors import SettingsError, unknown_name
from pytest_tsuka.text.json_types import JsonObject

EFFORTS = ("none", "low", "medium", "xhigh")
"""In ascending cost."""

EFFORT_STYLES = ("auto", "reasoning_effort", "openrouter", "ollama", "chat_template", "thinking_budget", "off")


def effort_cost(effort: str) -> tuple[int, str]:
    """A sort key: the levels in ascending cost, anything else after them."""
    return (EFFORTS.index(effort) if effort in EFFORTS else len(EFFORTS), effort)


def effort_fields(style: str, effort: str) -> JsonObject:
    """What a request body carries to ask for an effort, in the way the endpoint wants it."""
    match style:
        case "auto" | "reasoning_effort":
            return {"reasoning_effort": effort}
        case "openrouter":
            return {"reasoning": {"effort": effort} if effort != "none" else {"enabled": False}}
        case "ollama":
            return {"think": False if effort == "none" else effort}
        case "chat_template":
            return {"chat_template_kwargs": {"enable_thinking": effort != "none"}}
        case "off":
            return {}
        case "thinking_budget":
            raise SettingsError("effort style 'thinking_budget' is Anthropic's: it needs --tsuka-api=anthropic")
    raise SettingsError(unknown_name("effort style", style, EFFORT_STYLES))


def api_effort_fields(api: str, style: str, own: JsonObject) -> JsonObject:
    """The fields of an API that has a way of its own to ask for an effort, and knows no other."""
    if style == "auto":
        return own
    if style == "off":
        return {}
    raise SettingsError(f"effort style {style!r} is not one of the API {api!r} (auto, off): name another --tsuka-api")
