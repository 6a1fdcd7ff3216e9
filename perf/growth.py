"""Time and memory as a run grows: one-turn items against the fake endpoint, next to as many empty pytest items.

Run it with `python -m perf.growth [ITEMS ...]` (default 1000 2500 5000 10000), no latency, four efforts per file.
Memory is the growth of the largest resident set from the first size on, per item.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from perf.harness import PYTEST, Command, empty_items, round_robin, suite, table
from tests.endpoint import Answer, FakeEndpoint, completion


def main() -> None:
    sizes = [int(x) for x in sys.argv[1:]] or [1000, 2500, 5000, 10_000]
    with tempfile.TemporaryDirectory() as name, FakeEndpoint(lambda _: Answer(json=completion("yes"))) as endpoint:
        folder = Path(name)
        options = ["--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "--tsuka-concurrency=32"]
        figures = {}
        for size in sizes:
            endpoint.requests.clear()
            commands = {
                "floor": Command([*PYTEST, "-p", "no:tsuka"], empty_items(folder / f"e{size}", size // 4, 4)),
                "ours": Command([*PYTEST, *options], suite(folder / f"s{size}", size // 4)),
            }
            figures[size] = round_robin(commands, 1)
    first = figures[sizes[0]]
    rows = []
    for size, figure in figures.items():
        row = [str(size)]
        for which in ("floor", "ours"):
            grown = (figure[which].resident - first[which].resident) / (size - sizes[0]) if size > sizes[0] else None
            spent = figure[which]
            row += [f"{spent.wall:.2f}", f"{spent.cpu / size * 1000:.2f}", f"{spent.resident / 1024:.0f}"]
            row.append("" if grown is None else f"{grown:.1f}")
        rows.append(row)
    head = ["items", "empty s", "CPU ms/item", "MB", "KB/item", "tsuka s", "CPU ms/item", "MB", "KB/item"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
