"""An endpoint that rejects one request in ten (429, Retry-After 1 s): waiting inside a slot or giving it back.

Run it with `python -m perf.rejections [ITEMS [LATENCY_MS [CONCURRENCY]]]` (default 200 200 32). The floor is a bare
httpx client that sleeps where it is, as most clients do; the least is the latency of all requests over the slots, and
one Retry-After.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import threading
from pathlib import Path

from perf.harness import PYTEST, Command, measured, suite, table
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error

BARE = """
import asyncio, sys, httpx
url, count, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def main():
    slots = asyncio.Semaphore(concurrency)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60) as client:
        async def one(n):
            async with slots:
                body = {"model": "m", "messages": [{"role": "user", "content": f"say item{n}"}]}
                while (r := await client.post(url + "/chat/completions", json=body)).status_code == 429:
                    await asyncio.sleep(float(r.headers["retry-after"]))
        await asyncio.gather(*(one(n) for n in range(count)))
asyncio.run(main())
"""


class Rejecting:
    """Rejects one request in ten at random; counts what it works on at once and for how long."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._random = random.Random(20261130)
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Answer:
        with self._lock:
            if self._random.random() < 0.1:
                return error(429, "slow down", {"retry-after": "1"})
        return Answer(json=completion("yes"), delay=self._latency)


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:]] + [200, 200, 32][len(sys.argv) - 1 :]
    count, latency, concurrency = numbers[:3]
    least = math.ceil(count / concurrency) * latency / 1000 + 1
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one, many = suite(folder / "one", 1), suite(folder / "many", count // 4)
        for label in ("bare httpx, waits in its slot", "pytest-tsuka"):
            with FakeEndpoint(Rejecting(latency / 1000)) as endpoint:
                if label == "pytest-tsuka":
                    options = [f"--tsuka-base-url={endpoint.url}", f"--tsuka-concurrency={concurrency}"]
                    start = measured(Command([*PYTEST, "--tsuka-model=m", *options, "--tsuka-effort=none"], one))
                    spent = measured(Command([*PYTEST, "--tsuka-model=m", *options], many))
                else:
                    start = measured(Command([sys.executable, "-c", BARE, endpoint.url, "1", "1"], folder))
                    spent = measured(
                        Command([sys.executable, "-c", BARE, endpoint.url, str(count), str(concurrency)], folder)
                    )
                seconds = spent.wall - start.wall + latency / 1000
                row = [label, f"{spent.wall:.2f}", f"{seconds:.2f}", f"{seconds / least:.2f}"]
                rows.append([*row, str(endpoint.most_in_flight)])
    print(f"{count} items, {latency} ms, concurrency {concurrency}, least {least:.2f} s\n")
    print(table(["", "all s", "without start-up s", "× least", "most at once"], rows))


if __name__ == "__main__":
    main()
