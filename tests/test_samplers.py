"""What each of the paper's policies does, beyond the contract: orders, depths, and ties."""

from dataclasses import dataclass
from math import ceil, log, log2

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.parts.runs import runs
from maskwalk.streams import Streams


@dataclass
class Lookup:
    """A denoiser whose certainty at each position is set by hand; two tokens, 1 the likelier."""

    sure: Tensor  # probability of token 1 at each position
    vocab_size: int = 2
    mask_id: int = 2
    score_grid: float = 1e-9

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        p = self.sure.expand(tokens.shape)[at]
        return torch.stack([1 - p, p], 1).log()


def run(spec: str, masked: Tensor, sure: Tensor | None = None, ties: str = "uniform") -> Decoded:
    length = masked.shape[1]
    sure = torch.full((length,), 0.7, dtype=torch.float64) if sure is None else sure
    tokens = torch.where(masked, 2, 0)
    streams = Streams(0, len(masked))
    sampler = SAMPLERS.build(spec)
    return decode(sampler, Lookup(sure), tokens, streams=streams, ties=ties, trace=True)


def rounds(result: Decoded) -> list[list[int]]:
    assert result.trace is not None
    return result.trace.reveal_rounds().tolist()


def full(length: int) -> Tensor:
    return torch.ones((1, length), dtype=torch.bool)


def test_runs_by_hand() -> None:
    start, size = runs(torch.tensor([[1, 1, 0, 1, 0, 0, 1, 1, 1]]).bool())
    assert start.tolist() == [[0, 0, 2, 3, 4, 5, 6, 6, 6]]
    assert size.tolist() == [[2, 2, 0, 1, 0, 0, 3, 3, 3]]


def test_bisection_by_hand() -> None:
    """l=7: middle 3; then 1 and 5; then the rest. Order 2 on 5: positions 1, 2, then 0 and 3, 4."""
    assert rounds(run("bisection()", full(7))) == [[2, 1, 2, 0, 2, 1, 2]]
    # r=2, start (5-2)//2 = 1: turns 1 and 2; then runs {0} and {3, 4}: 0 and 3 together, then 4.
    assert rounds(run("bisection(order=2)", full(5))) == [[2, 0, 1, 2, 3]]


def test_guided_bisection_by_hand() -> None:
    """Pivot: the surest of the centred ⌈8/2⌉ = positions 2..5; growth by the surer neighbour."""
    sure = torch.tensor([0.99, 0.6, 0.7, 0.9, 0.8, 0.75, 0.95, 0.98], dtype=torch.float64)
    # Order 3: pivot 3 (.9), neighbours 2 (.7) and 4 (.8): 4, then 2 against 5 (.75): 5.
    # Level 2: runs {0,1,2} (centre 1..: ⌈3/2⌉=2 wide from (3-2)//2=0: 0,1 -> 0) and {6,7} (6),
    # growing 1 and 7, then 2.
    assert rounds(run("guided_bisection(order=3)", full(8), sure)) == [[3, 4, 5, 0, 1, 2, 3, 4]]


def test_a_guided_separator_grows_to_either_side() -> None:
    # Pivot 3 (.9); its left neighbour 2 (.85) is surer than its right one, 4 (.6).
    sure = torch.tensor([0.6, 0.7, 0.85, 0.9, 0.6, 0.65, 0.7], dtype=torch.float64)
    assert rounds(run("guided_bisection(order=2)", full(7), sure))[0][2:5] == [1, 0, 4]
    # At the right end of a run there is nothing but the left.
    masked = torch.tensor([[True, True, True, True, False]])
    sure = torch.tensor([0.6, 0.7, 0.9, 0.6, 0.6], dtype=torch.float64)
    assert rounds(run("guided_bisection(order=4)", masked, sure)) == [[2, 1, 0, 3, -1]]


def test_greedy_orders_and_blocks() -> None:
    sure = torch.tensor([0.6, 0.9, 0.7, 0.95, 0.8], dtype=torch.float64)
    for name in ("entropy", "confidence", "margin"):
        assert rounds(run(f"{name}(block=1)", full(5), sure)) == [[4, 1, 3, 0, 2]]
        assert rounds(run(f"{name}(block=2)", full(5), sure)) == [[2, 0, 1, 0, 1]]
        # exponential: 1, 2, then the remaining two of the four allowed
        assert rounds(run(f"{name}(block='exponential')", full(5), sure)) == [[2, 1, 2, 0, 1]]


@dataclass
class Marginals(Lookup):
    """The same with a whole marginal at each position: `sure` has a row for it."""

    vocab_size: int = 4
    mask_id: int = 4

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        return self.sure.expand(*tokens.shape, -1)[at].log()


def test_each_greedy_rule_has_a_score_of_its_own() -> None:
    """Three marginals that entropy, confidence and margin put into three orders."""
    table = [[0.52, 0.48, 0.0, 0.0], [0.6, 0.39, 0.01, 0.0], [0.5, 0.17, 0.17, 0.16]]
    denoiser = Marginals(torch.tensor(table, dtype=torch.float64))
    # Entropy .69, .72, 1.24; largest .52, .6, .5; gap .04, .21, .33.
    for name, order in {"entropy": [0, 1, 2], "confidence": [1, 0, 2], "margin": [2, 1, 0]}.items():
        streams, start = Streams(0, 1), torch.full((1, 3), 4)
        found = decode(SAMPLERS.build(name), denoiser, start, streams=streams, trace=True)
        assert rounds(found) == [order], name


def test_index_ties_take_the_lowest_index_and_random_stays_random() -> None:
    masked = full(6).expand(64, -1)
    assert rounds(run("entropy(block=2)", masked, ties="index")) == [[0, 0, 1, 1, 2, 2]] * 64
    assert rounds(run("guided_bisection()", masked, ties="index"))[0][1] == 0
    first = torch.tensor(rounds(run("random()", masked, ties="index"))) == 0
    assert len(set(first.nonzero()[:, 1].tolist())) == 6


def test_left_to_right() -> None:
    masked = torch.tensor([[True, False, True, True]])
    assert rounds(run("left_to_right", masked)) == [[0, -1, 1, 2]]


def test_order_one_bisection_at_24_takes_five_calls() -> None:
    assert run("bisection(order=1)", full(24)).calls.tolist() == [5]


def test_the_papers_text_setting_takes_161_calls() -> None:
    assert run("bisection(order=32)", full(1024)).calls.tolist() == [161]


@settings(max_examples=60)
@given(st.integers(1, 130), st.integers(1, 12))
def test_depth_from_scratch(length: int, k: int) -> None:
    """Fact: plain at most k⌈log₂(l/k+1)⌉, guided at most k(1+⌈log_{4/3}(l/k)⌉)."""
    assert run(f"bisection(order={k})", full(length)).calls[0] <= k * ceil(log2(length / k + 1))
    guided = run(f"guided_bisection(order={k})", full(length)).calls[0]
    bound = k * (1 + max(0, ceil(log(length / k, 4 / 3)))) if length >= k else length
    assert guided <= bound


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 2**31))
def test_depth_from_any_revealed_set(length: int, k: int, seed: int) -> None:
    """The longest masked run decides: every level treats all runs at once."""
    generator = torch.Generator().manual_seed(seed)
    masked = torch.rand((8, length), generator=generator) < 0.7
    masked[:, 0] |= ~masked.any(1)
    longest = runs(masked)[1].amax(1)
    result = run(f"bisection(order={k})", masked)
    bound = torch.tensor([k * ceil(log2(int(n) / k + 1)) for n in longest])
    assert (result.calls <= bound).all()
    assert (result.calls == result.rounds).all()


def test_guided_order_one_at_24_takes_at_most_eight() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        sure = 0.5 + torch.rand(24, generator=generator, dtype=torch.float64) / 2
        assert run("guided_bisection(order=1)", full(24), sure).calls[0] <= 8


# Marginals that never change depend on nothing: an independence test keeps all, at any tolerance.
KNOBS = [name for name in SAMPLERS if name != "punt"]


@pytest.mark.parametrize("name", KNOBS)
def test_a_changed_knob_changes_the_choice(name: str) -> None:
    from maskwalk.specs import Spec

    generator = torch.Generator().manual_seed(1)
    sure = 0.5 + torch.rand(24, generator=generator, dtype=torch.float64) / 2
    seen = {}
    for kwargs in SAMPLERS[name].sweep:
        if "score" in kwargs:
            continue  # with two tokens the three scores rank alike
        result = rounds(run(str(Spec(name, (), kwargs)), full(24), sure))
        assert str(result) not in seen, (kwargs, seen.get(str(result)))
        seen[str(result)] = kwargs
