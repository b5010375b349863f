"""Sentences of a probabilistic context-free grammar: dependence runs through hidden tree nodes.

The grammar is in Chomsky normal form, A → B C and A → word, and its law is renormalised to
sentences of one length. Conditionals by inside–outside over all trees at once:

    inside_A(i, d)  = Σ_{A→BC} p Σ_k inside_B(i, k) inside_C(i + k, d − k)
    p(word w at i | revealed) ∝ Σ_A outside_A(i, 1) p(A → w)

where inside_A(i, 1) is p(A → w) at a revealed word and Σ_w p(A → w) at a masked one.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.exact.chance import pick
from maskwalk.worlds.exact.grammar import Grammar, random_grammar, read_grammar
from maskwalk.worlds.exact.listing import listed_entropy
from maskwalk.worlds.exact.world import ExactWorld, Weights, neighbours
from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.world import WORLDS

CELLS = 1 << 17  # pairs × positions × canvases worked on at once: what a cache holds


@WORLDS.register("pcfg")
class Pcfg(ExactWorld):
    """Sentences of a random grammar, or of one of your own, all of one length.

    `grammar` is text as nltk reads it, in Chomsky normal form, rules separated by semicolons:
    'S -> S A [0.4] | "a" [0.6]; A -> "b" [1.0]'. Empty: a random one of `nonterminals` and `words`,
    with `branches` pairs and `lexicon` words for each nonterminal.
    """

    def __init__(
        self,
        nonterminals: int = 10,
        words: int = 20,
        length: int = 24,
        branches: int = 1,
        lexicon: int = 2,
        grammar: str = "",
        seed: int = 0,
    ) -> None:
        if grammar:
            self.grammar = read_grammar(grammar)
        else:
            self.grammar = random_grammar(nonterminals, words, branches, lexicon, seed)
        self.length = whole("length", length, 1, 128)
        self.vocab_size = len(self.grammar.words)
        self.draws = 2 * length - 1
        if not self._widths[length][0] > 0:
            raise MaskwalkError(
                f"This grammar has no sentence of {length} words; change the length or the rules."
            )

    @cached_property
    def _widths(self) -> list[Float64[np.ndarray, " nonterminals"]]:
        """The probability that each nonterminal yields so many words, 0 to `length`."""
        rules = self.grammar
        sizes = [np.zeros(len(rules.names)), rules.lexicon.sum(1)]
        for width in range(2, self.length + 1):
            sizes.append(self._splits(sizes, width).sum(0) @ rules.onto)
        return sizes

    def _splits(self, sizes: list[np.ndarray], width: int) -> Float64[np.ndarray, "splits rules"]:
        """The weight of every rule with every split of a span."""
        rules = self.grammar
        return np.stack(
            [
                rules.probs * sizes[k][rules.left] * sizes[width - k][rules.right]
                for k in range(1, width)
            ]
        )

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """Trees from the root down; a node's uniform is that of its number in preorder."""
        rules, count = self.grammar, len(u)
        tokens = np.zeros((count, self.length), dtype=np.int64)
        rows = np.arange(count)
        spans: dict[int, list[tuple[np.ndarray, ...]]] = {w: [] for w in range(self.length + 1)}
        zero = np.zeros(count, dtype=np.int64)
        spans[self.length].append((rows, zero, zero, zero))  # row, number, start, symbol
        for width in range(self.length, 1, -1):
            if not spans[width]:
                continue
            row, number, start, symbol = (np.concatenate(x) for x in zip(*spans[width]))
            mass = self._splits(self._widths, width)  # (splits, rules)
            own = rules.parent == np.arange(len(rules.names))[:, None]
            options = np.where(own[:, None, :], mass, 0.0).reshape(len(own), -1).cumsum(1)
            choice = pick(options[symbol], u[row, number])
            k, rule = choice // len(rules.probs) + 1, choice % len(rules.probs)
            for size in range(1, width):
                here = k == size
                at = (row[here], number[here], start[here], rules.left[rule[here]])
                spans[size].append((at[0], at[1] + 1, at[2], at[3]))
                after = (at[1] + 2 * size, at[2] + size, rules.right[rule[here]])
                spans[width - size].append((at[0], *after))
        row, number, start, symbol = (np.concatenate(x) for x in zip(*spans[1]))
        tokens[row, start] = pick(rules.lexicon.cumsum(1)[symbol], u[row, number])
        return tokens

    def entropy(self) -> float | None:
        """By listing all sentences where that is possible; else None: estimate it from log_prob."""
        return listed_entropy(self)

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """log of the sum over all trees of the sentence, less that over all sentences."""
        self.check(tokens)
        tables = tables_of(self, tokens.device)
        total = tables.log_inside(torch.full_like(tokens[:1], self.vocab_size))
        return torch.cat([tables.log_inside(some) for some in self._split(tokens)]) - total

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """Inside from the words up, outside from the root down."""
        tables = tables_of(self, tokens.device)
        parts = [tables.marginals(some) for some in self._split(tokens)]
        blank = tokens.new_zeros((0, self.length, self.vocab_size), dtype=torch.float64)
        return torch.cat([blank, *parts])

    def _split(self, tokens: Tensor) -> tuple[Tensor, ...]:
        size = CELLS // (max(1, len(self.grammar.pairs)) * self.length)
        return torch.split(tokens, max(16, size) if tokens.device.type == "cpu" else 4096)

    def pairs(self) -> list[tuple[int, int]]:
        """Neighbouring words."""
        return neighbours(self.length)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The likeliest tree in brackets, or the words, ✗ before the first that cannot go on."""
        tokens = tokens.cpu()
        words = [self.grammar.words[t] if t < self.vocab_size else "·" for t in tokens.tolist()]
        if bool((tokens == self.vocab_size).any()):
            return " ".join(words)
        fine = self.valid(tokens[None])[0].tolist()
        if not all(fine):
            return " ".join(word if right else f"✗{word}" for word, right in zip(words, fine))
        return self.grammar.best_tree(tokens.tolist())


@dataclass(frozen=True, eq=False)
class Tables:
    """A grammar on a device; charts are (nonterminals, positions, canvases), one for each width."""

    length: int
    words: int
    left: Tensor  # of each pair B C that some rule has
    right: Tensor
    lexicon: Tensor
    up: Sparse  # pairs to parents, weighted by the rules
    down: Sparse
    to_left: Sparse  # pairs to their left nonterminal
    to_right: Sparse
    to_words: Sparse  # nonterminals to words

    def leaves(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The words' inside weights with a largest entry of 1, and what each was divided by."""
        masked = (tokens == self.words).T
        known = self.lexicon[:, torch.where(masked, 0, tokens.T)]
        weights = torch.where(masked, self.lexicon.sum(1)[:, None, None], known)
        size = weights.amax(0)
        return weights / torch.where(size > 0, size, 1.0), size

    def log_inside(self, tokens: Tensor) -> Tensor:
        """log of the sum over all trees of each canvas."""
        return self.inside(tokens)[-1][0, 0].log() + self.leaves(tokens)[1].log().cumsum(0)[-1]

    def inside(self, tokens: Tensor) -> list[Tensor]:
        """For each width from 1 the inside weights of its spans, words scaled to at most 1."""
        charts = [self.leaves(tokens)[0]]
        for width in range(2, self.length + 1):
            spans = self.length - width + 1
            total = tokens.new_zeros((len(self.left), spans, len(tokens)), dtype=torch.float64)
            for k in range(1, width):
                left, right = charts[k - 1], charts[width - k - 1]
                total += left[self.left, :spans] * right[self.right, k : k + spans]
            charts.append(_apply(self.up, total))
        return charts

    def marginals(self, tokens: Tensor) -> Tensor:
        """Weights (canvases, length, words), zero where a canvas is impossible."""
        charts = self.inside(tokens)
        outside = [torch.zeros_like(chart) for chart in charts]
        outside[-1][0] = 1.0
        for width in range(self.length, 1, -1):
            spans = self.length - width + 1
            above = _apply(self.down, outside[width - 1])
            for k in range(1, width):
                left, right = charts[k - 1], charts[width - k - 1]
                to_left = above * right[self.right, k : k + spans]
                outside[k - 1][:, :spans] += _apply(self.to_left, to_left)
                to_right = above * left[self.left, :spans]
                outside[width - k - 1][:, k : k + spans] += _apply(self.to_right, to_right)
        weights = _apply(self.to_words, outside[0])  # (words, length, canvases)
        seen = torch.arange(self.words, device=tokens.device)[:, None, None] == tokens.T
        weights = torch.where((self.words == tokens.T) | seen, weights, 0.0)
        return torch.where(charts[-1][0, 0] > 0, weights, 0.0).permute(2, 1, 0)


def _apply(sparse: Sparse, chart: Tensor) -> Tensor:
    product = sparse @ chart.reshape(len(chart), chart.shape[1:].numel())
    return product.view(len(product), *chart.shape[1:])


@lru_cache(maxsize=16)
def tables_of(world: Pcfg, device: torch.device) -> Tables:
    """The grammar of a world on a device (kept)."""

    def on(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    rules: Grammar = world.grammar
    number = np.arange(len(rules.pairs))
    ones, names = np.ones(len(number)), len(rules.names)
    left, right = rules.pairs.T
    entry, word = np.nonzero(rules.lexicon)
    probs = on(rules.probs)
    return Tables(
        world.length,
        world.vocab_size,
        on(left),
        on(right),
        on(rules.lexicon),
        Sparse(on(rules.parent), on(rules.pair), probs, (names, len(number))),
        Sparse(on(rules.pair), on(rules.parent), probs, (len(number), names)),
        Sparse(on(left), on(number), on(ones), (names, len(number))),
        Sparse(on(right), on(number), on(ones), (names, len(number))),
        Sparse(on(word), on(entry), on(rules.lexicon[entry, word]), (world.vocab_size, names)),
    )
