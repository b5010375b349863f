"""Which records count: of a cell that was run again, the newest; of two sizes, the larger run.

A record says which of the user's files it depends on (`sources`). Where such a file was edited
since, its cells have other keys: they are run again, and their old records stay in the file and are
left aside. A `--quick` run leaves a full one of the same cells as it is.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwalk.bench.records import Record, as_written, latest

PLACE = ("title", "world", "task", "sampler", "denoiser", "draw", "ties", "seed")
ONE, MANY = "record", "records"


@dataclass
class Aside:
    """How many records were left aside, and why."""

    earlier: Counter[str] = field(default_factory=Counter)  # by the files that changed
    smaller: int = 0  # of the same cells with fewer sequences

    @property
    def total(self) -> int:
        """All of them."""
        return self.earlier.total() + self.smaller

    def lines(self, then: str = "left aside") -> list[str]:
        """A sentence for each reason."""
        said = [
            f"{records(count)} of an earlier version of {what}: {then}."
            for what, count in self.earlier.items()
        ]
        if self.smaller:
            said.append(f"{records(self.smaller)} of a smaller run of the same cells: left aside.")
        return said


def records(count: int) -> str:
    """So many records, in words."""
    return f"{count:,} {ONE if count == 1 else MANY}"


def changed(now: dict[str, str], before: dict[str, str]) -> list[str]:
    """The files of today's version that an earlier one did not have like that."""
    return [name for name, digest in now.items() if before.get(name) != digest]


def newest(written: Sequence[Record]) -> tuple[list[Record], Aside]:
    """The records that count, in cell order, of all in the order of their file."""
    aside, places = Aside(), dict[tuple[str, ...], list[Record]]()
    by_key: dict[str, Record] = {}
    for record in written:  # the last of a key stands last
        by_key.pop(record["key"], None)
        by_key[record["key"]] = record
    for record in by_key.values():
        places.setdefault(tuple(str(record.get(key)) for key in PLACE), []).append(record)
    counting = [record for some in places.values() for record in _counting(some, aside)]
    return sorted(counting, key=lambda record: record.get("cell") or 0), aside


def load_newest(path: Path, lean: bool = False) -> tuple[list[Record], Aside]:
    """The records of a run that count, and what was left aside; `lean`: in little memory."""
    return newest(as_written(path, lean))


def _counting(some: list[Record], aside: Aside) -> list[Record]:
    """Of the records of one place, those of today's files; of these, those of the largest run."""
    last, today = some[-1], []
    for record in some:
        files = _outdated(last, record)
        if files:
            aside.earlier[", ".join(files)] += 1
        else:
            today.append(record)
    large = [r for r in today if not any(_within(r, other) for other in today)]
    aside.smaller += len(today) - len(large)
    return large


def _outdated(last: Record, record: Record) -> list[str]:
    """The files that were changed between two records of one place.

    Where they measure different things, each may depend on files that the other does not need.
    """
    now, before = last.get("sources", {}), record.get("sources", {})
    if set(last["metrics"]) != set(record["metrics"]):
        now = {name: digest for name, digest in now.items() if name in before}
    return changed(now, before)


def _within(record: Record, other: Record) -> bool:
    """Whether another record measures the same, and perhaps more, on more sequences."""
    return _size(record) < _size(other) and set(record["metrics"]) <= set(other["metrics"])


def _size(record: Any) -> int:
    return int(record.get("count") or 0) * int(record.get("per_prompt") or 1)


__all__ = ["Aside", "changed", "latest", "load_newest", "newest", "records"]
