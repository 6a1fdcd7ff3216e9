"""Result files: compared, joined, and shown as Markdown."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.cli import main
from pytest_tsuka.errors import SettingsError
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION
from pytest_tsuka.report.charts import score_chart
from pytest_tsuka.report.diff import compare, markdown
from pytest_tsuka.report.markdown import escaped, summary
from pytest_tsuka.report.merged import merge_documents, unflattened
from tests.builders import document, run_of, verdict

# --- comparing -----------------------------------------------------------------------------


def test_a_lower_tier_is_a_regression() -> None:
    """With the category that fell, the item, and the check that fails now."""
    found = compare(document(*run_of(1, 1, 1)), document(*run_of(1, 1, 0.75)))
    assert found["regressions"] == [
        "m at low: tier fell from large to medium",
        "m at low: toolCalling fell from 1.00 to 0.75, noise unknown (no repeats)",
        "m: tier at the recommended effort fell from large to medium",
    ]
    (item,) = found["items"]
    assert (item["benchmark"], item["before"], item["after"]) == ("tools", 1, 0.75)
    assert item["checks"] == ["step 1 contains {'value': '3'} fails now: no 3"]


def test_an_improvement_is_none() -> None:
    found = compare(document(*run_of(1, 1, 0.5)), document(*run_of(1, 1, 1)))
    assert found["regressions"] == []
    assert found["levels"][0]["tierAfter"] == "large"


def test_the_noise_of_repeats() -> None:
    """A fall inside the intervals is noise, one outside is not."""

    def repeated(*tools: float) -> dict[str, Any]:
        return document(verdict("words", 1, 1, 1, 1), verdict("data", 1, 1, 1, 1), verdict("tools", *tools))

    noisy = compare(repeated(1, 0.75, 1, 1), repeated(1, 0.75, 0.75, 1))
    assert [c["noise"] for c in noisy["levels"][0]["categories"] if c["change"]] == ["within the noise of the repeats"]
    assert not [r for r in noisy["regressions"] if "toolCalling" in r]
    clear = compare(repeated(1, 1, 1, 1), repeated(0.5, 0.5, 0.5, 0.5))
    assert any("beyond the noise of the repeats" in r for r in clear["regressions"])


def test_models_that_are_in_one_only() -> None:
    found = compare(document(*run_of(1, 1, 1, model="a")), document(*run_of(1, 1, 1, model="b"), ))  # fmt: skip
    assert (found["onlyBefore"], found["onlyAfter"], found["levels"]) == (["a at low"], ["b at low"], [])
    changed = compare(document(*run_of(1, 1, 1)), document(*run_of(1, 1, 1), hash_="other"))
    assert changed["suiteChanged"]


@given(st.lists(st.sampled_from([0, 0.25, 0.5, 0.75, 1]), min_size=3, max_size=3))
def test_a_run_against_itself(scores: list[float]) -> None:
    """Has no change and no regression."""
    one = document(*run_of(*scores))
    found = compare(one, one)
    assert found["items"] == found["regressions"] == []
    assert all(c["change"] == 0 for c in found["levels"][0]["categories"])


# --- joining -------------------------------------------------------------------------------


def test_shards_have_a_tier_together() -> None:
    """No part has one alone; the whole is what one run would have written."""
    whole = run_of(1, 1, 0.75)
    parts = [(f"{n}.json", document(v)) for n, v in enumerate(whole)]
    assert all(m["tier"] is None for _, part in parts for m in part["models"])
    merged, results = merge_documents(parts)
    assert results[0].recommended is not None
    assert results[0].recommended.tier == "medium"
    assert json.loads(json.dumps(merged["verdicts"])) == document(*whole)["verdicts"]
    assert json.loads(json.dumps(merged["models"])) == document(*whole)["models"]


def test_a_missing_part_is_no_tier() -> None:
    """What a complete run holds is known from any part."""
    merged, results = merge_documents([("a.json", document(*run_of(1, 1, 1)[:2]))])
    assert results[0].efforts[0].incomplete == "1 of 3 benchmarks were not run"
    assert merged["models"][0]["tier"] is None


def test_an_error_gives_way_to_a_score() -> None:
    """Whichever file comes first; of two scores the later file's counts."""
    good, bad = document(*run_of(1, 1, 1)), document(verdict("tools"))
    for parts in ([("a", good), ("b", bad)], [("a", bad), ("b", good)]):
        assert merge_documents(parts)[1][0].efforts[0].tier == "large"
    twice = merge_documents([("a", good), ("b", document(verdict("tools", 0.75)))])
    assert twice[1][0].efforts[0].scores["toolCalling"] == 0.75


def test_parts_of_different_suites_do_not_belong_together() -> None:
    with pytest.raises(SettingsError, match="different suites"):
        merge_documents([("a", document(*run_of(1, 1, 1))), ("b", document(*run_of(1, 1, 1), hash_="other"))])
    other = document(*run_of(1, 1, 1)) | {"benchmarkVersion": 1}
    with pytest.raises(SettingsError, match="different versions"):
        merge_documents([("a", document(*run_of(1, 1, 1))), ("b", other)])


@given(st.lists(st.sampled_from([0, 0.5, 1]), max_size=3))
def test_a_verdict_survives_the_file(scores: list[float]) -> None:
    original = verdict("words", *scores)
    (flat,) = document(original)["verdicts"]
    assert unflattened(flat) == original


# --- Markdown ------------------------------------------------------------------------------

HOSTILE = "a|b <img src=x onerror=alert(1)> [x](javascript:1) @someone `c` **d** #1\n| row \u202e"


@given(st.text(max_size=60))
def test_no_text_is_markup(text: str) -> None:
    """One line; everything Markdown or HTML could take for its own is escaped."""
    safe = escaped(text)
    assert "\n" not in safe
    assert re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|@]", safe) is None


def test_a_summary_is_safe_and_whole() -> None:
    made = [verdict("words", 0.5, model=HOSTILE), verdict("data", 1, model=HOSTILE), verdict("tools", 1, model=HOSTILE)]
    one = document(*made)
    one["gate"] = {"met": False, "failures": [[HOSTILE, "json misses by 0.1"]]}
    text = summary(one)
    assert re.search(r"(?<!\\)<img", text) is None
    assert "](javascript" not in text
    assert "| low | 0.50 | 1.00 | 1.00 | medium |" in text
    assert "**Gate not met**" in text
    assert "1 of 3 items below full score" in text
    assert re.sub(r"</?(?:details|summary)>", "", text).count("<") == text.count("\\<")
    assert re.search(r"(?<!\\)<img", markdown(compare(one, copy.deepcopy(one)))) is None


# --- commands ------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(json.dumps(document(*run_of(1, 1, 1))))
    Path("worse.json").write_text(json.dumps(document(*run_of(1, 1, 0.5))))
    Path("no.json").write_text("{}")
    return tmp_path


def tsuka(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == code, result.output
    return result.output


def test_diff(files: Path) -> None:
    """The exit status tells a regression when asked to."""
    assert "regression: m at low: tier fell from large to small" in tsuka("diff", "good.json", "worse.json")
    tsuka("diff", "good.json", "worse.json", "--fail-on-regression", code=1)
    assert "no regression" in tsuka("diff", "worse.json", "good.json", "--fail-on-regression")
    assert "**Regressions**" in tsuka("diff", "good.json", "worse.json", "--markdown")
    assert json.loads(tsuka("diff", "good.json", "worse.json", "--json"))["items"][0]["benchmark"] == "tools"
    assert "is no result file" in tsuka("diff", "good.json", "no.json", code=2)
    assert "does not exist: name a result file" in tsuka("diff", "good.json", code=2)


def test_merge(files: Path) -> None:
    """Into a result file and into profiles; an incomplete whole is told by the exit status."""
    for n, one in enumerate(run_of(1, 1, 1)):
        Path(f"{n}.json").write_text(json.dumps(document(one)))
    tsuka("merge", "0.json", "1.json", "2.json", "-o", "all.json", "--profile=p.json")
    assert json.loads(Path("all.json").read_text())["models"][0]["tier"] == "large"
    profiles = json.loads(Path("p.json").read_text())
    assert profiles["profiles"]["m@low"]["tier"] == "large"
    assert profiles["recommendations"] == {"m": "low"}
    assert "1 of 3 benchmarks were not run" in tsuka("merge", "0.json", "1.json", "-o", "some.json", code=1)
    assert "say where to" in tsuka("merge", "0.json", code=2)


def test_merge_profiles(files: Path) -> None:
    """The later measurement counts, and each model's recommendation is made anew."""

    def entry(tier: str, at: str) -> dict[str, Any]:
        scores = {"instruction": 1.0, "json": 1.0, "toolCalling": 1.0}
        return {"tier": tier, "scores": scores, "benchmarkVersion": BENCHMARK_VERSION, "testsHash": "h", "testedAt": at}

    first = {"profiles": {"m@none": entry("small", "2026-02"), "m@low": entry("large", "2026-01")},
             "recommendations": {"m": "low"}}  # fmt: skip
    second = {
        "profiles": {
            "m@low": entry("small", "2026-03"),
            "m@high": entry("large", "2025"),
            "n@none": entry("medium", "2026"),
        }
    }
    Path("a.json").write_text(json.dumps(first))
    Path("b.json").write_text(json.dumps(second))
    for order in (("a.json", "b.json"), ("b.json", "a.json")):
        Path("p.json").unlink(missing_ok=True)
        assert "4 profiles written" in tsuka("merge", *order, "--profile=p.json")
        joined = json.loads(Path("p.json").read_text())
        assert joined["profiles"]["m@low"]["tier"] == "small"
        assert joined["recommendations"] == {"m": "high", "n": "none"}
    assert "are joined into --profile" in tsuka("merge", "a.json", "b.json", "-o", "x.json", code=2)


def test_drawing_leaves_no_import_hook() -> None:
    """pygal's would make every later import warn."""
    before = list(sys.meta_path)
    assert score_chart([{"effort": "low", "scores": {"instruction": 1, "json": 0.5, "toolCalling": None}}], {})
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == "pygal"]
    assert len(sys.meta_path) <= len(before)


def test_report(files: Path) -> None:
    assert "3 items" in tsuka("report", "good.json", "-o", "x.html")
    text = Path("x.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "m: large" in text
    assert "is no result file" in tsuka("report", "no.json", code=2)
