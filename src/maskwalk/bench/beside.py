"""An engine at work in a thread, while this one does something else."""

import threading
from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Any

from maskwalk.bench.plan import Job
from maskwalk.bench.run import Engine, Failure, Result

Answer = tuple[Job, Result | Failure]


class Beside:
    """Jobs being run by an engine; iterate for the results. What it raises is raised there."""

    def __init__(self, engine: Engine, jobs: Sequence[Job]) -> None:
        self.jobs, self._over = list(jobs), threading.Event()
        self._answers: Queue[Answer | BaseException] = Queue()
        self._thread = threading.Thread(target=self._run, args=(engine,), daemon=True)
        self._thread.start()

    def _run(self, engine: Engine) -> None:
        results = engine(self.jobs)
        try:
            for answer in results:
                self._answers.put(answer)
                if self._over.is_set():
                    break
        except BaseException as problem:
            self._answers.put(problem)
        finally:
            getattr(results, "close", lambda: None)()

    def __iter__(self) -> Iterator[Answer]:
        for _ in self.jobs:
            answer = self._answers.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    def ready(self) -> int:
        """How many results wait to be taken."""
        return self._answers.qsize()

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join(timeout=5)
