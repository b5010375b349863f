"""Toy networks, and rules written again as plain loops: what the golden tests compare.

A toy network is a fixed random function of the canvas, so no two of its log-marginals are equal and
there are no ties. A reference is a function `fill(run, spots)` that decodes the masked positions in
`spots` by asking `run`, one sequence at a time; `in_blocks` puts one inside blocks. `agree` runs a
sampler and its reference on random networks, lengths and prompts at temperature 0, and compares
what was revealed when, with what, at how many calls.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import log, prod

import torch
from scipy.stats import chi2
from torch import Tensor

from maskwalk.analysis.contract import FALSE_ALARM, goodness_of_fit
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Streams

SEED = 3  # of the streams
Marginals = dict[int, list[float]]
Outcomes = Iterable[tuple[float, dict[int, int]]]  # (probability, tokens by position)


@dataclass
class Toy:
    """A random network of one hidden layer; `sharp` makes its marginals surer."""

    seed: int
    length: int
    vocab_size: int = 3
    sharp: float = 2.0
    score_grid: float = 1e-10

    def __post_init__(self) -> None:
        self.mask_id = self.vocab_size
        made = torch.Generator().manual_seed(self.seed)
        width = 16

        def noise(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=made, dtype=torch.float64)

        self.into = noise(self.length * (self.vocab_size + 1), width) / self.length**0.5
        self.out = noise(width, self.length * self.vocab_size) * self.sharp / 2

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        seen = torch.nn.functional.one_hot(tokens, self.vocab_size + 1).to(torch.float64)
        # A sum over positions in a fixed order, so the numbers do not depend on the batch.
        hidden = torch.tanh((seen.flatten(1)[:, :, None] * self.into).sum(1) * 2)
        logits = (hidden[:, :, None] * self.out).sum(1).view(*tokens.shape, self.vocab_size)
        return torch.log_softmax(logits, -1)[at]


@dataclass
class Run:
    """One sequence in the hands of a reference: the canvas, its history, and the calls so far."""

    denoiser: Denoiser
    canvas: list[int]
    draw: Callable[["Run", int, list[float]], int] | None = None
    round: int = 0
    calls: int = 0
    when: dict[int, int] = field(default_factory=dict)
    taken_back: list[tuple[int, int]] = field(default_factory=list)
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Marginals] = field(default_factory=dict)

    @property
    def mask(self) -> int:
        return self.denoiser.mask_id

    def masked(self, spots: list[int]) -> list[int]:
        return [i for i in spots if self.canvas[i] == self.mask]

    def ask(self, spots: list[int], shown: dict[int, int] | None = None) -> Marginals:
        """p_i of some positions, with some tokens put on the canvas (or masked) first."""
        canvas = [(shown or {}).get(i, x) for i, x in enumerate(self.canvas)]
        self.calls += 1
        key = tuple(canvas), tuple(sorted(spots))
        if key not in self.known:
            at = torch.tensor([[i in spots for i in range(len(canvas))]])
            answer = self.denoiser(torch.tensor([canvas]), at).exp().tolist()
            self.known[key] = dict(zip(key[1], answer))
        return self.known[key]

    def token(self, i: int, p: list[float]) -> int:
        return p.index(max(p)) if self.draw is None else self.draw(self, i, p)

    def uniform(self, purpose: int) -> list[float]:
        """The uniforms `decode` has in this round for sequence 0."""
        length = len(self.canvas)
        numbers = Streams(SEED, 1).uniform(purpose, self.round, length)  # type: ignore[arg-type]
        return [float(x) for x in numbers[0]]

    def end_round(self, revealed: dict[int, int], masked: list[int] | None = None) -> None:
        for i, token in revealed.items():
            self.canvas[i] = token
            self.when[i] = self.round
        for i in masked or []:
            self.canvas[i] = self.mask
            self.taken_back.append((self.round, i))
        self.round += 1


Fill = Callable[[Run, list[int]], None]


def in_blocks(fill: Fill, size: int) -> Fill:
    """A reference inside blocks of `size`, counted from the end of the prompt."""

    def inside(run: Run, spots: list[int]) -> None:
        prompt = 0
        while prompt < len(run.canvas) and run.canvas[prompt] != run.mask:
            prompt += 1
        for start in range(prompt, len(run.canvas), size):
            block = run.masked([i for i in spots if start <= i < start + size])
            if block:
                fill(run, block)

    return inside


def questions(count: int, vocab: int = 3, longest: int = 9) -> Iterator[tuple[Toy, list[int]]]:
    """Random networks with canvases: empty, with a prompt, with tokens given here and there."""
    for seed in range(count):
        chance = random.Random(seed)
        length = chance.randint(2, longest)
        toy = Toy(seed, length, vocab, sharp=chance.choice((1.0, 2.0, 4.0)))
        canvas = [toy.mask_id] * length
        kind = seed % 3
        for i in range(length):
            behind = kind == 1 and i < length // 3
            if behind or (kind == 2 and chance.random() < 0.3):
                canvas[i] = chance.randrange(vocab)
        yield toy, canvas


def agree(spec: str, fill: Fill, count: int = 60, **more: int) -> int:
    """Compares a sampler with its reference on `count` networks; gives the rounds they took."""
    total = 0
    for toy, canvas in questions(count, **more):
        run = Run(toy, list(canvas))
        fill(run, run.masked(list(range(len(canvas)))))
        got = decode(
            spec,
            toy,
            torch.tensor([canvas]),
            streams=Streams(SEED, 1),
            draw=Draw(temperature=0),
            ties="index",
            trace=True,
        )
        assert got.trace is not None
        where = (spec, toy.seed, canvas)
        assert got.tokens[0].tolist() == run.canvas, where
        rounds = [run.when.get(i, -1) for i in range(len(canvas))]
        assert got.trace.reveal_rounds()[0].tolist() == rounds, where
        assert int(got.calls) == run.calls, where
        events = got.trace.events
        back = events["token"] == toy.mask_id
        found = list(zip(events["round"][back].tolist(), events["position"][back].tolist()))
        assert found == sorted(run.taken_back), where
        total += run.round
    return total


def law_by_loops(
    denoiser: Denoiser, length: int, one_round: Callable[[Run, dict[int, int]], Outcomes]
) -> tuple[Tensor, Tensor]:
    """The law of a draw-first rule: every draw of every round, weighted by its probability.

    `one_round` gets a run and what was drawn at each masked position, and gives what may be kept.
    """
    mask = denoiser.mask_id
    weights = {(mask,) * length: 1.0}
    done: dict[tuple[int, ...], float] = {}
    turn = 0
    while weights:
        after: dict[tuple[int, ...], float] = {}
        for canvas, weight in weights.items():
            run = Run(denoiser, list(canvas), round=turn)
            masked = run.masked(list(range(length)))
            p = run.ask(masked)
            for tokens in product(range(denoiser.vocab_size), repeat=len(masked)):
                share = prod(p[i][x] for i, x in zip(masked, tokens))
                if share == 0:
                    continue
                for chance, kept in one_round(run, dict(zip(masked, tokens))):
                    new = tuple(kept.get(i, x) for i, x in enumerate(canvas))
                    home = after if mask in new else done
                    home[new] = home.get(new, 0.0) + weight * share * chance
        weights, turn = after, turn + 1
    return torch.tensor(list(done)), torch.tensor(list(done.values()), dtype=torch.float64)


def picks(weights: dict[int, float], count: int) -> Iterator[tuple[float, frozenset[int]]]:
    """All sets of `count` positions, drawn one after another in proportion to their weights."""
    if count == 0:
        yield 1.0, frozenset()
        return
    total = sum(weights.values())
    for i, weight in weights.items():
        others = {j: w for j, w in weights.items() if j != i}
        for share, rest in picks(others, count - 1):
            yield share * weight / total, rest | {i}


def gumbels(uniforms: list[float]) -> list[float]:
    """Standard Gumbel numbers."""
    return [-log(-log(max(u, 2.0**-54))) for u in uniforms]


def follows(spec: str, denoiser: Denoiser, law: tuple[Tensor, Tensor], count: int = 6000) -> bool:
    """Whether a sampler's sequences have a law, by chi-square at the contract's error rate."""
    start = torch.full((count, law[0].shape[1]), denoiser.mask_id)
    tokens = decode(spec, denoiser, start, streams=Streams(8, count)).tokens
    statistic, freedom = goodness_of_fit(tokens, *law)
    return bool(chi2.sf(statistic, freedom) > FALSE_ALARM)
