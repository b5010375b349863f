"""Many records in little memory: a trace stays in its file, and words are held once.

Half of a record and more is its trace, of which a page shows those of a few panels; names and specs
are the same in thousands of records.
"""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.reading import Wrong, json_value

WORDS = 256  # characters of a text that is worth holding once


class StoredTrace(Mapping[str, Any]):
    """The trace of the record that begins at a place of a file; read whenever it is looked at."""

    __slots__ = ("_keys", "_path", "_place")

    def __init__(self, path: Path, place: int, keys: tuple[str, ...]) -> None:
        self._path, self._place, self._keys = path, place, keys

    def load(self) -> dict[str, Any]:
        """The trace as it was written."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                record = json_value(file.readline())
            trace = record["trace"]
        except (OSError, Wrong, TypeError, KeyError):
            trace = None
        if not isinstance(trace, dict):
            raise MaskwalkError(f"{self._path} was changed while its records were read; try again.")
        return trace

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return self.load()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def loaded(trace: Any) -> dict[str, Any] | None:
    """A trace of a record, wherever it is; None for what is none."""
    if isinstance(trace, StoredTrace):
        return trace.load()
    return trace if isinstance(trace, dict) else None


def lean_row(row: dict[str, Any], path: Path, place: int) -> dict[str, Any]:
    """The checked row that begins at a place of a plain file, without its trace."""
    trace = row.get("trace")
    if isinstance(trace, dict):
        row["trace"] = StoredTrace(path, place, tuple(map(sys.intern, trace)))
    return _once(row)


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Nobody looks for garbage: where much is built and kept, that takes long and finds none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _once(row: dict[str, Any]) -> dict[str, Any]:
    """The same with short texts held once."""
    held = {}
    for key, item in row.items():
        if type(item) is dict:
            item = _once(item)
        elif type(item) is str and len(item) <= WORDS:
            item = sys.intern(item)
        held[sys.intern(key)] = item
    return held
