"""What becomes of an item: passed, failed, truncated, refused, error; and what of a model: tier, profile, gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TRIO, YES, one_check
from tests.endpoint import Answer, FakeEndpoint, Received, call, completion, error
from tests.ideal import benchmark_of, ideal

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]
Profiles = Callable[[], Any]
FAST = ("--tsuka-retries=1", "--tsuka-effort=none")


def results(pytester: pytest.Pytester, name: str = "r.json") -> Any:
    return json.loads((pytester.path / name).read_text(encoding="utf-8"))


def test_a_perfect_model(
    pytester: pytest.Pytester, run: Run, serve: Serve, profiles: Profiles, mode: tuple[str, ...]
) -> None:
    """The standard suite, ideal answers: everything passes, tier large, four profiles, same in all three modes."""
    result = run(serve(ideal), "--tsuka-json=r.json", *mode)
    result.assert_outcomes(passed=28)
    result.stdout.fnmatch_lines(
        ["none*1.00  1.00*1.00  large*", "recommended effort: none (the cheapest level with tier large;*"]
    )
    data = profiles()
    assert data["recommendations"] == {"m": "none"}
    assert set(data["profiles"]) == {f"m@{e}" for e in ("none", "low", "medium", "xhigh")}
    profile = data["profiles"]["m@low"]
    assert profile["scores"] == {"instruction": 1.0, "json": 1.0, "toolCalling": 1.0}
    assert (profile["tier"], profile["benchmarkVersion"], profile["reasoningEffort"]) == ("large", 5, "low")
    assert (profile["requests"], profile["completionTokens"], profile["avgCompletionTokens"]) == (9, 36, 4.0)
    assert profile["parameters"] == {"temperature": 0, "effortStyle": "reasoning_effort"}
    assert profile["jsonClean"] == 1.0
    assert len(results(pytester)["verdicts"]) == 28
    assert {v["outcome"] for v in results(pytester)["verdicts"]} == {"passed"}


def test_two_workers_equal_one_process(pytester: pytest.Pytester, run: Run, serve: Serve) -> None:
    """E27: but for timings, the verdicts are the same to the byte; they come from reports, not from process state."""

    def script(received: Received) -> Any:
        name, _turn = benchmark_of(received)
        return "hm" if name in ("json_annidato", "frase_8_parole") and received.effort != "low" else ideal(received)

    def without_times(data: Any) -> Any:
        for verdict in data["verdicts"]:
            for key in ("timing", "latencies"):
                verdict.pop(key)
            for turn in verdict["conversation"]:
                turn.pop("timing", None)
        for effort in data["models"][0]["efforts"]:
            for key in ("tokensPerSecond", "tokensPerSecondBasis", "throughput", "seconds", "requestSeconds"):
                effort.pop(key)
        return data["verdicts"], data["models"]

    endpoint = serve(script)
    run(endpoint, "--tsuka-json=one.json").assert_outcomes(passed=22, failed=6)
    run(endpoint, "--tsuka-json=two.json", "-n", "2").assert_outcomes(passed=22, failed=6)
    assert without_times(results(pytester, "one.json")) == without_times(results(pytester, "two.json"))


def test_every_outcome(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """Each kind of end is told apart, in the terminal and in the result file. D17: a thinking budget used up is one."""
    suite(
        a=one_check("right"),
        b=one_check("wrong"),
        c=one_check("cut"),
        d=one_check("broken"),
        e=one_check("silent", checks=[{"type": "not_contains", "value": "x"}, {**YES, "weight": 3}]),
    )

    def script(received: Received) -> Any:
        if received.effort == "xhigh":
            return error(400, "reasoning_effort: value 'xhigh' is not accepted here, use low", code="unsupported_value")
        match received.prompt.split()[-1]:
            case "right":
                return "yes"
            case "wrong":
                return "no"
            case "cut":
                usage = {
                    "prompt_tokens": 9,
                    "completion_tokens": 256,
                    "completion_tokens_details": {"reasoning_tokens": 255},
                }
                return completion("", finish="length", usage=usage)
            case "silent":
                return completion("")
        return error(500, "boom")

    result = run(serve(script), "--tsuka-effort=low,xhigh", "--tsuka-retries=0", "--tsuka-json=r.json", "-rA", *mode)
    result.assert_outcomes(passed=1, failed=3, errors=1, skipped=5)
    result.stdout.fnmatch_lines_random(
        [
            "*FAILED benchmarks/b.json::wrong?low? - score 0.00 < 1.00 (contains)*",
            "*expected “yes” in the answer, found “no”*",
            "*truncated, score 0.00 < 1.00 (contains)*",
            "*note: truncated: 255 of 256 completion tokens were reasoning*",
            "*m at low: HTTP 500: boom*",
            "*effort 'xhigh' refused: HTTP 400: reasoning_effort: value 'xhigh' is not accepted here, use low*",
            "*nothing was said: an empty reply earns no point for what it lacks*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    found = {(v["benchmark"], v["effort"]): v for v in results(pytester)["verdicts"]}
    assert {k[0]: v["outcome"] for k, v in found.items() if k[1] == "low"} == {
        "right": "passed",
        "wrong": "failed",
        "cut": "truncated",
        "broken": "error",
        "silent": "failed",
    }
    assert {v["outcome"] for k, v in found.items() if k[1] == "xhigh"} == {"refused"}
    assert found["broken", "low"]["score"] is None
    assert found["broken", "low"]["error"] == "m at low: HTTP 500: boom"
    wrong = found["wrong", "low"]
    assert wrong["checks"] == [
        {
            "step": 0,
            "type": "contains",
            "operands": {"value": "yes"},
            "weight": 1.0,
            "passed": False,
            "reason": "expected “yes” in the answer, found “no”",
        }
    ]
    assert wrong["conversation"][0]["sent"] == [{"role": "user", "content": "say wrong"}]
    assert wrong["conversation"][0]["reply"]["text"] == "no"
    assert wrong["usage"] == {"prompt_tokens": 5, "completion_tokens": 4, "reasoning_tokens": None}
    assert wrong["timing"]["seconds"] > 0


def test_a_refused_level_leaves_the_others(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """No profile for it, no stop for the rest; the endpoint is asked once, not once per item."""
    suite(**TRIO)

    def script(received: Received) -> Any:
        return (
            error(400, "unsupported reasoning_effort", param="reasoning_effort")
            if received.effort == "xhigh"
            else "yes"
        )

    endpoint = serve(script)
    run(endpoint, "--tsuka-concurrency=1").assert_outcomes(passed=9, skipped=3)
    assert set(profiles()["profiles"]) == {"m@none", "m@low", "m@medium"}
    assert profiles()["recommendations"] == {"m": "none"}
    assert sum(r.effort == "xhigh" for r in endpoint.requests) == 1


def test_a_model_without_levels(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """Every level refused: the way to measure it is said, and works; nothing about effort is sent then."""
    suite(**TRIO)
    endpoint = serve(lambda r: error(400, "unsupported reasoning_effort") if r.effort else "yes")
    result = run(endpoint)
    result.assert_outcomes(skipped=12)
    result.stdout.fnmatch_lines(["every effort level was refused: *--tsuka-effort=none --tsuka-effort-style=off"])
    run(endpoint, "--tsuka-effort=none", "--tsuka-effort-style=off").assert_outcomes(passed=3)
    assert profiles()["profiles"]["m@none"]["parameters"] == {"temperature": 0, "effortStyle": "off"}


def test_an_error_is_never_a_score(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """D31: two scored, one error: shown, no tier, nothing written, exit status not zero."""
    suite(**TRIO)
    result = run(serve(lambda r: error(500, "down") if "tools" in r.prompt else "yes"), *FAST, "--tsuka-json=r.json")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["none  * no tier *", "none: no tier: 1 could not be measured (tools)"])
    assert profiles() is None
    assert result.ret == 1
    assert results(pytester)["models"][0]["efforts"][0]["scores"] == {
        "instruction": 1,
        "json": 1,
        "toolCalling": None,
    }


@pytest.mark.parametrize("part", [("-k", "words"), ("benchmarks/10_i.json",), ("-x",)])
def test_no_tier_from_a_part(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, pytester: pytest.Pytester, part: tuple[str, ...]
) -> None:
    """-k, paths and -x leave an earlier profile as it was and say what is missing."""
    suite(**TRIO)
    before = '{"profiles": {"m@none": {"tier": "large", "mine": 1}}, "recommendations": {"m": "none"}}'
    (pytester.path / "models_profile.json").write_text(before)
    result = run(serve(lambda r: "no"), "--tsuka-effort=none", *part)
    result.stdout.fnmatch_lines(["none: no tier: 2 of 3 benchmarks were not run"])
    assert (pytester.path / "models_profile.json").read_text() == before


def test_only_complete_efforts_are_written(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """One level fails: the others are written, and the recommendation of an incomplete sweep is taken out."""
    suite(**TRIO)
    broken: list[str] = []
    endpoint = serve(lambda r: error(500, "x") if r.effort in broken else "yes")
    run(endpoint, "--tsuka-retries=0")
    assert profiles()["recommendations"] == {"m": "none"}
    broken.append("low")
    run(endpoint, "--tsuka-retries=0")
    assert set(profiles()["profiles"]) == {"m@none", "m@low", "m@medium", "m@xhigh"}
    assert profiles()["recommendations"] == {}


def test_a_category_without_a_benchmark(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """No tier, never tier small."""
    suite(a=one_check("words"), b=one_check("data", "json"))
    result = run(serve(lambda r: "yes"), *FAST)
    result.stdout.fnmatch_lines(["none: no tier: the suite has no toolCalling benchmark"])
    assert profiles() is None


def test_recommendation_is_the_cheapest_best(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """Tier large from medium on: medium it is, with the runner-up's tokens and time."""
    suite(**TRIO)
    result = run(
        serve(
            lambda r: completion(
                "yes" if r.effort in ("medium", "xhigh") else "no", usage={"completion_tokens": len(r.effort)}
            )
        )
    )
    result.stdout.fnmatch_lines(
        [
            "recommended effort: medium (the cheapest level with tier large; runner-up xhigh: 6 tokens per reply against 5,*"
        ]
    )
    assert profiles()["recommendations"] == {"m": "medium"}


def test_effort_without_effect(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """Reasoning nowhere: said, and kept in the profile. Reasoning that differs: honoured."""
    suite(**TRIO)
    result = run(serve(lambda r: "yes"))
    result.stdout.fnmatch_lines(
        ["effort had no effect at none, low, medium, xhigh: no reasoning was seen at any level"]
    )
    assert {p["effortHonoured"] for p in profiles()["profiles"].values()} == {False}

    def thinking(received: Received) -> Any:
        text = "yes, plainly" if received.effort in ("none", "low") else f"yes {received.effort}"
        tokens = {"none": 0, "low": 3, "medium": 9, "xhigh": 20}[received.effort]
        return completion(
            text, usage={"completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": tokens}}
        )

    result = run(serve(thinking))
    result.stdout.fnmatch_lines(["effort had no effect at none, low: same replies as the level beside it"])
    assert {k: p["effortHonoured"] for k, p in profiles()["profiles"].items()} == {
        "m@none": False,
        "m@low": False,
        "m@medium": True,
        "m@xhigh": True,
    }


def test_gate_met_with_partial_items(suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """A failed check does not fail the run when the tier is reached: PARTIAL, exit status 0."""
    suite(
        **{"10_i": TRIO["10_i"], "30_t": TRIO["30_t"]},
        b=one_check("half", "json", checks=[YES, {"type": "json_valid"}]),
    )
    result = run(serve(lambda r: "yes"), *FAST, "--tsuka-fail-under=medium", "-v", *mode)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2, "partial": 1}
    result.stdout.fnmatch_lines(["*PARTIAL 0.50*", "gate met: medium"])


def test_gate_not_met(suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester, mode: tuple[str, ...]) -> None:
    """Exit status 1, by how much, and the smallest set of checks that would flip it."""
    suite(
        **TRIO,
        t2=one_check(
            "more",
            "toolCalling",
            weight=3,
            checks=[{**YES, "weight": 2}, {"type": "tool_called", "value": "x"}],
        ),
    )
    result = run(
        serve(lambda r: "no" if "more" in r.prompt else "yes"),
        *FAST,
        "--tsuka-fail-under=medium",
        "--junitxml=r.xml",
        *mode,
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "gate not met (medium): m at none: tier small < medium",
            "*toolCalling misses by 0.350*",
            "*1 check would reach medium:*",
            "*more: contains value='yes' (+0.500 toolCalling)*",
        ]
    )
    xml = (pytester.path / "r.xml").read_text(encoding="utf-8")
    assert '<property name="tsuka.gate" value="failed"' in xml


def test_gate_on_scores_and_at_an_effort(suite: Suite, run: Run, serve: Serve) -> None:
    """CATEGORY=SCORE, several requirements, and another effort than the recommended one."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes" if r.effort == "none" else "no")
    assert run(endpoint, "--tsuka-fail-under=json=1", "--tsuka-fail-under=large").ret == 0
    result = run(endpoint, "--tsuka-fail-under=json=0.5", "--tsuka-gate-effort=low")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["gate not met (json=0.5): m at low: json 0.00 < 0.5"])


def test_gate_without_a_tier_fails(suite: Suite, run: Run, serve: Serve) -> None:
    """What could not be measured does not pass a gate."""
    suite(**TRIO)
    result = run(serve(lambda r: "yes"), *FAST, "--tsuka-fail-under=small", "-k", "words")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["gate not met (small): m: no tier", "*none: 2 of 3 benchmarks were not run*"])


def test_several_models(suite: Suite, run: Run, serve: Serve, profiles: Profiles, pytester: pytest.Pytester) -> None:
    """A table, profiles and a gate line for each; the gate fails for the one that misses it."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes" if r.body["model"] == "m" else "no")
    result = run(
        endpoint,
        "--tsuka-model=weak/one",
        "--tsuka-effort=none",
        "--tsuka-fail-under=large",
        "--junitxml=r.xml",
    )
    result.stdout.fnmatch_lines(
        ["*tsuka: m*", "*tsuka: weak/one*", "gate not met (large): weak/one at none: tier small < large"]
    )
    assert {k: p["tier"] for k, p in profiles()["profiles"].items()} == {
        "m@none": "large",
        "weak/one@none": "small",
    }
    assert 'name="tsuka.weak/one.tier" value="small"' in (pytester.path / "r.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("args", [(), ("-n", "2")])
def test_all_models_of_an_endpoint(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, args: tuple[str, ...]
) -> None:
    """`all` asks for the list once; embedding models and the like are left out."""
    suite(**TRIO)
    listed = {
        "data": [
            {"id": "chat-b"},
            {"id": "text-embedding-3"},
            {"id": "a:1"},
            {"id": "x", "type": "embeddings"},
        ]
    }
    endpoint = serve(lambda r: Answer(json=listed) if r.method == "GET" else "yes")
    run(endpoint, "--tsuka-effort=none", *args, model="all").assert_outcomes(passed=6)
    assert set(profiles()["profiles"]) == {"a:1@none", "chat-b@none"}
    assert sum(r.method == "GET" for r in endpoint.requests) == 1


def test_all_models_without_an_endpoint(pytester: pytest.Pytester) -> None:
    """One usage error with the address and the cause."""
    result = pytester.runpytest_inprocess("--tsuka-model=all", "--tsuka-base-url=http://127.0.0.1:9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tsuka-model=all: http://127.0.0.1:9/v1: the list of models cannot be read*"])


def test_endpoint_down_is_one_line_per_item(run: Run, pytester: pytest.Pytester, mode: tuple[str, ...]) -> None:
    """No server: every item an error with the address and a question, soon, and no traceback."""
    from tests.conftest import LEAN

    args = (
        *LEAN,
        "--no-tsuka-scenarios",
        "--tsuka-model=m",
        "--tsuka-base-url=http://127.0.0.1:9",
        "--tsuka-retries=1",
        *mode,
    )
    result = pytester.runpytest_subprocess(*args, timeout=60)
    result.assert_outcomes(errors=28)
    lines = [line for line in result.outlines if "cannot connect" in line and not line.startswith("ERROR")]
    assert len(lines) == 28
    assert all(line.startswith("m at ") and "http://127.0.0.1:9/v1: cannot connect (" in line for line in lines)
    assert all("is the server running?" in line for line in lines)
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_item_limit_names_the_attempts(suite: Suite, run: Run, serve: Serve) -> None:
    """D19: an item costs at most its limit, and the report says how often it was tried and what came of it."""
    suite(**TRIO)
    slow = error(503, "busy", {"retry-after": "0.3"})
    result = run(serve(lambda r: slow), "--tsuka-effort=none", "--tsuka-item-timeout=1", "--tsuka-retries=50")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "m at none: no result within the item limit of 1 s (--tsuka-item-timeout) after * attempts, the last: HTTP 503: busy"
        ]
    )


def test_repeats(suite: Suite, run: Run, serve: Serve, profiles: Profiles, pytester: pytest.Pytester) -> None:
    """N conversations per item, mean scores, intervals, stability, a borderline tier, the gate on its lower bound."""
    suite(**TRIO)
    seen: dict[str, int] = {}

    def script(received: Received) -> Any:
        seen[received.prompt] = seen.get(received.prompt, 0) + 1
        wrong = "tools" in received.prompt and seen[received.prompt] % 4 == 0
        return "no" if wrong else "yes"

    args = (*FAST, "--tsuka-repeats=8", "--tsuka-json=r.json", "--tsuka-concurrency=1")
    result = run(serve(script), *args, "--tsuka-fail-under=medium")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "none * 0.75  medium (borderline)*",
            "none: instruction 1.00 *toolCalling 0.75 ?*, *? runs 0.00–1.00; 0% of 8 runs are medium; tier * at the lower bound*",
        ]
    )
    profile = profiles()["profiles"]["m@none"]
    assert (profile["repeats"], profile["tierStability"], profile["scores"]["toolCalling"]) == (8, 0.0, 0.75)
    (tools,) = [v for v in results(pytester)["verdicts"] if v["benchmark"] == "tools"]
    assert [run["score"] for run in tools["runs"]].count(0.0) == 2
    seen.clear()
    result = run(serve(script), *args, "--tsuka-fail-under=medium", "--tsuka-gate-on=lower")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["gate not met (medium): m at none: tier small at the lower bound < medium"])


def test_text_calls_are_accepted_on_request(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """Off: a call written as text is none, and the failure says so. On: it counts, and the profile records it."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    suite(
        a=TRIO["10_i"],
        b=TRIO["20_j"],
        c=one_check("tools", "toolCalling", tools=[tool], checks=[{"type": "tool_called", "value": "f"}]),
    )
    endpoint = serve(lambda r: '<tool_call>{"name": "f", "arguments": {}}</tool_call> yes')
    result = run(endpoint, *FAST)
    result.stdout.fnmatch_lines(["*found no tool call; f({}) was written as text, which no agent could have executed*"])
    run(endpoint, *FAST, "--tsuka-text-calls").assert_outcomes(passed=3)
    assert profiles()["profiles"]["m@none"]["parameters"]["textCalls"] is True


def test_extra_parameters_reach_the_endpoint(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """--tsuka-param adds to the body and to the profile; the temperature can be changed."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    run(endpoint, *FAST, "--tsuka-param=temperature=0.5", "--tsuka-param=max_tokens=99").assert_outcomes(passed=3)
    body = endpoint.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0.5, 99, "m")
    assert profiles()["profiles"]["m@none"]["parameters"] == {
        "temperature": 0.5,
        "max_tokens": 99,
        "effortStyle": "reasoning_effort",
    }


def test_a_refused_parameter_is_left_out_and_recorded(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """D05: one retry without it, remembered for the model, recorded in the profile."""
    suite(**TRIO)

    def script(received: Received) -> Any:
        if "temperature" in received.body:
            return error(400, "temperature 0 is not accepted by this model, only 1", param="temperature")
        return "yes"

    endpoint = serve(script)
    run(endpoint, *FAST, "--tsuka-concurrency=1").assert_outcomes(passed=3)
    assert sum("temperature" in r.body for r in endpoint.requests) == 1
    assert profiles()["profiles"]["m@none"]["parameters"] == {
        "effortStyle": "reasoning_effort",
        "refused": ["temperature"],
    }


def test_usage_that_is_not_reported_is_unknown(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """D14: null in the profile, never 0."""
    suite(**TRIO)
    run(serve(lambda r: completion("yes", usage=None)), *FAST).assert_outcomes(passed=3)
    profile = profiles()["profiles"]["m@none"]
    assert (profile["promptTokens"], profile["completionTokens"], profile["tokensPerSecond"]) == (
        None,
        None,
        None,
    )
    assert profile["avgCompletionTokens"] is None


def test_a_suite_changed_during_the_run(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    """Answers to two different suites make no profile."""
    folder = suite(**TRIO)

    def script(received: Received) -> str:
        (folder / "10_i.json").write_text(json.dumps(one_check("words", description="edited")))
        return "yes"

    result = run(serve(script), *FAST)
    result.stdout.fnmatch_lines(["none: no tier: the suite was changed during the run"])
    assert profiles() is None


def test_setup_only_plays_nothing(suite: Suite, run: Run, serve: Serve) -> None:
    """--setup-plan and --setup-only are dry runs."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    run(endpoint, "--setup-plan")
    assert endpoint.requests == []


def test_parallel_calls_in_a_chain(suite: Suite, run: Run, serve: Serve) -> None:
    """Every call of a turn is answered; by name where the result is an object."""
    tools = [{"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in ("a", "b")]
    suite(
        c={
            "name": "chain",
            "category": "toolCalling",
            "tools": tools,
            "steps": [
                {"prompt": "go", "checks": [{"type": "tool_calls", "value": [{"name": "b"}, {"name": "a"}]}]},
                {"toolResult": {"a": "A!"}, "checks": [YES]},
            ],
        }
    )

    def script(received: Received) -> Any:
        if len(received.body["messages"]) == 1:
            return completion(None, [call("a", {}, "1"), call("b", {}, "1")])
        return "yes"

    endpoint = serve(script)
    run(endpoint, *FAST).assert_outcomes(passed=1)
    answers = [(m["tool_call_id"], m["content"]) for m in endpoint.requests[1].body["messages"] if m["role"] == "tool"]
    assert answers[0] == ("1", "A!")
    assert answers[1][0] != "1"
    assert answers[1][1] == "error: no tool 'b' here"


@pytest.mark.parametrize(("how", "count"), [((), 1000), (("-n", "2", "--tsuka-retries=1"), 100)])
def test_an_endpoint_that_is_down_ends_many_items_soon(
    pytester: pytest.Pytester, suite: Suite, how: tuple[str, ...], count: int
) -> None:
    """The circuit breaker at work: default retries, a thousand items, and the test's own limit is far away."""
    from tests.conftest import LEAN

    suite(**{f"{n:04}": one_check(f"item{n:04}") for n in range(count)})
    args = (
        *LEAN,
        "--tsuka-model=m",
        "--tsuka-base-url=http://127.0.0.1:9",
        "--tsuka-effort=none",
        "-q",
        "--tb=no",
        *how,
    )
    result = pytester.runpytest_subprocess(*args, timeout=90)
    result.assert_outcomes(errors=count)


@pytest.mark.parametrize(("how", "seconds"), [((), 1.0), (("-n", "2"), 2.0)])
def test_requests_per_minute_are_shared(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester, how: tuple[str, ...], seconds: float
) -> None:
    """Each process that asks keeps to its share of what the endpoint allows."""
    suite(**TRIO)
    pytester.makeconftest(
        """
        from pathlib import Path
        from pytest_tsuka.plugin.context import context_of

        def pytest_runtest_setup(item):
            with Path("intervals.txt").open("a") as file:
                file.write(f"{context_of(item.config).endpoints.backend('m').pacer.interval} ")
        """
    )
    run(serve(lambda r: "yes"), "--tsuka-effort=none", "--tsuka-rpm=60", *how).assert_outcomes(passed=3)
    assert set(Path("intervals.txt").read_text().split()) == {str(seconds)}
