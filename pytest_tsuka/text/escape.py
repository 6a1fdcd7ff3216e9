"""Model text is hostile: one place that makes it safe for a terminal and for one line."""

from __future__ import annotations

import re

# Controls (C0 without \n and \t, DEL, C1), line separators, bidirectional controls, surrogates, non-characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    """The text with everything that could steer a terminal or break XML shown as an escape."""
    return _UNSAFE.sub(lambda m: m.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str) -> str:
    """`printable`, with line breaks and tabs shown as escapes as well."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
