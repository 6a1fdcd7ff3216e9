"""What a grading asks of a judge, without asking: answers known so far go in, open questions come out.

Grading is pure and runs again once the open questions are answered; whoever drives it does the asking.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pytest_tsuka.gold.comparison import Comparison, is_empty
from pytest_tsuka.gold.credit import Judged, settle, unblind
from pytest_tsuka.gold.fields import Field, describe
from pytest_tsuka.gold.judge import Asked, Question, RubricQuestion
from pytest_tsuka.gold.values import normal_text
from pytest_tsuka.gold.verdicts import read_rubric, read_verdict
from pytest_tsuka.text.json_types import JsonObject, JsonValue

Known = Callable[[Asked], Sequence[str] | None]
"""The replies to a question (two when it was asked in both orders), or None while it is open."""


@dataclass
class Consultation:
    """The judge as grading sees it. After a grading, `open` holds what must be asked before it counts."""

    known: Known
    schema: JsonObject | None = None
    documents: tuple[str, ...] = ()
    open: list[Asked] = field(default_factory=list)

    def judge(self, field: Field, candidate: JsonValue, reference: JsonValue, item: JsonValue) -> Comparison:
        """What the judge says of two values, or of one alone; a stand-in while it has not said it."""
        question = self.question(field.path, candidate, reference, item, numeric=field.kind == "number")
        replies = self.known(question)
        if replies is None:
            self.open.append(question)
            return Comparison("judge", 0.0, undecided=True)
        return settle(question, [judged(question, reply, swapped=n == 1) for n, reply in enumerate(replies)])

    def question(
        self, path: str, candidate: JsonValue, reference: JsonValue, item: JsonValue = None, *, numeric: bool = False
    ) -> Question:
        """The question about two values of a field, with the field's place in the schema and the documents."""
        field = re.sub(r"\[\d+\]", "[]", path)
        place = describe(self.schema, field)
        if not is_empty(item):
            place += f"\nit belongs to the list item {json.dumps(item, ensure_ascii=True)}"
        return Question(field, candidate, reference, place.strip(), self.documents, numeric)

    def rubric(self, request: str, sample: JsonValue) -> dict[str, float] | None:
        """The judge's ratings of a sample, None while it has not given them."""
        question = RubricQuestion(request, sample)
        replies = self.known(question)
        if replies is None:
            self.open.append(question)
            return None
        return read_rubric(replies[0])


def judged(question: Question, reply: str, *, swapped: bool = False) -> Judged:
    """A kept reply in terms of candidate and reference; only understood ones are kept."""
    verdict = read_verdict(reply, alone=not question.has_sides)
    assert verdict is not None
    return unblind(question, verdict, swapped=swapped)


class Backing:
    """Which values are backed: written in the documents, or given for the same field by another model too.

    "By another model" and not "by most": a majority changes with who is graded along, and then the
    order in which models are graded would decide what the judge is asked.
    """

    def __init__(self, documents: Iterable[str], answers: Iterable[tuple[str, JsonValue]]) -> None:
        self._documents = [normal_text(text) for text in documents]
        self._given: dict[tuple[str, str], set[str]] = defaultdict(set)
        for model, answer in answers:
            for path, text in _texts(answer, ""):
                self._given[path, normal_text(text)].add(model)

    def for_model(self, model: str) -> Callable[[Field, JsonValue], bool]:
        """Whether a value of this model is backed."""

        def backed(field: Field, value: JsonValue) -> bool:
            if not isinstance(value, str):
                return False
            text = normal_text(value)
            if self._given.get((field.path, text), set()) - {model}:
                return True
            whole = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
            return bool(text) and any(whole.search(document) for document in self._documents)

        return backed


def _texts(value: JsonValue, path: str) -> Iterable[tuple[str, str]]:
    """Every text of an answer with its field."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, f"{path}[]")
    elif isinstance(value, str):
        yield path, value


def short_texts(value: JsonValue) -> list[str]:
    """The texts of an answer or reference that similarity may decide."""
    from pytest_tsuka.gold.comparison import LONGEST_SHORT_TEXT

    return list(dict.fromkeys(text for _, text in _texts(value, "") if text and len(text) <= LONGEST_SHORT_TEXT))
