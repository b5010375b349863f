"""Are the tokens as likely as the law's own? A distance to the law that few samples can tell.

Sort the alternatives of a token from the likeliest down (equals by their number). The rank of a
token x lies in [r, r + p(x)], r the probability of all before it. Under the law a rank (spread
evenly over its interval) is uniform on [0, 1], whatever the marginal. A rule that keeps likely
tokens, truncates or sharpens has too many low ranks; one that repeats itself has too few different
ones. With h_b the share of ranks in tenth b,

    rank_tv  =  ½ Σ_b |h_b − 1/10|,    a lower bound of the total variation of the tokens' laws.

Ranks are taken where the law says most with the fewest questions:

    nothing given    of x_j given x_i, for the pairs (i, j) the world names, else neighbours; all
                     sequences together
    tokens given     of x_i given the prompt alone (bridge marginals), at every masked position; the
                     samples of each prompt together, then the mean over prompts: it needs several
                     samples per prompt

Exact samples do not get 0; what as many of them get stands beside it (the floor).
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from torch import Tensor

from maskwalk.denoiser import Denoiser
from maskwalk.stats import (
    Estimate,
    half_split_se,
    half_splits,
    plain_mean,
    split_groups,
    standard_error,
)
from maskwalk.streams import Purpose, block_uniforms, inverse_cdf
from maskwalk.worlds.metrics import LAW, METRICS, Sample
from maskwalk.worlds.world import World, neighbours

TENTHS = 10
CLOSE = 1e-9  # relative: probabilities this near are equal
ENTRIES = 2**22  # comparisons held at once
FLOOR_RUNS, FLOOR_IDS, STREAM = 4, 2_000_000_000, 8
Histograms = Float64[Tensor, "groups tenths"]


@METRICS.register(
    "rank_tv",
    title="rank TV",
    heading="Distance of the tokens' ranks to the law's",
    better=-1,
    limits=(0, None),
    role=LAW,
    world=None,
)
def rank_tv(sample: Sample) -> Estimate | None:
    """Total variation of how likely tokens are among their alternatives, beside exact samples'.

    Where tokens are given it needs several samples of each prompt (`per_prompt`).
    """
    world: Any = sample.world
    if world is None or sample.task is None or _oracle(world) is None:
        return None
    if not sample.conditional:
        return _free(world, sample)
    per_prompt = len(sample.tokens) // len(sample.task.tokens)
    return _prompted(world, sample, per_prompt) if per_prompt > 1 else None


# ---------------------------------------------------------------- nothing given


def _free(world: Any, sample: Sample) -> Estimate:
    n = len(sample.tokens)
    histograms = pair_ranks(world, sample.tokens)
    value = float(distance(histograms.mean(0, keepdim=True)))
    floor, floor_se = _free_floor(world, n, sample.seed)
    extra = {"floor": floor, "floor_se": floor_se, "excess": value - floor}
    return Estimate(value, _halves_se(histograms), n, extra)


def pair_ranks(world: World, tokens: Int[Tensor, "n length"]) -> Histograms:
    """For each sequence, the tenths in which the ranks of x_j given x_i lie."""
    oracle = _oracle(world)
    assert oracle is not None
    pairs = neighbours(world)
    histograms = torch.zeros((len(tokens), TENTHS), dtype=torch.float64)
    for i, j in pairs:
        canvas = torch.full_like(tokens, oracle.mask_id)
        canvas[:, i] = tokens[:, i]
        at = torch.zeros_like(canvas, dtype=torch.bool)
        at[:, j] = True
        histograms += _asked(oracle, canvas, at, tokens[:, j, None])[:, 0]
    return histograms / len(pairs)


@lru_cache(maxsize=32)
def _free_floor(world: Any, n: int, seed: int) -> tuple[float, float]:
    """What sets of `n` exact samples get, and its standard error."""
    sets = (world.sample(n, seed, first=FLOOR_IDS + i * n) for i in range(FLOOR_RUNS))
    runs = [float(distance(pair_ranks(world, tokens).mean(0, keepdim=True))) for tokens in sets]
    return float(np.mean(runs)), standard_error(runs)


def _halves_se(histograms: Histograms) -> float:
    groups = split_groups(len(histograms))
    if groups < 2:
        return float("nan")
    part = torch.arange(len(histograms)) % groups
    sums = torch.zeros((groups, TENTHS), dtype=torch.float64).index_add(0, part, histograms)
    side = torch.from_numpy(half_splits(groups))
    first, second = (
        distance(_shares((side == which).double() @ sums)).numpy() for which in (1, -1)
    )
    return half_split_se(first, second)


# ---------------------------------------------------------------- tokens given


def _prompted(world: Any, sample: Sample, per_prompt: int) -> Estimate:
    prompts = sample.task.tokens  # type: ignore[union-attr]
    own = sample.tokens[sample.prompts.argsort(stable=True)]
    value = plain_mean(distance(bridge_ranks(world, prompts, own)))
    shown = prompts.contiguous().numpy().tobytes()
    floor, floor_se = _prompted_floor(world, shown, per_prompt, sample.seed)
    extra = {"floor": floor, "floor_se": floor_se, "excess": value.value - floor}
    return Estimate(value.value, value.se, len(own), extra)


@lru_cache(maxsize=32)
def _prompted_floor(world: Any, shown: bytes, per_prompt: int, seed: int) -> tuple[float, float]:
    """What as many exact samples of each prompt get, and its standard error."""
    flat = torch.frombuffer(bytearray(shown), dtype=torch.int64)
    prompts = flat.view(-1, world.length)
    exact = exact_bridges(world, prompts.repeat_interleave(per_prompt, 0), seed)
    floor = plain_mean(distance(bridge_ranks(world, prompts, exact)))
    return floor.value, floor.se


def bridge_ranks(
    world: World, prompts: Int64[Tensor, "prompts length"], tokens: Int[Tensor, "n length"]
) -> Histograms:
    """For each prompt, the tenths of the ranks at its masked positions, over all its samples."""
    oracle = _oracle(world)
    assert oracle is not None
    samples = tokens.view(len(prompts), -1, world.length).transpose(1, 2)
    canvas, masked = _canvas(world, oracle, prompts)
    histograms = torch.zeros((len(prompts), TENTHS), dtype=torch.float64)
    tenths = _asked(oracle, canvas, masked, samples[masked]).mean(1)
    return _shares(histograms.index_add(0, masked.nonzero()[:, 0], tenths))


def exact_bridges(
    world: World, prompts: Int64[Tensor, "n length"], seed: int
) -> Int64[Tensor, "n length"]:
    """Sequences drawn exactly from the law given the prompts, one position at a time."""
    oracle = _oracle(world)
    assert oracle is not None
    canvas, masked = _canvas(world, oracle, prompts)
    u = block_uniforms(seed, Purpose.PROMPT, FLOOR_IDS, len(canvas), world.length, STREAM)
    for i in range(world.length):
        rows = masked[:, i]
        if bool(rows.any()):
            at = torch.zeros_like(masked)
            at[:, i] = rows
            drawn = inverse_cdf(oracle(canvas, at), torch.from_numpy(u[rows.numpy(), i]))
            canvas[rows, i] = drawn
    return canvas


def _canvas(world: World, oracle: Denoiser, prompts: Tensor) -> tuple[Tensor, Tensor]:
    masked = prompts == world.vocab_size
    return torch.where(masked, oracle.mask_id, prompts), masked


# ---------------------------------------------------------------- ranks


def _asked(
    oracle: Denoiser,
    canvas: Int64[Tensor, "rows length"],
    at: Bool[Tensor, "rows length"],
    drawn: Int[Tensor, "places samples"],
) -> Float64[Tensor, "places samples tenths"]:
    """Tenths of the ranks of tokens at some positions of a canvas, in slices that fit in memory."""
    size = int(at.sum()) * drawn.shape[1] * oracle.vocab_size
    rows = max(1, len(canvas) * ENTRIES // max(size, 1))
    parts, first = [], 0
    for some, where in zip(canvas.split(rows), at.split(rows)):
        count = int(where.sum())
        if count:
            parts.append(tenths(oracle(some, where).exp().double(), drawn[first : first + count]))
        first += count
    return torch.cat(parts)


def tenths(
    probs: Float64[Tensor, "places vocab"], drawn: Int[Tensor, "places samples"]
) -> Float64[Tensor, "places samples tenths"]:
    """The part of each token's interval of ranks in each tenth (an impossible one: the last)."""
    own, every = probs.gather(1, drawn)[..., None], probs[:, None, :]
    equal = (every - own).abs() <= own * CLOSE
    earlier = torch.arange(probs.shape[1]) < drawn[..., None]
    before = (every * torch.where(equal, earlier, every > own)).sum(-1, keepdim=True)
    edges = torch.linspace(0, 1, TENTHS + 1, dtype=torch.float64)
    low, high = torch.maximum(before, edges[:-1]), edges[1:].minimum(before + own)
    inside = (high - low).clamp(min=0)
    nowhere = inside.sum(-1) <= 0
    inside[nowhere, -1] = 1.0
    return _shares(inside)


def _shares(amounts: Float64[Tensor, "*any tenths"]) -> Float64[Tensor, "*any tenths"]:
    return amounts / amounts.sum(-1, keepdim=True).clamp(min=1e-300)


def distance(histograms: Histograms) -> Float64[Tensor, " groups"]:
    """½ Σ_b |h_b − 1/10| of each."""
    return 0.5 * (histograms - 1 / TENTHS).abs().sum(-1)


def _oracle(world: World) -> Denoiser | None:
    key: Any = world  # protocols are not known to be hashable
    return _built(key)


@lru_cache(maxsize=2)
def _built(world: Any) -> Denoiser | None:
    oracle: Denoiser | None = world.oracle()
    return oracle
