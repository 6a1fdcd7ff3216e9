"""A hundred thousand verdicts in the store: written in batches as a run does, found again as `--tsuka-resume` does.

Run it with `python -m perf.store [ROWS]` (default 100000). The floors are the same rows by `executemany` into a bare
table in one transaction, and one SELECT of all of them.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from perf.harness import table
from pytest_tsuka.conversation import Conversation, Reply, Turn
from pytest_tsuka.scoring.verdict import Verdict, judge
from pytest_tsuka.store.database import Store
from pytest_tsuka.suite.benchmark import Benchmark
from pytest_tsuka.suite.files import parse_benchmark

BATCH = 100
"""Verdicts that a run keeps together at most when nothing has to be waited for."""


def verdict(benchmark: Benchmark, number: int) -> Verdict:
    reply = Reply(text="an answer of some words " * 10, finish_reason="stop")
    run = judge(benchmark, Conversation((Turn(sent=({"role": "user", "content": "x"},), reply=reply),)))
    return {
        "benchmark": f"b{number}", "file": f"b{number}.json", "description": "", "category": "json", "weight": 1.0,
        "model": "m", "effort": "none", "provider": "p", "parameters": {}, "tests_hash": "h", "outcome": "passed",
        "score": 1.0, "error": None, "runs": [run],
    }  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    checks = [{"type": "contains", "value": "answer"}]
    source = {"name": "b", "category": "json", "prompt": "x", "checks": checks}
    benchmark = parse_benchmark(json.dumps(source).encode(), "b")
    rows = [("c", v, json.dumps(v)) for v in (verdict(benchmark, n) for n in range(count))]
    with tempfile.TemporaryDirectory() as name:
        bare = sqlite3.connect(Path(name) / "bare.db")
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("CREATE TABLE t (a TEXT, b TEXT, c TEXT)")

        def insert() -> None:
            with bare:
                bare.executemany("INSERT INTO t VALUES (?, ?, ?)", [(c, v["benchmark"], text) for c, v, text in rows])

        floor_in = seconds(insert)
        floor_out = seconds(lambda: [json.loads(text) for (text,) in bare.execute("SELECT c FROM t")])
        bare.close()
        store = Store(Path(name) / "tsuka.db")
        run = store.begin_run()

        def add() -> None:
            for at in range(0, count, BATCH):
                store.add(run, rows[at : at + BATCH])

        spent_in = seconds(add)
        names = [v["benchmark"] for _, v, _ in rows]
        spent_out = seconds(lambda: store.broken_off({"m": "c"}, ["none"], [*names, "one that was not run"]))
        size = (Path(name) / "tsuka.db").stat().st_size
        store.close()
    print(f"{count} verdicts of {len(rows[0][2])} characters, {size / 1e6:.0f} MB on disk\n")
    lines = [
        [
            "written",
            f"{floor_in:.2f}",
            f"{spent_in:.2f}",
            f"{spent_in / count * 1e6:.0f}",
            f"{spent_in / floor_in:.1f}",
        ],
        [
            "read",
            f"{floor_out:.2f}",
            f"{spent_out:.2f}",
            f"{spent_out / count * 1e6:.0f}",
            f"{spent_out / floor_out:.1f}",
        ],
    ]
    print(table(["", "bare SQLite s", "store s", "µs each", "×"], lines))


if __name__ == "__main__":
    main()
