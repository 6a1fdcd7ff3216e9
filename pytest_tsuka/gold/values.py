"""Values in their normal forms: text, numbers as people write them, calendar dates in Europe's languages.

Nothing is guessed: a text that can be read in two ways has two readings, and a part of a date that
is not written stays unknown (it is never filled in from today).
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from pytest_tsuka.text.normalise import fold, normalise_operand

# --- text ----------------------------------------------------------------------------------

_ACRONYM = re.compile(r"\b(?:[^\W\d_]\.){2,}")


def normal_text(text: str) -> str:
    """Case-folded, one space for any white space, Unicode composed, dots of acronyms gone (U.N. = UN).

    No other punctuation is dropped: C++ is not C, -5 is not 5, a currency is part of a price.
    """
    text = fold(normalise_operand(text))
    return " ".join(_ACRONYM.sub(lambda m: m.group().replace(".", ""), text).split())


_INITIAL = re.compile(r"([^\W\d_])\.?")
_NUMERAL = re.compile(r"\d+|\b[IVX]{2,}\b")
_ROMAN = {"I": 1, "V": 5, "X": 10}


@lru_cache(maxsize=65536)
def initial_of(text: str) -> tuple[str, str, bool] | None:
    """A name's first letter, last word, and whether its first word is an initial; None for other texts."""
    words = fold(normalise_operand(text)).replace(".", ". ").split()
    words = [w for w in words if w not in ("jr", "jr.", "sr", "sr.")]
    if not 2 <= len(words) <= 5 or not all(w[0].isalpha() for w in words):
        return None
    return words[0][0], words[-1], _INITIAL.fullmatch(words[0]) is not None


@lru_cache(maxsize=65536)
def numerals(text: str) -> tuple[int, ...]:
    """The numbers in a text, Roman ones of two letters and more among them, in ascending order."""
    return tuple(sorted(_roman(n) if n[0] in _ROMAN else int(n) for n in _NUMERAL.findall(text)))


def _roman(numeral: str) -> int:
    values = [_ROMAN[letter] for letter in numeral]
    return sum(-v if any(w > v for w in values[i + 1 :]) else v for i, v in enumerate(values))


def certainly_different(a: str, b: str) -> bool:
    """What tells two similar texts apart for certain: other numbers (B6, B12), or an initial that fits another name.

    Embeddings are blind to both: "Part II" and "Part III" are 0.96 alike.
    """
    if numerals(a) != numerals(b):
        return True
    left, right = initial_of(a), initial_of(b)
    if left is None or right is None or left[1] != right[1] or not (left[2] or right[2]):
        return False
    return left[0] != right[0]


# --- numbers -------------------------------------------------------------------------------

_NUMBER = re.compile(r"([+\-\u2212]?)\s*(\d[\d.,'\s]*|\.\d+)(?:[eE]([+-]?\d{1,3}))?\s*(%?)")
_GROUPED = re.compile(r"\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*")


def read_number(text: str, *, decimal_comma: bool | None = None, percent_of: float = 100.0) -> frozenset[float]:
    """Every number a text may mean; two where a single separator could be either mark.

    With both marks the last is the decimal one. `decimal_comma` says which convention the field
    uses, if any. A percent sign divides by `percent_of` (1 for a field whose unit is percent).
    """
    match = _NUMBER.fullmatch(re.sub(r"\s", " ", normalise_operand(text)).strip())
    if match is None:
        return frozenset()
    sign, digits, exponent, percent = match.groups()
    factor = -1.0 if sign in ("-", "\u2212") else 1.0
    if percent:
        factor /= percent_of
    found = set()
    for plain in _plain_digits(digits.strip(), decimal_comma=decimal_comma):
        value = float(f"{plain}e{exponent or 0}") * factor
        if math.isfinite(value):
            found.add(value)
    return frozenset(found)


def _plain_digits(digits: str, *, decimal_comma: bool | None) -> set[str]:
    """The readings of digits with marks, as Python writes them."""
    compact = digits.replace(" ", "").replace("'", "")
    if re.search(r"[ '](?!\d{3}(?!\d))", digits):
        return set()  # a gap that groups no thousands
    dots, commas = compact.count("."), compact.count(",")
    if not dots and not commas:
        return {compact}
    if dots and commas:
        mark = max(".", ",", key=compact.rfind)
        if decimal_comma is not None and mark != ("," if decimal_comma else "."):
            return set()
        return {_with_mark(compact, mark)} if compact.count(mark) == 1 else set()
    mark = "." if dots else ","
    if decimal_comma is not None:
        decimal = mark == ("," if decimal_comma else ".")
        if decimal:
            return {_with_mark(compact, mark)} if compact.count(mark) == 1 else set()
        return {compact.replace(mark, "")} if _GROUPED.fullmatch(compact) else set()
    readings = set()
    if compact.count(mark) == 1:
        readings.add(_with_mark(compact, mark))
    if _GROUPED.fullmatch(compact) and not compact.startswith("0"):
        readings.add(compact.replace(mark, ""))
    return readings


def _with_mark(digits: str, mark: str) -> str:
    other = "," if mark == "." else "."
    return digits.replace(other, "").replace(mark, ".")


# --- dates ---------------------------------------------------------------------------------

LANGUAGES = (
    *("bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "is", "it", "lb"),
    *("lt", "lv", "mk", "mt", "nb", "nl", "nn", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tr", "uk"),
)
_ISO = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2})(?:[T ]\d{2}:\d{2}.*)?)?")
_NUMERIC = re.compile(r"(\d{1,2})([./\-])\s?(\d{1,2})\2\s?(\d{4})")
_YEAR_FIRST = re.compile(r"(\d{4})([./])(\d{1,2})\2(\d{1,2})")
_DAY = r"(?P<day>\d{1,2})(?:\.|st|nd|rd|th|er|e|º|ª|°)?"
_YEAR = r"(?P<year>\d{4})"
_NAME = r"(?P<month>[^\W\d_]+)\.?"
_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_DAY}\s+(?:de\s+|d')?{_NAME},?\s+(?:de\s+|del\s+)?{_YEAR}(?:\s*г\.?)?",
        rf"{_NAME}\s+{_DAY},?\s+{_YEAR}",
        rf"{_YEAR}\.?\s+{_NAME}\s+{_DAY}",
        rf"{_NAME},?\s+(?:de\s+)?{_YEAR}",
        rf"{_YEAR}\.?\s+{_NAME}",
    )
)


class CalendarDate(NamedTuple):
    """A date at the precision at which it was written."""

    year: int
    month: int | None = None
    day: int | None = None

    @property
    def valid(self) -> bool:
        if self.month is None:
            return 1 <= self.year <= 9999
        try:
            date(self.year, self.month, self.day or 1)
        except ValueError:
            return False
        return True

    def agrees(self, other: CalendarDate) -> bool:
        """Whether the coarser of the two is the beginning of the finer."""
        return all(a == b for a, b in zip(self, other, strict=True) if a is not None and b is not None)

    @property
    def precision(self) -> int:
        return sum(part is not None for part in self)


@lru_cache(maxsize=1)
def _months() -> dict[str, frozenset[int]]:
    """Month names of Europe's languages (CLDR, through babel), folded.

    A name may be two months: "listopad" is November in Polish and October in Croatian.
    """
    from babel.dates import get_month_names

    names: dict[str, set[int]] = {}
    for language in LANGUAGES:
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                for number, name in get_month_names(width, context, language).items():
                    names.setdefault(fold(name).rstrip("."), set()).add(number)
    return {name: frozenset(numbers) for name, numbers in names.items() if len(name) > 2}


@lru_cache(maxsize=8192)
def read_date(text: str, *, day_first: bool | None = None) -> frozenset[CalendarDate]:
    """Every calendar date a text may mean, without time or zone; empty when it is none.

    A timestamp is the date as it is written. `day_first` is the order of the field; without it
    3/7/2021 has two readings and 17/6/2021 one.
    """
    text = " ".join(unicodedata.normalize("NFC", normalise_operand(text)).split())
    if iso := _ISO.fullmatch(text):
        return _valid(CalendarDate(int(iso[1]), int(iso[2]), int(iso[3]) if iso[3] else None))
    if re.fullmatch(r"[12]\d{3}", text):
        return frozenset({CalendarDate(int(text))})
    if first := _YEAR_FIRST.fullmatch(text):
        return _valid(CalendarDate(int(first[1]), int(first[3]), int(first[4])))
    if numeric := _NUMERIC.fullmatch(text):
        a, b, year = int(numeric[1]), int(numeric[3]), int(numeric[4])
        orders = {True: CalendarDate(year, b, a), False: CalendarDate(year, a, b)}
        if day_first is not None:
            return _valid(orders[day_first])
        return _valid(*orders.values())
    return _named_date(text)


def _named_date(text: str) -> frozenset[CalendarDate]:
    for pattern in _NAMED:
        if (match := pattern.fullmatch(text)) and (months := _months().get(fold(match["month"]))):
            day = match.groupdict().get("day")
            year = int(match["year"])
            return _valid(*(CalendarDate(year, month, int(day) if day else None) for month in months))
    return frozenset()


def _valid(*dates: CalendarDate) -> frozenset[CalendarDate]:
    return frozenset(d for d in dates if d.valid)
