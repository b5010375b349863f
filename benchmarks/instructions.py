"""How many instructions the decoding loop takes beside a plain one: loop.py, counted by valgrind.

    PYTHONPATH=src python benchmarks/instructions.py [--vocab 500]      # needs valgrind; minutes

Batch 1, one position a round on 64. The load of a machine changes its clock and its caches, not
this number. It is no time: in as many instructions an interpreter takes longer than a product.
What is counted is the same as in loop.py, where *own* is what is not the network. valgrind has no
AVX-512: torch and numpy take their AVX2 kernels.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from loop import LENGTH, RULES, loops

TIMES = 4  # decodings that are counted


def control(*words: str) -> None:
    """Tells the valgrind around this process what to do."""
    line = ["callgrind_control", *words, str(os.getpid())]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def inside(vocab: int) -> None:
    """Counts each loop, under valgrind."""
    torch.set_num_threads(1)
    for number, rule in enumerate(RULES[:2]):
        each = loops(1, vocab, rule)
        for name in ("network", "plain", "ours"):
            each[name]()
            control("--zero")
            control("--instr=on")
            for _ in range(TIMES):
                each[name]()
            control("--instr=off")
            control(f"--dump={number}-{name}")


def counted(vocab: int) -> dict[str, float]:
    """Thousands of instructions a round, by rule and loop."""
    with tempfile.TemporaryDirectory() as folder:
        line = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
        line += [f"--callgrind-out-file={folder}/out", sys.executable, __file__]
        subprocess.run([*line, "--inside", "--vocab", str(vocab)], check=True)
        dumps = [path.read_text() for path in Path(folder).iterdir()]
    found = {}
    for text in dumps:
        name, total = re.search(r"dump (\S+)", text), re.search(r"^totals: (\d+)", text, re.M)
        if name and total:
            found[name[1]] = int(total[1]) / TIMES / LENGTH / 1e3
    return found


def show(found: dict[str, float]) -> None:
    """A line for each rule."""
    for number, (_, temperature, spec) in enumerate(RULES[:2]):
        network, plain, ours = (found[f"{number}-{each}"] for each in ("network", "plain", "ours"))
        own = f"plain {plain - network:,.0f}, ours {ours - network:,.0f}"
        ratio = f"ratio {(ours - network) / (plain - network):.2f}"
        print(f"{spec}, temperature {temperature:g}: network {network:,.0f}, own: {own}, {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocab", type=int, default=500)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        inside(given.vocab)
    else:
        show(counted(given.vocab))


if __name__ == "__main__":
    main()
