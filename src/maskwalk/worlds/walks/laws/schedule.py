"""Time-inhomogeneous laws: another first-order kernel at every step.

    nu(x) = rho(x_0) · prod_{t >= 1} P_t(x_t | x_{t-1})

A revealed token still separates left from right, so bisection is exact here as well; what is lost
is that one power of one matrix serves every gap of the same width. `schedule` takes its kernels
from other laws, in turns; a kernel of one's own for every step is

    ScheduleLaw([ChainLaw(rho, kernel, 2) for kernel in kernels], range(len(kernels)))
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.sizes import fits_table
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws.chain import ChainLaw
from maskwalk.worlds.walks.laws.law import WALKS, WalkLaw


class ScheduleLaw(WalkLaw):
    """First-order laws that take turns: `turns[t - 1]` says whose kernel leads to position t.

    Walks start as those of the first law do, and are one token longer than there are turns.
    """

    homogeneous = False
    threaded = True

    def __init__(
        self, laws: Sequence[WalkLaw], turns: Sequence[int], graph: Graph | None = None
    ) -> None:
        self.laws = _first_order(laws)
        self.turns = tuple(whole("turn", turn, 0, len(self.laws) - 1) for turn in turns)
        first = self.laws[0]
        super().__init__(first.vocab_size, len(self.turns) + 1, 1, graph)
        self.initial = first.initial
        self._refuse_dead_ends()

    def _refuse_dead_ends(self) -> None:
        at = self.initial.numpy() > 0
        for t, law in self.steps():
            stuck = at & (np.asarray(law.kernel.sum(axis=1)) == 0)
            if stuck.any():
                raise MaskwalkError(
                    f"A walk can get stuck at node {int(np.flatnonzero(stuck)[0])}: the kernel of "
                    f"the step to position {t} has no way on from there."
                )
            at = law.kernel.T @ at > 0

    def steps(self) -> Iterator[tuple[int, ChainLaw]]:
        """Every position but the first, and the law whose kernel leads there."""
        for t, turn in enumerate(self.turns, start=1):
            yield t, self.laws[turn]

    def next_probs(self, history: Int[Tensor, "rows past"]) -> Float64[Tensor, "rows vocab"]:
        """The start law; later the position must be known."""
        if history.shape[1]:
            raise MaskwalkError(
                "The steps of this law depend on the position: ask step_probs(t, history), not "
                "next_probs(history)."
            )
        return self.laws[0].next_probs(history)

    def step_probs(
        self, t: int, history: Int[Tensor, "rows past"]
    ) -> Float64[Tensor, "rows vocab"]:
        """The start law, or the row of this step's kernel."""
        return self._law_of(t).next_probs(history)

    def step_token_probs(
        self, t: int, history: Int[Tensor, "rows past"], tokens: Int[Tensor, " rows"]
    ) -> Float64[Tensor, " rows"]:
        """Looked up in this step's sparse kernel."""
        return self._law_of(t).token_probs(history, tokens)

    def _law_of(self, t: int) -> ChainLaw:
        return self.laws[self.turns[t - 1] if t else 0]

    def _sample(self, u: Float64[np.ndarray, "count length"]) -> Int64[np.ndarray, "count length"]:
        columns = np.ascontiguousarray(u.T)
        walks = np.empty(columns.shape, dtype=np.int64)
        walks[0] = self.laws[0]._alias.draw(np.full(len(u), self.vocab_size), columns[0])
        for t, law in self.steps():
            walks[t] = law._alias.draw(walks[t - 1], columns[t])
        return walks.T

    def marginals(self) -> Float64[Tensor, "length vocab"]:
        """The law of the token at each position."""
        fits_table("The law of every position", self.length, self.vocab_size)
        rows = [self.initial.numpy()]
        for _, law in self.steps():
            rows.append(law.kernel.T @ rows[-1])
        return torch.from_numpy(np.stack(rows))

    def entropy(self) -> float:
        """H(start) + Σ_t Σ_u Pr(x_{t-1} = u) H(P_t(·|u))."""
        at = self.initial
        nats = torch.special.entr(at).sum()
        each = [torch.from_numpy(law.row_entropies()) for law in self.laws]
        for (_, law), turn in zip(self.steps(), self.turns):
            nats = nats + at @ each[turn]
            at = torch.from_numpy(law.kernel.T @ at.numpy())
        return float(nats)

    def reach(self, start: int) -> Bool[Tensor, " vocab"]:
        """Which tokens can end a walk from `start`, by boolean matrix-vector products."""
        at = (np.arange(self.vocab_size) == start) & (self.initial.numpy() > 0)
        for _, law in self.steps():
            at = law.kernel.T @ at > 0
        return torch.from_numpy(at)


def _first_order(laws: Sequence[WalkLaw]) -> tuple[ChainLaw, ...]:
    """The laws, or a sentence if they cannot take turns."""
    chains = tuple(law for law in laws if isinstance(law, ChainLaw))
    if len(chains) < len(laws):
        raise MaskwalkError(
            "A schedule takes first-order laws, such as lazy(stay=0.5), drift() or markov(); "
            "one of these looks further back, or is a schedule itself."
        )
    if len({law.vocab_size for law in chains}) != 1:
        raise MaskwalkError("A schedule takes one or more laws over the same nodes.")
    return chains


@WALKS.register("schedule", several=("laws",))
def schedule(graph: Graph, length: int, laws: list[WalkLaw], turn: int | None = None) -> WalkLaw:
    """A time-inhomogeneous walk: first-order laws take turns of `turn` steps, over and over.

    turn=None spreads them over the walk: each law once, in order, for equally many steps. The
    first token is drawn as the first law draws it.
    """
    steps = whole("length", length, 2) - 1
    if turn is None:
        if len(laws) > steps:
            raise MaskwalkError(
                f"A walk of {length} tokens has {steps} steps, too few for {len(laws)} laws; "
                "lengthen the walk, or say turn=1."
            )
        return ScheduleLaw(laws, [step * len(laws) // steps for step in range(steps)], graph)
    turn = whole("turn", turn, 1, 65_535)
    return ScheduleLaw(laws, [step // turn % len(laws) for step in range(steps)], graph)
