"""pytest runs as processes of their own, which can be interrupted as from a keyboard."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import LEAN
from tests.endpoint import FakeEndpoint


def start(folder: Path, endpoint: FakeEndpoint, *args: str) -> subprocess.Popen[str]:
    """A run of the benchmarks in `folder` at one effort. Its output is read with `communicate`."""
    command = [sys.executable, "-m", "pytest", "--tsuka-model=m", f"--tsuka-base-url={endpoint.url}"]
    return subprocess.Popen(
        [*command, "--tsuka-effort=none", *LEAN, *args],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell that starts a job in the background has it ignore SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Returns when the condition holds; fails when the process ends before or the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def interrupt(process: subprocess.Popen[str]) -> tuple[str, float]:
    """Ctrl-C: the output, and the seconds until the process was gone. Its exit status must be 2."""
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    return output, time.monotonic() - begun
