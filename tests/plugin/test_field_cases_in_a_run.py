"""The field cases of replies and checks once more, all the way: real files, a real server, a real pytest run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import FakeEndpoint, Received, completion
from tests.unit.test_field_cases import CASES, SPEC_DIFFERS

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]


def single(case: dict[str, Any]) -> dict[str, Any] | None:
    """The one reply, its checks and their expected outcomes, for the cases that are just that."""
    given, expected = case["input"], case["expected"]
    if given.get("lenient") or "one_of" in expected:
        return None
    message = given.get("message") or ({"role": "assistant", "content": given["output"]} if "output" in given else None)
    if message is None:
        return None
    checks, outcomes = given.get("checks"), expected.get("checks")
    if "json" in expected and expected["json_valid"]:
        checks = [*(checks or []), {"type": "json_path_equals", "path": "", "value": expected["json"]}]
        outcomes = [*(outcomes or []), True]
    elif "json_valid" in expected and not expected["json_valid"]:
        checks = [*(checks or []), {"type": "json_valid"}]
        outcomes = [*(outcomes or []), False]
    if not checks or not outcomes:
        return None
    return {"message": message, "checks": checks, "outcomes": SPEC_DIFFERS.get(case["id"], outcomes), **_more(given)}


def _more(given: dict[str, Any]) -> dict[str, Any]:
    tools = [{"type": "function", "function": tool} for tool in given.get("tools", ())]
    return {"tools": tools, "finish": given.get("finish_reason", "stop")}


USABLE = {case_id: made for case_id, case in CASES.items() if (made := single(case))}


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_field_cases(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, how: tuple[str, ...]) -> None:
    """Cases of each kind a, b and c come to the same outcomes through everything in between."""
    assert {case_id[0] for case_id in USABLE} == {"A", "B", "C"}
    assert len(USABLE) >= 40
    suite(
        **{
            case_id: {
                "name": case_id,
                "category": {"A": "json", "B": "toolCalling", "C": "instruction"}[case_id[0]],
                "prompt": case_id,
                "checks": case["checks"],
                **({"tools": case["tools"]} if case["tools"] else {}),
            }
            for case_id, case in USABLE.items()
        }
    )

    def script(received: Received) -> Any:
        case = USABLE[received.prompt]
        return completion(message=case["message"], finish=case["finish"])

    run(serve(script), "--tsuka-effort=none", "--tsuka-json=r.json", "-W", "ignore", *how)
    verdicts = json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))["verdicts"]
    found = {v["benchmark"]: [check["passed"] for check in v["checks"]] for v in verdicts}
    assert found == {case_id: case["outcomes"] for case_id, case in USABLE.items()}
