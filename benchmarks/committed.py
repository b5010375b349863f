"""Did a run give the committed records? Every setting, number and token, to the last bit.

maskwalk reproduce paper --out runs/paper --device cuda
python benchmarks/committed.py runs/paper results/paper
"""

import sys
from pathlib import Path

from maskwalk.bench.records import Record, load_records

SAME = ("world", "task", "sampler", "denoiser", "mode", "draw", "ties", "metrics", "trace")


def place(record: Record) -> tuple[str, int]:
    return record["experiment"], record["cell"]


def main(run: str, committed: str) -> None:
    made = {place(record): record for record in load_records(Path(run))}
    known = {place(record): record for record in load_records(Path(committed))}
    other = [where for where in made if where not in known]
    different = [
        (where, [key for key in SAME if made[where].get(key) != known[where].get(key)])
        for where in made
        if where in known
    ]
    wrong = [(where, keys) for where, keys in different if keys]
    print(
        f"{len(made)} records, {len(known)} committed, {len(made) - len(wrong) - len(other)} equal"
    )
    for where, keys in wrong[:20]:
        print(f"{where[0]}, cell {where[1]} differs in {', '.join(keys)}")
    if wrong or other or len(made) != len(known):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
