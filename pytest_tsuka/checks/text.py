"""Checks on the text of the answer."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from pytest_tsuka.checks.base import (
    Check,
    Count,
    Flags,
    NonEmpty,
    Pattern,
    Result,
    Subject,
    compiles,
    quoted,
    search,
)
from pytest_tsuka.text.js_regex import find
from pytest_tsuka.text.normalise import filled_lines, fold, normalise_operand, strip_edges, words


def _one_word(value: str) -> str:
    if len(value.split()) != 1 or not strip_edges(value.strip()):
        raise ValueError("must be a single word with a letter or digit")
    return value


Word = Annotated[str, Field(min_length=1), AfterValidator(_one_word)]


class _Counted(Check):
    value: Count
    unit: ClassVar[str] = "words"

    def counted(self, subject: Subject) -> int:
        return len(words(subject.text))

    def holds(self, count: int) -> bool:
        return count == self.value

    wanted: ClassVar[str] = ""

    def evaluate(self, subject: Subject) -> Result:
        count = self.counted(subject)
        expected = f"{self.wanted}{self.value} {self.unit}"
        return Result(self.holds(count), f"expected {expected}, found {count} in {quoted(subject.text)}")


class WordCount(_Counted):
    """The answer has exactly this many words."""

    type: Literal["word_count"]


class MinWords(_Counted):
    """The answer has at least this many words."""

    type: Literal["min_words"]
    wanted: ClassVar[str] = "at least "

    def holds(self, count: int) -> bool:
        return count >= self.value


class MaxWords(_Counted):
    """The answer has at most this many words (and says something)."""

    type: Literal["max_words"]
    wanted: ClassVar[str] = "at most "
    negative: ClassVar[bool] = True

    def holds(self, count: int) -> bool:
        return count <= self.value


class LineCount(_Counted):
    """The answer has exactly this many lines that hold something."""

    type: Literal["line_count"]
    unit: ClassVar[str] = "non-empty lines"

    def counted(self, subject: Subject) -> int:
        return filled_lines(subject.text)


class _EdgeWord(Check):
    value: Word
    flags: Flags = ""
    place: ClassVar[str]

    def evaluate(self, subject: Subject) -> Result:
        found = words(subject.text)
        wanted = words(normalise_operand(self.value).strip()) or [self.value]
        # A Han or kana operand of several characters counts as several words.
        size = len(wanted)
        edge = found[:size] if self.place == "first" else found[-size:]
        same = edge == wanted
        if "i" in self.flags:
            same = [fold(w) for w in edge] == [fold(w) for w in wanted]
        shown = "".join(edge) if edge else "no word at all"
        hint = ""
        if not same and [fold(w) for w in edge] == [fold(w) for w in wanted]:
            hint = ' (differs in case only: add "flags": "i" if case does not matter)'
        return Result(same, f"expected the {self.place} word “{self.value}”, found “{shown}”{hint}")


class FirstWord(_EdgeWord):
    """The first word, its edge punctuation removed, is exactly this one (case-sensitive without flag i)."""

    type: Literal["first_word"]
    place: ClassVar[str] = "first"


class LastWord(_EdgeWord):
    """The last word, its edge punctuation removed, is exactly this one (case-sensitive without flag i)."""

    type: Literal["last_word"]
    place: ClassVar[str] = "last"


class _Substring(Check):
    value: NonEmpty
    flags: Flags | None = None

    def place_of(self, text: str) -> int:
        needle = normalise_operand(self.value)
        if self.flags is None or "i" in self.flags:
            return fold(text).find(fold(needle))
        return text.find(needle)

    @property
    def how(self) -> str:
        return "" if self.flags is None or "i" in self.flags else " (case-sensitive)"


class Contains(_Substring):
    """This substring occurs; case-insensitive unless flags are given without i."""

    type: Literal["contains"]

    def evaluate(self, subject: Subject) -> Result:
        if self.place_of(subject.text) >= 0:
            return Result(True, f"contains “{self.value}”")
        near = _near_miss(normalise_operand(self.value), subject.text)
        return Result(False, f"expected “{self.value}”{self.how} in the answer, found {quoted(subject.text)}{near}")


class NotContains(_Substring):
    """This substring does not occur; a substring, not a word: use not_regex with \\b for whole words."""

    type: Literal["not_contains"]
    negative: ClassVar[bool] = True

    def evaluate(self, subject: Subject) -> Result:
        at = self.place_of(subject.text)
        if at < 0:
            return Result(True, f"“{self.value}” does not occur")
        around = subject.text[max(0, at - 30) : at + len(self.value) + 30]
        return Result(False, f"“{self.value}” must not occur{self.how}, found it in {quoted(around)}")


class Regex(Check):
    """This JavaScript-style pattern is found."""

    type: Literal["regex"]
    value: Pattern
    flags: Flags = ""

    @model_validator(mode="after")
    def _compile(self) -> Regex:
        compiles(self.value, self.flags)
        return self

    def evaluate(self, subject: Subject) -> Result:
        return search(normalise_operand(self.value), self.flags, subject.text, "the answer")


class NotRegex(Check):
    """This JavaScript-style pattern is not found."""

    type: Literal["not_regex"]
    value: Pattern
    flags: Flags = ""
    negative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _compile(self) -> NotRegex:
        compiles(self.value, self.flags)
        return self

    def evaluate(self, subject: Subject) -> Result:
        match = find(normalise_operand(self.value), self.flags, subject.text)
        if match is None:
            return Result(True, f"/{self.value}/{self.flags} does not match")
        return Result(False, f"/{self.value}/{self.flags} must not match, found {quoted(match)}")


class NotEmpty(Check):
    """The answer holds some text."""

    type: Literal["not_empty"]

    def evaluate(self, subject: Subject) -> Result:
        if subject.text:
            return Result(True, f"{len(subject.text)} characters")
        return Result(False, "expected some text, found an empty answer")


_DIGIT_GROUPS = re.compile(r"(?<=\d)[.,' ](?=\d)")


def _near_miss(needle: str, text: str) -> str:
    """What the answer says that is almost the operand, so that a too literal benchmark is seen."""
    digits = _DIGIT_GROUPS.sub("", needle)
    if any(c.isdigit() for c in needle):
        for match in re.finditer(r"\d[\d.,' ]*\d|\d", text):
            if _DIGIT_GROUPS.sub("", match.group()) == digits:
                return f"; near miss: “{match.group()}” is the same number written otherwise (contains is literal)"
    if len(needle) > 3:
        near = difflib.get_close_matches(fold(needle), map(fold, words(text[:4000])), n=1, cutoff=0.8)
        if near:
            return f"; near miss: “{near[0]}”"
    return ""
