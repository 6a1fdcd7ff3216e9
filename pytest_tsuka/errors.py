"""Every exception of the package.

TsukaError
├── SettingsError            an option or ini value that cannot be used
├── BenchmarkError           one or more problems in a benchmark file, each with its place
│   └── ScenarioError        the same for a scenario file
├── ProfileError             a profile or a tool declaration that cannot be trusted
├── GoldReferenceError       a gold reference that cannot be used, or a path that is not in it
├── GradingError             a grading pass that broke off (judge, embedder): no partial score is kept
└── BackendError             the endpoint could not be measured: never a score
    ├── EffortRefused        the endpoint will not have this reasoning effort
    ├── ItemTimeout          the conversation used up its wall-clock limit
    └── ReplayMiss           a recording lacks the request that was asked for
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class TsukaError(Exception):
    """Base of all errors a user of the package may want to catch."""


class SettingsError(TsukaError):
    """An option or ini value that cannot be used; the text says which and how to mend it."""


class ProfileError(TsukaError):
    """A profile file or a tool declaration that cannot be trusted."""


class GoldReferenceError(TsukaError):
    """A gold reference that cannot be used, or a path that is not in it; the text says what to do."""


class BackendError(TsukaError):
    """The endpoint could not be measured. Such an item has no score: neither 0 nor a pass.

    `attempts` is how many requests were sent before giving up. `permanent` says that every
    further request of the same kind would end alike (wrong key, unknown model, used-up quota).
    """

    def __init__(self, message: str, *, attempts: int = 1, permanent: bool = False) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.permanent = permanent


class EffortRefused(BackendError):
    """The endpoint will not have this reasoning effort: the level is skipped, never replaced."""


class ItemTimeout(BackendError):
    """The whole conversation took longer than one item may."""


class ReplayMiss(BackendError):
    """The recording holds no answer to this request."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: where (JSON path, or line and column) and what."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class BenchmarkError(TsukaError):
    """A benchmark file that cannot be used, with all its problems."""

    what = "benchmark"

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{path} is not a valid {self.what}", *(f"  {p}" for p in self.problems)]))


class ScenarioError(BenchmarkError):
    """A scenario file that cannot be used, with all its problems."""

    what = "scenario"


class GradingError(TsukaError):
    """A grading pass that broke off: its judge or embedder failed. No partial score is kept."""


def closest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name a typo most likely meant, or None when nothing is near."""
    folded = {a.casefold().replace("-", "_").replace(" ", "_"): a for a in allowed}
    key = name.casefold().replace("-", "_").replace(" ", "_")
    if key in folded:
        return folded[key]
    found = difflib.get_close_matches(key, folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> str:
    """The sentence for a name that does not exist: the nearest one, then all of them."""
    names = list(allowed)
    near = closest(name, names)
    hint = f"; did you mean {near!r}?" if near else ""
    return f"unknown {kind} {name!r}{hint} (allowed: {', '.join(names)})"
