"""How long commands take beside an earlier version of the source, in turns.

    git worktree add ../earlier COMMIT
    PYTHONPATH=src python benchmarks/before.py ../earlier/src [--times 3] [--only NAME]

`quickstart` is the experiment of `make quickstart` with --quick in one process, `evaluate` the
verdict on `threshold(tau=0.7)`. Seconds of the processor, of the process and its children,
the least of several times; start-up included. Records must be equal but for seconds and commit.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "quickstart": ["bench", str(ROOT / "experiments/quickstart.toml"), "--quick", "--out", "OUT"],
    "evaluate": ["evaluate", "threshold(tau=0.7)", "--workers", "1", "--out", "OUT"],
}


def seconds(words: list[str], source: Path, out: Path) -> float:
    """Of the processor, for one command with the package of `source`."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    environment["XDG_CACHE_HOME"] = str(out / "cache")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "maskwalk", *(str(out) if w == "OUT" else w for w in words)]
    subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def records(out: Path) -> list[dict]:
    """What was written, but for the seconds and the commit."""
    lines = (out / "records.jsonl").read_text().splitlines()
    return [json.loads(line) | {"seconds": 0, "commit": None} for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    sources = {"earlier": given.earlier.resolve(), "now": ROOT / "src"}
    for name, words in COMMANDS.items():
        if given.only not in name:
            continue
        best, written = dict.fromkeys(sources, float("inf")), {}
        for _ in range(given.times):
            for version, source in sources.items():
                with tempfile.TemporaryDirectory() as folder:
                    best[version] = min(best[version], seconds(words, source, Path(folder)))
                    if (Path(folder) / "records.jsonl").exists():
                        written[version] = records(Path(folder))
        assert written.get("earlier") == written.get("now")
        ratio = best["now"] / best["earlier"]
        print(f"{name}: {best['earlier']:.1f} s earlier, {best['now']:.1f} s now, {ratio:.2f}")


if __name__ == "__main__":
    main()
