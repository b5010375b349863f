"""Entropies H(X_U) of sets of positions of a walk, exactly: what the optima are computed from.

    dependence of revealing B after U:  Σ_{i∈B} H(X_i | X_U) − H(X_B | X_U)   (nats, never negative)

Small laws: by listing all walks. First-order laws of any size: H(X_U) is a sum over neighbours in U
of H(X_b | X_a) = Σ_u Pr(X_a = u) H(P^{b−a}[u, ·]), so a table of length² numbers is enough. Where
the kernel changes with time, P^{b−a} is the product of the kernels between a and b.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.decoding.scores import entropy
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles import Oracle
from maskwalk.worlds.world import Listed

Entropies = Callable[[frozenset[int]], float]  # H(X_U) of a set of positions
DEEPEST = 12  # positions whose 2^L subsets are worth a table
WORKING = 1 << 23  # numbers an oracle answers with at once


def dependence(joint: Entropies, revealed: Iterable[int], block: Iterable[int]) -> float:
    """Conditional total correlation of `block` given `revealed`, in nats."""
    before, now = frozenset(revealed), frozenset(block) - frozenset(revealed)
    base = joint(before)
    return sum(joint(before | {i}) - base for i in now) - (joint(before | now) - base)


def listed_entropies(law: Listed) -> Entropies:
    """H(X_U) of a small law by listing its walks; each set is computed once."""
    if law.length > DEEPEST:
        raise MaskwalkError(
            f"Walks of {law.length} tokens have 2^{law.length} sets of positions; at most "
            f"2^{DEEPEST} are listed. Take shorter walks, or a first-order law."
        )
    walks, logs = law.support()
    probs, known = logs.exp(), {frozenset[int](): 0.0}

    def joint(positions: frozenset[int]) -> float:
        if positions not in known:
            _, group = walks[:, sorted(positions)].unique(dim=0, return_inverse=True)
            mass = torch.zeros(int(group.max()) + 1, dtype=torch.float64)
            known[positions] = float(torch.special.entr(mass.index_add(0, group, probs)).sum())
        return known[positions]

    return joint


def pair_entropies(law: ChainLaw | ScheduleLaw) -> Float64[np.ndarray, "places places"]:
    """Entry (a + 1, b + 1): H(X_b | X_a); place 0 lies before the walk and place L + 1 after it."""
    length, marginals = law.length, law.marginals()
    table = np.zeros((length + 2, length + 2))
    table[0, 1:-1] = torch.special.entr(marginals).sum(1).numpy()
    if isinstance(law, ScheduleLaw):
        for a, b, product in _products(law):
            table[a + 1, b + 1] = float(marginals[a] @ torch.special.entr(product).sum(1))
        return table
    power = torch.eye(law.vocab_size, dtype=torch.float64)
    for gap in range(1, length):
        power = torch.from_numpy(law.kernel @ power.numpy())
        rows = torch.special.entr(power).sum(1)
        for a in range(length - gap):
            table[a + 1, a + gap + 1] = float(marginals[a] @ rows)
    return table


def _products(law: ScheduleLaw) -> Iterator[tuple[int, int, Float64[Tensor, "vocab vocab"]]]:
    """For all positions a < b: the product of the kernels between them."""
    for a in range(law.length - 1):
        product = np.eye(law.vocab_size)
        for b, step in law.steps():
            if b > a:
                product = (step.kernel.T @ product.T).T
                yield a, b, torch.from_numpy(np.ascontiguousarray(product))


def chain_entropies(law: ChainLaw | ScheduleLaw) -> Entropies:
    """H(X_U) of a first-order law of any size."""
    table = pair_entropies(law)

    def joint(positions: frozenset[int]) -> float:
        places = [0, *(i + 1 for i in sorted(positions))]
        return float(sum(table[a, b] for a, b in pairwise(places)))

    return joint


Triples = Float64[np.ndarray, "places places places"]


def triple_entropies(law: ChainLaw | ScheduleLaw) -> Triples:
    """Entry (a + 1, i + 1, b + 1): H(X_i | X_a, X_b) for a < i < b; infinite elsewhere.

    H(X_i | X_a, X_b) = H(X_i | X_a) + H(X_b | X_i) − H(X_b | X_a) for a first-order law.
    """
    pair = pair_entropies(law)
    entropies = pair[:, :, None] + pair[None, :, :] - pair[:, None, :]
    return np.where(_between(law.length), entropies, np.inf)


def walked_triples(
    oracle: Oracle, walks: Int[Tensor, "batch length"], given: Iterable[int] = ()
) -> Triples:
    """The same for walks between given tokens, as the mean over exact walks of the entropy of
    ν(x_i | x_a, x_b): prompts need not be distributed as the law's own."""
    length, known = walks.shape[1], set(given)
    triples = np.full((length + 2,) * 3, np.inf)
    each = max(1, WORKING // (length * oracle.vocab_size))
    for a in range(-1, length):
        for b in range(a + 2, length + 1):
            # A place beyond an end can only be a neighbour if nothing given lies between.
            if any(a < g < b for g in known):
                continue
            total = torch.zeros(b - a - 1, dtype=torch.float64)
            for part in walks.split(each):
                canvas = torch.full_like(part, oracle.mask_id)
                for end in {a, b} - {-1, length}:
                    canvas[:, end] = part[:, end]
                at = torch.zeros_like(part, dtype=torch.bool)
                at[:, a + 1 : b] = True
                total += entropy(oracle(canvas, at)).view(len(part), -1).sum(0).cpu()
            triples[a + 1, a + 2 : b + 1, b + 1] = (total / len(walks)).numpy()
    return triples


def _between(length: int) -> np.ndarray:
    place = np.arange(length + 2)
    return (place[:, None, None] < place[None, :, None]) & (
        place[None, :, None] < place[None, None, :]
    )
