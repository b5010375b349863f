"""The shortest plan that loses nothing: which positions to reveal together, in how few rounds.

A plan is a sequence of sets fixed in advance. It is exact if every set is independent given the
sets before it: Σ_{i∈B} H(X_i | X_U) = H(X_B | X_U). Found by breadth-first search over all sets U,
3^L steps. A policy that looks at the tokens may need fewer rounds.
"""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from maskwalk.paper.theory.worlds.instance import Instance

ROUNDING = 1e-9  # nats


def shortest_exact_plan(at: Instance) -> tuple[int, ...]:
    """The turn of every position (0 where it is given): what the sampler `planned` takes."""
    masked, full = at.masked, (1 << len(at.masked)) - 1
    digits = at.truth[0] * at.world.vocab_size ** torch.arange(at.world.length)
    entropies = [
        _entropy(digits[:, _members(code, masked)].sum(1), at.truth[1]) for code in range(full + 1)
    ]
    steps: dict[int, tuple[int, int]] = {0: (0, 0)}  # set reached: the set before, its round
    edge, rounds = [0], 0
    while full not in steps:
        rounds += 1
        found = {known | block: known for known in edge for block in _blocks(known, entropies)}
        edge = [code for code in found if code not in steps]
        steps |= {code: (found[code], rounds) for code in edge}
    turns, code = [0] * at.world.length, full
    while code:
        before, turn = steps[code]
        for position in _members(code & ~before, masked):
            turns[position] = turn
        code = before
    return tuple(turns)


def _blocks(known: int, entropies: list[float]) -> list[int]:
    """The sets that are independent given `known`."""
    rest, base = (len(entropies) - 1) & ~known, entropies[known]
    single = [entropies[known | 1 << j] - base for j in range(rest.bit_length())]
    found, block = [], rest
    while block:
        apart = sum(h for j, h in enumerate(single) if block >> j & 1)
        if apart - (entropies[known | block] - base) < ROUNDING:
            found.append(block)
        block = (block - 1) & rest
    return found


def _members(code: int, masked: list[int]) -> list[int]:
    return [position for j, position in enumerate(masked) if code >> j & 1]


def _entropy(keys: Int64[Tensor, " n"], probs: Float64[Tensor, " n"]) -> float:
    """H in nats of what the keys tell apart."""
    _, group = keys.unique(return_inverse=True)
    mass = torch.zeros(len(probs), dtype=torch.float64).index_add(0, group, probs)
    return float(torch.special.entr(mass).sum())
