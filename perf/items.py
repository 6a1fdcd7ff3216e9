"""What an item costs: one-turn items against the fake endpoint, next to a bare httpx client doing the same requests.

Run it with `python -m perf.items [COUNT [LATENCY_MS [CONCURRENCY]]]` (default 1000 200 32). Printed are wall time
against the ideal, ceil(COUNT / CONCURRENCY) × LATENCY, and CPU per item against the bare client's, start-up taken off.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.endpoint import Answer, FakeEndpoint, completion

BARE = """
import asyncio, sys, httpx
url, count, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def main():
    slots = asyncio.Semaphore(concurrency)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60) as client:
        async def one(n):
            async with slots:
                body = {"model": "m", "messages": [{"role": "user", "content": f"say item{n}"}], "temperature": 0}
                (await client.post(url + "/chat/completions", json=body)).json()
        await asyncio.gather(*(one(n) for n in range(count)))
asyncio.run(main())
"""


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """(wall seconds, CPU seconds) of a command that must end with 0."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:]] + [1000, 200, 32][len(sys.argv) - 1 :]
    count, latency, concurrency = numbers[:3]
    ideal = math.ceil(count / concurrency) * latency / 1000
    with (
        tempfile.TemporaryDirectory() as name,
        FakeEndpoint(lambda r: Answer(json=completion("yes"), delay=latency / 1000)) as endpoint,
    ):
        folder = Path(name)
        (folder / "benchmarks").mkdir()
        for n in range(count):
            check = {"type": "contains", "value": "yes"}
            benchmark = {"name": f"item{n}", "category": "json", "prompt": f"say item{n}", "checks": [check]}
            (folder / "benchmarks" / f"{n:05}.json").write_text(json.dumps(benchmark))
        lean = ["-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:timeout", "-p", "no:cacheprovider", "-q"]
        ours = [sys.executable, "-m", "pytest", *lean, "--tsuka-model=m", f"--tsuka-base-url={endpoint.url}"]
        ours += ["--tsuka-effort=none", f"--tsuka-concurrency={concurrency}"]
        one = measured([*ours, "-k", "item0"], folder)
        wall, cpu = measured(ours, folder)
        bare_one = measured([sys.executable, "-c", BARE, endpoint.url, "1", "1"], folder)
        bare_wall, bare_cpu = measured([sys.executable, "-c", BARE, endpoint.url, str(count), str(concurrency)], folder)
    per_item, bare_per_item = (cpu - one[1]) / count * 1000, (bare_cpu - bare_one[1]) / count * 1000
    print(f"{count} items, {latency} ms, concurrency {concurrency}, {os.cpu_count()} cores")
    print(f"start-up with one item     {one[0]:6.2f} s wall {one[1]:6.2f} s CPU")
    print(f"bare httpx                 {bare_wall:6.2f} s wall {bare_per_item:6.2f} ms CPU per item")
    ratio = f"   × {wall / ideal:.2f} of the ideal {ideal:.2f} s" if ideal else ""
    print(f"pytest-tsuka               {wall:6.2f} s wall {per_item:6.2f} ms CPU per item{ratio}")


if __name__ == "__main__":
    main()
