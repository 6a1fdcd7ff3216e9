"""Why a request has no answer, as a kind that says what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pytest_tsuka.backends.apis.chat import CHAT
from pytest_tsuka.conversation import FILTER_FINISH, MALFORMED_FINISH, NO_TOOLS_FINISH
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from pytest_tsuka.backends.apis.base import Api


class Kind(Enum):
    """What to do about a trouble."""

    AGAIN = "again"  # transient: retry with back-off
    LOADING = "loading"  # the model is being loaded: wait for it
    PARAMETER = "parameter"  # a parameter is refused: once more without it
    PLAYED_BACK = "played back"  # a field that the server itself put on its turn is unwanted: once more without it
    EFFORT = "effort"  # the effort level is refused: the level is skipped
    NO_TOOLS = "no tools"  # the model cannot be offered tools here: scored, and never asked with tools again
    CALL = "call"  # the model's own call could not be read: retried, scored when it stays
    FILTERED = "filtered"  # a filter will have none of the prompt: scored
    ITEM = "item"  # this request alone is wrong
    ROUTE = "route"  # the endpoint has no such route: perhaps it speaks another API
    MODEL = "model"  # every request for this model will end alike
    ENDPOINT = "endpoint"  # every request to this endpoint will end alike


SCORED = {Kind.NO_TOOLS: NO_TOOLS_FINISH, Kind.CALL: MALFORMED_FINISH, Kind.FILTERED: FILTER_FINISH}
"""Troubles that are the model's own, and how a conversation that met one ended."""


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
    page: bool = False
    """A web page came instead of an answer: a wrong address, or a gateway that is in trouble."""
    unreachable: bool = False
    """There was no connection at all."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The request that an answer is to: where it went, its body, which of its fields ask for the effort."""

    url: str
    body: JsonObject
    effort_keys: tuple[str, ...] = ()
    api: Api = CHAT

    @property
    def tools(self) -> bool:
        return bool(self.body.get("tools"))
