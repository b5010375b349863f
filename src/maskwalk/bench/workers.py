"""Jobs in processes of their own, one thread each.

Each process reads jobs as lines of JSON on stdin and writes results to stdout. Unlike a pool of
`multiprocessing` they do not import the caller's script again, so `maskwalk.evaluate` can be called
anywhere in it. A result is a pure function of its job: the numbers do not depend on who computes
it. A process ends as soon as the other side closes or dies.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Any

from maskwalk.bench.run import Job, Result, call
from maskwalk.errors import MaskwalkError, whole
from maskwalk.resources import PACKAGE

Answer = tuple[Job, Result | None, str]  # the job, its result, or why there is none


class Workers:
    """Jobs being run by processes; iterate for the results as they come."""

    def __init__(
        self, jobs: Sequence[Job], workers: int, device: str = "cpu", plugins: Sequence[str] = ()
    ) -> None:
        self.jobs, self.device = list(jobs), device
        self._left = list(reversed(self.jobs))
        self._lock = threading.Lock()
        self._answers: Queue[Answer] = Queue()
        count = min(workers, len(self.jobs))
        self._processes = [_start(device, plugins, count) for _ in range(count)]
        for process in self._processes:
            threading.Thread(target=self._feed, args=(process,), daemon=True).start()

    def _next(self) -> Job | None:
        with self._lock:
            return self._left.pop() if self._left else None

    def _feed(self, process: "subprocess.Popen[str]") -> None:
        """Hands one process a job after another."""
        assert process.stdin is not None and process.stdout is not None
        while (job := self._next()) is not None:
            line = ""
            try:
                words = {"function": job.function, "arguments": job.arguments}
                process.stdin.write(json.dumps(words) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                answer = json.loads(line)
            except (OSError, ValueError):
                reason = "A worker process ended early (see above); run it with one worker."
                self._answers.put((job, None, reason))
                return
            self._answers.put((job, answer.get("result"), answer.get("error", "")))

    def __iter__(self) -> Iterator[tuple[Job, Result]]:
        if not self._processes:
            for job in self.jobs:
                yield job, call(job.function, job.arguments, self.device)
            return
        for _ in self.jobs:
            job, result, error = self._answers.get()
            if result is None:
                raise MaskwalkError(error)
            yield job, result

    def ready(self) -> int:
        """How many results wait to be taken."""
        return self._answers.qsize()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except OSError:  # what was left unwritten has no reader any more
                        continue


class Processes:
    """The engine (run.py) that runs jobs in several processes on this machine."""

    def __init__(self, count: int, device: str = "cpu", plugins: tuple[str, ...] = ()) -> None:
        self.count, self.device, self.plugins = whole("workers", count, 1), device, plugins

    def __call__(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        with Workers(jobs, self.count, self.device, self.plugins) as team:
            yield from team


def _start(device: str, plugins: Sequence[str], count: int) -> "subprocess.Popen[str]":
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    single["MASKWALK_PROCESSES"] = str(count)  # they share this machine's memory
    code = "import sys; from maskwalk.bench.workers import main; main(sys.argv[1], sys.argv[2:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, device, *plugins],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)},
    )


def main(device: str, plugins: Sequence[str]) -> None:
    """A worker: jobs in, results out, until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    lines: Queue[str] = Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)  # nobody is left to answer: not even a job that is under way goes on

    threading.Thread(target=listen, daemon=True).start()
    answers, sys.stdout = sys.stdout, sys.stderr  # what a user's file prints is no answer
    import torch

    from maskwalk.specs import load_installed_plugins, load_plugin

    torch.set_num_threads(1)
    load_installed_plugins()
    for path in plugins:
        load_plugin(path)
    while True:
        job = json.loads(lines.get())
        try:
            answer: dict[str, Any] = {"result": call(job["function"], job["arguments"], device)}
        except MaskwalkError as problem:
            answer = {"error": str(problem)}
        except Exception:
            traceback.print_exc()
            answer = {"error": "A job failed in a worker process (see above)."}
        print(json.dumps(answer, allow_nan=False), file=answers, flush=True)
