"""What an item costs: one-turn items against the fake endpoint, next to floors that do part of the work.

Run it with `python -m perf.items [COUNT [LATENCY_MS [CONCURRENCY [ROUNDS]]]]` (default 1000 200 32 3); COUNT is
rounded to four efforts per file. The floors are the same requests by bare asyncio streams and by a bare httpx client,
and as many empty pytest items. The ideal is ceil(COUNT / CONCURRENCY) × LATENCY. CPU per item has the start-up (one
item) taken off.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path

from perf.harness import PYTEST, Command, Spent, empty_items, round_robin, suite, table
from tests.endpoint import Answer, FakeEndpoint, completion

BODY = '{"model": "m", "messages": [{"role": "user", "content": f"say item{n}"}], "temperature": 0}'

STREAMS = f"""
import asyncio, json, sys, urllib.parse
url, count, concurrency = urllib.parse.urlsplit(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
async def main():
    slots, idle = asyncio.Semaphore(concurrency), []
    async def one(n):
        async with slots:
            reader, writer = idle.pop() if idle else await asyncio.open_connection(url.hostname, url.port)
            body = json.dumps({BODY}).encode()
            head = "POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\ncontent-type: application/json\\r\\n"
            writer.write(f"{{head}}content-length: {{len(body)}}\\r\\n\\r\\n".encode() + body)
            answer = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().lower()
            json.loads(await reader.readexactly(int(answer.split("content-length:")[1].split()[0])))
            idle.append((reader, writer))
    await asyncio.gather(*(one(n) for n in range(count)))
asyncio.run(main())
"""

HTTPX = f"""
import asyncio, sys, httpx
url, count, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def main():
    slots = asyncio.Semaphore(concurrency)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60) as client:
        async def one(n):
            async with slots:
                (await client.post(url + "/chat/completions", json={BODY})).json()
        await asyncio.gather(*(one(n) for n in range(count)))
asyncio.run(main())
"""


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:]] + [1000, 200, 32, 3][len(sys.argv) - 1 :]
    count, latency, concurrency, rounds = numbers[:4]
    count -= count % 4
    with (
        tempfile.TemporaryDirectory() as name,
        FakeEndpoint(lambda _: Answer(json=completion("yes"), delay=latency / 1000)) as endpoint,
    ):
        folder = Path(name)
        one, many = suite(folder / "one", 1), suite(folder / "many", count // 4)
        options = ["--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", f"--tsuka-concurrency={concurrency}"]
        figures = round_robin(
            {
                "streams 1": Command([sys.executable, "-c", STREAMS, endpoint.url, "1", "1"], folder),
                "streams": Command([sys.executable, "-c", STREAMS, endpoint.url, str(count), str(concurrency)], folder),
                "httpx 1": Command([sys.executable, "-c", HTTPX, endpoint.url, "1", "1"], folder),
                "httpx": Command([sys.executable, "-c", HTTPX, endpoint.url, str(count), str(concurrency)], folder),
                "empty 1": Command([*PYTEST, "-p", "no:tsuka"], empty_items(folder / "empty", 1, 1)),
                "empty": Command([*PYTEST, "-p", "no:tsuka"], empty_items(folder / "empties", count // 4, 4)),
                "tsuka 1": Command([*PYTEST, *options, "--tsuka-effort=none"], one),
                "tsuka": Command([*PYTEST, *options], many),
            },
            rounds,
        )
    ideal = math.ceil(count / concurrency) * latency / 1000
    empty = _per_item(figures, "empty", count)

    def row(label: str, name: str) -> list[str]:
        per_item, wall = _per_item(figures, name, count), figures[name].wall
        of_ideal = f"{wall / ideal:.2f}" if ideal and name != "empty" else ""
        start = f"{figures[f'{name} 1'].wall:.2f}"
        return [label, start, f"{wall:.2f}", of_ideal, f"{per_item:.2f}", f"{per_item / empty:.2f}"]

    print(f"{count} items, {latency} ms, concurrency {concurrency}, {os.cpu_count()} cores, median of {rounds}\n")
    head = ["", "one item s", "all s", "× ideal", "CPU ms/item", "× empty item"]
    rows = [
        row("bare asyncio streams", "streams"),
        row("bare httpx", "httpx"),
        row("empty pytest items", "empty"),
        row("pytest-tsuka", "tsuka"),
    ]
    print(table(head, rows))


def _per_item(figures: dict[str, Spent], name: str, count: int) -> float:
    return (figures[name].cpu - figures[f"{name} 1"].cpu) / (count - 1) * 1000


if __name__ == "__main__":
    main()
