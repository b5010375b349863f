"""Sums a + b = c of two random numbers, digit by digit: a chain of digit columns in the tokens.

A column (a_i, b_i, c_i) with the carry into it determines the carry out of it, so the carry is the
only state. Neighbours in that chain lie far apart in the token order, except interleaved:

    plain         a₁ … a_n  b₁ … b_n  c₀ … c_n        most significant digit first
    reversed      a_n … a₁  b_n … b₁  c_n … c₀        least significant first
    interleaved   a_n b_n c_n  …  a₁ b₁ c₁  c₀        column by column
"""

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.stats import Estimate, plain_mean
from maskwalk.worlds.exact.chain import ChainWorld, Column
from maskwalk.worlds.metrics import METRICS, Sample
from maskwalk.worlds.separators import Separator, halved
from maskwalk.worlds.tasks import TASKS, Prompts, reveal_held_out
from maskwalk.worlds.world import WORLDS, World

ORDERS = ("plain", "reversed", "interleaved")


@WORLDS.register("addition")
class Addition(ChainWorld):
    """Sums a + b = c of two uniform numbers of `digits` digits, written in one of three orders."""

    uniform = True

    def __init__(self, digits: int = 8, base: int = 10, order: str = "plain") -> None:
        self.digits, self.base = whole("digits", digits, 1, 1000), whole("base", base, 2, 64)
        self.layout = one_of("order", order, ORDERS)
        self.a, self.b, self.c = _positions(digits, order)
        one = np.array([1.0, 0.0])
        super().__init__(base, self._columns(), one, one)

    def _columns(self) -> list[Column]:
        """The digit columns, least significant first, then the last carry."""
        a, b, carry = (x.ravel() for x in np.indices((self.base, self.base, 2)))
        total = a + b + carry
        symbols = np.stack([a, b, total % self.base], 1)
        edge = np.arange(len(a))
        places = [
            Column(at, symbols, carry, edge, total // self.base, np.ones(len(a)))
            for at in reversed(list(zip(self.a, self.b, self.c[1:])))
        ]
        last = Column(
            (self.c[0],),
            np.arange(2)[:, None],
            np.arange(2),
            np.arange(2),
            np.zeros(2, dtype=np.int64),
            np.ones(2),
        )
        return [*places, last]

    def separators(self) -> Separator:
        """A whole digit column, which determines the carries on both sides, and the halves."""
        return halved([column.positions for column in self.columns])

    def carries(self, tokens: Int[Tensor, "count length"]) -> Int64[Tensor, "count places"]:
        """The carry out of every column, least significant first."""
        carry, found = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device), []
        for a, b in zip(reversed(self.a), reversed(self.b)):
            carry = (tokens[:, a] + tokens[:, b] + carry) // self.base
            found.append(carry)
        return torch.stack(found, 1)

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """False at the digits of the sum that are wrong."""
        self.check(tokens)
        fine, carries = torch.ones_like(tokens, dtype=torch.bool), self.carries(tokens)
        carry = torch.zeros_like(carries[:, 0])
        for place, out in enumerate(carries.unbind(1), 1):
            a, b, c = self.a[-place], self.b[-place], self.c[-place]
            fine[:, c] = tokens[:, c] == (tokens[:, a] + tokens[:, b] + carry) % self.base
            carry = out
        fine[:, self.c[0]] = tokens[:, self.c[0]] == carry
        return fine

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The sum as on paper, carries above; · is masked, ✗ marks a wrong digit."""
        tokens = tokens.cpu()
        known = tokens != self.vocab_size
        whole_sum = bool(known.all())
        fine = self.valid(tokens[None])[0] if whole_sum else torch.ones_like(known)
        width = len(str(self.base - 1))

        def line(positions: list[int]) -> str:
            cells = (str(int(tokens[i])) if known[i] else "·" for i in positions)
            return "".join(
                f"{cell:>{width}}{' ' if fine[i] else '✗'}" for cell, i in zip(cells, positions)
            )

        gap = " " * (width + 1)
        lines = [f"  {gap}{line(self.a)}", f"+ {gap}{line(self.b)}", f"= {line(self.c)}"]
        if whole_sum:
            marks = ["1" if x else " " for x in self.carries(tokens[None])[0].flip(0).tolist()]
            lines.insert(0, "  " + " ".join(f"{mark:>{width}}" for mark in marks))
        return "\n".join(text.rstrip() for text in lines)


def _positions(digits: int, order: str) -> tuple[list[int], list[int], list[int]]:
    """Where the digits of a, b and c stand, most significant first."""
    n = digits
    if order == "interleaved":
        a, b = ([3 * (n - 1 - i) + j for i in range(n)] for j in (0, 1))
        return a, b, [3 * n, *(3 * (n - 1 - i) + 2 for i in range(n))]
    a, b, c = list(range(n)), list(range(n, 2 * n)), list(range(2 * n, 3 * n + 1))
    return (a, b, c) if order == "plain" else (a[::-1], b[::-1], c[::-1])


def _sums(world: World, task: str) -> Addition:
    if isinstance(world, Addition):
        return world
    raise MaskwalkError(f"{task} is a task of sums, addition(…); this world is another.")


@TASKS.register("operands")
def operands(world: World, prompts: int, seed: int) -> Prompts:
    """Add: both operands of a held-out sum are given, the sum is asked for."""
    law = _sums(world, "operands")
    return reveal_held_out(law, prompts, seed, [*law.a, *law.b])


@TASKS.register("sum")
def given_sum(world: World, prompts: int, seed: int) -> Prompts:
    """Split: the sum is given, two operands are asked for."""
    law = _sums(world, "sum")
    return reveal_held_out(law, prompts, seed, law.c)


@METRICS.register(
    "coherence_by_carries",
    title="coherence",
    better=1,
    limits=(0, 1),
    drawn=False,
    world=None,
)
def coherence_by_carries(sample: Sample) -> Estimate | None:
    """Coherence of sums whose longest chain of carries has h places, for every h that occurs."""
    if not isinstance(sample.world, Addition) or sample.valid is None:
        return None
    longest = longest_runs(sample.world.carries(sample.tokens))
    right, parts = sample.valid.all(1), []
    for h in longest.unique().tolist():
        estimate = plain_mean(right[longest == h], sample.prompts[longest == h])
        parts.append({"at": h} | estimate.as_dict())
    every = plain_mean(right, sample.prompts)
    return Estimate(every.value, every.se, every.n, {"by": parts})


def longest_runs(ones: Int64[Tensor, "count places"]) -> Int64[Tensor, " count"]:
    """The longest run of ones in every row."""
    run = longest = torch.zeros_like(ones[:, 0])
    for here in ones.unbind(1):
        run = (run + 1) * here
        longest = torch.maximum(longest, run)
    return longest
