"""What every benchmark here shares: whole processes measured in turn, and a table of ratios to a floor.

A machine's speed drifts between minutes, so the figures of one table are taken round robin in one run, and what counts
is the ratio between them, never a figure by itself.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
"""A pytest run without a cache folder; what else the environment's plugins cost is in floor and figure alike."""


@dataclass(frozen=True)
class Spent:
    """Of one process: seconds on the wall, seconds of CPU in it and its children, and its largest resident KiB."""

    wall: float
    cpu: float
    resident: float


@dataclass(frozen=True)
class Command:
    """A whole process, run in a folder; it must end with one of `codes`."""

    argv: Sequence[str]
    folder: Path
    codes: frozenset[int] = frozenset({0})


def measured(command: Command) -> Spent:
    """One run of a command."""
    # Without byte code kept, a start would measure Python's compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as said:
        start = perf_counter()
        process = subprocess.Popen(command.argv, cwd=command.folder, env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in command.codes:
            said.seek(0)
            text = said.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(command.argv)} ended with {process.returncode}:\n{text}")
    return Spent(wall, used.ru_utime + used.ru_stime, used.ru_maxrss)


def round_robin(commands: Mapping[str, Command], rounds: int) -> dict[str, Spent]:
    """The median of each command's wall and CPU seconds, all of them run in turn `rounds` times."""
    runs: dict[str, list[Spent]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(measured(command))
    return {
        name: Spent(*(statistics.median(getattr(s, figure) for s in spent) for figure in ("wall", "cpu", "resident")))
        for name, spent in runs.items()
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns: the first to the left, the others to the right."""
    cells = [head, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def suite(folder: Path, files: int) -> Path:
    """A project with so many one-turn benchmarks of one check each, and no test of its own."""
    target = folder / "benchmarks"
    target.mkdir(parents=True)
    for n in range(files):
        check = {"type": "contains", "value": "yes"}
        benchmark = {"name": f"item{n}", "category": "json", "prompt": f"say item{n}", "checks": [check]}
        (target / f"{n:05}.json").write_text(json.dumps(benchmark))
    return folder


EMPTY_ITEMS = """
import json
import pytest

class EmptyItem(pytest.Item):
    def runtest(self): pass
    def reportinfo(self): return self.path, 0, self.name

class EmptyFile(pytest.File):
    def collect(self):
        for n in range(json.loads(self.path.read_text())):
            yield EmptyItem.from_parent(self, name=f"item{n}")

def pytest_collect_file(file_path, parent):
    return EmptyFile.from_parent(parent, path=file_path) if file_path.suffix == ".json" else None
"""


def empty_items(folder: Path, files: int, items: int) -> Path:
    """A project whose conftest makes `items` items that do nothing of each of so many files."""
    target = folder / "benchmarks"
    target.mkdir(parents=True)
    (folder / "conftest.py").write_text(EMPTY_ITEMS)
    for n in range(files):
        (target / f"{n:05}.json").write_text(str(items))
    return folder
