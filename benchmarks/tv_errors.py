"""Standard errors of TV for committed records: their cells run again, and only the errors changed.

Cells with a transition TV or a pair TV are decoded again. Their values come out again, but where
another device adds up in another order and a token falls otherwise; a value that is off by more
than its error stops the script. The committed values stay.

    python benchmarks/tv_errors.py results/paper --device cuda --workers 15 --out errors.json
    python benchmarks/tv_errors.py results/paper --apply errors.json
"""

import argparse
import json
import lzma
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.records import Record, load_records

METRICS = ("tv1", "tvk", "pair_tv")


def measured(record: Record) -> list[str]:
    """The metrics of a record whose error is that of a TV."""
    return [key for key, value in record["metrics"].items() if value and key.startswith(METRICS)]


def again(record: Record, device: str) -> tuple[str, dict[str, Any]]:
    """The record's key, and the same metrics measured now."""
    torch.set_num_threads(1)
    names = ("world", "task", "sampler", "denoiser", "draw", "ties", "count", "per_prompt", "seed")
    cell = Cell.checked(**{n: record[n] for n in names}, metrics=tuple(measured(record)))
    found = run_cell(cell, device, trace=False)[0]["metrics"]
    return record["key"], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--apply", type=Path)
    args = parser.parse_args()
    records = load_records(args.directory)
    if args.apply:
        apply(args.directory, json.loads(args.apply.read_text()))
        return
    todo = [r for r in records if measured(r)]
    errors, largest, other = {}, 0.0, 0
    with ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
        jobs = pool.map(again, todo, [args.device] * len(todo), chunksize=4)
        for record, (key, found) in zip(todo, jobs):
            for name, value in found.items():
                gap = abs(value["value"] - record["metrics"][name]["value"])
                assert gap < value["se"], (record["sampler"], record["world"], name, gap)
                largest, other = max(largest, gap), other + (gap > 1e-9)
            errors[key] = {name: value["se"] for name, value in found.items()}
    args.out.write_text(json.dumps(errors))
    print(f"{len(errors)} records; {other} values came out otherwise, by {largest:.1e} at most")


def apply(directory: Path, errors: dict[str, dict[str, float]]) -> None:
    """Writes the errors into the committed file, line by line, and touches nothing else."""
    path = directory / "records.jsonl.xz"
    lines = []
    for line in lzma.decompress(path.read_bytes()).splitlines():
        record = json.loads(line)
        for name, se in errors.get(record["key"], {}).items():
            record["metrics"][name]["se"] = se
        lines.append(json.dumps(record).encode() if record["key"] in errors else line)
    path.write_bytes(lzma.compress(b"\n".join(lines) + b"\n", preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
