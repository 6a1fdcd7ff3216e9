"""An endpoint that does everything wrong now and then: nothing may be lost, and no score may be wrong.

Run it with `python -m perf.chaos [SEEDS [ITEMS [CONCURRENCY]]]` (default 10 1000 32). Of the requests 10 % are
answered 429, 5 % 500, 2 % are reset, 2 % stall until the client gives up, 1 % get garbage; the others get the
answer that belongs to their item, right or wrong. Time is given as a multiple of the same run without faults.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from perf.harness import PYTEST, Command, measured, suite, table
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error

GARBAGE = (b"\x1f\x8b\x08\x00\xff", b"{}", b'{"choices": [{"mess', b"<html>Bad Gateway</html>", b"", b"[1, 2]", b"null")
STALL = 2.0
"""Seconds after which the client gives a stalled request up."""


def is_right(prompt: str) -> bool:
    """Which items get the right answer: two of three."""
    return int(prompt.removeprefix("say item")) % 3 > 0


class Chaos:
    """Answers by chance, from a seed; counts what it did."""

    def __init__(self, seed: int, *, faulty: bool) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._faulty = faulty
        self.faults = 0

    def __call__(self, received: Received) -> Answer:
        with self._lock:
            chance, pick = self._random.random(), self._random.randrange(len(GARBAGE))
            if self._faulty and chance < 0.20:
                self.faults += 1
                return self._fault(chance, pick)
        return Answer(json=completion("yes" if is_right(received.prompt) else "no"), delay=0.02)

    @staticmethod
    def _fault(chance: float, pick: int) -> Answer:
        if chance < 0.10:
            return error(429, "too many requests")
        if chance < 0.15:
            return error(500, "internal error")
        if chance < 0.17:
            return Answer(reset=True)
        if chance < 0.19:
            return Answer(hang=True)
        return Answer(body=GARBAGE[pick])


def run(folder: Path, seed: int, concurrency: int, *, faulty: bool) -> tuple[float, int, Any]:
    """Wall seconds, faults, and what the run wrote."""
    chaos = Chaos(seed, faulty=faulty)
    with FakeEndpoint(chaos) as endpoint:
        options = [f"--tsuka-base-url={endpoint.url}", f"--tsuka-concurrency={concurrency}", f"--tsuka-timeout={STALL}"]
        rest = ["--tsuka-effort=none", "--tsuka-json=r.json", "--tb=no"]
        command = Command([*PYTEST, "--tsuka-model=m", *options, *rest], folder, frozenset({1}))
        spent = measured(command)
    return spent.wall, chaos.faults, json.loads((folder / "r.json").read_text(encoding="utf-8"))


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:]] + [10, 1000, 32][len(sys.argv) - 1 :]
    seeds, count, concurrency = numbers[:3]
    rows, bad = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = suite(Path(name) / "chaos", count)
        calm, _, _ = run(folder, 0, concurrency, faulty=False)
        for seed in range(seeds):
            wall, faults, data = run(folder, seed, concurrency, faulty=True)
            verdicts = data["verdicts"]
            lost = count - len(verdicts)
            errors = sum(v["score"] is None for v in verdicts)
            prompts = [(v["score"], "say " + v["benchmark"]) for v in verdicts if v["score"] is not None]
            wrong = sum(score != is_right(prompt) for score, prompt in prompts)
            bad += lost + errors + wrong
            rows.append([str(seed), str(faults), str(lost), str(wrong), str(errors), f"{wall / calm:.1f}"])
    print(f"{count} items, {concurrency} at once; without faults {calm:.1f} s\n")
    print(table(["seed", "faults", "lost", "wrong", "errors", "× calm"], rows))
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
