"""Several hosts: two real sshd on loopback stand in for them, each with its own copy of the project."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LEAN, one_check, write_json
from tests.endpoint import FakeEndpoint, Received
from tests.film import FILM, REFERENCE, TRUE

Serve = Callable[..., FakeEndpoint]
Profiles = Callable[[], Any]
Hosts = tuple[Path, Path]

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(not (SSHD and shutil.which("ssh")), reason="needs sshd and ssh")


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def hosts(pytester: pytest.Pytester) -> Iterator[Hosts]:
    """The project's folder on each of two hosts, which `ssh_config` calls one and two."""
    base = pytester.path
    key = base / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd gives up its rights
    running = []
    config = ""
    for name in ("one", "two"):
        folder, port = base / name, free_port()
        (folder / "project").mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host"], check=True)
        lines = [f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder / 'host'}", "PidFile none"]
        lines += [f"AuthorizedKeysFile {key}.pub", "StrictModes no", "UsePAM no"]
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        assert SSHD
        running.append(subprocess.Popen([SSHD, "-D", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL))
        config += f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n"
        deadline = time.monotonic() + 20
        while not listening(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    config += f"Host *\n  User {getpass.getuser()}\n  IdentityFile {key}\n  IdentitiesOnly yes\n  LogLevel ERROR\n"
    config += "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
    (base / "ssh_config").write_text(config)
    yield base / "one" / "project", base / "two" / "project"
    for process in running:
        process.terminate()
        process.wait(10)


def spread(pytester: pytest.Pytester, hosts: Hosts, *args: str) -> pytest.RunResult:
    """A run whose items are played on both hosts."""
    where = [
        f"--tx=ssh={name}//ssh_config={pytester.path / 'ssh_config'}//python={sys.executable}//chdir={folder}"
        for name, folder in zip(("one", "two"), hosts, strict=True)
    ]
    return pytester.runpytest_subprocess(*LEAN, "--dist=load", *where, "--tsuka-model=m", *args, timeout=100)


SUITE = {
    f"b{n:02}": one_check(f"b{n:02}", category) for n, category in enumerate(("instruction", "json", "toolCalling") * 6)
}


def install(*folders: Path) -> None:
    for folder in folders:
        write_json(folder / "benchmarks", SUITE)


def script(received: Received) -> str:
    """Fails at some places, the same ones whoever asks."""
    return "no" if received.effort == "low" and received.prompt.endswith(("3", "7")) else "yes"


def figures(data: Any) -> Any:
    """A profile file without what differs between any two runs."""
    for profile in data["profiles"].values():
        for name in ("testedAt", "tokensPerSecond", "tokensPerSecondBasis", "throughput", "wallSeconds", "latency"):
            profile.pop(name, None)
    return data


def test_two_hosts_give_the_profile_of_one_process(
    pytester: pytest.Pytester, hosts: Hosts, serve: Serve, profiles: Profiles
) -> None:
    install(pytester.path, *hosts)
    endpoint = serve(script)
    url = f"--tsuka-base-url={endpoint.url}"
    pytester.runpytest_subprocess(*LEAN, "--tsuka-model=m", url).assert_outcomes(passed=68, failed=4)
    alone = figures(profiles())
    (pytester.path / "models_profile.json").unlink()
    result = spread(pytester, hosts, url, "--tsuka-json=r.json", "-v")
    result.assert_outcomes(passed=68, failed=4)
    assert figures(profiles()) == alone
    assert {"[gw0]", "[gw1]"} <= {line.split()[0] for line in result.outlines if line.startswith("[gw")}
    verdicts = json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))["verdicts"]
    assert len(verdicts) == 72
    assert not any((folder / "models_profile.json").exists() or (folder / ".tsuka").exists() for folder in hosts)


def test_scenarios_are_graded_by_the_files_of_this_host(pytester: pytest.Pytester, hosts: Hosts, serve: Serve) -> None:
    """Answers come from wherever an item was played; reference and file names are the controller's."""
    install(pytester.path, *hosts)
    for folder in (pytester.path, *hosts):
        write_json(folder / "benchmarks" / "scenarios", {"film": FILM, "film__reference": REFERENCE})
    for host in hosts:  # a reference of theirs is never looked at for grading
        write_json(host / "benchmarks" / "scenarios", {"film__reference": {**REFERENCE, "output": {"year": 1}}})
    endpoint = serve(lambda _: json.dumps(TRUE))
    result = spread(pytester, hosts, f"--tsuka-base-url={endpoint.url}", "--tsuka-json=r.json", "-k", "film")
    result.assert_outcomes(passed=1)
    (standings,) = json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))["scenarios"]
    assert {row["quality"] for row in standings["results"]} == {100.0}


def test_another_suite_on_one_host_measures_nothing(
    pytester: pytest.Pytester, hosts: Hosts, serve: Serve, profiles: Profiles
) -> None:
    """Its items have the same names: without a look at the content their verdicts would be mixed in."""
    install(pytester.path, *hosts)
    write_json(hosts[1] / "benchmarks", {"b00": one_check("b00", checks=[{"type": "contains", "value": "other"}])})
    endpoint = serve(script)
    result = spread(pytester, hosts, f"--tsuka-base-url={endpoint.url}")
    result.stdout.fnmatch_lines(
        ["this worker (*two/project) would measure something else:", "*testsHash*same files on every host*"]
    )
    assert not endpoint.requests
    assert result.ret != 0
    assert profiles() is None


def test_an_endpoint_that_only_this_host_knows_of_measures_nothing(
    pytester: pytest.Pytester, hosts: Hosts, serve: Serve, monkeypatch: pytest.MonkeyPatch, profiles: Profiles
) -> None:
    install(pytester.path, *hosts)
    endpoint = serve(script)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    result = spread(pytester, hosts)
    result.stdout.fnmatch_lines([f"*the endpoint (--tsuka-base-url reaches*: '*' here, '{endpoint.url}' for the*"])
    assert not endpoint.requests
    assert profiles() is None
