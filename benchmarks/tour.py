"""How long the commands of docs/tour.md take, in seconds of processor and of clock.

    PYTHONPATH=src python benchmarks/tour.py [--only sample] [--limit 300]

Every command runs as it is printed, one after the other, in a directory of its own with an empty
cache; one that needs a file nobody has (a decoder, a checkpoint, a hub) is left out. Processor time
is that of the command and of its processes, so it hardly depends on what else the machine does.
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Files of a user's, a hub, and what takes a quarter of an hour.
LEFT_OUT = ("generate.py", "hf:", "last.ckpt", "reproduce", "verify")


def commands() -> list[str]:
    """The lines of the tour, without their comments."""
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")
    lines = [
        shlex.join(shlex.split(line, comments=True))
        for line in re.findall(r"^    (maskwalk .*)$", tour, re.M)
    ]
    return [line for line in lines if not any(word in line for word in LEFT_OUT)]


def timed(line: str, home: Path, limit: float) -> tuple[float, float, int | None]:
    """(processor seconds, seconds, exit status or None if it took too long)."""
    words = [sys.executable, "-m", *shlex.split(line)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "MASKWALK_CACHE": str(home / "cache")}
    try:
        done = subprocess.run(words, cwd=home, env=environment, capture_output=True, timeout=limit)
        status: int | None = done.returncode
    except subprocess.TimeoutExpired:
        status = None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - began, status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="commands that hold this text")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds a command may take")
    given = parser.parse_args()
    print("| processor | clock | command |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        for line in commands():
            if given.only in line:
                used, clock, status = timed(line, Path(home), given.limit)
                note = (
                    "" if status == 0 else " (too long)" if status is None else f" (exit {status})"
                )
                print(f"| {used:.0f} s | {clock:.0f} s | `{line}`{note} |", flush=True)


if __name__ == "__main__":
    main()
