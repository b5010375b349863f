"""Results on disk: one JSON object a line, only ever appended, each line whole or not there.

A run killed at any moment leaves at most one unfinished last line, which the next run takes away
before it goes on; a disk that fills up costs the record being written and none before it.

`Record` is schema 2. Records of schema 1 (graph, walk, length and graph seed instead of a world, a
preset instead of a mode) are read too: `upgrade` says the same in schema 2.
"""

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NotRequired, TypedDict, cast

import pyarrow as pa

from maskwalk.bench.record_shapes import checked_record
from maskwalk.bench.stored import lean_row, nothing_collected
from maskwalk.decoding.draw import DRAWS, mode_name
from maskwalk.errors import MaskwalkError
from maskwalk.reading import PACKED, Shape, Wrong, json_value, or_packed, unpacked
from maskwalk.reading.files import file_size
from maskwalk.resources import at_hand, read_file
from maskwalk.specs import Spec
from maskwalk.stats import settled_se
from maskwalk.worlds.metrics import METRICS

SCHEMA = 2
MOST = 2**30  # bytes of records, unpacked
REMEDY = "Remove the line and run the command that wrote the file again: it goes on from the rest."
HELD_OUT = "held_out"  # stands where a sampler would: text that policies should write like


class TraceRecord(TypedDict):
    """The unmasking of one sequence, position by position."""

    tokens: list[int]
    rounds: list[int]  # in which it was revealed; -1: given
    entropy: list[float | None]  # nats of the marginal it was drawn from
    prob: NotRequired[list[float | None]]  # of the token, when it was drawn
    valid: list[bool] | None  # None: nobody can check
    pictures: NotRequired[list[str]]  # as the world draws it (pictures.py)
    picture_rounds: NotRequired[list[int]]  # after which they stand; -1: what is given


class Record(TypedDict, total=False):
    """One setting and what came out; a `metrics` entry has value, se, n and more."""

    schema: int
    key: str
    version: str
    commit: str | None
    experiment: str
    cell: int  # its number in the experiment
    title: str  # of the world, for a reader
    world: str
    task: str
    sampler: str
    denoiser: str
    mode: str  # how tokens were drawn, in a word
    kind: str  # exact, factorised or shaped (decoding/kinds.py)
    draw: str
    ties: str
    count: int
    per_prompt: int
    seed: int
    metrics: dict[str, dict[str, Any] | None]
    described: dict[str, Any]  # metrics of a user's own: what a reader has to know of them
    seconds: float
    trace: TraceRecord | None
    notes: list[str]
    impossible: int  # times the oracle was shown tokens that no sequence agrees with
    axis: dict[str, Any]  # where it stands on the x axis of a line figure
    column: str  # of the paper's tables
    published: dict[str, float]  # what the paper prints for it
    texts: list[str]  # the first texts, of a world of text
    judge: str  # who read them
    judge_weights: str  # the hash of its weights, where it is a directory of the user's
    sources: dict[str, str]  # files of the user's it depends on, and their hashes


def upgrade(record: dict[str, Any]) -> Record:
    """A record of schema 1 in the words of schema 2; one of schema 2 as it is."""
    if record.get("schema", 1) != 1:
        return cast(Record, record)
    old = dict(record)
    preset, draw = str(old.pop("preset")), old.pop("draw", None)
    if isinstance(draw, dict):
        old["draw"], old["mode"] = _drawn(tuple(draw.items()), old.get("ties", "uniform"))
    else:
        old["mode"] = preset
    if old.pop("kind", None) == "text":
        old["world"] = str(Spec("text", (), {"source": None, "length": old.pop("length", None)}))
        old["denoiser"] = old.pop("model", "")
        old["task"] = "unconditional()"
    else:
        parts = [old.pop(key, None) for key in ("graph", "walk", "length", "graph_seed")]
        names = ("graph", "law", "length", "seed")
        old["world"] = f"walk({', '.join(f'{n}={v}' for n, v in zip(names, parts))})"
    return cast(Record, old | {"schema": SCHEMA})


@lru_cache(maxsize=256)
def _drawn(draw: tuple[tuple[str, Any], ...], ties: str) -> tuple[str, str]:
    """(draw, mode) of a draw as schema 1 has it."""
    text = DRAWS.canonical(str(Spec("draw", (), dict(draw))))
    return text, mode_name(text, ties)


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

    def append(self, record: Any) -> None:
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


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The complete lines of a file of records, one at a time, and where each begins."""
    if path.suffix in PACKED:
        yield from ((0, line) for line in unpacked(read_file(path), MOST, path).splitlines())
        return
    file_size(path)  # it is a file
    try:
        with path.open("rb") as file:
            place = 0
            for line in file:
                if line.endswith(b"\n"):
                    yield place, line[:-1]
                place += len(line)
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None


def read_rows(path: Path, check: Shape, what: str, remedy: str) -> Iterator[Any]:
    """The complete lines of a file as JSON values of a shape, or a sentence about the first bad."""
    return (value for _, value in _placed_rows(path, check, what, remedy))


def _placed_rows(path: Path, check: Shape, what: str, remedy: str) -> Iterator[tuple[int, Any]]:
    """The same, with the place in the file where each begins."""
    for number, (place, line) in enumerate(_lines(path), 1):
        try:
            value = json_value(line, halves=check is _known)
            check(value)
        except Wrong as wrong:
            raise MaskwalkError(
                f"Line {number} of {path} is not {what}: {wrong.told()}. {remedy}"
            ) from None
        yield place, value


def load_records(path: Path) -> list[Record]:
    """All complete records of a run (a file, or the directory it is in), in cell order."""
    return sorted(as_written(path), key=lambda r: r.get("cell", 0))


def as_written(path: Path, lean: bool = False) -> list[Record]:
    """The same in the order of the file, in which the last of a cell is the newest.

    A file in .xz or .gz was packed to be kept: it is read, never written. Records are checked.
    `lean` holds many in little memory (stored.py): traces are read again when somebody looks.
    """
    path = or_packed(path / "records.jsonl" if path.is_dir() else path)
    if not path.exists():
        raise MaskwalkError(f"There are no records at {path}. `maskwalk bench` writes them.")
    with nothing_collected():
        rows = _placed_rows(path, _known, "a maskwalk record", REMEDY)
        if lean and path.suffix not in PACKED:
            return [upgrade(lean_row(row, path, place)) for place, row in rows]
        return [upgrade(row) for _, row in rows]


def _known(record: Any) -> None:
    """A record of a schema this version reads, whole, and one that can be said in schema 2."""
    schema = record.get("schema", 1) if isinstance(record, dict) else SCHEMA
    if type(schema) is int and schema > SCHEMA:
        raise Wrong(
            f"1 to {SCHEMA}, which this version of maskwalk reads (install the one that wrote it)",
            schema,
        ).inside("schema")
    checked_record(record)
    if schema == 1 and isinstance(record.get("draw"), dict):
        try:
            upgrade(record)
        except MaskwalkError as problem:
            raise Wrong(f"a draw ({problem})", record["draw"]).inside("draw") from None


def latest(records: list[Record]) -> list[Record]:
    """The last record of every key: a judge writes a record again, with its own numbers in it."""
    return list({record["key"]: record for record in records}.values())


SETTINGS = (
    *("experiment", "title", "world", "task", "sampler", "denoiser", "mode", "draw", "ties"),
    *("count", "per_prompt", "seed", "seconds", "key"),
)


def numbers(record: Record) -> dict[str, Any]:
    """Every number of every metric of a record, by column: coherence, coherence_se, tv1_floor …"""
    flat: dict[str, Any] = {}
    for metric, estimate in record["metrics"].items():
        known = isinstance(estimate, dict) and estimate.get("value") is not None
        flat[metric] = estimate["value"] if known and estimate is not None else None
        more = {k: v for k, v in (estimate or {}).items() if known and k != "value"}
        if "se" in more:
            more["se"] = _settled(record, metric)
        flat |= {
            f"{metric}_{key}": value
            for key, value in more.items()
            if value is None or isinstance(value, bool | int | float)
        }
    return flat


def _settled(record: Record, metric: str) -> float | None:
    """The standard error of a metric, with that of a share of exactly 0 or 1 settled."""
    estimate = record["metrics"][metric] or {}
    units = (estimate.get("n") or 1) / (record.get("per_prompt") or 1)
    share = METRICS.describe(metric, record.get("described")).share
    return settled_se(estimate["value"], estimate["se"], units, share)


def read_records(path: str | Path) -> pa.Table:
    """The records of a run as a table: one row per record, one column per setting or number.

    `.to_pandas()` for those who have pandas; what a record does not have is null. Of a cell that
    was run again the newest record counts. `results/paper` and its like are also found where the
    package is installed.
    """
    from maskwalk.bench.versions import newest

    rows = [
        {key: record.get(key) for key in SETTINGS} | numbers(record)
        for record in newest(as_written(at_hand(Path(path), "results")))[0]
    ]
    columns = dict.fromkeys(key for row in rows for key in row)
    return pa.table({key: [row.get(key) for row in rows] for key in columns})
