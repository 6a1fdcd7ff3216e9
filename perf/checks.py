"""A hundred thousand checks of every built-in type on replies that fit, next to the least that Python could do instead.

Run it with `python -m perf.checks [CHECKS]` (default 100000). The floor is `text.lower().split()`, for a
JSON check `json.loads` of the text.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from perf.harness import table
from pytest_tsuka.checks.base import Subject
from pytest_tsuka.conversation import Reply, ToolCall
from pytest_tsuka.suite.benchmark import Benchmark
from pytest_tsuka.suite.files import parse_benchmark

TEXT = "Dublin is the capital of Ireland, and yes, it lies on the sea. " * 6
JSON = json.dumps({"city": "Dublin", "people": [{"name": "Ada", "born": 1815}] * 5, "open": True})
CALL = ToolCall("get_weather", {"city": "Dublin", "days": 3}, '{"city": "Dublin", "days": 3}')
PERSON = {"type": "object", "required": ["name", "born"], "properties": {"born": {"type": "integer"}}}

CHECKS: list[tuple[str, list[dict[str, object]]]] = [
    ("text", [
        {"type": "contains", "value": "Ireland"}, {"type": "not_contains", "value": "Paris"},
        {"type": "regex", "value": r"\bcapital of \w+"}, {"type": "not_regex", "value": "sorry|cannot"},
        {"type": "min_words", "value": 5}, {"type": "first_word", "value": "Dublin"}, {"type": "not_empty"},
    ]),
    ("json", [
        {"type": "json_valid"}, {"type": "json_path_equals", "path": "city", "value": "Dublin"},
        {"type": "json_path_type", "path": "people", "value": "array"},
        {"type": "json_path_length", "path": "people", "value": 5},
        {"type": "json_path_regex", "path": "people[0].name", "value": "^A"},
        {"type": "json_schema", "value": {"type": "object", "properties": {"people": {"items": PERSON}}}},
    ]),
    ("tool calls", [
        {"type": "tool_called", "value": "get_weather"}, {"type": "tool_not_called", "value": "delete_all"},
        {"type": "tool_arg_equals", "arg": "city", "value": "Dublin"},
        {"type": "tool_arg_regex", "arg": "city", "value": "^Dub"},
    ]),
]  # fmt: skip


def microseconds(call: Callable[[], object], times: int) -> float:
    """Of one call, of the best of three rounds."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - start)
    return best / times * 1e6


def benchmark(checks: list[dict[str, object]]) -> Benchmark:
    tools = [{"type": "function", "function": {"name": name}} for name in ("get_weather", "delete_all")]
    data = {"name": "perf", "category": "json", "prompt": "x", "tools": tools, "checks": checks}
    return parse_benchmark(json.dumps(data).encode(), "perf")


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rows = []
    for kind, checks in CHECKS:
        made = benchmark(checks)
        text = JSON if kind == "json" else TEXT
        calls = (CALL,) if kind == "tool calls" else ()

        def judged(made: Benchmark = made, text: str = text, calls: tuple[ToolCall, ...] = calls) -> None:
            subject = Subject(Reply(text=text, raw_text=text, answer=text, tool_calls=calls), made.tools)
            for check in made.all_steps[0].checks:
                assert check.apply(subject).passed, check

        floor = (lambda text=text: json.loads(text)) if kind == "json" else (lambda text=text: text.lower().split())
        times = max(1, wanted // len(CHECKS) // len(checks))
        spent, least = microseconds(judged, times) / len(checks), microseconds(floor, times)
        rows.append([kind, str(len(checks)), f"{least:.2f}", f"{spent:.2f}", f"{spent / least:.1f}"])
    print(f"{wanted} checks\n")
    print(table(["checks on", "types", "floor µs", "µs a check", "×"], rows))


if __name__ == "__main__":
    main()
