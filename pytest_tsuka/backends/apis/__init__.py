"""The HTTP APIs that endpoints speak: each turns a request into a body, and a body or a stream into a reply. Pure."""

from __future__ import annotations

from pytest_tsuka.backends.apis.base import Api
from pytest_tsuka.errors import SettingsError, unknown_name

AUTO = "auto"
NAMES = ("chat", "responses", "anthropic")
"""Also the order in which an endpoint is tried that says nothing of itself."""


def api_named(name: str) -> Api:
    """The API of a name. Raises SettingsError."""
    match name:
        case "chat":
            from pytest_tsuka.backends.apis.chat import CHAT

            return CHAT
        case "responses":
            from pytest_tsuka.backends.apis.responses import Responses

            return Responses()
        case "anthropic":
            from pytest_tsuka.backends.apis.anthropic import Anthropic

            return Anthropic()
    raise SettingsError(unknown_name("API", name, (AUTO, *NAMES)))
