"""Whatever its wire looks like, a model that answers rightly gets its tier, and what is not its doing is said."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TRIO, one_check
from tests.endpoint import Answer, FakeEndpoint, Json, Received, call, completion, error
from tests.ideal import ideal
from tests.wires import APIS, ROUTES, Says, speaking

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]
Profiles = Callable[[], Any]
NONE = "--tsuka-effort=none"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CHAIN: dict[str, Any] = {
    "name": "chain",
    "category": "toolCalling",
    "tools": [TOOL],
    "steps": [
        {"prompt": "look it up", "checks": [{"type": "tool_called", "value": "look"}]},
        {"toolResult": "42", "checks": [{"type": "contains", "value": "42"}]},
        {"prompt": "sure?", "checks": [{"type": "contains", "value": "sure"}]},
    ],
}
CHAINED = {"10_i": TRIO["10_i"], "20_j": TRIO["20_j"], "30_t": CHAIN}


def turns_of(received: Received) -> list[Json]:
    return [m for m in received.body["messages"] if m["role"] == "assistant"]


def answers(received: Received, calling: Json, **more: Any) -> Json:
    """A model that does the chain right; `calling` is its message with the call, `more` goes on every message."""
    said = turns_of(received)
    if received.prompt.startswith("say"):
        return completion(message={"role": "assistant", "content": "yes", **more})
    if not said:
        return completion(message={**calling, **more}, finish="tool_calls")
    text = "it is 42" if len(said) == 1 else "sure"
    return completion(message={"role": "assistant", "content": text, **more})


SIGNED = {**call("look", {}), "extra_content": {"google": {"thought_signature": "AAEC"}}}


# --- 1. the turn that is played back ----------------------------------------------------------


def test_a_signed_call_goes_back_as_it_came(suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """The server takes no turn without its signature; without it every chain is an error and the model has no tier."""
    suite(**CHAINED)

    def script(received: Received) -> Any:
        for turn in turns_of(received)[:1]:
            calls = turn.get("tool_calls", [])
            if len(turns_of(received)) == 1 and [c.get("extra_content") for c in calls] != [SIGNED["extra_content"]]:
                return error(400, "Function call is missing a thought_signature in functionCall parts.")
        return answers(received, {"role": "assistant", "content": None, "tool_calls": [SIGNED]})

    result = run(serve(script), NONE, *mode)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["none * 1.00  1.00         1.00  large *"])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_details"])
def test_reasoning_that_is_demanded_goes_back(suite: Suite, run: Run, serve: Serve, name: str) -> None:
    suite(**CHAINED)
    value: Any = [{"type": "reasoning.text", "text": "hm", "index": 0}] if name.endswith("details") else "hm"

    def script(received: Received) -> Any:
        if any(turn.get(name) != value for turn in turns_of(received)):
            return error(400, f"The `{name}` in the thinking mode must be passed back to the API.")
        calling = {"role": "assistant", "content": None, "tool_calls": [call("look", {})]}
        return answers(received, calling, **{name: value})

    run(serve(script), NONE).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("reasoning_content", error(400, "'messages.1' : property 'reasoning_content' is unsupported")),
        ("reasoning", Answer(422, json={"detail": [{"loc": ["body", "messages", 1, "assistant", "reasoning"], "msg": "Extra inputs are not permitted"}]})),
        ("reasoning_details", error(400, "Please remove reasoning_details from the messages.")),
        ("annotations", error(400, "Unknown parameter: 'messages[1].annotations'.", param="messages[1].annotations")),
    ],
)  # fmt: skip
def test_what_a_server_does_not_want_back_is_left_out_and_noted(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, name: str, refusal: Answer
) -> None:
    """Tried with, once told, never again in this run; the score is that of the answers."""
    suite(**CHAINED)

    def script(received: Received) -> Any:
        if any(name in turn for turn in turns_of(received)):
            return refusal
        calling = {"role": "assistant", "content": None, "tool_calls": [call("look", {})]}
        return answers(received, calling, **{name: ["hm"]})

    endpoint = serve(script)
    run(endpoint, NONE, "--tsuka-json=r.json", "--tsuka-concurrency=1").assert_outcomes(passed=3)
    (chain,) = [v for v in results(pytester)["verdicts"] if v["benchmark"] == "chain"]
    assert any(f"does not want '{name}' of the model's own turn back" in note for note in chain["notes"])
    assert sum(any(name in turn for turn in turns_of(r)) for r in endpoint.requests) == 1


def test_unknown_fields_of_a_call_that_are_unwanted_are_left_out_too(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**CHAINED)

    def script(received: Received) -> Any:
        if any("extra_content" in c for turn in turns_of(received) for c in turn.get("tool_calls", ())):
            return error(400, "messages[1].tool_calls[0]: unknown field `extra_content`")
        return answers(received, {"role": "assistant", "content": None, "tool_calls": [SIGNED]})

    run(serve(script), NONE).assert_outcomes(passed=3)


def test_opaque_fields_are_in_the_cassette_and_nowhere_else(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve
) -> None:
    """A replay sends the same requests; no report, store or profile holds what was signed."""
    suite(**CHAINED)
    signature = "OPAQUE-SIGNATURE-sk-abcdefghijkl"
    signed = {**SIGNED, "extra_content": {"google": {"thought_signature": signature}}}

    def script(received: Received) -> Any:
        return answers(
            received, {"role": "assistant", "content": None, "tool_calls": [signed]}, reasoning_details=[signature]
        )

    reports = ("--tsuka-json=r.json", "--tsuka-html=r.html", "--tsuka-markdown=r.md", "--junitxml=r.xml", "-v")
    result = run(serve(script), NONE, "--tsuka-record=cassette", *reports)
    result.assert_outcomes(passed=3)
    seen = [result.stdout.str(), *((pytester.path / f"r.{end}").read_text() for end in ("json", "html", "md", "xml"))]
    seen.append((pytester.path / "models_profile.json").read_text())
    seen += [p.read_bytes().decode("latin-1") for p in (pytester.path / ".tsuka").glob("tsuka.db*")]
    assert not any(signature in text for text in seen)
    (cassette,) = (pytester.path / "cassette").glob("*.jsonl")
    assert signature in cassette.read_text()
    replayed = run(None, "--tsuka-model=m", NONE, "--tsuka-replay=cassette")
    replayed.assert_outcomes(passed=3)


# --- 2. content in blocks -----------------------------------------------------------------------


def streamed(*deltas: Json, finish: str = "stop") -> Answer:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return Answer(events=[(0.0, f"data: {json.dumps(chunk)}\n\n") for chunk in chunks])


BLOCKS: list[Json] = [
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}]}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "no or yes?"}]}]},
    {"content": [{"type": "text", "text": "Yes, "}]},
    {"content": "of "},
    {"content": [{"type": "text", "text": "course"}]},
]


def test_blocks_in_a_stream_are_read_as_in_a_whole_reply(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve
) -> None:
    """Lists and strings in turn: one text, one thought, and the turn goes back in the blocks it came in."""
    checks = [{"type": "regex", "value": "^Yes, of course$"}]
    suite(a={"name": "a", "category": "instruction", "steps": [{"prompt": "a", "checks": checks}] * 2})
    whole = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, no or yes?"}]},
        {"type": "text", "text": "Yes, of course"},
    ]
    seen = []
    for answer in (streamed(*BLOCKS), Answer(json=completion(message={"role": "assistant", "content": whole}))):
        endpoint = serve(lambda r, answer=answer: answer)
        run(endpoint, NONE, "--tsuka-json=r.json", "--tsuka-stream").assert_outcomes(passed=1)
        (verdict,) = results(pytester)["verdicts"]
        assert verdict["conversation"][0]["reply"]["reasoning"] == "Hm, no or yes?"
        seen.append(turns_of(endpoint.requests[1])[0]["content"])
    assert seen == [whole, whole]


# --- 3. outcomes -------------------------------------------------------------------------------

WITH_TOOL = {**TRIO, "30_t": one_check("tools", "toolCalling", tools=[TOOL])}


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        error(404, "No endpoints found that support tool use. To learn more about provider routing, visit the docs."),
        error(400, "Function calling is not enabled for models/gemma-3-27b-it"),
        error(400, "`tools` is not supported with this model", param="tools"),
        error(400, "Unrecognized request argument supplied: tools"),
        Answer(422, json={"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}),
        Answer(400, body=b"this model does not support function calling"),
    ],
    ids=range(7),
)
def test_a_model_without_tools_is_small_and_that_is_said(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles, refusal: Answer
) -> None:
    """A fact about the model: 0 in toolCalling, the others measured, a profile; said wherever people look."""
    suite(**WITH_TOOL, **{"31_t": one_check("more", "toolCalling", tools=[TOOL])})
    endpoint = serve(lambda r: refusal if "tools" in r.body else "yes")
    reports = ("--tsuka-html=r.html", "--tsuka-markdown=r.md", "--junitxml=r.xml", "--tsuka-concurrency=1")
    result = run(endpoint, NONE, *reports)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "benchmarks/30_t.json N*",
            "no tool calls, score 0.00 < 1.00 (contains)",
            "none * 1.00  1.00         0.00  small *",
            "no tool calls: 2 at none (no tool calls at this endpoint*",
        ]
    )
    entry = profiles()["profiles"]["m@none"]
    assert (entry["tier"], entry["scores"]["toolCalling"]) == ("small", 0.0)
    assert entry["outcomes"] == {"passed": 2, "no tool calls": 2}
    assert "no tool calls at this endpoint" in unescape((pytester.path / "r.html").read_text())
    assert "no tool calls: 2 at none" in (pytester.path / "r.md").read_text().replace("\\", "")
    found = {p.get("value") for p in ET.parse(pytester.path / "r.xml").getroot().iter("property")}
    assert "no tool calls" in found
    # Told once, it is not asked with tools again.
    assert sum("tools" in r.body for r in endpoint.requests) == 1


def test_a_parameter_that_does_not_go_with_tools_is_no_fact_about_the_model(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    suite(**WITH_TOOL)
    refusal = error(400, "This model does not support parallel tool calls.")
    run(serve(lambda r: refusal if "tools" in r.body else "yes"), NONE).assert_outcomes(passed=2, errors=1)
    assert profiles() is None


MALFORMED = [
    error(500, "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1"),
    error(500, "error parsing tool call: raw='{\"a\": 1', err=unexpected end of JSON input"),
    error(400, "Failed to call a function. Please adjust your prompt.", code="tool_use_failed", failed_generation="<function"),
    Answer(500, body=b"Failed to parse tool call arguments as JSON"),
    Answer(json={"error": {"message": "failed to parse function call arguments", "code": 500}}),
]  # fmt: skip


@pytest.mark.parametrize("trouble", MALFORMED, ids=range(len(MALFORMED)))
def test_a_call_that_the_server_cannot_read_is_the_models(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles, trouble: Answer
) -> None:
    """Retried like any passing fault; when it stays it is scored, as no call."""
    suite(**WITH_TOOL)
    endpoint = serve(lambda r: trouble if "tools" in r.body else "yes")
    result = run(endpoint, NONE, "--tsuka-retries=1", "--tsuka-json=r.json")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["benchmarks/30_t.json M*", "malformed call, score 0.00 < 1.00 (contains)"])
    assert sum("tools" in r.body for r in endpoint.requests) == 2
    assert profiles()["profiles"]["m@none"]["tier"] == "small"
    (verdict,) = [v for v in results(pytester)["verdicts"] if v["outcome"] == "malformed call"]
    assert any("the server could not read the tool call" in note for note in verdict["notes"])


def test_a_call_that_is_read_at_the_second_try_is_scored_by_what_it_says(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**WITH_TOOL)
    troubles = iter([MALFORMED[0]])

    def script(received: Received) -> Any:
        return next(troubles, "yes") if "tools" in received.body else "yes"

    run(serve(script), NONE).assert_outcomes(passed=3)


def test_a_broken_id_in_our_own_history_is_not_the_models_call(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**WITH_TOOL)
    refusal = error(400, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9. Invalid tool call.")
    run(serve(lambda r: refusal if "tools" in r.body else "yes"), NONE).assert_outcomes(passed=2, errors=1)


@pytest.mark.parametrize(
    ("refusal", "option"),
    [
        (error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'), "--enable-auto-tool-choice --tool-call-parser"),
        (error(500, "tools param requires --jinja flag"), "--jinja"),
    ],
)  # fmt: skip
def test_a_server_without_its_switch_for_tools_says_which(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, refusal: Answer, option: str
) -> None:
    """Not the model's doing: an error, and no profile."""
    suite(**WITH_TOOL)
    result = run(serve(lambda r: refusal if "tools" in r.body else "yes"), NONE)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines([f"*start it with {option}*"])
    assert profiles() is None


NEGATIVE = [
    {"type": "not_contains", "value": "zebra"},
    {"type": "not_regex", "value": "zebra"},
    {"type": "not_empty"},
    {"type": "max_words", "value": 99},
    {"type": "tool_not_called"},
    {"type": "tool_calls", "value": []},
    {"type": "contains", "value": "yes", "weight": 30},  # an apology would earn most of it otherwise
]
REFUSALS: dict[str, Any] = {
    "field": completion(message={"role": "assistant", "content": None, "refusal": "I will not help with that."}),
    "beside text": completion(message={"role": "assistant", "content": "Well", "refusal": "I will not help with that."}),
    "part": completion(message={"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not help with that."}]}),
    "stream": streamed({"refusal": "I will not "}, {"refusal": "help with that."}),
    "part in a stream": streamed({"content": [{"type": "refusal", "refusal": "I will not help "}]}, {"content": [{"type": "refusal", "refusal": "with that."}]}),
}  # fmt: skip


@pytest.mark.parametrize("how", list(REFUSALS))
def test_a_refusal_is_no_answer(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles, how: str
) -> None:
    """No check passes on it, the negative ones neither; a class of its own, and its text is shown."""
    suite(**TRIO, z=one_check("asked", checks=NEGATIVE))
    refusal = REFUSALS[how]
    endpoint = serve(lambda r: refusal if r.prompt == "say asked" else "yes")
    result = run(endpoint, NONE, "--junitxml=r.xml", "--tsuka-html=r.html", "--tsuka-stream")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "benchmarks/z.json R*",
            "refused by the model, score 0.00 < 1.00 (*",
            "      the model refused: I will not help with that.",
            "refuses: I will not help with that.",
            "refused by the model: 1 at none (the model refused: I will not help with that.)",
        ]
    )
    assert profiles()["profiles"]["m@none"]["tier"]
    page = unescape((pytester.path / "r.html").read_text())
    assert "<h4>refusal</h4><pre>I will not help with that.</pre>" in page
    (case,) = [
        c for c in ET.parse(pytester.path / "r.xml").getroot().iter("testcase") if c.get("name") == "asked[none]"
    ]
    values = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert (values["tsuka.outcome"], values["tsuka.score"]) == ("refused by the model", "0.000")


@pytest.mark.parametrize(
    "answer",
    [
        completion("half an ans", finish="content_filter"),
        completion("", finish="safety"),
        error(400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy", code="content_filter"),
    ],
    ids=["cut", "empty", "prompt"],
)  # fmt: skip
def test_a_filter_is_named_apart(suite: Suite, run: Run, serve: Serve, profiles: Profiles, answer: Any) -> None:
    suite(**TRIO, z=one_check("asked", checks=NEGATIVE))
    result = run(serve(lambda r: answer if r.prompt == "say asked" else "yes"), NONE)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["benchmarks/z.json B*", "content filter, score 0.00 < 1.00 (*"])
    assert profiles()["profiles"]["m@none"]["outcomes"] == {"passed": 3, "content filter": 1}


def test_under_a_gate_a_refusal_keeps_its_letter(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**TRIO, z=one_check("asked", weight=0.01))
    refusal = REFUSALS["field"]
    result = run(serve(lambda r: refusal if r.prompt == "say asked" else "yes"), NONE, "--tsuka-fail-under=large", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*asked*none* PARTIAL 0.00 refused by the model*", "gate met: large"])


# --- 4. more than one API -----------------------------------------------------------------------


def looks_it_up(turn: int, received: Received) -> Says:
    """The ideal answers to CHAINED, with a sentence and a thought beside the call."""
    text = json.dumps(received.body)
    if "look it up" not in text:
        return Says("yes")
    if "42" not in text:
        return Says("Looking.", [("look", {})], thinking="Hm.")
    return Says("sure" if "sure?" in text else "it is 42")


@pytest.mark.parametrize("stream", [(), ("--tsuka-stream",)], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_the_same_suite_gives_the_same_scores_in_every_api(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, api: str, stream: tuple[str, ...]
) -> None:
    suite(**CHAINED)
    endpoint = serve(speaking(api, looks_it_up))
    run(endpoint, "--tsuka-effort=none,low", f"--tsuka-api={api}", *stream).assert_outcomes(passed=6)
    found = profiles()["profiles"]
    assert {p["tier"] for p in found.values()} == {"large"}
    assert {p["parameters"].get("api", "chat") for p in found.values()} == {api}
    assert {r.path for r in endpoint.requests} == {ROUTES[api]}


def test_the_api_may_stand_in_the_ini_file(suite: Suite, pytester: pytest.Pytester, run: Run, serve: Serve) -> None:
    suite(**TRIO)
    pytester.makepyprojecttoml('[tool.pytest]\ntsuka_api = "responses"\n')
    endpoint = serve(speaking("responses", lambda turn, r: Says("yes")))
    run(endpoint, NONE).assert_outcomes(passed=3)
    assert {r.path for r in endpoint.requests} == {ROUTES["responses"]}


def test_a_misspelt_api_is_a_usage_error_with_the_closest(suite: Suite, pytester: pytest.Pytester, run: Run) -> None:
    suite(**TRIO)
    pytester.makepyprojecttoml('[tool.pytest]\ntsuka_api = "antropic"\n')
    result = run(None, "--tsuka-model=m")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown API 'antropic'; did you mean 'anthropic'?*"])


def test_auto_needs_no_word_from_the_user(suite: Suite, run: Run, serve: Serve, profiles: Profiles) -> None:
    suite(**TRIO)
    endpoint = serve(speaking("anthropic", lambda turn, r: Says("yes")))
    run(endpoint, "--tsuka-effort=none").assert_outcomes(passed=3)
    assert profiles()["profiles"]["m@none"]["parameters"]["api"] == "anthropic"


def test_a_recording_of_one_api_is_replayed_without_it(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**CHAINED)

    run(serve(speaking("responses", looks_it_up)), NONE, "--tsuka-api=responses", "--tsuka-record=c").assert_outcomes(
        passed=3
    )
    run(None, "--tsuka-model=m", NONE, "--tsuka-api=responses", "--tsuka-replay=c").assert_outcomes(passed=3)


# --- figures ------------------------------------------------------------------------------------


def test_figures_of_conversations_that_ran_at_once(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """Time is wall time; speed is that of one stream, measured alone; throughput stands apart with its concurrency."""
    suite(**{f"b{n}": one_check(f"b{n}", ("instruction", "json", "toolCalling")[n % 3]) for n in range(9)})
    together = completion("yes", usage={"prompt_tokens": 5, "completion_tokens": 20})

    def script(received: Received) -> Answer:
        # An endpoint on one machine: whoever is not alone waits for the others.
        return Answer(json=together, delay=0.2 if endpoint.in_flight == 1 else 1.0)

    endpoint = serve(script)
    run(endpoint, NONE, "--tsuka-json=r.json", "--tsuka-concurrency=8").assert_outcomes(passed=9)
    (effort,) = results(pytester)["models"][0]["efforts"]
    assert effort["tokensPerSecondBasis"] == {"how": "alone", "concurrency": 1.0}
    assert effort["seconds"] < effort["requestSeconds"]
    entry = profiles()["profiles"]["m@none"]
    assert entry["wallSeconds"] == effort["seconds"]
    assert entry["throughput"]["tokensPerSecond"] == pytest.approx(9 * 20 / effort["seconds"])
    assert entry["throughput"]["concurrency"] == pytest.approx(effort["requestSeconds"] / effort["seconds"])
    first = [v for v in results(pytester)["verdicts"] if v["conversation"][0]["timing"]["at_once"] == 1]
    assert {v["benchmark"] for v in first} >= {"b0", "b1"}
    alone = [20 / v["conversation"][0]["timing"]["seconds"] for v in first]
    assert min(alone) <= effort["tokensPerSecond"] <= max(alone) <= 100  # 20 tokens in 0.2 s, and what the way costs


def test_an_effort_that_changes_tokens_has_an_effect_and_what_cannot_be_told_is_unknown(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """No reasoning is to be seen in either; never called without effect for that."""
    suite(**{f"b{n}": one_check(f"b{n}", ("instruction", "json", "toolCalling")[n % 3]) for n in range(6)})
    tokens = {"none": 10, "low": 300, "medium": 3000, "xhigh": 9000}

    def different(received: Received) -> Any:
        return completion(
            f"yes {received.effort}", usage={"completion_tokens": tokens[received.effort] + received.number % 5}
        )

    run(serve(different)).assert_outcomes(passed=24)
    assert {p["effortHonoured"] for p in profiles()["profiles"].values()} == {True}

    def by_chance(received: Received) -> Any:
        return completion(f"yes {received.number}", usage={"completion_tokens": 10 + received.number % 3})

    result = run(serve(by_chance))
    result.stdout.fnmatch_lines(["whether effort had an effect at none, low, medium, xhigh cannot be told: *"])
    result.stdout.no_fnmatch_line("effort had no effect*")
    assert {p["effortHonoured"] for p in profiles()["profiles"].values()} == {None}


def test_a_part_of_the_efforts_keeps_the_others_and_their_recommendation(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """A full sweep recommends medium; none measured alone later does not take it away."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes" if r.effort in ("medium", "xhigh") or r.prompt == "say words" else "hm")
    run(endpoint)
    assert profiles()["recommendations"] == {"m": "medium"}
    result = run(endpoint, NONE)
    result.stdout.fnmatch_lines(
        [
            "note: m: earlier profiles of the same suite were kept: low (small), medium (large), xhigh (large); recommended of all: medium"
        ]
    )
    assert profiles()["recommendations"] == {"m": "medium"}


def test_profiles_of_other_terms_are_no_part_of_a_recommendation(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """Another temperature, or another endpoint, is another measurement."""
    suite(**TRIO)
    script: Callable[[Received], str] = lambda r: "yes" if r.effort == "medium" else "hm"  # noqa: E731
    endpoint = serve(script)
    run(endpoint)
    run(endpoint, NONE, "--tsuka-param=temperature=0.7")
    assert profiles()["recommendations"] == {"m": "none"}
    run(endpoint)
    run(serve(script), NONE)
    assert profiles()["recommendations"] == {"m": "none"}


@pytest.mark.parametrize(
    ("args", "script", "last"),
    [
        (("-k", "words"), "yes", "no tier for m: 2 of 3 benchmarks were not run; a tier needs the whole suite*"),
        ((), error(400, "no such thing"), "no tier for m: 3 items could not be measured (*tsuka doctor*"),
        (
            (),
            error(400, "reasoning_effort is not supported"),
            "no tier for m: the endpoint refuses every effort (*--tsuka-effort=none --tsuka-effort-style=off",
        ),
    ],
)
def test_without_a_tier_the_last_line_says_why_and_what_to_do(
    suite: Suite, run: Run, serve: Serve, args: tuple[str, ...], script: Any, last: str
) -> None:
    suite(**TRIO)
    result = run(serve(lambda r: script), NONE, *args)
    pytest.LineMatcher([line for line in result.outlines if line][-1:]).fnmatch_lines([last.replace("[", "[[]")])


def test_with_a_tier_nothing_stands_below_pytests_last_line(suite: Suite, run: Run, serve: Serve) -> None:
    suite(**TRIO)
    result = run(serve(lambda r: "yes"), NONE)
    assert "3 passed" in [line for line in result.outlines if line][-1]


def test_a_score_never_shows_a_threshold_that_it_missed(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve
) -> None:
    """0.8496 is 0.84 wherever it stands."""
    checks = [
        {"type": "contains", "value": "yes", "weight": 8496},
        {"type": "contains", "value": "zebra", "weight": 1504},
    ]
    suite(**{name: {**raw, "checks": checks} for name, raw in TRIO.items()})
    endpoint = serve(lambda r: "yes")
    outputs = ("--tsuka-json=r.json", "--tsuka-html=r.html", "--tsuka-markdown=r.md", "--junitxml=r.xml")
    terminal = run(endpoint, NONE, *outputs).stdout.str()
    from click.testing import CliRunner

    from pytest_tsuka.cli import main

    def tsuka(*words: str) -> str:
        return CliRunner().invoke(main, list(words)).output

    page = (pytester.path / "r.html").read_text().partition("</style>")[2]
    shown = [terminal, tsuka("show"), (pytester.path / "r.md").read_text(), page]
    better = json.loads((pytester.path / "r.json").read_text())
    for effort in better["models"][0]["efforts"]:
        effort["scores"] = dict.fromkeys(effort["scores"], 0.1)
    (pytester.path / "old.json").write_text(json.dumps(better))
    shown += [tsuka("diff", "old.json", "r.json"), tsuka("diff", "old.json", "r.json", "--markdown")]
    for text in shown:
        assert "0.84" in text
        assert "0.85" not in text.replace("0.85: ", "").replace(">0.85<", "")  # the threshold's own line in the chart
    assert 'value="0.849"' in (pytester.path / "r.xml").read_text()


def results(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))


def test_the_standard_suite_in_every_api(run: Run, serve: Serve) -> None:
    """A model that knows all answers is large in chat completions, as before."""
    run(serve(lambda r: ideal(r)), NONE).assert_outcomes(passed=7)
