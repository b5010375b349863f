"""Where the work of an experiment runs: in this process, or in several on this machine.

Cells are independent and pure, so the only shared thing is the file of records, and only the parent
writes it. A run goes on where an earlier one stopped: cells whose key is on disk are not run again.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from pathlib import Path

import torch

from maskwalk import resources
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.experiment import Experiment
from maskwalk.bench.records import Record, RecordFile, read_records
from maskwalk.errors import whole
from maskwalk.specs import load_plugin


@dataclass
class Run:
    """An experiment being written to a directory; iterate over it to do the work."""

    experiment: Experiment
    out: Path
    workers: int = 1
    device: str = "cpu"
    includes: Sequence[str] = ()
    done: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        whole("workers", self.workers, 1)

    @property
    def total(self) -> int:
        """How many different cells the experiment has."""
        return len({cell.key for cell in self.experiment.cells})

    def __iter__(self) -> Iterator[Record]:
        with RecordFile(self.out / "records.jsonl") as file:
            found = {record["key"] for record in read_records(file.path)}
            todo = {
                cell.key: (number, cell)
                for number, cell in reversed(list(enumerate(self.experiment.cells)))
                if cell.key not in found
            }
            work = sorted(todo.values(), key=lambda pair: pair[0])
            self.done = self.total - len(work)
            commit = resources.commit()
            for number, record in self._results(work):
                record["experiment"], record["cell"] = self.experiment.name, number
                entry = self.experiment.entries[number]
                record["title"], record["commit"] = entry.title, commit
                record |= {k: v for k, v in (("axis", entry.axis), ("column", entry.column)) if v}
                file.append(record)
                self.done += 1
                yield record

    def _results(self, work: list[tuple[int, Cell]]) -> Iterator[tuple[int, Record]]:
        if self.workers == 1 or len(work) < 2:
            for number, cell in work:
                yield number, _record(cell, self.device, self.experiment.traces)
            return
        pool = ProcessPoolExecutor(
            min(self.workers, len(work)),
            mp_context=get_context("spawn"),
            initializer=_start_worker,
            initargs=(tuple(self.includes),),
        )
        with pool:
            about = self.device, self.experiment.traces
            futures = {pool.submit(_record, cell, *about): number for number, cell in work}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _record(cell: Cell, device: str, traces: bool) -> Record:
    return run_cell(cell, device, trace=int(traces))[0]


def _start_worker(includes: tuple[str, ...]) -> None:
    """One thread each; samplers from outside; and no life after the parent's."""
    torch.set_num_threads(1)
    for path in includes:
        load_plugin(path)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
