"""One runner for everything: a job is a key and a function; what it returns is appended to a file.

    jobs      cells of an experiment, settings of one on text, rows of a diagnosis, baselines
    engine    where they run: here, in several processes (workers.py), or elsewhere

A job's function is named, not passed, and its arguments are JSON, so that it can run in another
process or on another machine: an engine for a cluster is one function of the same shape,
`(jobs) -> iterator of (job, result)`, in a file of its own. Jobs are independent and pure, so the
only shared thing is the file of results, and only the parent writes it. A run goes on where an
earlier one stopped: jobs whose key is on disk are not run again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwalk.bench.records import Record, RecordFile, load_records
from maskwalk.errors import user_code

FUNCTIONS = {  # what a job may name
    "cell": "maskwalk.bench.cell:cell_record",
    "text": "maskwalk.bench.texts:text_record",
    "losses": "maskwalk.bench.diagnosis:losses_row",
    "outcome": "maskwalk.bench.verdict.outcomes:outcome_row",
}
Result = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A piece of work: the key of its result, a function by name, and its arguments."""

    key: str
    function: str
    arguments: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)  # said of the result, not computed
    writes: tuple[Path, ...] = ()  # files it leaves besides; without them it runs again

    @property
    def label(self) -> str:
        """What a progress bar says."""
        return str(self.about.get("label") or self.arguments.get("label") or self.function)


Engine = Callable[[Sequence[Job]], Iterator[tuple[Job, Result]]]


def call(function: str, arguments: dict[str, Any], device: str) -> Result:
    """Runs a job's function in this process."""
    module, _, name = FUNCTIONS[function].partition(":")
    with user_code():
        result: Result = getattr(import_module(module), name)(**arguments, device=device)
    return result


def here(device: str = "cpu") -> Engine:
    """The engine that runs jobs one after another in this process."""

    def results(jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        for job in jobs:
            yield job, call(job.function, job.arguments, device)

    return results


def engine(workers: int, device: str = "cpu", plugins: Sequence[str] = ()) -> Engine:
    """The engine for so many processes: this one, or as many of their own."""
    if workers <= 1:
        return here(device)
    from maskwalk.bench.workers import Processes

    return Processes(workers, device, tuple(plugins))


@dataclass
class Run:
    """Jobs being written to a file; iterate over it to do the work."""

    jobs: Sequence[Job]
    path: Path  # of the file of results
    engine: Engine = field(default_factory=here)
    load: Callable[[Path], Sequence[Any]] = load_records
    done: int = field(init=False, default=0)

    @property
    def total(self) -> int:
        """How many different jobs there are."""
        return len({job.key for job in self.jobs})

    def __iter__(self) -> Iterator[Record]:
        with RecordFile(self.path) as file:
            known = {row["key"] for row in self.load(self.path)}
            todo: dict[str, Job] = {}
            for job in self.jobs:
                if job.key not in known or not all(path.exists() for path in job.writes):
                    todo.setdefault(job.key, job)
            self.done = self.total - len(todo)
            for job, result in self.engine(list(todo.values())):
                record: Any = {"key": job.key, **result, **job.about}
                file.append(record)
                self.done += 1
                yield record
