"""What the plugin costs a pytest run that has no model: bare pytest against pytest with the plugin.

Run it with `python -m perf.startup`. Each figure is the median of several runs of both, taken in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
BARE = ("-p", "no:tsuka")


def seconds(folder: Path, *args: str) -> float:
    """Wall-clock seconds of one pytest run of one empty test."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def import_milliseconds() -> float:
    """CPU milliseconds to import the plugin after pytest itself."""
    code = "import pytest, time; t = time.process_time(); import pytest_tsuka.plugin; print(time.process_time() - t)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return float(out) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_empty.py").write_text("def test_empty(): pass\n")
        bare, with_plugin = [], []
        for _ in range(RUNS):
            bare.append(seconds(folder, *BARE))
            with_plugin.append(seconds(folder))
        floor, ours = statistics.median(bare), statistics.median(with_plugin)
    imports = statistics.median(import_milliseconds() for _ in range(RUNS))
    print(f"bare pytest            {floor * 1000:7.1f} ms")
    print(f"with the plugin, inert {ours * 1000:7.1f} ms   × {ours / floor:.3f}   +{(ours - floor) * 1000:.1f} ms")
    print(f"import of the plugin   {imports:7.1f} ms")


if __name__ == "__main__":
    main()
