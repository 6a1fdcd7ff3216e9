"""Brackets in a text, strings taken into account: how deep they nest, where each closes."""

from __future__ import annotations

import re
from bisect import bisect_right

MAX_DEPTH = 512
SCANS_PER_TEXT = 6
_FRESH_LINE = re.compile(r"(?<![,:\[{\s])\s*?\n(?=[{\[])")
BRACKETS_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def too_deep(text: str) -> bool:
    """Whether a JSON text nests deeper than MAX_DEPTH."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for match in BRACKETS_OR_STRING.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif first != '"':
            depth -= 1
    return False


class Brackets:
    """Where brackets close, strings taken into account.

    A text may be made so that every bracket is read differently by each scan that begins elsewhere
    (`{\\"` repeated), so the scans of one text share a budget; once it is used up, every document
    that is still open reaches to the end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._close: dict[int, int | None] = {}
        self._deep: set[int] = set()
        self._budget = SCANS_PER_TEXT * len(text)
        self._fresh: list[int] | None = None

    def _closing(self, start: int) -> int | None:
        if start in self._close:
            return self._close[start]
        stack: list[int] = []
        text = self._text
        at = start
        for match in BRACKETS_OR_STRING.finditer(text, start) if self._budget > 0 else ():
            at = match.start()
            char = text[at]
            if char in "{[":
                stack.append(at)
                if len(stack) > MAX_DEPTH:
                    self._deep.add(stack[-MAX_DEPTH - 1])
            elif char != '"' and text[stack[-1]] == ("{" if char == "}" else "["):
                self._close[stack.pop()] = match.end()
                if not stack:
                    self._budget -= match.end() - start
                    return match.end()
            elif char == '"':
                at = match.end()
        self._budget -= at - start
        self._close.update(dict.fromkeys(stack))
        return None

    def too_deep(self, start: int) -> bool:
        self._closing(start)
        return start in self._deep

    def region_end(self, start: int) -> int:
        """Where the broken document that begins at `start` ends: nothing in it may stand for it.

        An unclosed document reaches to the next line that opens with a bracket in its first
        column and does not continue a list or an object.
        """
        end = self._closing(start)
        if end is not None:
            return end
        if self._budget <= 0:
            return len(self._text)
        fresh = self._fresh_lines()
        place = bisect_right(fresh, start)
        return fresh[place] if place < len(fresh) else len(self._text)

    def _fresh_lines(self) -> list[int]:
        if self._fresh is None:
            self._fresh = [match.end() for match in _FRESH_LINE.finditer(self._text)]
        return self._fresh
