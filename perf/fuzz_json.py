"""Fuzzes the JSON finder with hostile replies and reports inputs, time and the worst case.

Run it with `python -m perf.fuzz_json [SECONDS]`. Every input is made of fragments that open, close, quote and escape,
up to 1 MiB; the figure that matters is the time per character of the slowest, against `json.loads` on valid JSON of
the same size measured in the same run.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time

from pytest_tsuka.text.json_find import find_json

FRAGMENTS = [
    *'{}[]",:\\`\n', '{"a":', '{"a": 1}', "[1, 2]", '"x"', "{a:1}", "{'a': 'b'}", "```json\n", "```\n", "// c\n",
    "/* c */", "NaN", "1e999", "\\u12", '\\"', "null", "true", "prose and {user} ", "See [1]. ", '{"k": "v"} ',
    "[[[[", "}}}}", '{"":', "\n[", "\n{",
]  # fmt: skip


LONGEST = 30
"""Seconds after which an input counts as a hang."""


def reply(generator: random.Random) -> str:
    """One hostile reply: a few fragments repeated, or many mixed."""
    if generator.random() < 0.5:
        unit = "".join(generator.choices(FRAGMENTS, k=generator.randint(1, 4)))
        size = generator.choice([1 << 10, 1 << 14, 1 << 17, 1 << 20])
        return unit * max(1, size // len(unit))
    return "".join(generator.choices(FRAGMENTS, k=generator.choice([5, 50, 500, 20_000])))


def main() -> None:
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    generator = random.Random(20261130)
    worst: tuple[float, str, int] = (0.0, "", 0)
    count = characters = 0
    begun = time.perf_counter()
    while time.perf_counter() - begun < budget:
        text = reply(generator)
        signal.alarm(LONGEST)  # a hang ends the program
        start = time.process_time()
        find_json(text, truncated=generator.random() < 0.2)
        seconds = time.process_time() - start
        count += 1
        characters += len(text)
        if seconds > worst[0]:
            worst = (seconds, text[:40], len(text))
    valid = json.dumps([{"key": "value", "n": 1}] * 42_000)
    start = time.process_time()
    json.loads(valid)
    floor = time.process_time() - start
    print(f"{count} inputs, {characters / 1e6:.1f} million characters, {time.perf_counter() - begun:.0f} s, no crash")
    print(f"worst: {worst[0]:.2f} s for {worst[2]} characters beginning with {worst[1]!r}")
    ratio = worst[0] / worst[2] / (floor / len(valid))
    print(f"floor: json.loads of {len(valid)} valid characters {floor:.3f} s; worst per character × {ratio:.0f}")


if __name__ == "__main__":
    main()
