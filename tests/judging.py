"""A scripted judge behind a real endpoint: it reads the question it is sent and answers from what is true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.endpoint import Received

Truth = Callable[[str, Any], bool]


def field_of(received: Received) -> str:
    """The field a question is about."""
    found = re.search(r"^Field: (.*)$", received.prompt, re.MULTILINE)
    return found[1] if found else ""


def sides(received: Received) -> list[Any]:
    """The values A and B as the judge sees them; of a value judged alone only that one."""
    return [json.loads(text) for text in re.findall(r"^(?:A|B|value) = (.*)$", received.prompt, re.MULTILINE)]


def is_question(received: Received) -> bool:
    """Whether a request is one to a judge."""
    return "data to be judged" in str(received.body.get("messages", [{}])[0].get("content", ""))


def verdict(received: Received, truth: Truth, better: Callable[[Any, Any], str] = lambda a, b: "same") -> str:
    """The answer of an honest judge: what is true is correct; of two correct ones `better` chooses A, B or same."""
    field, values = field_of(received), sides(received)
    if len(values) == 1:
        return json.dumps({"correct": truth(field, values[0]), "reason": "known"})
    a, b = (truth(field, value) for value in values)
    preferred = "A" if a and not b else "B" if b and not a else better(*values) if a and b else "same"
    return json.dumps({"a_correct": a, "b_correct": b, "better": preferred, "reason": "known"})
