"""JavaScript-style regular expressions on the `regex` package, with a bound on their time.

The pattern is translated once, when the benchmark is read, so that a mistake is a collection error
and never a surprise after a paid request. What differs between the two dialects and matters:
`$` is the very end, `\\d` is 0-9, `\\u{…}`, `\\k<name>`, `[^]`, and letters JavaScript does not
escape. `\\w` and `\\b` stay Unicode-aware, which JavaScript's are not: "perché" is one word.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

SECONDS = 1.0
FLAGS = "imsxugd"
_KNOWN_ESCAPES = frozenset("bBdDwWsSfnrtv0123456789")
_HINTS = {"A": "use ^ without the flag m", "Z": "use $ without the flag m", "z": "use $ without the flag m"}


class PatternError(ValueError):
    """A pattern or flag that cannot be honoured; the text says why."""


class PatternTimeout(Exception):
    """Matching took longer than `SECONDS`."""


def check_flags(flags: str) -> str:
    """The flags as given, or PatternError naming the first that is not allowed."""
    for flag in flags:
        if flag == "y":
            raise PatternError("flag 'y' (sticky) cannot be honoured here: anchor the pattern with ^ instead")
        if flag not in FLAGS:
            raise PatternError(f"unknown flag {flag!r} (allowed: {', '.join(FLAGS)})")
    return flags


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str = "") -> Pattern[str]:
    """The compiled pattern, or PatternError with the reason and the place in the pattern."""
    import regex

    check_flags(flags)
    options = regex.V0
    for letter, option in (("i", regex.I), ("m", regex.M), ("s", regex.S), ("x", regex.X)):
        if letter in flags:
            options |= option
    try:
        return regex.compile(_Translation(pattern, multiline="m" in flags).result(), options)
    except regex.error as error:
        raise PatternError(f"the pattern {pattern!r} does not compile: {error}") from error
    except (OverflowError, RecursionError, MemoryError) as error:
        raise PatternError(f"the pattern {pattern!r} is too large: {error}") from error


def find(pattern: str, flags: str, text: str) -> str | None:
    """The first match, or None. Raises PatternTimeout after `SECONDS`.

    The lock of the interpreter is given up meanwhile, so the requests in flight go on.
    """
    try:
        found = compile_pattern(pattern, flags).search(text, timeout=SECONDS, concurrent=True)
    except TimeoutError:
        raise PatternTimeout(
            f"the pattern {pattern!r} was stopped after {SECONDS:g} s on {len(text)} characters"
        ) from None
    return found.group() if found else None


class _Translation:
    """One pass over a JavaScript pattern that writes the same for `regex`."""

    def __init__(self, pattern: str, *, multiline: bool) -> None:
        self._pattern = pattern
        self._multiline = multiline
        self._at = 0
        self._in_class = False

    def result(self) -> str:
        out: list[str] = []
        while self._at < len(self._pattern):
            out.append(self._step(self._pattern[self._at]))
        return "".join(out)

    def _take(self, count: int) -> str:
        piece = self._pattern[self._at : self._at + count]
        self._at += count
        return piece

    def _step(self, char: str) -> str:
        if char == "\\":
            return self._escape()
        if self._in_class:
            return self._inside_class(char)
        if char == "[":
            return self._open_class()
        self._at += 1
        if char == "$" and not self._multiline:
            return r"\Z"
        return char

    def _open_class(self) -> str:
        for empty, meaning in (("[^]", r"[\s\S]"), ("[]", "(?!)")):
            if self._pattern.startswith(empty, self._at):
                self._at += len(empty)
                return meaning
        self._in_class = True
        return self._take(2) if self._pattern.startswith("[^", self._at) else self._take(1)

    def _inside_class(self, char: str) -> str:
        self._at += 1
        if char == "]":
            self._in_class = False
        return r"\[" if char == "[" else char

    def _escape(self) -> str:
        escaped = self._pattern[self._at + 1 : self._at + 2]
        if not escaped:
            raise PatternError(f"the pattern {self._pattern!r} ends in a lone backslash")
        match escaped:
            case "d":
                self._at += 2
                return "0-9" if self._in_class else "[0-9]"
            case "D" if not self._in_class:
                self._at += 2
                return "[^0-9]"
            case "b" if self._in_class:
                self._at += 2
                return r"\x08"
            case "k" if self._pattern.startswith("<", self._at + 2):
                return self._named_reference()
            case "u":
                return self._unicode_escape()
            case "x":
                return self._hex(2, 2)
            case "p" | "P":
                return self._property()
            case "c":
                letter = self._take(3)[2:]
                return f"\\x{ord(letter) % 32:02x}" if letter.isascii() and letter.isalpha() else self._bad("\\c")
        if escaped.isascii() and escaped.isalpha() and escaped not in _KNOWN_ESCAPES:
            hint = f"; {_HINTS[escaped]}" if escaped in _HINTS else ""
            return self._bad(f"\\{escaped}", hint)
        return self._take(2)

    def _bad(self, what: str, hint: str = "") -> str:
        raise PatternError(f"the pattern {self._pattern!r} uses {what}, which JavaScript does not know{hint}")

    def _named_reference(self) -> str:
        end = self._pattern.find(">", self._at)
        if end < 0:
            return self._bad("\\k< without >")
        name = self._pattern[self._at + 3 : end]
        self._at = end + 1
        return f"(?P={name})"

    def _unicode_escape(self) -> str:
        if not self._pattern.startswith("{", self._at + 2):
            return self._hex(2, 4)
        end = self._pattern.find("}", self._at)
        digits = self._pattern[self._at + 3 : end] if end > 0 else ""
        try:
            char = chr(int(digits, 16))
        except (ValueError, OverflowError):
            return self._bad(f"\\u{{{digits}}}")
        self._at = end + 1
        return _literal(char)

    def _hex(self, start: int, count: int) -> str:
        digits = self._pattern[self._at + start : self._at + start + count]
        try:
            code = int(digits, 16) if len(digits) == count else -1
            char = chr(code)
        except ValueError:
            return self._bad(f"{self._pattern[self._at : self._at + start]} without {count} hexadecimal digits")
        self._at += start + count
        return _literal(char)

    def _property(self) -> str:
        if not self._pattern.startswith("{", self._at + 2):
            return self._bad(self._pattern[self._at : self._at + 2] + " without {…}")
        end = self._pattern.find("}", self._at)
        if end < 0:
            return self._bad(self._pattern[self._at : self._at + 2] + "{ without }")
        return self._take(end + 1 - self._at)


def _literal(char: str) -> str:
    import regex

    return regex.escape(char, special_only=False) if char.isascii() else char
