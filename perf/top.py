"""Where a run of one-turn items spends its processor time: the ten functions that take most of it, and the packages.

Run it with `python -m perf.top [ITEMS [LATENCY_MS]]` (default 1000 200), after `pip install py-spy`. Samples are taken
of whichever thread holds the interpreter's lock; the file it names is for flamegraph.pl or speedscope.app.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from perf.harness import PYTEST, suite, table
from tests.endpoint import Answer, FakeEndpoint, completion

PACKAGES = ("pytest_tsuka", "_pytest", "pluggy", "httpx", "h11", "asyncio", "pydantic", "json", "sqlite3", "pathlib")


def sampled(items: int, latency: float, target: Path) -> list[tuple[list[str], int]]:
    """Stacks, outermost first, with how often each was seen."""
    with (
        tempfile.TemporaryDirectory() as name,
        FakeEndpoint(lambda _: Answer(json=completion("yes"), delay=latency)) as endpoint,
    ):
        folder = suite(Path(name) / "many", items // 4)
        command = ["py-spy", "record", "--gil", "--rate=200", "--format=raw", f"--output={target}", "--"]
        command += [*PYTEST, "--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "--tsuka-concurrency=32"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(command, cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL)
    lines = [line.rpartition(" ") for line in target.read_text().splitlines()]
    return [(stack.split(";"), int(count)) for stack, _, count in lines if stack]


def function(frame: str) -> str:
    """`name (package/file.py)` of a frame with its path and line."""
    name, _, place = frame.partition(" (")
    place = re.sub(r"^.*(?:site-packages|python3\\.\\d+)/", "", place.rstrip(")"))
    return f"{name} ({re.sub(r':[0-9]+$', '', re.sub('^.*/(?=pytest_tsuka/)', '', place))})"


def package(stack: list[str]) -> str:
    """The innermost known package of a stack."""
    for frame in reversed(stack):
        for name in PACKAGES:
            if f"/{name}/" in frame or f"({name}/" in frame or frame.endswith(f"{name}.py)"):
                return name
    return "other"


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    latency = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    target = Path(tempfile.gettempdir()) / "tsuka-perf.raw"
    stacks = sampled(items, latency / 1000, target)
    total = sum(count for _, count in stacks)
    own: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    for stack, count in stacks:
        own[function(stack[-1])] += count
        packages[package(stack)] += count
    print(f"{items} items at {latency} ms, {total} samples, {target}\n")
    for head, counted, most in (("function", own, 10), ("package", packages, len(PACKAGES) + 1)):
        print(
            table([head, "own time"], [[name, f"{n / total:.1%}"] for name, n in counted.most_common(most)]), end="\n\n"
        )


if __name__ == "__main__":
    main()
