"""Numbers and dates as people write them, and what must never be guessed."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.gold.values import CalendarDate, normal_text, read_date, read_number


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1.234,56", {1234.56}),
        ("1,234.56", {1234.56}),
        ("16.181", {16.181, 16181}),
        ("2,5", {2.5}),
        ("1 234,5", {1234.5}),
        ("1'234'567", {1234567}),
        ("1.234.567", {1234567}),
        ("1 234", {1234}),
        ("1 2", set()),
        ("60 %", {0.6}),
        ("1e3", {1000}),
        ("-5", {-5}),
        ("\u22125", {-5}),
        ("0.500", {0.5}),
        (".5", {0.5}),
        ("00501", {501}),
        ("", set()),
        ("the result is -5 exactly", set()),
        ("42nd", set()),
        ("1.2.3", set()),
        ("$5", set()),
    ],
)
def test_numbers(text: str, values: set[float]) -> None:
    """F09, F11, F13: both marks: the last is the decimal one; a single dot before three digits has two readings."""
    assert read_number(text) == values


def test_the_fields_convention_settles_it() -> None:
    assert read_number("16.181", decimal_comma=True) == {16181}
    assert read_number("16.181", decimal_comma=False) == {16.181}
    assert read_number("2,5", decimal_comma=False) == frozenset()
    assert read_number("60%", percent_of=1) == {60}


@given(st.integers(-(10**12), 10**12))
def test_grouped_integers(number: int) -> None:
    """However thousands are grouped, the number is among the readings, alone where that is unambiguous."""
    for mark in (",", ".", " ", "'"):
        text = f"{number:,}".replace(",", mark)
        assert float(number) in read_number(text)
        if mark in " '" or text.count(mark) != 1:
            assert len(read_number(text)) == 1


def day(year: int, month: int | None = None, number: int | None = None) -> CalendarDate:
    return CalendarDate(year, month, number)


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("1972-03-14", {day(1972, 3, 14)}),
        ("14 March 1972", {day(1972, 3, 14)}),
        ("March 14th, 1972", {day(1972, 3, 14)}),
        ("14 marzo 1972", {day(1972, 3, 14)}),
        ("febbraio 7, 2019", {day(2019, 2, 7)}),
        ("1er août 2016", {day(2016, 8, 1)}),
        ("3. März 2016", {day(2016, 3, 3)}),
        ("7 de febrero de 2019", {day(2019, 2, 7)}),
        ("12 października 2020", {day(2020, 10, 12)}),
        ("5 мая 2021 г.", {day(2021, 5, 5)}),
        ("2020. március 15", {day(2020, 3, 15)}),
        ("17/6/2021", {day(2021, 6, 17)}),
        ("3/7/2021", {day(2021, 7, 3), day(2021, 3, 7)}),
        ("3.3.2021", {day(2021, 3, 3)}),
        ("June 2019", {day(2019, 6)}),
        ("giugno 2019", {day(2019, 6)}),
        ("2019-06", {day(2019, 6)}),
        ("1999", {day(1999)}),
        ("2024-05-01T23:30:00-05:00", {day(2024, 5, 1)}),
        ("2024-05-02T04:30:00Z", {day(2024, 5, 2)}),
        ("1 listopada 2020", {day(2020, 10, 1), day(2020, 11, 1)}),
        ("7 febraio 2019", set()),
        ("31 February 2020", set()),
        ("2021-13-01", set()),
        ("may", set()),
        ("to", set()),
        ("a", set()),
        ("June", set()),
        ("Catch 22", set()),
        ("12345", set()),
    ],
)
def test_dates(text: str, dates: set[CalendarDate]) -> None:
    """F01, F03, F05, F06, F07: as written, at the precision given; words, half dates and typos are none."""
    assert read_date(text) == dates


def test_the_order_belongs_to_the_field() -> None:
    """F01: not to the row."""
    assert read_date("3/7/2021", day_first=True) == {day(2021, 7, 3)}
    assert read_date("3/7/2021", day_first=False) == {day(2021, 3, 7)}
    assert read_date("17/6/2021", day_first=False) == frozenset()


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(9999, 12, 31)))
def test_every_date_survives_writing(when: datetime.date) -> None:
    from babel.dates import format_date

    wanted = day(when.year, when.month, when.day)
    assert read_date(when.isoformat()) == {wanted}
    for language in ("en", "it", "de", "fr", "es", "nl", "sv"):
        assert read_date(format_date(when, "d MMMM y", locale=language)) == {wanted}
    assert wanted in read_date(format_date(when, "d MMMM y", locale="pl"))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Acme", "ACME", True),
        ("Ana  Ruiz", " Ana Ruiz ", True),
        ("we're", "we’re", True),
        ("U.N.", "UN", True),
        ("STRASSE", "straße", True),
        ("e\u0301", "é", True),
        ("C++", "C", False),
        ("$3,050", "€3,050", False),
        ("-5", "5", False),
        ("x—y", "xy", False),
        ("R. Downey", "R Downey", False),
    ],
)
def test_normal_text(a: str, b: str, same: bool) -> None:
    """F29: case, space and Unicode form fall away, and the dots of an acronym; nothing that means something."""
    assert (normal_text(a) == normal_text(b)) is same
