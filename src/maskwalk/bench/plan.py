"""Jobs, and which of them have to be run: what is on disk and fits is not run again.

A result fits a job if it has the job's key and says the same of what was run. One that says the
same under another key is of an earlier version of the user's files; it stays, and is not counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwalk.bench.versions import Aside, changed
from maskwalk.bench.versions import records as so_many

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A piece of work: the key of its result, a function by name, and its arguments."""

    key: str
    function: str
    arguments: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)  # said of the result, not computed
    writes: tuple[Path, ...] = ()  # files it leaves besides; without them it runs again
    leaves: str = ""  # the argument that names the folder of these files
    says: dict[str, Any] = field(default_factory=dict)  # what its result must say of itself
    metrics: tuple[str, ...] | None = None  # what its result must hold
    sources: dict[str, str] = field(default_factory=dict)  # the user's files it depends on

    @property
    def name(self) -> str:
        """What it is, for a person."""
        words = (self.says.get(key) or self.about.get(key) for key in ("sampler", "world", "task"))
        return " · ".join(str(word) for word in words if word) or self.function

    def fits(self, row: Row) -> bool:
        """Whether a result is one of this job, of whatever version of its files."""
        same = all(row.get(key) == value for key, value in self.says.items())
        return same and (self.metrics is None or set(row["metrics"]) == set(self.metrics))


@dataclass
class Plan:
    """What a run does: the jobs to run, and results to write again so that they are the newest."""

    todo: list[Job]
    again: list[Row]
    notes: list[str]

    @classmethod
    def of(cls, jobs: Sequence[Job], rows: Sequence[Row]) -> "Plan":
        """The plan for these jobs where these results are on disk, in the order of their file."""
        last = {row["key"]: number for number, row in enumerate(rows)}
        others = _Others(jobs, rows)
        todo: dict[str, Job] = {}
        again: dict[str, Row] = {}
        earlier: Counter[str] = Counter()
        foreign = 0
        for job in {job.key: job for job in reversed(jobs)}.values():
            number = last.get(job.key)
            row = None if number is None else rows[number]
            old = others.of(job)
            if row is not None and job.fits(row) and all(path.exists() for path in job.writes):
                if any(place > last[job.key] for place, _ in old):
                    again[job.key] = row
                continue
            todo[job.key] = job
            foreign += row is not None and not job.fits(row)
            earlier.update(files for _, files in old)
        return cls(
            [todo[key] for key in dict.fromkeys(job.key for job in jobs) if key in todo],
            list(again.values()),
            [*Aside(earlier).lines("run again"), *_foreign(foreign)],
        )


class _Others:
    """Results of earlier versions of the user's files, by what they say of themselves."""

    def __init__(self, jobs: Sequence[Job], rows: Sequence[Row]) -> None:
        self.fields = tuple(dict.fromkeys(key for job in jobs if job.sources for key in job.says))
        self.rows: dict[tuple[str, ...], list[tuple[int, Row]]] = {}
        for number, row in enumerate(rows if self.fields else ()):
            self.rows.setdefault(self._place(row), []).append((number, row))

    def _place(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row.get(key)) for key in self.fields)

    def of(self, job: Job) -> list[tuple[int, str]]:
        """Where an earlier version of a job's result stands, and which files changed since."""
        if not job.sources:
            return []
        return [
            (number, ", ".join(files))
            for number, row in self.rows.get(self._place(job.says), ())
            if row["key"] != job.key
            and job.fits(row)
            and (files := changed(job.sources, row.get("sources", {})))
        ]


def _foreign(count: int) -> list[str]:
    if not count:
        return []
    return [f"{so_many(count)} with the key of another cell than they describe: run again."]
