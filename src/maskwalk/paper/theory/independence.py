"""Bridges of order-k laws fall apart at revealed blocks of k neighbours.

The paper's lemma "Conditional independence for order-k Markov bridges", in both of its forms. Let U
hold the endpoints, and let every revealed chunk between two masked intervals B_1 … B_m have at
least k positions. Then, for every x_U that is possible,

    intervals   X_{B_1}, …, X_{B_m} are independent given X_U = x_U        (the main text's form)
    blocks      so are S_1 ⊆ B_1, …, S_m ⊆ B_m, contiguous, of min(|B_j|, k) positions (appendix)

Checked for every such U and every choice of blocks, by summing the law over its support: what is
stated is Σ_u ν(u) · TV(joint given u, product of the marginals given u). With one revealed position
less than k between two intervals they depend on each other.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, groupby, pairwise, product

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.paper.theory.check import Check, build, other_law, same_law

TWO, THREE, TREE = "st_er(nodes=2, p=1.0)", "st_er(nodes=3, p=1.0)", "st_er(nodes=3, p=0.0)"
LAWS = {  # long enough for two intervals of which one is longer than a block
    1: ((TREE, "lazy(stay=0.125)", 7), (THREE, "markov(order=1, seed=1)", 7)),
    2: ((TREE, "markov(order=2, seed=1)", 8), (TWO, "markov(order=2, seed=1)", 9)),
    3: ((TWO, "markov(order=3, seed=1)", 10),),
}
Positions = tuple[int, ...]
Split = tuple[Positions, tuple[Positions, ...]]  # what is revealed, and the masked intervals


def splits(length: int, order: int) -> Iterator[Split]:
    """Every U with both endpoints and at least two intervals, its inner chunks `order` or wider."""
    inner = range(1, length - 1)
    for size in range(2, length - 1):
        for masked in combinations(inner, size):
            intervals = tuple(_neighbours(masked))
            gaps = [b[0] - a[-1] - 1 for a, b in pairwise(intervals)]
            if gaps and min(gaps) >= order:
                yield tuple(i for i in range(length) if i not in masked), intervals


def _neighbours(positions: Positions) -> Iterator[Positions]:
    """Positions cut into runs of neighbours."""
    for _, run in groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0]):
        yield tuple(position for _, position in run)


def blocks(intervals: tuple[Positions, ...], order: int) -> Iterator[tuple[Positions, ...]]:
    """Every choice of a contiguous block of min(length, order) in each interval."""
    choices = []
    for interval in intervals:
        width = min(len(interval), order)
        choices.append([interval[i : i + width] for i in range(len(interval) - width + 1)])
    return product(*choices)


def dependence(
    walks: Int[Tensor, "walks length"],
    probs: Float64[Tensor, " walks"],
    given: Positions,
    parts: Iterable[Positions],
) -> float:
    """Σ_u ν(u) · TV(joint of the parts given u, product of their marginals given u)."""
    sets = [list(part) for part in parts]
    context = _ids(walks, list(given))
    total = _summed(context, probs)[context]  # ν(u) of every walk
    joint_ids = _ids(walks, [*given, *(i for part in sets for i in part)])
    joint, first = _summed(joint_ids, probs), _first(joint_ids)
    independent = total[first].clone()
    for part in sets:
        ids = _ids(walks, [*given, *part])
        independent *= (_summed(ids, probs)[ids] / total)[first]
    outside = 1.0 - float(independent.sum())  # what the product gives to impossible joints
    return 0.5 * (float((joint - independent).abs().sum()) + outside)


def _ids(walks: Tensor, positions: list[int]) -> Int[Tensor, " walks"]:
    """A number for what a walk has at these positions."""
    _, ids = torch.unique(walks[:, positions], dim=0, return_inverse=True)
    numbers: Tensor = ids
    return numbers


def _summed(ids: Tensor, probs: Tensor) -> Float64[Tensor, " distinct"]:
    return torch.zeros(int(ids.max()) + 1, dtype=torch.float64).index_add(0, ids, probs)


def _first(ids: Tensor) -> Int[Tensor, " distinct"]:
    """A walk of every number."""
    walks = torch.arange(len(ids))
    return torch.zeros(int(ids.max()) + 1, dtype=torch.int64).scatter(0, ids, walks)


def independence() -> Iterator[Check]:
    """Both forms of the lemma for orders 1 to 3, and what a narrower separator leaves."""
    for k, specs in LAWS.items():
        whole, parts, narrow = 0.0, 0.0, 0.0
        for spec in specs:
            walks, log_probs = build(*spec).support()
            law = walks, log_probs.exp()
            for given, intervals in splits(walks.shape[1], k):
                whole = max(whole, dependence(*law, given, intervals))
                chosen = blocks(intervals, k)
                parts = max(parts, *(dependence(*law, given, some) for some in chosen))
            if k > 1:
                narrow = max(dependence(*law, *s) for s in splits(walks.shape[1], k - 1))
        yield same_law(f"order-{k} bridge: independent intervals", whole)
        yield same_law(f"order-{k} bridge: independent blocks", parts)
        if k > 1:
            yield other_law(f"order-{k} bridge: separators of {k - 1}", narrow)
