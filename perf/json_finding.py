"""Finding the JSON in ten thousand replies as models write them, next to `json.loads` and to json-repair.

Run it with `python -m perf.json_finding [REPLIES]` (default 10000). 41 % of the replies are clean JSON, 25 % are
fenced, 15 % are in prose, the others are broken in one of the ways that models break it. Right is what equals the data
that the reply was made from.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import json_repair

from perf.harness import table
from pytest_tsuka.text.json_find import FoundJson, find_json

Json = Any
BROKEN: tuple[Callable[[str], str], ...] = (
    lambda text: text.replace('"', "'"),
    lambda text: text.replace("}", ",}"),
    lambda text: text.replace('{"', "{", 1).replace('":', ":", 1),
    lambda text: text.replace("true", "True"),
    lambda text: text.rstrip("}"),
    lambda text: text.replace(", ", ", // a remark\n", 1),
)


def data(rng: random.Random) -> dict[str, Json]:
    words = ["Dublin", "a book", "seven", "élan", "x" * 40]
    return {
        "name": rng.choice(words),
        "count": rng.randint(0, 9999),
        "open": True,
        "tags": rng.sample(words, 2),
        "place": {"lat": rng.random(), "lon": rng.random()},
    }


def reply(rng: random.Random) -> tuple[str, Json]:
    made = data(rng)
    text = json.dumps(made, ensure_ascii=False)
    kind = rng.random()
    if kind < 0.41:
        return text, made
    if kind < 0.66:
        return f"```json\n{json.dumps(made, indent=2)}\n```", made
    if kind < 0.81:
        return f"Sure! Here is what you asked for: {text}\nTell me if {{anything}} is missing.", made
    return rng.choice(BROKEN)(text), made


def found(text: str) -> Json:
    result = find_json(text)
    return result.value if isinstance(result, FoundJson) else None


def strict(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return None


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(20261130)
    replies = [reply(rng) for _ in range(count)]
    rows, floor = [], 0.0
    for name, finder in (("json.loads", strict), ("json_repair.loads", json_repair.loads), ("find_json", found)):
        best, right = float("inf"), 0
        for _ in range(3):
            start = time.perf_counter()
            values = [finder(text) for text, _ in replies]
            best = min(best, time.perf_counter() - start)
            right = sum(value == made for value, (_, made) in zip(values, replies, strict=True))
        floor = floor or best
        rows.append([name, f"{best / count * 1e6:.1f}", f"{best / floor:.1f}", str(right)])
    print(table([f"{count} replies", "µs each", "×", "right"], rows))


if __name__ == "__main__":
    main()
