"""Files that others write too: replaced whole or not at all, and locked while they are changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOCK_SECONDS = 30.0


class InUse(Exception):
    """Another process has held the lock of a file for too long; the text names the lock."""


@contextlib.contextmanager
def locked(file: Path, *, beside: bool = True) -> Iterator[None]:
    """Held while a file is read, changed and written. Raises InUse.

    The lock is a file beside it, which other machines with the same folder see too; or one in the temporary
    folder, where the folder is the user's and under version control.
    """
    from filelock import FileLock, Timeout

    target = file.resolve()
    if beside:
        place = target.with_name(f".{target.name}.lock")
    else:
        user = os.getuid() if hasattr(os, "getuid") else ""
        name = hashlib.sha256(str(target).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        place = Path(tempfile.gettempdir()) / f"tsuka-{user}-{name}.lock"
    lock = FileLock(place)
    try:
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout:
        raise InUse(f"{place} is held by another process for more than {LOCK_SECONDS:g} s") from None
    try:
        yield
    finally:
        lock.release()


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
