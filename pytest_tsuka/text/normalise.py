"""What counts as the same text: normal forms, words and lines, as checks see them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\uff07"), "'")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ")
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u2060\u00ad"))
_TABLE: dict[int, str | int | None] = {**_APOSTROPHES, **_SPACES, **_INVISIBLE}
_SURROGATES = re.compile("[\ud800-\udfff]")
# An emoji (or its variation selector, skin tone, tag) on the left of a joiner and an emoji on its right.
_EMOJI = "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
_STRAY_ZWJ = re.compile(f"({_EMOJI}\u200d(?={_EMOJI}))|\u200d")


def without_surrogates(text: str) -> str:
    """Lone surrogates cannot be encoded: each becomes U+FFFD (pairs become their character)."""
    if _SURROGATES.search(text) is None:
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired


def normalise(text: str) -> str:
    """The text as checks see it: NFC, LF, straight apostrophes, plain spaces, nothing invisible."""
    if text.isascii():
        return text.replace("\r\n", "\n").strip()
    text = without_surrogates(text).replace("\r\n", "\n").translate(_TABLE)
    if "\u200d" in text:
        text = _STRAY_ZWJ.sub(lambda m: m.group(1) or "", text)
    return unicodedata.normalize("NFC", text).strip()


@lru_cache(maxsize=1024)
def normalise_operand(value: str) -> str:
    """An operand of a text check in the same normal form; its own edge spaces are kept."""
    body = normalise(value)
    if not body:
        return value
    head = value[: len(value) - len(value.lstrip())]
    tail = value[len(value.rstrip()) :]
    return f"{head}{body}{tail}".translate(_TABLE)


def fold(text: str) -> str:
    """Case-insensitive form: full Unicode case folding (ß = SS), composed again afterwards."""
    return unicodedata.normalize("NFC", text.casefold())


_RUN_BREAK = re.compile("[\\s\u2013\u2014\u2015]+")
_MARKER = re.compile(
    r"^[ \t]*(?:>[ \t]*)*"
    r"(?:[-*+\u2022\u2023\u25e6\u2043\u00b7\u2013\u2014][ \t]+(?:\[[ xX]\][ \t]+)?"
    r"|[*_]{0,2}\(?\d{1,3}(?:\.\d{1,3})*[.)][*_]{0,2}[ \t]+)(?=\S)",
    re.MULTILINE,
)
_KEYCAP = re.compile("[0-9#*]\ufe0f?\u20e3")
_HAN_KANA = re.compile(
    "[\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


def _has_letter_or_digit(run: str) -> bool:
    return any(c.isalnum() for c in run)


def strip_edges(run: str) -> str:
    """Without the punctuation at both ends: anything but letters, digits and their marks."""
    start, end = 0, len(run)
    while start < end and not run[start].isalnum():
        start += 1
    while end > start and not (run[end - 1].isalnum() or unicodedata.category(run[end - 1])[0] == "M"):
        end -= 1
    return run[start:end]


def words(text: str) -> list[str]:
    """The words of a normalised text, edge punctuation removed.

    A word is a run between white space or long dashes with at least one letter or digit.
    List markers that open a line are none, and every Han or kana character is one of its own.
    """
    found: list[str] = []
    for run in _RUN_BREAK.split(_KEYCAP.sub(" ", _MARKER.sub("", text))):
        if run.isascii():
            if run.isalnum():  # most words
                found.append(run)
                continue
            pieces = [run]
        elif _HAN_KANA.search(run) is None:
            pieces = [run]
        else:
            pieces = _HAN_KANA.sub(lambda m: f" {m.group()} ", run).split(" ")
        found.extend(strip_edges(piece) for piece in pieces if _has_letter_or_digit(piece))
    return found


def filled_lines(text: str) -> int:
    """How many lines hold something other than white space; only LF ends a line."""
    return sum(1 for line in text.split("\n") if line.strip())
