"""Model text is hostile: one place that makes it safe for a terminal and for one line."""

from __future__ import annotations

import re

# Line separators, bidirectional and other invisible format controls (the two joiners are part of words and
# emoji), tags and everything above them, surrogates, non-characters.
INVISIBLE = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane | 0xFFFE)}{chr(plane | 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
)
"""As part of a character class: what nobody sees, and what makes other characters stand where they are not."""

# Those, and controls: C0 without \n and \t, DEL, C1.
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{INVISIBLE}]")


def printable(text: str) -> str:
    """The text with everything that could steer a terminal or break XML shown as an escape."""
    return _UNSAFE.sub(lambda m: m.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str) -> str:
    """`printable`, with line breaks and tabs shown as escapes as well."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
