"""What reaches terminal, XML and JSON: complete, readable, and safe whatever a model or server says."""

from __future__ import annotations

import base64
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TRIO, YES, one_check
from tests.endpoint import FakeEndpoint, Received, call, completion, error

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]
FAST = ("--tsuka-retries=0", "--tsuka-effort=none")


def xml_of(pytester: pytest.Pytester) -> ET.Element:
    return ET.parse(pytester.path / "r.xml").getroot()


def test_checks_under_their_item(suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """-v lists every check, -v with verbosity_subtests=0 only failed ones, no -v none."""
    checks = [YES, {"type": "word_count", "value": 9, "weight": 2}]
    suite(a=one_check("mixed", checks=checks))
    endpoint = serve(lambda r: "yes sir")
    result = run(endpoint, *FAST, "-v", *mode)
    result.stdout.fnmatch_lines(
        [
            "*FAILED*",
            "    ✓ contains value='yes'",
            "    ✗ word_count value=9 x2: expected 9 words, found 2 in “yes sir”",
        ]
    )
    quiet = run(endpoint, *FAST, "-v", "-o", "verbosity_subtests=0", *mode)
    quiet.stdout.no_fnmatch_line("    ✓*")
    quiet.stdout.fnmatch_lines(["    ✗ word_count*"])
    plain = run(endpoint, *FAST, *mode)
    plain.stdout.no_fnmatch_line("    ✗ word_count*x2:*")


def test_junit(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """One testcase per item with its figures and checks, one failure that lists them, suite properties."""
    suite(
        **{"10_i": TRIO["10_i"], "30_t": TRIO["30_t"]},
        b=one_check("half", "json", weight=2, checks=[YES, {"type": "json_valid", "weight": 3}]),
    )
    run(serve(lambda r: "yes"), *FAST, "--junitxml=r.xml", *mode)
    root = xml_of(pytester)
    (whole,) = root.iter("testsuite")
    assert (whole.get("tests"), whole.get("failures"), whole.get("errors")) == ("3", "1", "0")
    (suite_properties,) = whole.findall("properties")
    values = {p.get("name"): p.get("value") for p in suite_properties}
    assert values["tsuka.tier"] == "small"
    assert values["tsuka.recommendedEffort"] == "none"
    assert len(str(values["tsuka.testsHash"])) == 8
    (case,) = [c for c in root.iter("testcase") if c.get("name") == "half[none]"]
    item = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert item["tsuka.score"] == "0.250"
    assert (item["tsuka.weight"], item["tsuka.category"], item["tsuka.effort"]) == ("2", "json", "none")
    assert item["tsuka.tokens"] == "4"
    assert item["tsuka.check.0"] == "contains value='yes' x1 pass"
    assert str(item["tsuka.check.1"]).startswith("json_valid  x3 fail: expected JSON")
    (failure,) = case.findall("failure")
    assert str(failure.get("message")).startswith("score 0.25 < 1.00 (json_valid)")
    assert "json_valid  (weight 3)" in str(failure.text)


def test_the_summary_on_ci_is_short(
    suite: Suite, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...]
) -> None:
    """pytest does not shorten its summary there; a failure's details are not said twice."""
    monkeypatch.setenv("CI", "true")
    suite(a=one_check("wrong"))
    result = run(serve(lambda r: "no"), *FAST, "--color=no", *mode)
    assert sum("expected “yes” in the answer" in line for line in result.outlines) == 1


HOSTILE = {
    "controls": "bad \x00\x12\x1b[31mred\x1b[0m \x9b2J \ufffe end",
    "surrogate": "x \ud83d y",
    "cdata": "]]><script>alert(1)</script>&amp;",
    "markup": "[bold red]x[/bold red] [/]",
    "bidi": "a\u202eb\u2066c",
    "tags": "a\U000e0041\U000e0042\U000e0100\u2062b",
    "long": "z" * 1_000_000,
    "lines": "\r\n".join(["l"] * 3000),
}


@pytest.mark.parametrize("kind", list(HOSTILE))
@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_hostile_model_text(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, kind: str, how: tuple[str, ...]
) -> None:
    """E05, E07: any text fails its item normally; XML and JSON parse; nothing steers the terminal."""
    suite(
        a=one_check("text"),
        b=one_check("called", checks=[{"type": "tool_arg_equals", "arg": "k", "value": "v"}]),
    )

    def script(received: Received) -> Any:
        if "called" in received.prompt:
            return completion(HOSTILE[kind], [call("f\x1b[2J", {"k": HOSTILE[kind], HOSTILE[kind][:40]: 1})])
        return HOSTILE[kind]

    result = run(serve(script), *FAST, "-v", "-rA", "--junitxml=r.xml", "--tsuka-json=r.json", "--color=no", *how)
    result.assert_outcomes(failed=2)
    output = result.stdout.str()
    assert "INTERNALERROR" not in output
    for char in "\x00\x12\x1b\x9b\ufffe\u202e\u2066\ud83d\U000e0041\U000e0100\u2062":
        assert char not in output
    assert all(len(line) < 5000 for line in result.outlines)
    assert len(list(xml_of(pytester).iter("testcase"))) == 2
    raw = (pytester.path / "r.json").read_bytes()
    said = json.loads(raw.decode("utf-8"))["verdicts"]
    if kind == "controls":
        assert said[0]["conversation"][0]["reply"]["text"] == HOSTILE[kind]
        assert "\\x1b[31mred" in output


def test_no_secret_anywhere(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D29: key, password and query secrets are in no output, also with --showlocals and an echoing server."""
    suite(**TRIO)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET-one")
    endpoint = serve(lambda r: error(401, f"key {r.headers['authorization']} at {r.path} is not valid"))
    url = f"http://user:pw-SECRET@127.0.0.1:{endpoint.port}/v1?key=q-SECRET&x=1"
    args = (
        *FAST,
        f"--tsuka-base-url={url}",
        "-vv",
        "--showlocals",
        "--tb=long",
        "-rA",
        "--junitxml=r.xml",
        "--tsuka-json=r.json",
    )
    result = pytester.runpytest_subprocess("--tsuka-model=m", *args)
    result.assert_outcomes(errors=3)
    assert endpoint.requests[0].path == "/v1/chat/completions?key=q-SECRET&x=1"
    everything = (
        result.stdout.str()
        + result.stderr.str()
        + "".join(
            p.read_text(encoding="utf-8")
            for p in pytester.path.rglob("*")
            if p.is_file() and p.suffix in (".xml", ".json")
        )
    )
    assert "HTTP 401" in everything
    assert "is the API key right?" in everything
    assert "SECRET" not in everything


def test_no_secret_after_success(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester, profiles: Callable[[], Any]
) -> None:
    """The profile names the endpoint without its credentials."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    url = f"http://user:pw-SECRET@127.0.0.1:{endpoint.port}/v1?api_key=q-SECRET"
    pytester.runpytest_inprocess("--tsuka-model=m", f"--tsuka-base-url={url}", *FAST).assert_outcomes(passed=3)
    assert profiles()["profiles"]["m@none"]["provider"] == f"http://127.0.0.1:{endpoint.port}/v1?api_key=***"
    assert endpoint.requests[0].headers["authorization"].startswith("Basic ")


def test_progress_while_waiting(suite: Suite, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow item gets a heartbeat: done, in flight, elapsed, and what is waited for."""
    from pytest_tsuka.plugin import prefetch as run_module
    from tests.endpoint import Answer

    monkeypatch.setattr(run_module, "FIRST_BEAT", 0.1)
    monkeypatch.setattr(run_module, "BEAT_LOG", 0.2)
    suite(**TRIO)
    endpoint = serve(lambda r: Answer(json=completion("yes"), delay=0.9 if "data" in r.prompt else 0))
    quiet = run(endpoint, *FAST, "-q")
    quiet.stdout.re_match_lines([r"\.", r"  … 1 of 3 items done.*"])
    result = run(endpoint, *FAST)
    result.stdout.fnmatch_lines(
        ["  … 1 of 3 items done, 1 in flight, 0:0? elapsed, about 0:0? left; waiting for data?none?, * s"]
    )


def test_an_unwritable_profile_fails_the_run(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """What was measured is shown, the reason is named, and the exit status is not 0."""
    suite(**TRIO)
    (pytester.path / "blocked").write_text("a file where a folder should be")
    result = run(serve(lambda r: "yes"), *FAST, "--tsuka-profile=blocked/p.json", "--tsuka-json=blocked/r.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*large*", "the profile was not written: *", "the results were not written to *"])


def test_a_damaged_profile_is_kept_aside(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """It is moved, not overwritten; a fresh one is written."""
    suite(**TRIO)
    (pytester.path / "models_profile.json").write_text('{"profiles": {"other@none":')
    result = run(serve(lambda r: "yes"), *FAST)
    result.stdout.fnmatch_lines(["*models_profile.json was damaged (*); it was kept as models_profile.json.damaged-*"])
    (kept,) = pytester.path.glob("models_profile.json.damaged-*")
    assert kept.read_text() == '{"profiles": {"other@none":'


def test_another_endpoint_is_noted(suite: Suite, run: Run, serve: Serve) -> None:
    """A profile measured elsewhere is replaced with a note."""
    suite(**TRIO)
    first = serve(lambda r: "yes")
    run(first, *FAST)
    run(serve(lambda r: "yes"), *FAST).stdout.fnmatch_lines(
        [f"note: m@none: replaces a profile measured at {first.url}"]
    )


def test_a_worker_that_dies(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """E09: the other results arrive, the lost item is an error, no tier for what is incomplete."""
    suite(**{f"{n}_x": one_check(f"item{n}") for n in range(6)})
    pytester.makeconftest(
        """
        import os, pytest
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_call(item):
            if item.name.startswith("item3"):
                os._exit(1)
        """
    )
    result = run(serve(lambda r: "yes"), *FAST, "-n", "2", "--junitxml=r.xml", "--tsuka-json=r.json")
    assert "INTERNALERROR" not in result.stdout.str()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["none: no tier: 1 of 6 benchmarks were not run"])
    assert len(json.loads((pytester.path / "r.json").read_text())["verdicts"]) == 5
    assert len(list(xml_of(pytester).iter("testcase"))) == 6


def test_own_hooks(pytester: pytest.Pytester, suite: Suite, run: Run, mode: tuple[str, ...]) -> None:
    """A root conftest.py adds a check type, a backend, tiers and an observer; the same in all modes."""
    suite(
        a=one_check("words", checks=[{"type": "palindrome", "least": 3}]),
        b=one_check("data", "json"),
        c=one_check("tools", "toolCalling"),
    )
    pytester.makeconftest(
        """
        from typing import Literal
        import pytest_tsuka

        class Palindrome(pytest_tsuka.Check):
            type: Literal["palindrome"]
            least: int = 1

            def evaluate(self, subject):
                text = subject.text.casefold()
                good = len(text) >= self.least and text == text[::-1]
                return pytest_tsuka.Result(good, f"expected a palindrome, found {text!r}")

        def pytest_tsuka_check_types(config):
            return [Palindrome]

        def pytest_tsuka_backend(config, model):
            if model == "parrot":
                return pytest_tsuka.ScriptedBackend(lambda r: "anna" if "words" in r.messages[-1]["content"] else "yes")

        def pytest_tsuka_tier_policy(config):
            return pytest_tsuka.TierPolicy({"poor": {}, "fine": {"json": 0.5}})

        def pytest_tsuka_profile(config, model, effort, profile):
            print("PROFILE", model, effort, profile["tier"])
        """
    )
    result = run(None, *FAST, "--tsuka-model=parrot", "--tsuka-fail-under=fine", "-s", *mode)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines_random(["*PROFILE parrot none fine*", "gate met: fine"])


def test_a_plugin_check_with_a_typo(pytester: pytest.Pytester, suite: Suite, run: Run) -> None:
    """Operands of a plugin's check are validated at collection like the built-in ones."""
    suite(a=one_check("words", checks=[{"type": "palindrom"}, {"type": "palindrome", "leest": 1}]))
    pytester.makeconftest(
        """
        from typing import Literal
        import pytest_tsuka
        class Palindrome(pytest_tsuka.Check):
            type: Literal["palindrome"]
            least: int = 1
            def evaluate(self, subject):
                return pytest_tsuka.Result(True, "")
        def pytest_tsuka_check_types(config):
            return [Palindrome]
        """
    )
    result = run(None, "--tsuka-model=m")
    result.stdout.fnmatch_lines(
        [
            "*unknown check type 'palindrom'; did you mean 'palindrome'?*",
            "*checks?1?.leest: unknown field 'leest'*",
        ]
    )


def test_a_misspelt_hook_is_an_error(pytester: pytest.Pytester) -> None:
    """pluggy's own protection holds for our hooks."""
    pytester.makeconftest("def pytest_tsuka_tiers(config): pass")
    result = pytester.runpytest_subprocess("--tsuka-model=m")
    assert "unknown hook 'pytest_tsuka_tiers'" in result.stderr.str() + result.stdout.str()


# --- page and summary ------------------------------------------------------------------------


def test_a_runs_page_and_summary(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written where asked; what another step put into the job's summary stays."""
    suite(**TRIO)
    step = pytester.path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    args = ("--tsuka-html=out/r.html", "--tsuka-markdown=out/r.md", "--tsuka-github-summary", *FAST)
    result = run(serve(lambda r: "no" if "data" in r.prompt else "yes"), *args)
    result.stdout.fnmatch_lines(["the page written to out/r.html", "the summary written to out/r.md"])
    text = (pytester.path / "out" / "r.md").read_text(encoding="utf-8")
    assert text.startswith("### m: small\n")
    assert "1 of 3 items below full score" in text
    assert step.read_text() == f"before\n{text}"
    page = (pytester.path / "out" / "r.html").read_text(encoding="utf-8")
    assert "m: small" in page
    assert "What holds it back from" in page


def test_a_page_that_cannot_be_written_costs_nothing_else(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester
) -> None:
    """The profile and the result file are there; the exit status tells."""
    suite(**TRIO)
    (pytester.path / "file").write_text("")
    result = run(serve(lambda r: "yes"), "--tsuka-html=file/r.html", "--tsuka-json=r.json", *FAST)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["3 verdicts written to r.json", "the page was not written to *file/r.html: *"])
    assert (pytester.path / "models_profile.json").exists()


def test_a_page_without_its_extra_is_told_before_the_run(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester
) -> None:
    suite(**TRIO)
    pytester.makeconftest("import sys; sys.modules['pygal'] = None")
    endpoint = serve(lambda r: "yes")
    result = run(endpoint, "--tsuka-html=r.html", "-p", "no:xdist", *FAST)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tsuka-html needs pygal: pip install 'pytest-tsuka[[]html[]]'*"])
    assert endpoint.requests == []


def test_credentials_of_the_url_are_nowhere(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """A server that echoes the Authorization header, in an error and in an answer: its Basic code goes nowhere either."""
    suite(**TRIO)

    def script(received: Received) -> Any:
        header = received.headers["authorization"]
        return error(400, f"bad header {header}") if received.prompt == "say data" else f"you sent {header}"

    endpoint = serve(script)
    secret = base64.b64encode(b"someone:s3cr3t-pw").decode()
    url = endpoint.url.replace("http://", "http://someone:s3cr3t-pw@")
    outputs = ("--tsuka-json=r.json", "--tsuka-html=r.html", "--tsuka-markdown=r.md", "--junitxml=r.xml")
    result = run(None, "--tsuka-model=m", f"--tsuka-base-url={url}", *FAST, *outputs, "--tsuka-record=c", "-v")
    result.assert_outcomes(failed=2, errors=1)
    assert base64.b64decode(endpoint.requests[0].headers["authorization"].split()[1]) == b"someone:s3cr3t-pw"
    kept = [
        p
        for p in pytester.path.rglob("*")
        if p.is_file() and p.suffix in (".json", ".html", ".md", ".xml", ".jsonl", ".db", ".db-wal")
    ]
    seen = [result.stdout.str(), *(p.read_bytes().decode("latin-1") for p in kept)]
    assert len(seen) > 6
    for text in seen:
        assert secret not in text
        assert "s3cr3t-pw" not in text
    assert any("you sent Basic ***" in text for text in seen)
