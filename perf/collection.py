"""Collecting benchmark files, next to as many files of one trivial item each.

Run it with `python -m perf.collection [FILES ...]` (default 1000 2500 5000 10000). Whole `--collect-only` runs; the
floor is what pytest itself takes for custom items of custom files.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from perf.harness import PYTEST, Command, empty_items, round_robin, suite, table

ROUNDS = 3


def main() -> None:
    sizes = [int(x) for x in sys.argv[1:]] or [1000, 2500, 5000, 10_000]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in sizes:
            ours = [*PYTEST, "--collect-only", "-qq", "--tsuka-model=m", "--tsuka-effort=none"]
            figures = round_robin(
                {
                    "floor": Command(
                        [*PYTEST, "--collect-only", "-qq", "-p", "no:tsuka"], empty_items(folder / f"e{size}", size, 1)
                    ),
                    "ours": Command(ours, suite(folder / f"s{size}", size)),
                },
                ROUNDS,
            )
            floor, spent = figures["floor"].wall, figures["ours"].wall
            per_file = (spent - floor) / size * 1000
            rows.append([str(size), f"{floor:.2f}", f"{spent:.2f}", f"{spent - floor:.2f}", f"{per_file:.2f}"])
    print(f"median of {ROUNDS}\n")
    print(table(["files", "trivial items s", "benchmarks s", "beyond s", "beyond ms/file"], rows))


if __name__ == "__main__":
    main()
