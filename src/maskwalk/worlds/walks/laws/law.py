"""What a walk law is: an order-k law nu of walks x_0 … x_{L-1} over tokens 0..V-1.

    nu(x) = rho_k(x_0 … x_{k-1}) · prod_{t >= k} P_k(x_t | x_{t-k} … x_{t-1})     [paper, section 2]

`next_probs` defines the law; everything else follows from it. A law whose kernel depends on the
position too (schedule.py) defines `step_probs` instead, which is what everything else asks. Laws
with more structure override the slow general ways (`token_probs`, `_sample`, `reach`) but never the
meaning.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from torch import Tensor

from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, whole
from maskwalk.specs import Registry
from maskwalk.streams import Purpose, block_uniforms, inverse_cdf
from maskwalk.worlds.separators import Separator, halved
from maskwalk.worlds.sizes import check_sequences
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws import lifted
from maskwalk.worlds.walks.laws.lifted import CELLS


class WalkLaw(ABC):
    """An order-k law of walks of a fixed length; `graph` is None if it came from a bare kernel."""

    homogeneous = True  # whether every step after the first `order` tokens has the same kernel
    threaded = False  # whether `_sample` is numpy alone, of which several threads can do a part

    def __init__(self, vocab_size: int, length: int, order: int, graph: Graph | None) -> None:
        self.vocab_size = vocab_size
        self.length = whole("length", length, 2, 65_535)
        self.order = order
        self.graph = graph

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.length} positions, {self.vocab_size:,} tokens>"

    @abstractmethod
    def next_probs(self, history: Int[Tensor, "rows past"]) -> Float64[Tensor, "rows vocab"]:
        """Law of the next token. `past` < order: history is the whole walk so far (0: the start
        law, rows given by history.shape[0]); `past` == order: its last `order` tokens. A row of
        zeros follows a history that has probability zero or from which there is no way on."""

    def step_probs(
        self, t: int, history: Int[Tensor, "rows past"]
    ) -> Float64[Tensor, "rows vocab"]:
        """Law of the token at position t (history as in `next_probs`)."""
        return self.next_probs(history)

    def step_token_probs(
        self, t: int, history: Int[Tensor, "rows past"], tokens: Int[Tensor, " rows"]
    ) -> Float64[Tensor, " rows"]:
        """The probability of one token at position t after each history."""
        return self.token_probs(history, tokens)

    def token_probs(
        self, history: Int[Tensor, "rows past"], tokens: Int[Tensor, " rows"]
    ) -> Float64[Tensor, " rows"]:
        """The probability of one token after each history (as in `next_probs`)."""
        parts = [
            self.next_probs(h).gather(1, t[:, None].to(torch.int64))[:, 0]
            for h, t in zip(self._split(history), self._split(tokens))
        ]
        return torch.cat(parts)

    def _split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows in pieces small enough for a dense (rows, vocab) table."""
        return torch.split(rows, max(1, CELLS // self.vocab_size))

    def _histories(self, walks: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """(history, next token) at each position of the walks."""
        for t in range(self.length):
            yield walks[:, max(0, t - self.order) : t], walks[:, t]

    def sample(self, count: int, seed: int, first: int = 0) -> Int64[Tensor, "count length"]:
        """Walks number first..first+count-1 of this seed; each depends on its number only."""
        check_sequences(whole("count", count, 0), self.length)
        walks = np.empty((count, self.length), dtype=np.int64)
        threads = torch.get_num_threads() if self.threaded else 1
        # Small pieces stay in the processor's cache, which is faster as well as smaller; as many
        # for each thread, or one waits for the others.
        pieces = -(-count // max(1, min(1 << 14, CELLS // self.length)))
        if pieces > 1:
            pieces = -(-pieces // threads) * threads
        piece = max(1, -(-count // max(1, pieces)))

        def draw(start: int) -> None:
            rows = min(piece, count - start)
            u = block_uniforms(seed, Purpose.WALK, first + start, rows, self.length)
            walks[start : start + rows] = self._sample(u)

        starts = range(0, count, piece)
        if min(threads, len(starts)) > 1:
            with ThreadPoolExecutor(min(threads, len(starts))) as pool:
                list(pool.map(draw, starts))
        else:
            for start in starts:
                draw(start)
        return torch.from_numpy(walks)

    def _sample(self, u: Float64[np.ndarray, "count length"]) -> Int64[np.ndarray, "count length"]:
        """One walk for each row of uniforms, one uniform a step, by inverse CDF."""
        walks = torch.zeros(u.shape, dtype=torch.int64)
        uniforms = torch.from_numpy(np.ascontiguousarray(u))
        for t in range(self.length):
            history = walks[:, max(0, t - self.order) : t]
            parts = [
                inverse_cdf(self.step_probs(t, h).log(), x)
                for h, x in zip(self._split(history), self._split(uniforms[:, t]))
            ]
            walks[:, t] = torch.cat(parts)
        return walks.numpy()

    def step_log_probs(self, walks: Int[Tensor, "count length"]) -> Float64[Tensor, "count length"]:
        """log p(x_t | x_<t) at every position; -inf where the step is impossible."""
        self._check(walks)
        steps = [
            self.step_token_probs(t, history, token)
            for t, (history, token) in enumerate(self._histories(walks))
        ]
        return torch.stack(steps, dim=1).log()

    def log_prob(self, walks: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """log nu(x) of every walk; -inf outside the support."""
        return self.step_log_probs(walks).sum(1)

    def valid(self, walks: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """Whether each step is possible given the previous ones."""
        return self.step_log_probs(walks) > -torch.inf

    def _check(self, walks: Tensor) -> None:
        if walks.shape[1] != self.length:
            raise MaskwalkError(
                f"These walks have {walks.shape[1]} tokens; the law is of walks of {self.length}."
            )
        if walks.numel() and not (int(walks.min()) >= 0 and int(walks.max()) < self.vocab_size):
            raise MaskwalkError(
                f"These walks hold tokens from {int(walks.min())} to {int(walks.max())}; nodes are "
                f"0 to {self.vocab_size - 1}, and {self.vocab_size} is the mask token."
            )

    def support(
        self, limit: int = 1_000_000
    ) -> tuple[Int64[Tensor, "n length"], Float64[Tensor, " n"]]:
        """All walks of positive probability, in lexicographic order, with log-probabilities."""
        walks = torch.zeros((1, 0), dtype=torch.int64)
        logs = torch.zeros(1, dtype=torch.float64)
        for t in range(self.length):
            longer, extended, total = [], [], 0
            for prefix, log in zip(self._split(walks), self._split(logs)):
                probs = self.step_probs(t, prefix[:, max(0, t - self.order) :])
                row, token = probs.nonzero(as_tuple=True)
                total += len(row)
                # Every prefix goes on to at least one walk, so too many prefixes is final.
                if total > limit:
                    raise MaskwalkError(
                        f"This law has more than {limit:,} walks of positive probability, too many "
                        "to list; take a smaller graph or shorter walks, or raise the limit."
                    )
                longer.append(torch.cat([prefix[row], token[:, None]], dim=1))
                extended.append(log[row] + probs[row, token].log())
            walks, logs = torch.cat(longer), torch.cat(extended)
        return walks, logs

    def oracle(self) -> Denoiser:
        """The fastest exact oracle; a sentence where none is possible at this size."""
        from maskwalk.worlds.walks.oracles import oracle_for  # oracles are made for laws

        return oracle_for(self)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The path, an impossible step marked."""
        marks = ["" if fine else "✗ " for fine in self.valid(tokens[None])[0].tolist()]
        named = str if self.graph is None else self.graph.name
        names = [named(token) for token in tokens.tolist()]
        return " ".join(mark + name for mark, name in zip(marks, names))

    def entropy(self) -> float:
        """H(nu) in nats, exact, by a forward pass over the histories that can occur."""
        return lifted.entropy(self.step_probs, self.order, self.length)

    def separators(self) -> Separator:
        """Blocks of `order` neighbours, the middle one first."""
        starts = range(0, self.length, self.order)
        return halved([range(i, min(i + self.order, self.length)) for i in starts])

    def reach(self, start: int) -> Bool[Tensor, " vocab"]:
        """Which tokens can be the last of a walk that begins at `start`; exact."""
        whole("start", start, 0, self.vocab_size - 1)
        return lifted.reach(self.step_probs, self.order, self.length, start)


WALKS: Registry[WalkLaw] = Registry("walk", context=("graph", "length"), makes=WalkLaw)


def walkable(graph: Graph, law: str) -> None:
    """Refuses graphs on which a walk of any length could get stuck."""
    if graph.levels is not None:
        raise MaskwalkError(
            f"{law} walks need a graph on which one can always go on; this one is a level DAG. "
            "Use dag() on it."
        )
    stuck = np.flatnonzero(graph.out_degree == 0)
    if len(stuck):
        raise MaskwalkError(
            f"{law} walks cannot go on from node {graph.name(int(stuck[0]))}: no arc leaves it."
        )
