"""How fast the worlds' oracles are, beside other people's libraries asked the same.

    python benchmarks/worlds.py            (needs the extra `libraries`)
    python benchmarks/worlds.py --all      (pysdd takes two minutes to compile latin(n=5))

512 canvases of each world with half of the positions masked (the task given(share=0.5)); everyone
answers with the conditionals of all masked positions. Ours is the median of three after a warm-up.
A library takes one canvas at a time, so it is given the first few of the same canvases, after its
own preparation, and times are compared by canvas. Exits with 1 if an oracle is over its limit, or
if an answer differs.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

import libraries
from libraries import Answer
from maskwalk import TASKS, WORLDS
from maskwalk.worlds.dyck import BRACKETS
from maskwalk.worlds.regular import PATTERN

CANVASES, REPEATS, CLOSE = 512, 3, 1e-10
HEAD = ("world", "seconds", "limit", "ms each", "library", "of", "ms each", "ratio")
LINE = "{:28}{:>7}{:>6}{:>8}  {:9}{:>4}{:>9}{:>7}"


@dataclass(frozen=True)
class Row:
    """A world, the seconds its oracle may take, and who else is asked about how many canvases."""

    world: str
    limit: float
    library: str = ""
    few: int = 0
    prepare: Callable[[Any], Answer] | None = None
    slow: bool = False


def regular(world: Any) -> Answer:
    return libraries.with_automata(world, libraries.from_pattern(PATTERN, "abcd"), "abcd")


def dyck(world: Any) -> Answer:
    signs = BRACKETS[: 2 * world.kinds]
    return libraries.with_automata(world, libraries.from_stacks(signs, world.depth), signs)


ROWS = [
    Row("latin(n=4)", 1, "pysdd", 128, libraries.with_pysdd),
    Row("latin(n=5)", 5, "pysdd", 32, libraries.with_pysdd, slow=True),
    Row("sudoku(box=2)", 1, "pysdd", 128, libraries.with_pysdd),
    Row("addition()", 1, "pyAgrum", 128, libraries.with_agrum_sum),
    Row("addition(digits=2)", 1, "integers", 128, libraries.with_integers),
    Row("regular()", 1, "automata", 16, regular),
    Row("dyck()", 1, "automata", 16, dyck),
    Row("hmm()", 1, "hmmlearn", 64, libraries.with_hmmlearn),
    Row("pcfg()", 3),
    Row("pcfg(branches=3, lexicon=3)", 3),
    Row("pcfg(length=6)", 3, "nltk", 4, libraries.with_nltk),
    Row("hierarchy()", 1, "pyAgrum", 128, libraries.with_agrum_tree),
    Row("hierarchy(nodes='shown')", 1, "pyAgrum", 128, libraries.with_agrum_tree),
    Row("potts()", 1, "pyAgrum", 128, libraries.with_agrum_strip),
]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


def measured(row: Row, everything: bool) -> bool:
    """Prints a line; whether the oracle is within its limit."""
    world = WORLDS.build(row.world)
    canvas = TASKS.build("given(share=0.5)", world=world, prompts=CANVASES, seed=0).tokens
    oracle = world.oracle()
    oracle(canvas)
    ours = median(timed(lambda: oracle(canvas))[0] for _ in range(REPEATS))
    cells = [row.world, f"{ours:.3f}", f"{row.limit:g}", f"{ours / CANVASES * 1e3:.3f}"]
    if row.prepare is not None and (everything or not row.slow):
        answer = row.prepare(world)
        answer(canvas[0])
        seconds, tables = timed(lambda: [answer(one) for one in canvas[: row.few]])
        apart = np.abs(np.concatenate(tables) - oracle(canvas[: row.few]).exp().numpy()).max()
        if apart > CLOSE:
            raise SystemExit(f"{row.library} answers {row.world} otherwise, by {apart:.1g}.")
        ratio = seconds / row.few / (ours / CANVASES)
        cells += [row.library, row.few, f"{seconds / row.few * 1e3:.2f}", f"{ratio:,.0f}"]
    print(LINE.format(*cells, *[""] * (len(HEAD) - len(cells))).rstrip(), flush=True)
    return ours <= row.limit


def main() -> int:
    torch.set_num_threads(1)
    print(f"{CANVASES} canvases with half of the positions masked, one thread")
    print(LINE.format(*HEAD))
    within = [measured(row, "--all" in sys.argv[1:]) for row in ROWS]
    print("nltk lists every tree of a sentence, one by one: at 24 words there are too many.")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
