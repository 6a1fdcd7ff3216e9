"""What starting costs: bare pytest with one empty test, the same with the plugin at rest, and a run of one item.

Run it with `python -m perf.startup [ROUNDS]` (default 15). The fake endpoint answers at once; the figures are
medians of whole processes taken in turn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from perf.harness import PYTEST, Command, round_robin, suite, table
from tests.endpoint import Answer, FakeEndpoint, completion


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as name, FakeEndpoint(lambda _: Answer(json=completion("yes"))) as endpoint:
        empty = Path(name) / "empty"
        empty.mkdir()
        (empty / "test_empty.py").write_text("def test_empty(): pass\n")
        one = suite(Path(name) / "one", 1)
        options = ["--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "--tsuka-effort=none"]
        figures = round_robin(
            {
                "bare pytest": Command([*PYTEST, "-p", "no:tsuka"], empty),
                "with the plugin, no model": Command(PYTEST, empty),
                "one item": Command([*PYTEST, *options], one),
            },
            rounds,
        )
    floor = figures["bare pytest"]
    rows = [
        [label, f"{spent.wall * 1000:.0f}", f"{spent.wall / floor.wall:.2f}", f"{spent.cpu * 1000:.0f}"]
        for label, spent in figures.items()
    ]
    print(f"median of {rounds}\n")
    print(table(["", "ms", "× bare", "CPU ms"], rows))


if __name__ == "__main__":
    main()
