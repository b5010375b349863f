"""Results on disk: one JSON object a line, only ever appended, each line whole or not there.

A run killed at any moment leaves at most one unfinished last line, which the next run takes away
before it goes on; a disk that fills up costs the record being written and none before it.
"""

import gzip
import json
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from maskwalk.errors import MaskwalkError

Record = dict[str, Any]


class RecordFile:
    """`records.jsonl` of one run, held open for appending by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> "RecordFile":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab")
        except OSError as problem:
            raise MaskwalkError(f"Cannot write {self.path}: {problem.strerror}.") from None
        _lock(self._file, self.path)
        whole = whole_bytes(self.path)
        if whole < self.path.stat().st_size:
            self._file.truncate(whole)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._file is not None
        self._file.close()

    def append(self, record: Record) -> None:
        """Writes one record through to the disk, or leaves the file as it was and says why."""
        assert self._file is not None
        size = self.path.stat().st_size
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as problem:
            self._abandon(size)
            raise MaskwalkError(
                f"Cannot write to {self.path}: {problem.strerror}. The records before this one are "
                "intact; make room and run the same command again to go on."
            ) from None

    def _abandon(self, size: int) -> None:
        """Drops what is buffered and takes a half-written line back."""
        assert self._file is not None
        # Closing would try to write the buffer again; the descriptor is replaced instead.
        spare = os.open(os.devnull, os.O_WRONLY)
        os.dup2(spare, self._file.fileno())
        os.close(spare)
        os.truncate(self.path, size)


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise MaskwalkError(f"Another process is writing {path}; wait for it to end.") from None


def whole_bytes(path: Path) -> int:
    """The size of the file up to its last complete line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while size:
            start = max(0, size - 65536)
            file.seek(start)
            newline = file.read(size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
    return 0


def _lines(path: Path) -> list[bytes]:
    """The complete lines of a file of records."""
    if path.suffix != ".gz":
        return path.read_bytes()[: whole_bytes(path)].splitlines()
    try:
        return gzip.decompress(path.read_bytes()).splitlines()
    except (OSError, EOFError, zlib.error):
        raise MaskwalkError(f"{path} is not a complete gzip file.") from None


def read_records(path: Path) -> list[Record]:
    """All complete records of a run (a file, or the directory it is in), in cell order.

    A file that ends in .gz is one that was packed to be kept; it is read, never written.
    """
    path = path / "records.jsonl" if path.is_dir() else path
    packed = path.with_name(path.name + ".gz")
    path = packed if packed.exists() and not path.exists() else path
    if not path.exists():
        raise MaskwalkError(f"There are no records at {path}. `maskwalk bench` writes them.")
    found: list[Record] = []
    for number, line in enumerate(_lines(path), 1):
        try:
            record = json.loads(line)
            record["key"], record["metrics"]
        except (ValueError, KeyError, TypeError):
            raise MaskwalkError(f"Line {number} of {path} is not a maskwalk record.") from None
        found.append(record)
    return sorted(found, key=lambda r: r.get("cell", 0))
