"""The HTML page of a large run: how long it takes to write, how large it is, next to the result file alone.

Run it with `python -m perf.page [ITEMS]` (default 2000). The floor is writing the same document as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pytest_tsuka.report.html import html_page


def document(items: int) -> dict[str, Any]:
    """A run of so many items with answers of a thousand characters."""
    turn = {"sent": [{"role": "user", "content": "question " * 30}],
            "reply": {"text": "answer " * 150, "reasoning": "thought " * 60, "tool_calls": []}}  # fmt: skip
    check = {"step": 0, "type": "contains", "operands": {"value": "x"}, "weight": 1, "passed": False, "reason": "no x"}
    verdicts = [
        {"benchmark": f"item_{n}", "file": "f.json", "description": "", "category": "json", "weight": 1, "model": "m",
         "effort": "low", "outcome": "failed", "score": 0.5, "error": None, "notes": [], "checks": [check] * 4,
         "conversation": [turn]} for n in range(items)
    ]  # fmt: skip
    return {"finished": "2026-01-01T00:00:00Z", "testsHash": "abc", "interrupted": False, "generator": "perf",
            "models": [], "tiers": {}, "gate": None, "verdicts": verdicts, "scenarios": []}  # fmt: skip


def main() -> None:
    made = document(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
    start = time.perf_counter()
    text = json.dumps(made, indent=1)
    floor = time.perf_counter() - start
    html_page(document(1))  # templates read once
    start = time.perf_counter()
    page = html_page(made)
    spent = time.perf_counter() - start
    target = Path(tempfile.gettempdir()) / "tsuka-perf.html"
    target.write_text(page, encoding="utf-8")
    print(f"result file {len(text) / 1e6:5.2f} MB in {floor:5.2f} s")
    print(f"page        {len(page.encode()) / 1e6:5.2f} MB in {spent:5.2f} s   × {spent / floor:.1f}   {target}")


if __name__ == "__main__":
    main()
