"""`make soak-ray`: one run on a Ray cluster whose workers, nodes and driver are killed many times.

    python -m tests.faults.soak_ray --kills 200

Two nodes and a head on this machine; `maskwalk bench --engine ray` runs cells that take a fifth of
a second each. At random moments somebody is killed with -9: mostly a worker, at work or still
starting (but no more than fourteen in a row without a new record, so that the run gets on);
sometimes a node with all its workers (another one joins); sometimes the driver (the same
command is started again). At the end the records are compared with those of a single undisturbed
process.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.commands import ROOT, lines_of
from tests.faults.nodes import Nodes
from tests.faults.server import environment

KINDS = {"working": 0.78, "starting": 0.14, "node": 0.03, "driver": 0.05}
FRUITLESS = 14  # kills in a row without a new record
CORES = (3, 3)  # of the nodes, a worker each
COLUMNS = ("cells", "kills", *KINDS, "lost", "twice", "different", "failed", "seconds")
PAUSE = "MASKWALK_SOAK_PAUSE"
PLUGIN = f"""
import os, time
from dataclasses import dataclass
from maskwalk import UnmaskingPolicy
from maskwalk.samplers import SAMPLERS

@SAMPLERS.register("slow")
@dataclass(frozen=True)
class Slow(UnmaskingPolicy):
    number: int = 0
    def choose(self, view, state, rng):
        time.sleep(float(os.environ.get("{PAUSE}", "0")))
        return view.masked, state
"""


class Soak:
    """A run, its driver, and what has befallen them."""

    def __init__(self, folder: Path, cells: int, kills: int, seconds: float, seed: int) -> None:
        self.folder, self.cells, self.kills, self.seconds = folder, cells, kills, seconds
        self.chance, self.done = random.Random(seed), Counter[str]()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "slow.py").write_text(PLUGIN)
        samplers = json.dumps([f"slow(number={number})" for number in range(cells)])
        (folder / "soak.toml").write_text(
            f'count = 4\nlength = 6\nmetrics = ["calls", "coherence"]\nsamplers = {samplers}\n'
            '[[graphs]]\ngraph = "st_er(nodes=12, p=0.1)"\nwalk = "lazy()"\n'
        )

    def command(self, out: str, *more: str) -> Any:
        """The benchmark, started."""
        words = [sys.executable, "-m", "maskwalk", "bench", "soak.toml", "--out", out]
        with (self.folder / f"{out}.said").open("ab") as said:
            return subprocess.Popen(
                [*words, "--include", "slow.py", *more],
                cwd=self.folder,
                env=environment(),
                stdout=said,
                stderr=said,
            )

    def written(self) -> int:
        """How many records there are."""
        file = self.folder / "ray" / "records.jsonl"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def disturb(self, nodes: Nodes) -> int:
        """Runs and kills until all is done; the exit code of the last driver."""
        more = ("--engine", "ray", "--address", nodes.address)
        driver, (kind, enough, due) = self.command("ray", *more), self._next()
        seen, fruitless, end = 0, 0, time.monotonic() + self.seconds
        while driver.poll() is None:
            time.sleep(0.02)
            now = self.written()
            fruitless = 0 if now > seen else fruitless
            seen = now
            over = self.done.total() >= self.kills or time.monotonic() > end
            due_now = now >= enough or time.monotonic() > due
            if over or not due_now or fruitless >= FRUITLESS:
                continue
            if kind in ("working", "starting"):
                here, there = nodes.workers(), nodes.workers(b"ray::IDLE")
                workers = (here or there) if kind == "working" else (there or here)
                if not workers:
                    continue
                kind = "working" if workers is here else "starting"
                _kill(self.chance.choice(workers))
            elif kind == "node":
                nodes.remove(self.chance.choice(nodes.nodes))
                nodes.nodes.append(nodes.add(CORES[0]))
            else:
                driver.kill()
                driver.wait()
                driver = self.command("ray", *more)
            self.done[kind] += 1
            fruitless += 1
            kind, enough, due = self._next()
            print(f"\r{self.done.total()} kills, {now} records", end="", file=sys.stderr)
        print(file=sys.stderr)
        return int(driver.returncode)

    def _next(self) -> tuple[str, int, float]:
        """Who is next, and when: at this moment, or after so many records if they come first."""
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        records = self.written() + max(1, int(self.cells / self.kills))
        return kind, records, time.monotonic() + self.chance.uniform(0.0, 3.0)

    def tally(self) -> dict[str, int]:
        """What is lost, twice or different, and how many cells were given up."""
        alone, there = (lines_of(self.folder / name) for name in ("one", "ray"))
        whole, found = dict(alone), dict(there)
        skipped = self.folder / "ray" / "skipped.jsonl"
        return {
            "cells": len(whole),
            "kills": self.done.total(),
            **{kind: self.done[kind] for kind in KINDS},
            "lost": len(whole.keys() - found.keys()),
            "twice": len(there) - len(found) + len(found.keys() - whole.keys()),
            "different": sum(found[key] != whole[key] for key in whole if key in found),
            "failed": skipped.read_bytes().count(b"\n") if skipped.exists() else 0,
        }


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def main() -> int:
    """Prints a table; the exit code is 1 if anything is wrong, or too little was killed."""
    words = argparse.ArgumentParser(description="Kills workers, nodes and drivers of one run.")
    words.add_argument("--kills", type=int, default=200, help="at least")
    words.add_argument("--cells", type=int, default=1000)
    words.add_argument("--seconds", type=float, default=3600, help="of killing, at most")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--out", type=Path, default=ROOT / "runs" / "soak-ray")
    wanted = words.parse_args()
    sizes = (wanted.cells, wanted.kills, wanted.seconds, wanted.seed)
    soak = Soak(wanted.out.resolve(), *sizes)
    assert soak.command("one").wait() == 0, (soak.folder / "one.said").read_text()
    os.environ.update(environment() | {PAUSE: "0.2"})
    began, nodes = time.monotonic(), Nodes(CORES)
    try:
        code = soak.disturb(nodes)
    finally:
        nodes.local.shutdown()
    found = soak.tally() | {"seconds": round(time.monotonic() - began)}
    print(f"| {' | '.join(COLUMNS)} |\n|{'---:|' * len(COLUMNS)}")
    print(f"| {' | '.join(f'{found[column]:,}' for column in COLUMNS)} |")
    said = (soak.folder / "ray.said").read_text(errors="replace")
    bad = sum(found[name] for name in ("lost", "twice", "different", "failed"))
    return int(bool(bad or code or "Traceback" in said or found["kills"] < wanted.kills))


if __name__ == "__main__":
    sys.exit(main())
