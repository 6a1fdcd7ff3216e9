"""Files that others write too: replaced whole or not at all, and locked while they are changed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Temporary file in the same folder, fsync, rename: the old content stays until the new is whole."""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode)  # noqa: PTH101 - a plain name from mkstemp
        os.replace(name, file)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
