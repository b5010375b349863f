"""Baselines in processes of their own, one thread each, while the policy runs here.

Each process reads cells as lines of JSON on stdin and writes outcomes to stdout. Unlike a pool
of `multiprocessing` they do not import the caller's script again, so `maskwalk.evaluate` can be
called anywhere in it. An outcome is a pure function of its cell: the numbers do not depend on who
computes it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

from maskwalk.bench.cell import Cell
from maskwalk.bench.verdict.outcomes import Outcome, outcome
from maskwalk.errors import MaskwalkError


class Crew:
    """Cells being run by `workers` processes; iterate for the outcomes as they come."""

    def __init__(self, cells: Sequence[Cell], workers: int) -> None:
        self.cells = list(cells)
        self._left = list(reversed(self.cells))
        self._lock = threading.Lock()
        self._done: Queue[Outcome | None] = Queue()
        self._processes = [_start() for _ in range(min(workers, len(self.cells)))]
        for process in self._processes:
            threading.Thread(target=self._feed, args=(process,), daemon=True).start()

    def _next(self) -> Cell | None:
        with self._lock:
            return self._left.pop() if self._left else None

    def _feed(self, process: "subprocess.Popen[str]") -> None:
        """Hands one process a cell after another."""
        assert process.stdin is not None and process.stdout is not None
        while (cell := self._next()) is not None:
            try:
                process.stdin.write(json.dumps(asdict(cell)) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except (OSError, ValueError):
                line = ""
            if not line:
                self._done.put(None)
                return
            self._done.put(Outcome.from_json(json.loads(line)))

    def __iter__(self) -> Iterator[Outcome]:
        for _ in self.cells if self._processes else ():
            found = self._done.get()
            if found is None:
                raise MaskwalkError(
                    "A process that runs the baselines ended early (see above); --workers 0 runs "
                    "them here."
                )
            yield found
        for cell in self.cells if not self._processes else ():
            yield outcome(cell)

    def ready(self) -> int:
        """How many outcomes wait to be taken."""
        return self._done.qsize()

    def __enter__(self) -> "Crew":
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


def _start() -> "subprocess.Popen[str]":
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-c", "from maskwalk.bench.workers import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)},
    )


def main() -> None:
    """A worker: cells in, outcomes out, until the other side closes."""
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        about = json.loads(line)
        cell = Cell(**{**about, "metrics": tuple(about["metrics"])})
        print(json.dumps(outcome(cell).as_json(), allow_nan=False), flush=True)
