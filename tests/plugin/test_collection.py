"""Which items a run has, under which ids, and what is said about files that are no benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LEAN, TRIO, one_check
from tests.endpoint import FakeEndpoint

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]

NOWHERE = (*LEAN, "--no-tsuka-scenarios", "--tsuka-model=m", "--tsuka-base-url=http://127.0.0.1:9/v1")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    result = pytester.runpytest_inprocess(*NOWHERE, "--collect-only", "-q", *args)
    return [line for line in result.outlines if "::" in line]


def test_one_item_per_effort(pytester: pytest.Pytester, suite: Suite) -> None:
    """Four levels in ascending cost; collecting needs no endpoint and writes nothing."""
    suite(**{"10_a": one_check("alfa")})
    assert collected(pytester, "-p", "no:cacheprovider") == [
        f"benchmarks/10_a.json::alfa[{level}]" for level in ("none", "low", "medium", "xhigh")
    ]
    assert sorted(p.name for p in pytester.path.iterdir()) == ["benchmarks"]


def test_selections(pytester: pytest.Pytester, suite: Suite) -> None:
    """-k, -m by category and effort, a node id, a prefix of one, --tsuka-effort."""
    suite(**TRIO)
    assert collected(pytester, "-k", "words and low") == ["benchmarks/10_i.json::words[low]"]
    assert collected(pytester, "-m", "tsuka(category='json', effort='low')") == ["benchmarks/20_j.json::data[low]"]
    assert collected(pytester, "benchmarks/30_t.json::tools[xhigh]") == ["benchmarks/30_t.json::tools[xhigh]"]
    assert len(collected(pytester, "benchmarks/30_t.json::tools")) == 4
    assert len(collected(pytester, "--tsuka-effort=low,none", "--tsuka-effort", "xhigh")) == 9


def test_several_models_have_their_name_in_the_id(pytester: pytest.Pytester, suite: Suite) -> None:
    """The label is safe and unique; the exact name goes to the profile."""
    suite(**{"10_a": one_check("alfa")})
    ids = collected(pytester, "--tsuka-model=qwen3:8b", "--tsuka-model=org/a[b]", "--tsuka-effort=low")
    assert ids == [
        "benchmarks/10_a.json::alfa[m-low]",
        "benchmarks/10_a.json::alfa[qwen3:8b-low]",
        "benchmarks/10_a.json::alfa[org/a_b_-low]",
    ]


def test_every_bad_file_is_one_error(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """E11, E19: all bad files, twins too, are named in one run with place and closest name; nothing is sent."""
    suite(
        **TRIO,
        a_typo=one_check("typo", checks=[{"type": "contain", "value": "x"}]),
        b_broken='{"cases": [,]}',
        c_twin=one_check("words"),
    )
    endpoint = serve(lambda r: "never")
    result = run(endpoint)
    result.stdout.fnmatch_lines(
        [
            "*benchmarks/a_typo.json is not a valid benchmark*",
            "*checks?0?.type: unknown check type 'contain'; did you mean 'contains'?*",
            "*benchmarks/b_broken.json is not a valid benchmark*",
            "*line 1, column 12: not JSON*",
            "*benchmarks/c_twin.json is not a valid benchmark*",
            "*name: 'words' is also the name in 10_i.json*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert endpoint.requests == []
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not (pytester.path / "models_profile.json").exists()


def test_a_bad_file_stops_workers_as_well(suite: Suite, run: Run, serve: Serve) -> None:
    """xdist goes on after a collection error; nothing is sent and no profile written all the same."""
    suite(**TRIO, b_broken="{")
    endpoint = serve(lambda r: "never")
    result = run(endpoint, "-n", "2")
    assert endpoint.requests == []
    result.stdout.fnmatch_lines(["*nothing is sent to a model: the suite has bad files (b_broken.json)*"])
    assert result.ret == 1


def test_continue_on_collection_errors(suite: Suite, run: Run, serve: Serve, profiles: Callable[[], Any]) -> None:
    """E19: asked to continue, the good files run; there is still no tier and no profile."""
    suite(**TRIO, b_broken="{")
    result = run(serve(lambda r: "yes"), "--continue-on-collection-errors", "--tsuka-effort=none")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*none: no tier: the suite has 1 bad file*"])
    assert profiles() is None


def test_inert_without_a_model(pytester: pytest.Pytester, suite: Suite) -> None:
    """E21: a plain run opens no JSON, shows no header, needs no endpoint."""
    suite(**{"10_a": "not json"})
    pytester.makefile(".json", package="{", tsconfig="[")
    pytester.makepyfile(test_a="def test_a(): pass")
    result = pytester.runpytest_inprocess("-v")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("tsuka: *")


def test_only_the_suite_is_opened(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """E21: other JSON in the tree and in deeper folders is never parsed; without paths only the suite runs."""
    folder = suite(**{"10_a": one_check("alfa")})
    (folder / "more").mkdir()
    (folder / "more" / "s.json").write_text("{")
    pytester.makefile(".json", package="{")
    pytester.makepyfile(test_a="def test_a(): assert False")
    result = run(serve(lambda r: "yes"), "--tsuka-effort=none")
    result.assert_outcomes(passed=1)


def test_with_paths_it_runs_what_they_name(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """A path to ordinary tests beside a benchmark runs both."""
    suite(**TRIO)
    pytester.makepyfile(test_a="def test_a(): pass")
    result = run(serve(lambda r: "yes"), "test_a.py", "benchmarks/10_i.json", "--tsuka-effort=none")
    result.assert_outcomes(passed=2)


def test_a_benchmark_without_a_model_is_a_usage_error(pytester: pytest.Pytester, suite: Suite) -> None:
    """Naming a benchmark but no model would silently collect nothing."""
    suite(**TRIO)
    result = pytester.runpytest_inprocess("benchmarks/10_i.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*benchmarks/10_i.json is a benchmark: say which model*--tsuka-model=NAME*"])


def test_the_standard_suite_in_an_empty_folder(pytester: pytest.Pytester) -> None:
    """The packaged suite is there, its ids look like a local folder's and work as arguments."""
    assert len(collected(pytester)) == 28
    one = "benchmarks/10_instruction_frase.json::frase_8_parole[low]"
    assert collected(pytester, one) == [one]


def test_last_failed_reruns_what_failed(suite: Suite, run: Run, serve: Serve) -> None:
    """E01, E25: --lf runs exactly the failed item, in the same or another process."""
    suite(**TRIO)
    endpoint = serve(lambda r: "no" if r.effort == "low" and "data" in r.prompt else "yes")
    run(endpoint).assert_outcomes(passed=11, failed=1)
    result = run(endpoint, "--lf", "--lfnf=none", "-v")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["benchmarks/20_j.json::data?low? FAILED*"])


def test_last_failed_of_the_packaged_suite(run: Run, serve: Serve) -> None:
    """The same where the ids name no file on disk."""
    from tests.ideal import benchmark_of, ideal

    def script(received: Any) -> Any:
        return "?" if benchmark_of(received)[0] == "json_prodotti" and received.effort == "low" else ideal(received)

    endpoint = serve(script)
    run(endpoint).assert_outcomes(passed=27, failed=1)
    run(endpoint, "--lf").assert_outcomes(failed=1)


def test_links(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """A suite behind a link, and a file that is one, are collected under the names they have in the project."""
    real = suite(**TRIO).rename(pytester.path / "elsewhere")
    (pytester.path / "project").mkdir()
    (pytester.path / "project" / "benchmarks").symlink_to(real)
    (real / "20_j.json").rename(pytester.path / "j.json")
    (real / "20_j.json").symlink_to(pytester.path / "j.json")
    pytester.chdir()
    import os

    os.chdir(pytester.path / "project")
    result = pytester.runpytest_inprocess(*NOWHERE, "--collect-only", "-q", "--rootdir=.", "--tsuka-effort=low")
    assert [line for line in result.outlines if "::" in line] == [
        "benchmarks/10_i.json::words[low]",
        "benchmarks/20_j.json::data[low]",
        "benchmarks/30_t.json::tools[low]",
    ]


@pytest.mark.parametrize("name", ["città-è-già", "测试", "emoji-🍵"])
def test_names_in_any_script(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...], name: str
) -> None:
    """E03: readable, selectable by id and -k, the same on workers and in XML."""
    suite(**{"10_a": one_check(name)})
    endpoint = serve(lambda r: "yes")
    result = run(endpoint, "-v", "--junitxml=r.xml", "--tsuka-effort=none", *mode)
    result.assert_outcomes(passed=1)
    assert f"::{name}[none]" in result.stdout.str()
    assert f'name="{name}[none]"' in (pytester.path / "r.xml").read_text(encoding="utf-8")
    run(endpoint, f"benchmarks/10_a.json::{name}[none]").assert_outcomes(passed=1)


def test_nfc_and_nfd_are_one_name(pytester: pytest.Pytester, suite: Suite) -> None:
    """E03: the decomposed spelling in a file gives the composed id, and counts as the same name."""
    suite(**{"10_a": one_check("citta\u0300"), "20_b": one_check("citt\u00e0")})
    result = pytester.runpytest_inprocess(*NOWHERE)
    result.stdout.fnmatch_lines(["*is also the name in 10_a.json*"])


@pytest.mark.parametrize("name", ["late[1]", "a::b", "a@b", "x\n"])
def test_names_that_break_ids(pytester: pytest.Pytester, suite: Suite, name: str) -> None:
    """E01: brackets and separators are refused with a name that would do."""
    suite(**{"10_a": one_check(name)})
    result = pytester.runpytest_inprocess(*NOWHERE)
    result.stdout.fnmatch_lines(["*name: cannot be part of a test id because of*; call it '*'*"])


def test_collection_order_is_fixed(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E10: workers with random hash seeds collect the same order."""
    suite(**{f"{n:02}_x": one_check(f"item{n}") for n in range(12, 0, -1)})
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    result = run(serve(lambda r: "yes"), "-n", "3", "--tsuka-effort=none")
    result.assert_outcomes(passed=12)
    assert collected(pytester, "--tsuka-effort=none") == [
        f"benchmarks/{n:02}_x.json::item{n}[none]" for n in range(1, 13)
    ]


def test_without_the_cache_provider(suite: Suite, run: Run, serve: Serve, mode: tuple[str, ...]) -> None:
    """E13: nothing of the plugin needs pytest's cache."""
    suite(**TRIO)
    run(serve(lambda r: "yes"), "-p", "no:cacheprovider", *mode).assert_outcomes(passed=12)


def test_from_a_subfolder(pytester: pytest.Pytester, suite: Suite, serve: Serve) -> None:
    """E23: ids are relative to the rootdir wherever pytest is started."""
    suite(**{"10_a": one_check("alfa")})
    pytester.makefile(".toml", pytest="[pytest]\n")
    (pytester.path / "sub").mkdir()
    pytester.makeini("[pytest]\n")
    endpoint = serve(lambda r: "yes")
    import subprocess
    import sys

    out = subprocess.run(
        [sys.executable, "-m", "pytest", "--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "-v"],
        cwd=pytester.path / "sub",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stdout
    assert "4 passed" in out
    assert "benchmarks/10_a.json::alfa[low]" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--tsuka-effort=hihg",),
            "*--tsuka-effort: unknown effort 'hihg'*allowed: none, low, medium, xhigh*",
        ),
        (("--tsuka-fail-under=medum",), "*unknown tier 'medum'; did you mean 'medium'?*"),
        (
            ("--tsuka-fail-under=toolcalling=0.8",),
            "*unknown category 'toolcalling'; did you mean 'toolCalling'?*",
        ),
        (("--tsuka-fail-under=json=8",), "*'json=8': the score must be a number from 0 to 1*"),
        (("--tsuka-param=temperature",), "*'temperature' is not KEY=VALUE*"),
        (("--tsuka-param=model=x",), "*'model' is set by the run itself*"),
        (("--tsuka-concurrency=0",), "*--tsuka-concurrency must be at least 1*"),
        (("--tsuka-base-url=ftp://x",), "*no http(s) address*"),
        (("--tsuka-benchmarks=nowhere",), "*--tsuka-benchmarks: no such folder*nowhere*"),
        (("--tsuka-model=missing.gguf",), "*no such model file: missing.gguf*"),
        (("--tsuka-gate-effort=low", "--tsuka-effort=none"), "*'low' is not measured*"),
        (("--tsuka-model=embedded", "-n2"), "*an embedded model runs inside this process*drop -n*"),
    ],
)
def test_bad_settings_are_usage_errors(pytester: pytest.Pytester, arguments: tuple[str, ...], message: str) -> None:
    """Each says which setting, what was found and what would do."""
    result = pytester.runpytest_inprocess("--tsuka-model=m", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_settings_from_the_ini_file(pytester: pytest.Pytester, suite: Suite, serve: Serve) -> None:
    """Every option has an ini key; native TOML types are taken as they are."""
    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    pytester.makefile(
        ".toml",
        pyproject=f"""
        [tool.pytest]
        strict = true
        tsuka_model = ["m"]
        tsuka_base_url = "{endpoint.url}"
        tsuka_effort = ["low"]
        tsuka_concurrency = 2
        tsuka_param = ["seed=7", "stop=[\\"x\\"]"]
        tsuka_profile = "out/p.json"
        """,
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=3)
    assert {(r.body["seed"], r.body["stop"][0], r.effort) for r in endpoint.requests} == {(7, "x", "low")}
    assert (pytester.path / "out" / "p.json").exists()


def test_a_wrong_ini_type_is_reported_at_once(pytester: pytest.Pytester) -> None:
    """Also with -q, where pytest's header would not read it."""
    pytester.makefile(".toml", pyproject='[tool.pytest]\ntsuka_model = ["m"]\ntsuka_concurrency = "8"\n')
    result = pytester.runpytest_inprocess("-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*tsuka_concurrency*expects an int*"])


def test_points_given_away_are_warned_about(suite: Suite, run: Run, serve: Serve) -> None:
    """The vacuous-pass guard: negative checks alone pay a reply that says nothing."""
    suite(
        **TRIO,
        z_vacuous=one_check("vacuous", checks=[{"type": "not_contains", "value": "zzz"}, {"type": "not_empty"}]),
    )
    endpoint = serve(lambda r: "yes")
    plain = run(endpoint, "-W", "default")
    plain.stdout.fnmatch_lines(["*z_vacuous.json:1: TsukaWarning: vacuous: a stock apology earns 100%*"])
    result = run(endpoint, "-W", "error::pytest_tsuka.plugin.collect.TsukaWarning")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*vacuous: a stock apology earns 100%*"])


def test_a_hook_that_is_loaded_too_late(pytester: pytest.Pytester, suite: Suite) -> None:
    """A conftest.py in the suite's folder is never seen by an xdist controller: it is refused."""
    folder = suite(**TRIO)
    (folder / "conftest.py").write_text("def pytest_tsuka_tier_policy(config): return None\n")
    result = pytester.runpytest_subprocess(*NOWHERE, "--collect-only")
    result.stdout.fnmatch_lines(["*pytest_tsuka_tier_policy: is implemented in a conftest.py that is loaded too late*"])
