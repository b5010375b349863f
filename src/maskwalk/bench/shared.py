"""An engine for processes that share the rows of each job: one leads, the others follow.

The first process reads and writes the files and says which job is next; every process decodes its
part of that job's rows (decoding/shared.py).
"""

import json
from collections.abc import Iterator, Sequence

from maskwalk.bench.plan import Job
from maskwalk.bench.run import Engine, Failure, Result, attempt
from maskwalk.decoding.processes import Group


def leading(group: Group, device: str) -> Engine:
    """The engine of the first process."""

    def results(jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        try:
            for job in jobs:
                group.tell(json.dumps([job.function, job.arguments]))
                yield job, attempt(job.function, job.arguments, device)
        finally:
            group.tell("")

    return results


def follow(group: Group, device: str) -> None:
    """What the other processes do until the first has no more jobs."""
    while job := group.tell():
        function, arguments = json.loads(job)
        attempt(function, arguments, device)
