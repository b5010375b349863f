"""How long commands take beside an earlier version of the source, in turns.

    git worktree add ../earlier COMMIT
    PYTHONPATH=src python benchmarks/before.py ../earlier/src [--times 3] [--only NAME]

`quickstart` is the experiment of `make quickstart` as it was there, with --quick in one process,
`evaluate` the verdict on `threshold(tau=0.7)`. Seconds of the processor, of the process and its
children, the least of several times; start-up included. Cells that both versions run should have
equal records, but for seconds, commit, notes and what only the newer one writes; where one runs
more cells (baselines that came later), seconds per cell are printed too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "quickstart": ["bench", "QUICKSTART", "--quick", "--out", "OUT"],
    "evaluate": ["evaluate", "threshold(tau=0.7)", "--workers", "1", "--out", "OUT"],
}


def seconds(words: list[str], source: Path, places: dict[str, Path], out: Path) -> float:
    """Of the processor, for one command with the package of `source`."""
    places = places | {"OUT": out}
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    environment["XDG_CACHE_HOME"] = str(out / "cache")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "maskwalk", *(str(places.get(w, w)) for w in words)]
    subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def records(out: Path) -> dict[str, dict]:
    """What was written, by world, task, sampler and mode, but for the seconds and the commit."""
    lines = (out / "records.jsonl").read_text().splitlines()
    rows = [json.loads(line) | {"seconds": 0, "commit": None, "cell": 0} for line in lines]
    return {
        str([row[k] for k in ("world", "task", "sampler", "denoiser", "mode", "seed")]): row
        for row in rows
    }


def agree(earlier: Any, now: Any) -> bool:
    """Whether the newer one says all that the earlier one does, but for notes: their words."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        return all(
            key in now and agree(value, now[key])
            for key, value in earlier.items()
            if key != "notes"
        )
    return bool(earlier == now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    sources = {"earlier": given.earlier.resolve(), "now": ROOT / "src"}
    places = {"QUICKSTART": given.earlier.resolve().parent / "experiments/quickstart.toml"}
    for name, words in COMMANDS.items():
        if given.only not in name:
            continue
        best, written = dict.fromkeys(sources, float("inf")), {}
        for _ in range(given.times):
            for version, source in sources.items():
                with tempfile.TemporaryDirectory() as folder:
                    spent = seconds(words, source, places, Path(folder))
                    best[version] = min(best[version], spent)
                    if (Path(folder) / "records.jsonl").exists():
                        written[version] = records(Path(folder))
        ratio = best["now"] / best["earlier"]
        print(f"{name}: {best['earlier']:.1f} s earlier, {best['now']:.1f} s now, {ratio:.2f}")
        cells = {version: len(rows) for version, rows in written.items()}
        both = set(written["earlier"]) & set(written["now"])
        if len(set(cells.values())) > 1:
            each = {version: best[version] / number for version, number in cells.items()}
            ratio = each["now"] / each["earlier"]
            print(f"  cells {cells}, seconds per cell {each}, ratio {ratio:.2f}")
        other = [c for c in both if not agree(written["earlier"][c], written["now"][c])]
        print(f"  {len(both)} cells in both, {len(other)} of them differ", *sorted(other)[:3])


if __name__ == "__main__":
    main()
