"""Writes a file of many made-up records, to see what `maskwalk report` and `compare` take.

    python benchmarks/many_records.py DIR [COUNT]        (100,000 if not given; about a minute)
    /usr/bin/time -v maskwalk report DIR
    /usr/bin/time -v maskwalk compare DIR

The records are those of tests/fake_records.py: 6 graphs at growing lengths, 3 tasks, 3 modes, 27
samplers, each with a trace. Those of results/paper come first, so that there is something to
compare.
"""

import json
import sys
from collections.abc import Iterator
from itertools import chain, count, product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import fake_records

from maskwalk.bench.records import load_records


def many(number: int) -> Iterator[dict[str, Any]]:
    """So many records, in the order a bench would write them."""
    cell = 0
    for length in count(8):
        places = (fake_records.GRAPHS, fake_records.TASKS, fake_records.MODES)
        for title, task, mode, sampler in product(*places, fake_records.SAMPLERS):
            if cell == number:
                return
            record = fake_records.record(title, task, sampler, mode, 512, length, cell)
            yield record | {"title": f"{title}, {length} tokens"}
            cell += 1


def main() -> None:
    """Writes the file."""
    folder, number = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    folder.mkdir(parents=True, exist_ok=True)
    paper = load_records(Path(__file__).parent.parent / "results" / "paper")
    with (folder / "records.jsonl").open("w") as file:
        for record in chain(paper, many(number - len(paper))):
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
