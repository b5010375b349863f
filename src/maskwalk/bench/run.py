"""One runner for everything: a job is a key and a function; what it returns is appended to a file.

    jobs      cells of an experiment, settings of one on text, rows of a diagnosis, baselines
    engine    where they run: here, in several processes (workers.py), or on a cluster (cluster/)

A job's function is named, not passed, and its arguments are JSON, so that it can run in another
process or on another machine: an engine is `(jobs) -> iterator of (job, result)`. Jobs are
independent and pure, so the only shared thing is the file of results, and only the parent writes
it. A run goes on where an earlier one stopped: jobs whose result is on disk are not run again. A
job that fails is noted in `skipped.jsonl`; the others go on, and the next run tries it again.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwalk.bench.plan import Job, Plan
from maskwalk.bench.records import Record, RecordFile, as_written
from maskwalk.errors import STOPS, MaskwalkError, memory_ran_out, user_code

FUNCTIONS = {  # what a job may name
    "cell": "maskwalk.bench.cell:cell_record",
    "text": "maskwalk.bench.texts:text_record",
    "losses": "maskwalk.bench.diagnosis:losses_row",
    "text_losses": "maskwalk.bench.text_diagnosis:text_losses_row",
    "tune_text": "maskwalk.bench.tuning.trial:tune_text",
    "tune_world": "maskwalk.bench.tuning.trial:tune_world",
    "replay": "maskwalk.bench.replays:replay_row",
    "score": "maskwalk.bench.scoring:score_record",
    "outcome": "maskwalk.bench.verdict.outcomes:outcome_row",
}
SKIPPED = "skipped.jsonl"
NO_MEMORY = "Out of memory: give it more, take a smaller world or count, or fewer --workers."
Result = dict[str, Any]


class Unfinished(MaskwalkError):
    """Some jobs failed; all others are done."""


@dataclass(frozen=True)
class Failure:
    """What stands in place of a result: why there is none."""

    reason: str
    traceback: str = ""


Engine = Callable[[Sequence[Job]], Iterator[tuple[Job, Result | Failure]]]


def function_named(function: str) -> Callable[..., Result]:
    """What a job names, imported when it is first needed."""
    module, _, name = FUNCTIONS[function].partition(":")
    found: Callable[..., Result] = getattr(import_module(module), name)
    return found


def attempt(function: str, arguments: dict[str, Any], device: str) -> Result | Failure:
    """Runs a job in this process; whatever it raises is the reason why there is no result."""
    try:
        with user_code():
            return function_named(function)(**arguments, device=device)
    except MaskwalkError as problem:
        return Failure(str(problem))
    except STOPS:
        raise
    except BaseException as problem:
        if memory_ran_out(problem):
            return Failure(NO_MEMORY)
        first = f"{problem}\n".splitlines()[0]
        what = f"{type(problem).__name__}: {first}".rstrip(": .")
        return Failure(f"{what}.", traceback.format_exc())


def here(device: str = "cpu") -> Engine:
    """The engine that runs jobs one after another in this process."""

    def results(jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        for job in jobs:
            yield job, attempt(job.function, job.arguments, device)

    return results


def engine(
    workers: int, device: str = "cpu", plugins: Sequence[str] = (), timeout: float | None = None
) -> Engine:
    """The engine for so many processes: this one, or as many of their own.

    With a time limit there is always a process of its own, which can be ended.
    """
    if workers <= 1 and timeout is None:
        return here(device)
    from maskwalk.bench.workers import Processes

    return Processes(workers, device, tuple(plugins), timeout)


@dataclass
class Run:
    """Jobs being written to a file; iterate over it to do the work.

    Where jobs fail, it ends with `Unfinished` when all others are done.
    """

    jobs: Sequence[Job]
    path: Path  # of the file of results
    engine: Engine = field(default_factory=here)
    load: Callable[[Path], Sequence[Any]] = as_written
    done: int = field(init=False, default=0)
    notes: list[str] = field(init=False, default_factory=list)  # what a user should know
    failures: list[tuple[Job, Failure]] = field(init=False, default_factory=list)

    @property
    def total(self) -> int:
        """How many different jobs there are."""
        return len({job.key for job in self.jobs})

    @property
    def where(self) -> str:
        """Who is at work, in words, where the engine says so."""
        return str(getattr(self.engine, "state", ""))

    def __iter__(self) -> Iterator[Record]:
        with RecordFile(self.path) as file:
            plan = Plan.of(self.jobs, self.load(self.path))
            self.notes += plan.notes
            for row in plan.again:
                file.append(row)
            self.done = self.total - len(plan.todo)
            for job, result in self.engine(plan.todo):
                self.done += 1
                if isinstance(result, Failure):
                    self._skip(job, result)
                    continue
                record: Any = {"key": job.key, **result, **job.about}
                file.append(record)
                yield record
        self._check()

    def _skip(self, job: Job, failure: Failure) -> None:
        self.failures.append((job, failure))
        with RecordFile(self.path.with_name(SKIPPED)) as file:
            about = {"key": job.key, "what": job.name, "reason": failure.reason}
            more = {"traceback": failure.traceback} if failure.traceback else {}
            file.append(about | more)

    def _check(self) -> None:
        """Says, as an error, how many jobs failed and why the first did; nothing if none did."""
        if not self.failures:
            return
        job, failure = self.failures[0]
        raise Unfinished(
            f"{len(self.failures)} of {self.total} cells failed; the first is {job.name}: "
            f"{failure.reason} The reason for each is in {self.path.with_name(SKIPPED)}; all "
            "others are finished, and the same command tries the failed ones again."
        )
