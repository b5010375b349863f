"""Jobs in processes of their own, each with one thread: for a benchmark, and beside an evaluation.

A process reads jobs (run.py) as JSON on stdin and writes results to stdout. Unlike a pool of
`multiprocessing` they do not import the caller's script again, so `maskwalk.evaluate` can be called
anywhere in it. A result is a pure function of its job: the numbers do not depend on who computes
it. A process ends as soon as the other side closes or dies.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Any

from maskwalk.bench.plan import Job
from maskwalk.bench.run import Failure, Result, attempt, function_named
from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.resources import PACKAGE, available_memory

Answer = tuple[Job, Result | Failure]
READY, ATTEMPTS = "ready", 3
PROCESS, ON_A_CORE = 4e8, 8  # bytes that a process takes at least; more than that on a core wait
GONE = (
    "Its worker process ended early (killed, or out of memory?). Run the same command again, with "
    "fewer --workers where memory is short."
)


def check_workers(count: int) -> int:
    """So many processes have a place on this machine, or a sentence."""
    cores = os.cpu_count() or 1
    room = int(available_memory() / PROCESS)
    most = max(cores, min(ON_A_CORE * cores, room))
    if count > most:
        raise MaskwalkError(
            f"workers is {count:,}; this machine with {cores} cores and {room * PROCESS / 1e9:.0f} "
            f"GB of memory free has a place for {most} processes. Give at most {most}."
        )
    return count


class Workers:
    """Jobs being run by processes; iterate for the results as they come.

    A process that dies, or is ended because its job took longer than `timeout` seconds, is replaced
    by a new one, and its job has failed.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        workers: int,
        device: str = "cpu",
        plugins: Sequence[str] = (),
        timeout: float | None = None,
    ) -> None:
        check_workers(workers)
        self.jobs, self.device, self.plugins = list(jobs), device, tuple(plugins)
        self.timeout = None if timeout is None else real("timeout", timeout, 1e-3)
        self._left = list(reversed(self.jobs))
        self._lock = threading.Lock()
        self._answers: Queue[Answer | str] = Queue()  # a text: no process can be started
        self._over = False
        self._processes: list[Any] = []
        self._threads = [
            threading.Thread(target=self._feed, daemon=True)
            for _ in range(min(workers, len(self.jobs)))
        ]
        for thread in self._threads:
            thread.start()

    def _next(self) -> Job | None:
        with self._lock:
            return self._left.pop() if self._left else None

    def _start(self) -> Any:
        """A new process that is ready for jobs; None where all is over."""
        said = ""
        for _ in range(ATTEMPTS):
            with self._lock:
                if self._over:
                    return None
                functions = sorted({job.function for job in self.jobs})
                process = start(self.device, functions, self.plugins, len(self._threads))
                self._processes.append(process)
            line = process.stdout.readline()
            if line.strip() == READY:
                return process
            if said := _error(line):
                break
        self._answers.put(said or "No worker process can be started (see above).")
        return None

    def _feed(self) -> None:
        """Hands one process a job after another, and a new process after one that is gone."""
        process = self._start()
        while process is not None and (job := self._next()) is not None:
            if process.poll() is not None and (process := self._start()) is None:
                return
            self._answers.put((job, self._answer(process, job) or Failure(GONE)))

    def _answer(self, process: Any, job: Job) -> Result | Failure | None:
        """What a process makes of a job; None if it dies over it."""
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(self.timeout, end) if self.timeout is not None else None
        if clock is not None:
            clock.start()
        try:
            words = {"function": job.function, "arguments": job.arguments}
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            process.kill()
            process.wait()
            return Failure(f"It took longer than {self.timeout:g} s.") if late.is_set() else None
        finally:
            if clock is not None:
                clock.cancel()
        return answer["result"] if "result" in answer else Failure(**answer["failure"])

    def __iter__(self) -> Iterator[Answer]:
        if not self._threads:
            for job in self.jobs:
                yield job, attempt(job.function, job.arguments, self.device)
            return
        for _ in self.jobs:
            answer = self._answers.get()
            if isinstance(answer, str):
                raise MaskwalkError(answer)
            yield answer

    def ready(self) -> int:
        """How many results wait to be taken."""
        return self._answers.qsize()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._over, self._left = True, []
        for process in self._processes:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                try:
                    pipe.close()
                except OSError:  # what was left unwritten has no reader any more
                    continue


def _error(line: str) -> str:
    """What a process says that could not start."""
    try:
        return str(json.loads(line)["failure"]["reason"])
    except (ValueError, KeyError, TypeError):
        return ""


class Processes:
    """The engine (run.py) that runs jobs in several processes on this machine."""

    def __init__(
        self,
        count: int,
        device: str = "cpu",
        plugins: tuple[str, ...] = (),
        timeout: float | None = None,
    ) -> None:
        self.count = check_workers(whole("workers", count, 1))
        self.device, self.plugins = device, plugins
        self.timeout = timeout

    def __call__(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        with Workers(jobs, self.count, self.device, self.plugins, self.timeout) as team:
            yield from team


def start(device: str, functions: Sequence[str], plugins: Sequence[str], count: int = 1) -> Any:
    """A worker process; Ctrl-C in a terminal is not for it: the parent ends it."""
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    single["MASKWALK_PROCESSES"] = str(count)  # they share this machine's memory
    code = "import sys; from maskwalk.bench.workers import main; main(*sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, device, ",".join(functions), *plugins],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )


def main(device: str, functions: str, *plugins: str) -> None:
    """A worker: jobs in, results out, until the other side closes.

    What jobs need is imported before it is ready: a time limit is for the work.
    """
    lines: Queue[str] = Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)  # nobody is left to answer: not even a job that is under way goes on

    threading.Thread(target=listen, daemon=True).start()
    answers, sys.stdout = sys.stdout, sys.stderr  # what a user's file prints is no answer

    def say(text: str) -> None:
        try:
            print(text, file=answers, flush=True)
        except OSError:  # the other side is gone, and `listen` has not heard of it yet
            os._exit(0)

    try:
        prepare(plugins)
        for name in functions.split(","):
            function_named(name)
    except MaskwalkError as problem:
        say(json.dumps({"failure": {"reason": str(problem)}}))
        return
    say(READY)
    while True:
        job = json.loads(lines.get())
        say(line_of(attempt(job["function"], job["arguments"], device)))


def line_of(answer: Result | Failure) -> str:
    """An answer as JSON; a number that is none is a failure, too."""
    if isinstance(answer, Failure):
        return json.dumps({"failure": vars(answer)})
    try:
        return json.dumps({"result": answer}, allow_nan=False)
    except ValueError as problem:
        return line_of(Failure(f"Its result cannot be written: {problem}."))


def prepare(plugins: Sequence[str]) -> None:
    """One thread, and everything a job may name."""
    import torch

    from maskwalk.specs import load_installed_plugins, load_plugin

    torch.set_num_threads(1)
    load_installed_plugins()
    for path in plugins:
        load_plugin(path)
