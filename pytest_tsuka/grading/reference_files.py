"""References as files: read, written whole, changed under a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_tsuka.errors import GoldReferenceError
from pytest_tsuka.files import InUse, locked, write_atomically
from pytest_tsuka.gold.reference import Reference, parse_reference, reference_text
from pytest_tsuka.text.json_types import JsonObject


def read_reference(file: Path, schema: JsonObject | None = None) -> Reference:
    """The reference of a file, checked against the scenario's schema. Raises GoldReferenceError."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise GoldReferenceError(f"{file} does not exist: make a reference and verify it") from None
    return parse_reference(raw, str(file), schema)


def write_reference(file: Path, reference: Reference) -> None:
    """Replaces the file atomically."""
    write_atomically(file, reference_text(reference))


@contextmanager
def reference_lock(file: Path) -> Iterator[None]:
    """Held while a reference is changed. Raises GoldReferenceError."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(file, beside=False))
        except InUse as error:
            raise GoldReferenceError(f"{file}: {error}") from None
        yield


@contextmanager
def locked_reference(file: Path, schema: JsonObject | None = None) -> Iterator[Reference]:
    """The reference as it is now; nobody else changes it until the block ends. Raises GoldReferenceError."""
    if not file.exists():
        read_reference(file)  # says what is missing
    with reference_lock(file):
        yield read_reference(file, schema)
