"""Tree-Line-DAG: two at a time, lowest entropy beats random [paper, lemma in section 3.1].

All of a walk is known from one hidden chain. Entropy reveals the root (entropy 0) with one other
position, which names the chain: coherence 1. Random reveals two positions below the root with
probability (m-1)/(m+1), and then they agree with probability 1/d:

    coherence of random-two = 2/(m+1) + (m-1)/(d(m+1))
"""

from collections.abc import Iterator
from itertools import product

from maskwalk.paper.theory.check import Check, build, coherence, same_number, small_error
from maskwalk.samplers import Entropy, Random
from maskwalk.worlds.walks.laws import WalkLaw

CHAINS, LENGTHS = range(2, 6), range(1, 7)


def tree_line(d: int, m: int) -> WalkLaw:
    """Walks through the Tree-Line-DAG with d chains of m nodes."""
    return build(f"tree_line_dag(chains={d}, length={m})", "dag()", m + 1)


def random_two(d: int, m: int) -> float:
    """The lemma's coherence of two random positions per round."""
    return 2 / (m + 1) + (m - 1) / (d * (m + 1))


def tree_line_checks() -> Iterator[Check]:
    """The figure's DAG, and the largest error over a grid."""
    grid = list(product(CHAINS, LENGTHS))
    size = f"d={CHAINS[0]}-{CHAINS[-1]} m={LENGTHS[0]}-{LENGTHS[-1]}"
    yield same_number("tree-line d=3 m=2: entropy-two", 1.0, coherence(Entropy(2), tree_line(3, 2)))
    error = max(abs(coherence(Entropy(2), tree_line(*at)) - 1) for at in grid)
    yield small_error(f"  on {size}", "1", error)
    yield same_number(
        "tree-line d=3 m=2: random-two", random_two(3, 2), coherence(Random(2), tree_line(3, 2))
    )
    error = max(abs(coherence(Random(2), tree_line(*at)) - random_two(*at)) for at in grid)
    yield small_error(f"  on {size}", "the formula", error)
