"""The field's rules on tiny denoisers, each trace worked out by hand in the comments."""

from dataclasses import dataclass, replace
from math import exp

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from maskwalk.analysis.contract import FALSE_ALARM, Stand, failures
from maskwalk.decoding.canvas import Canvas
from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS, Dus, Halton, Remdm, Threshold
from maskwalk.streams import Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import FLAT, STANDS
from tests.test_samplers import Lookup, full, rounds, run

COLD = Draw(temperature=1e-4)  # every token is the likeliest one


def row(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def trace(spec: str, *sure: float, masked: Tensor | None = None) -> list[int]:
    """The round each position is revealed in, for marginals that never change."""
    return rounds(run(spec, full(len(sure)) if masked is None else masked, row(*sure)))[0]


@dataclass
class Changing(Lookup):
    """A `Lookup` that has another row of certainties for every number of revealed positions."""

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        p = self.sure[(tokens != self.mask_id).sum(1) % len(self.sure)][at]
        return torch.stack([1 - p, p], 1).log()


def go(sampler: Sampler | str, denoiser: Lookup, tokens: Tensor, draw: Draw = COLD) -> Decoded:
    sampler = SAMPLERS.build(sampler) if isinstance(sampler, str) else sampler
    streams = Streams(0, len(tokens))
    return decode(sampler, denoiser, tokens, streams=streams, draw=draw, trace=True)


def empty(count: int, length: int) -> Tensor:
    return torch.full((count, length), 2)


def remasked(result: Decoded) -> set[tuple[int, int, int]]:
    """(sequence, round, position) of everything that was taken back."""
    assert result.trace is not None
    events = result.trace.events
    back = events["token"] == result.trace.mask_id
    return set(zip(*(events[k][back].tolist() for k in ("sequence", "round", "position"))))


SURE = (0.95, 0.6, 0.9, 0.8)


def test_threshold() -> None:
    # .95 and .9 reach .9; then nothing does: .8, then .6.
    assert trace("threshold(0.9)", *SURE) == [0, 2, 0, 1]
    assert trace("threshold(0.8)", *SURE) == [0, 1, 0, 0]


def test_factor() -> None:
    # (n+1)(1-c_n): 2(.05)=.1, 3(.1)=.3, 4(.2)=.8, 5(.4)=2: three below 1, two below .5;
    # then of .8, .6: 2(.2)=.4 is below .5, 3(.4) is not.
    assert trace("factor(1)", *SURE) == [0, 1, 0, 0]
    assert trace("factor(0.5)", *SURE) == [0, 2, 0, 1]
    # .7 lies between 4(.2) and 3(.2): two, then 2(.2) = .4 alone.
    assert trace("factor(0.7)", *SURE) == [0, 2, 0, 1]


def test_entropy_bounded_and_constant_entropy() -> None:
    # H(.95)=.199, H(.9)=.325, H(.8)=.500, H(.6)=.673 nats.
    # Σ - max along the order: 0, .199, .524, 1.024: three within .55, two within .2.
    assert trace("entropy_bounded(0.55)", *SURE) == [0, 1, 0, 0]
    assert trace("entropy_bounded(0.2)", *SURE) == [0, 2, 0, 1]
    assert trace("entropy_bounded(0.2, score='confidence')", *SURE) == [0, 2, 0, 1]
    # Σ: .199, .524, 1.024, 1.697. Within .6 two, then .8 alone, and .6 although it is above.
    assert trace("constant_entropy(0.6)", *SURE) == [0, 2, 0, 1]
    assert trace("constant_entropy(1.1)", *SURE) == [0, 1, 0, 0]


@pytest.mark.parametrize("grid", [1e-4, 1e-9])
def test_budgets_sum_exact_entropies_whatever_the_grid(grid: float) -> None:
    """A thousand entropies below the grid are not nothing: both budgets are kept to the last."""
    nats = torch.linspace(1e-6, 4e-5, 1024, dtype=torch.float64)
    unlikely = torch.full_like(nats, 1e-7)  # p of the other token, by Newton's method on H(p)
    for _ in range(60):
        entropy = -(unlikely * unlikely.log() + (1 - unlikely) * torch.log1p(-unlikely))
        unlikely -= (entropy - nats) / ((1 - unlikely) / unlikely).log()
    within = int((nats.cumsum(0) <= 1e-3).sum())
    lookup = Lookup(1 - unlikely, score_grid=grid)
    for spec, first in (
        ("constant_entropy(0.001)", within),
        ("entropy_bounded(0.001)", within + 1),
        ("entropy_bounded(0.001, score='confidence')", within + 1),
    ):
        found = torch.tensor(rounds(go(spec, lookup, empty(1, 1024)))[0])
        assert abs(int((found == 0).sum()) - first) <= 1, spec
        spent = nats[found == 0].sum() - (nats[found == 0].max() if "bounded" in spec else 0)
        assert float(spent) <= 1e-3 * (1 + 1e-9), spec


def test_dus() -> None:
    # B=8: strides 4, 2, 1. B=5: strides 2, 1, levels {0,2,4} and {1,3}: the smaller last is merged.
    assert trace("dus()", *[0.7] * 8) == [0, 2, 1, 2, 0, 2, 1, 2]
    assert trace("dus()", *[0.7] * 5) == [0] * 5
    assert trace("dus(merge=False)", *[0.7] * 5) == [0, 1, 0, 1, 0]
    # Base 3, B=9: strides 3, 1. B=8: stride 2, then ⌊8/9⌋=0: the odd ones are left over.
    assert trace("dus(base=3)", *[0.7] * 9) == [0, 1, 1] * 3
    assert trace("dus(base=3)", *[0.7] * 8) == [0, 1] * 4
    # A level that is given costs no round.
    ends = torch.tensor([[False, True, True, True, False, True, True, True]])
    assert trace("dus()", *[0.7] * 8, masked=ends) == [-1, 1, 0, 1, -1, 1, 0, 1]
    # Position 4 (.6) is below the bar in its own round and in all later ones; at last it is alone.
    sure = [0.7, 0.7, 0.7, 0.7, 0.6, 0.7, 0.7, 0.7]
    assert trace("dus(skip=0.65)", *sure) == [0, 2, 1, 2, 3, 2, 1, 2]
    # In blocks of 4, B is 4: strides 2, 1 in each.
    assert trace("blocks(4, dus())", *[0.7] * 8) == [0, 1, 0, 1, 2, 3, 2, 3]


def test_halton() -> None:
    # 1/2 1/4 3/4 1/8 5/8 3/8 7/8 1/16 of 8: positions 4 2 6 1 5 3 7 0.
    assert Halton.ranks(8).argsort().tolist() == [4, 2, 6, 1, 5, 3, 7, 0]
    assert sorted(Halton.ranks(24).tolist()) == list(range(24))
    # 8 (1 − (2/π) arccos(t/4)) = 1.3, 2.7, 4.3, 8: 1, 2, 4, 8 revealed, so 1, 1, 2, 4 a round.
    assert trace("halton(4)", *[0.7] * 8) == [3, 2, 1, 3, 0, 3, 2, 3]
    assert trace("halton(1)", *[0.7] * 8) == [0] * 8
    # The public counts of 24 positions in 8 steps: 1, 3, 5, 8, … revealed.
    rounds = torch.tensor(trace("halton(8)", *[0.7] * 24))
    assert [int((rounds <= t).sum()) for t in range(8)] == [1, 3, 5, 8, 10, 12, 16, 24]
    # In blocks of 2 with 2 steps: ⌊2/3⌋ = 0, so one; position 1 comes first.
    assert trace("blocks(2, halton(2))", *[0.7] * 4) == [1, 0, 3, 2]


def test_hierarchy() -> None:
    sure = (0.6, 0.95, 0.7, 0.92, 0.8, 0.55, 0.75)
    # One run: its best, 1, and 3 above .9. Runs {0} {2} {4,5,6}: 0, 2, 4. Run {5,6}: 6, then 5.
    assert trace("hierarchy()", *sure) == [1, 0, 1, 0, 1, 3, 2]
    # low=.7: after {1,3} only 4 is above; then 6; then nothing: the best of all, 2, then 0, then 5.
    assert trace("hierarchy(low=0.7)", *sure) == [4, 0, 3, 0, 1, 5, 2]


def test_local_leap() -> None:
    sure = (0.8, 0.92, 0.76, 0.8, 0.6)
    # Anchor 1; 0 and 2 are next to it and above .75; then no anchor is left: 3, then 4.
    assert trace("local_leap(radius=1)", *sure) == [0, 0, 0, 1, 2]
    assert trace("local_leap(radius=2)", *sure) == [0, 0, 0, 0, 1]
    assert trace("local_leap(radius=0)", *sure) == [1, 0, 3, 1, 4] or trace(
        "local_leap(radius=0)", *sure
    ) == [2, 0, 3, 1, 4]  # .8 twice: a tie, one at a time


def test_klass() -> None:
    sure = (0.95, 0.6, 0.9, 0.8, 0.92)
    # Marginals never move, but two rounds of history are needed: best, best, then all above .9.
    assert trace("klass()", *sure) == [0, 4, 2, 3, 1]
    assert trace("klass(window=1)", *sure) == [0, 3, 1, 2, 1]
    # c = .9 and .99 in turn: KL(.99‖.9) = .071 and KL(.9‖.99) = .145 in turn: never below .01,
    # every second time below .1, always below .15.
    moving = Changing(torch.stack([row(*[0.9] * 5), row(*[0.99] * 5)]))
    for kl, calls in ((0.01, 5), (0.1, 2), (0.15, 2)):
        assert go(f"klass(kl={kl}, window=1)", moving, empty(1, 5)).calls.tolist() == [calls]
    assert go("klass(kl=0.1)", moving, empty(1, 5)).calls.tolist() == [5]
    assert go("klass(kl=0.15)", moving, empty(1, 5)).calls.tolist() == [3]


def test_pc() -> None:
    # f(1) = (.6+.9+.8)/3 = .767, -log f = .266: -p log f = .159, .239, .213;
    # times e^{-i/4} = 1, .779, .607: .159, .186, .129.
    assert trace("pc()", 0.6, 0.9, 0.8) == [1, 0, 2]
    assert trace("pc(decay=0.0)", 0.6, 0.9, 0.8) == [2, 0, 1]
    # All are clipped to .1: the leftmost first.
    assert trace("pc(alpha=0.1)", 0.6, 0.9, 0.8) == [0, 1, 2]
    # Token 0 is everywhere, f = (2/3, 1/3): .9 · .405 = .365 loses against .8 · 1.099 = .879.
    assert trace("pc(decay=0.0)", 0.1, 0.1, 0.8)[2] == 0


def test_spaced() -> None:
    sure = (0.6, 0.95, 0.9, 0.8, 0.7)
    # Picks 1, 2, 3: 2 is too near to 1, 3 is not. Then 2, 4, 0 are each two apart.
    assert trace("spaced(confidence(block=3), gap=2)", *sure) == [1, 0, 1, 0, 1]
    # Gap 3: 1; of 2, 3, 4 only 2; of 3, 4, 0: 3, not 4, but 0; 4.
    assert trace("spaced(confidence(block=3), gap=3)", *sure) == [2, 0, 1, 2, 3]
    assert trace("spaced(confidence(block=3), gap=1)", *sure) == trace("confidence(3)", *sure)


def test_blocks() -> None:
    sure = (0.6, 0.95, 0.9, 0.8, 0.7, 0.99)
    assert trace("blocks(3, confidence(block=2))", *sure) == [1, 0, 0, 2, 3, 2]
    # Every sequence is in its own block: the second row has the first block given.
    masked = torch.ones((2, 6), dtype=torch.bool)
    masked[1, :3] = False
    both = rounds(run("blocks(3, confidence(block=2))", masked, row(*sure)))
    assert both == [[1, 0, 0, 2, 3, 2], [-1, -1, -1, 0, 1, 0]]


def test_stochastic() -> None:
    sure = (0.6, 0.9, 0.8)
    assert trace("stochastic(temperature=0.0)", *sure) == trace("confidence()", *sure)
    # The first pick is softmax(c / T) with all masked, whether annealed or not.
    masked = full(3).expand(20000, -1)
    first = torch.tensor(rounds(run("stochastic(temperature=0.5)", masked, row(*sure)))) == 0
    expected = torch.softmax(row(*sure) / 0.5, 0) * 20000
    statistic = float(((first.sum(0) - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, 2) > FALSE_ALARM
    # Thresholds are on probabilities, and these have no noise.
    noisy = rounds(run("stochastic(threshold(0.75), temperature=9.0)", masked[:50], row(*sure)))
    assert noisy == [[1, 0, 0]] * 50


@pytest.mark.parametrize(("anneal", "share"), [(True, 2 / 3), (False, 1.0)])
def test_the_noise_of_stochastic_falls_with_what_is_masked(anneal: bool, share: float) -> None:
    """Of two positions left of three the better comes first with softmax(c / (T m)), m = 2/3."""
    sure = (0.5, 0.9, 0.6)
    spec = f"stochastic(temperature=0.5, anneal={anneal})"
    order = torch.tensor(rounds(run(spec, full(3).expand(20000, -1), row(*sure))))
    rest = order[order[:, 0] == 0]
    expected = 1 / (1 + exp(-0.3 / (0.5 * share)))  # .71 and .65
    better = float((rest[:, 1] == 1).double().mean())
    assert abs(better - expected) < 5 * (0.25 / len(rest)) ** 0.5 < 0.04


def test_pc_keeps_the_frequencies_of_the_first_round() -> None:
    # First round: f(1) = .7375, f(0) = .2625; position 3 has .8 · 1.34. Then the rare token 0 has
    # .7 · 1.34 at position 1, above .9 · .30 at position 0; with new frequencies, .5 each, not.
    table = torch.tensor(
        [[0.95, 0.9, 0.9, 0.2], [0.9, 0.3, 0.35, 0.5], [0.9] * 4, [0.9] * 4], dtype=torch.float64
    )
    found = rounds(go("pc(decay=0.0)", Changing(table), empty(1, 4)))[0]
    assert found[3] == 0 and found[1] == 1


def test_ancestral_steps_and_calls() -> None:
    tokens = empty(500, 6)
    plain, cached = (
        go(f"ancestral(8, cached={c})", Lookup(row(*[0.7] * 6)), tokens, Draw())
        for c in (False, True)
    )
    assert torch.equal(plain.tokens, cached.tokens)
    assert torch.equal(plain.calls, plain.rounds) and plain.calls.max() <= 8
    # Cached, a sequence calls once for every round in which something was revealed.
    distinct = [len(set(r)) for r in rounds(cached)]
    assert cached.calls.tolist() == distinct and cached.calls.sum() < plain.calls.sum()
    one = go("ancestral(1)", Lookup(row(*[0.7] * 6)), tokens)
    assert rounds(one) == [[0] * 6] * 500
    # The argmax finish fills with the likeliest token whatever the draw: here time stops at once.
    late = go("ancestral(1, finish='argmax', eps=0.5)", Lookup(row(*[0.7] * 6)), tokens, Draw())
    at_end = torch.tensor(rounds(late)) == 1
    assert late.tokens[at_end].all() and not late.tokens[~at_end].all()
    assert abs(float(at_end.double().mean()) - 0.5) < 5 * 0.5 / 3000**0.5


def test_low_confidence_counts() -> None:
    # 7 positions in 3 steps: 3, 2, 2; in 9 steps: one each. Cold, it keeps the most confident.
    sure = (0.6, 0.95, 0.9, 0.8, 0.7, 0.99, 0.85)
    three = go("low_confidence(3)", Lookup(row(*sure)), empty(1, 7))
    assert rounds(three) == [[2, 0, 0, 1, 2, 0, 1]]
    assert go("low_confidence(9)", Lookup(row(*sure)), empty(1, 7)).calls.tolist() == [7]


def test_threshold_drawn_is_threshold_where_tokens_are_argmaxes() -> None:
    cold = go("threshold_drawn(0.9)", Lookup(row(*SURE)), empty(4, 4))
    assert rounds(cold) == [[0, 2, 0, 1]] * 4
    # At temperature 1, a drawn 0 (probability ≤ .5) is never kept while a likelier one is there.
    warm = go("threshold_drawn(0.9)", Lookup(row(*[0.95] * 4)), empty(2000, 4), Draw())
    assert float(warm.tokens.double().mean()) > 0.99


def times(*values: float) -> list[Tensor]:
    return [torch.tensor([[value]], dtype=torch.float64) for value in values]


def test_remdm_by_hand() -> None:
    # T=4: α = 0, 1/4, 1/2, 3/4, 1; σ_max = 1, 1, (1/4)/(1/2) = 1/2, 0.
    canvas = Canvas(torch.tensor([[1, 1, 2, 1]]), torch.tensor([[False, False, False, True]]), 2)
    canvas = replace(canvas, state={"p": row(0.9, 0.5, 0.0, 0.0)[None]})
    for kind, eta, expected in (("rescale", 0.5, 0.25), ("cap", 0.3, 0.3), ("cap", 0.7, 0.5)):
        sigma = Remdm(kind, 4, eta).sigma(canvas, *times(0.5, 0.25))
        assert sigma.tolist() == [[pytest.approx(expected)] * 4]
    # conf: softmax(-.9, -.5) = .401, .599 over what may be remasked, times 1/2.
    conf = Remdm("conf", 4).sigma(canvas, *times(0.5, 0.25))[0]
    assert conf.tolist() == pytest.approx([0.20066, 0.29934, 0, 0], abs=1e-5)
    loop = Remdm("loop")
    shares = [float(loop.alpha(t)) for t in times(1, 0.55, 0.3, 0.05, 0.025, 0)]
    assert shares == pytest.approx([0, 0.9, 0.9, 0.9, 0.95, 1])
    assert loop.sigma(canvas, *times(0.3, 0.25)).unique().tolist() == [0.02]
    assert loop.sigma(canvas, *times(0.9, 0.8)).unique().tolist() == [0.0]
    # Without remasking it tosses ancestral's coins: the same tokens.
    lookup, tokens = Lookup(row(*[0.7] * 6)), empty(200, 6)
    still = go("remdm(steps=8, eta=0.0)", lookup, tokens, Draw())
    assert torch.equal(still.tokens, go("ancestral(8)", lookup, tokens, Draw()).tokens)


@pytest.mark.parametrize("kind", ["cap", "rescale", "loop"])
def test_remdm_keeps_the_share_revealed(kind: str) -> None:
    """After round k the share revealed is α, however much is remasked (5 standard errors)."""
    sampler = Remdm(kind, 10, 0.3)
    result = go(sampler, Lookup(row(*[0.7] * 8)), empty(2000, 8), Draw())
    assert result.trace is not None and remasked(result)
    canvases = list(result.trace.replay())[1:]
    assert len(canvases) == 10 and not (canvases[-1] == 2).any()
    for k, canvas in enumerate(canvases):
        alpha = float(sampler.alpha(*times((9 - k) / 10)))
        share = float((canvas != 2).double().mean())
        assert abs(share - alpha) <= 5 * (alpha * (1 - alpha) / 16000) ** 0.5 + 1e-12


@pytest.mark.parametrize(
    "spec",
    [
        *(f"remdm({kind!r}, 12)" for kind in ("cap", "rescale", "conf", "loop")),
        "p2(steps=6)",
        "p2(steps=6, rescore=True)",
        "corrected(random(block=9), floor=0.5)",
    ],
)
def test_remasking_samplers_remask_and_end_and_leave_what_was_given(spec: str) -> None:
    tokens = empty(1000, 6)
    tokens[:, 1] = torch.arange(1000) % 2
    tokens[::2, 4] = 1
    result = go(spec, Lookup(row(0.7, 0.7, 0.6, 0.9, 0.8, 0.7)), tokens, Draw())
    back = remasked(result)
    assert back and not (result.tokens == 2).any()
    given = tokens != 2
    assert not any(given[sequence, position] for sequence, _, position in back)
    assert torch.equal(result.tokens[given], tokens[given])


def test_p2_by_hand() -> None:
    # N=3, T=3. Round 0: .9 .8 .7, masks the two lowest. Round 1, one revealed: 1 and 2 come at .95
    # and .97, so the lowest of log .9, log .95, log .97 is the revealed one: taken back. Round 2.
    changing = Changing(torch.stack([row(0.9, 0.8, 0.7), row(0, 0.95, 0.97), row(0.5, 0, 0)]))
    result = go("p2(steps=3)", changing, empty(1, 3))
    assert remasked(result) == {(0, 1, 0)} and rounds(result) == [[2, 1, 1]]
    # η=.1: .1 log .9 = -.011 is above log .95 = -.051 and log .97 = -.030: 1 waits.
    result = go("p2(eta=0.1, steps=3)", changing, empty(1, 3))
    assert not remasked(result) and rounds(result)[0][:3:2] == [0, 1]
    # Asking again costs at most two more calls per round, and none while nothing is revealed.
    again = go("p2(steps=3, rescore=True)", Lookup(row(0.9, 0.8, 0.7)), empty(1, 3))
    assert again.calls.tolist() == [1 + 2 + 3]  # revealed before: none; {0}; {0, 1}


def test_speculative_accepts_all_where_positions_are_independent() -> None:
    result = go("speculative(k=4)", Lookup(row(*[0.7] * 8)), empty(300, 8), Draw())
    assert rounds(result) == [[0, 0, 0, 0, 1, 1, 1, 1]] * 300
    # One draft and three verifications a round; depth 2 a round.
    assert set(result.calls.tolist()) == {8} and set(result.rounds.tolist()) == {2}
    some = go("speculative('random', 3)", Lookup(row(*[0.7] * 8)), empty(300, 8), Draw())
    assert set(some.rounds.tolist()) == {3} and set(some.calls.tolist()) == {8}


def test_corrected_by_hand() -> None:
    # All at once; then every 0 has p = .1 < .5 · .9 and is taken back, nothing else; bisection.
    lookup, tokens = Lookup(row(*[0.9] * 5)), empty(500, 5)
    result = go("corrected(random(block=5), floor=0.5)", lookup, tokens, Draw())
    assert result.trace is not None
    first = list(result.trace.replay())[1]
    zeros = {(s, 1, p) for s, p in (first == 0).nonzero().tolist()}
    assert remasked(result) == zeros and zeros
    runs = (first == 0).sum(1)
    assert (result.calls[runs == 0] == 3).all() and (result.calls[runs == 1] == 4).all()
    # .1 is not below .1 · .9: the lower floor finds nothing.
    low = go("corrected(random(block=5), floor=0.1)", lookup, tokens, Draw())
    assert not remasked(low) and set(low.calls.tolist()) == {3}
    # A second pass looks at the refilled ones again.
    two = go("corrected(random(block=5), floor=0.5, passes=2)", lookup, tokens, Draw())
    assert (two.tokens == 0).sum() < (result.tokens == 0).sum() < (first == 0).sum()


def test_nested_samplers_are_written_out_and_checked() -> None:
    full_spec = "blocks(size=8, inner=confidence(block=1))"
    assert SAMPLERS.canonical("blocks") == full_spec
    assert SAMPLERS.build("blocks") == SAMPLERS.build(full_spec)
    nested = SAMPLERS.canonical("stochastic(blocks(4, spaced(threshold(0.5), 3)))")
    assert SAMPLERS.canonical(nested) == nested and "tau=0.5" in nested
    for bad in ("spaced(remdm())", "stochastic(p2())", "spaced(blocks(4, low_confidence()))"):
        with pytest.raises(MaskwalkError, match="inner must be a policy"):
            SAMPLERS.build(bad)
    for bad in ("corrected(p2())", "corrected(blocks(4, remdm()))"):
        with pytest.raises(MaskwalkError, match="takes tokens back"):
            SAMPLERS.build(bad)


@pytest.mark.parametrize(
    "bad",
    [
        *("threshold(1.5)", "factor(-1)", "entropy_bounded(-0.1)", "constant_entropy(-2)"),
        *("dus(base=1)", "halton(0)", "hierarchy(0.9, 0.4)", "local_leap(near=0.95)", "klass(2)"),
        *("pc(block=0)", "spaced(gap=0)", "blocks(0)", "stochastic(temperature=-1)"),
        *("ancestral(0)", "ancestral(finish='mean')", "low_confidence(0)", "threshold_drawn(2)"),
        *("remdm('best')", "remdm(eta=2)", "p2(-1)", "speculative(k=0)", "speculative('up')"),
        *("corrected(floor=0)", "corrected(passes=0)", "entropy_bounded(score='beauty')"),
    ],
)
def test_bad_parameters_are_refused(bad: str) -> None:
    with pytest.raises(MaskwalkError):
        SAMPLERS.build(bad)


@pytest.mark.parametrize(
    "spec",
    [
        "blocks(2, bisection(order=2))",
        "blocks(3, klass(conf=0.5, kl=0.5, window=1))",
        "blocks(3, pc())",
        "spaced(random(block=4), 2)",
        "stochastic(blocks(3, spaced(confidence(block=3), 2)), 0.3)",
        "dus(base=2, merge=False, skip=0.3)",
        "corrected(blocks(2, klass(conf=0.5)), floor=0.3, passes=2)",
        "ancestral(4)",
        "ancestral(4, finish='argmax', eps=0.1)",
    ],
)
def test_the_contract_holds_beyond_the_sweeps(spec: str) -> None:
    law = STANDS["chain"]
    assert not dict(failures(SAMPLERS.build(spec), Stand(oracle_for(law), oracle_for(FLAT), 5)))


def test_samplers_built_in_python_are_those_of_the_specs() -> None:
    assert SAMPLERS.build("threshold(0.7)") == Threshold(0.7)
    assert SAMPLERS.build("dus") == Dus()
