"""Dyck words: brackets of several kinds that close in the order they opened, to a bounded depth.

Of unbounded order in the tokens (a bracket may close the very first one), of finitely many states:
the stacks of open brackets.
"""

from itertools import product

import numpy as np
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.exact.automaton import AutomatonWorld
from maskwalk.worlds.world import WORLDS

BRACKETS = "()[]{}<>"
LARGEST = 20_000  # stacks


@WORLDS.register("dyck")
class Dyck(AutomatonWorld):
    """Balanced brackets of `kinds` kinds, nested at most `depth` deep, all words equally likely."""

    def __init__(self, kinds: int = 2, depth: int = 4, length: int = 16) -> None:
        self.kinds = whole("kinds", kinds, 1, len(BRACKETS) // 2)
        self.depth = whole("depth", depth, 1)
        if whole("length", length, 2, 65_535) % 2:
            raise MaskwalkError(f"length must be even, not {length}: every bracket has a partner.")
        deepest = min(depth, length // 2)
        if sum(kinds**d for d in range(deepest + 1)) > LARGEST:
            raise MaskwalkError(
                f"There are more than {LARGEST:,} stacks of {kinds} kinds of brackets {deepest} "
                "deep; take fewer kinds or a lower depth."
            )
        super().__init__(_transitions(kinds, deepest), [0], length)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The brackets; · is masked, ✗ stands before the first that cannot go on."""
        tokens = tokens.cpu()
        signs = [BRACKETS[token] if token < self.vocab_size else "·" for token in tokens.tolist()]
        if "·" not in signs:
            fine = self.valid(tokens[None])[0].tolist()
            signs = [sign if right else f"✗{sign}" for sign, right in zip(signs, fine)]
        return "".join(signs)


def _transitions(kinds: int, depth: int) -> np.ndarray:
    """From stack to stack: token 2k opens kind k, 2k + 1 closes it; -1 where it cannot."""
    stacks = [s for d in range(depth + 1) for s in product(range(kinds), repeat=d)]
    number = {stack: i for i, stack in enumerate(stacks)}
    table = np.full((len(stacks), 2 * kinds), -1, dtype=np.int64)
    for stack, i in number.items():
        for kind in range(kinds):
            table[i, 2 * kind] = number.get((*stack, kind), -1)
            if stack and stack[-1] == kind:
                table[i, 2 * kind + 1] = number[stack[:-1]]
    return table
