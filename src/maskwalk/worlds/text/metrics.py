"""What is measured of texts; every number is over the texts of a setting.

    entropy         entropy of a text's own token frequencies, in nats (as MDLM and ReMDM report it)
    rep1, 2, 3      share of a text's tokens, pairs, triples that occurred earlier in it
    own_bpb, _ppl   bits per byte and perplexity under the causal model of the same books
    judge_bpb, …    the same under somebody else's model, the judge
    replay_bpb      bits per byte of held-out text under the policy, by replay
    mauve           overlap with held-out text as a crowd (mauve.py)

What models say of the texts comes as `Sample.readings`: "own", "judge", "references" (a `Reading`
each), "replay" (a `Replay`), "tested" (estimates that the model's own file has). A ratio of totals
has the error of its linearised terms; a single text has none.
"""

from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.stats import Estimate, plain_mean, ratio
from maskwalk.worlds.metrics import METRICS, QUALITY, Sample
from maskwalk.worlds.text.mauve import mauve as compute_mauve


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model finds in each text."""

    nats: Float64[Tensor, " texts"]  # −log p of all its tokens
    tokens: Int[Tensor, " texts"]  # of the model that reads
    bytes: Int[Tensor, " texts"]  # in UTF-8
    features: Float[np.ndarray, "texts hidden"] | None = None  # the last hidden state


@dataclass(frozen=True, eq=False)
class Replay:
    """Held-out passages forced through a policy, averaged over its paths."""

    nats: Float64[Tensor, " passages"]
    one_path: Float64[Tensor, " passages"]  # the same for a single path, on average
    bytes: Int[Tensor, " passages"]
    paths: int
    bound: bool  # whether the policy is stochastic: an upper bound then


def token_entropy(tokens: Int[Tensor, "texts length"]) -> Float64[Tensor, " texts"]:
    """−Σ f log f over the frequencies f of the tokens in each text."""
    length = whole("The length of texts", tokens.shape[1], 1)
    # Σ (c/L) log(c/L) over tokens is the mean over positions of log(c/L), c counting that token.
    ordered = tokens.sort(1).values
    run = _first_ones(ordered).flatten().cumsum(0) - 1  # first ones differ from row to row
    counts = run.bincount()[run].view(ordered.shape)
    return (log(length) - counts.double().log().mean(1)).clamp(min=0)


def repetition(tokens: Int[Tensor, "texts length"], n: int) -> Float64[Tensor, " texts"]:
    """1 − distinct / total over the n-grams of each text."""
    if tokens.shape[1] < whole("n", n, 1):
        raise MaskwalkError(f"Texts of {tokens.shape[1]} tokens have no {n}-grams.")
    words = tokens.unique(return_inverse=True)[1]
    grams = words
    for k in range(1, n):  # numbers for the (k+1)-grams from those of the k-grams
        pairs = grams[:, :-1] * (words.max() + 1) + words[:, k:]
        grams = pairs.unique(return_inverse=True)[1]
    return 1 - _first_ones(grams.sort(1).values).double().mean(1)


def _first_ones(ordered: Int[Tensor, "texts length"]) -> Tensor:
    """Where a sorted row has a value for the first time."""
    fresh = torch.ones_like(ordered, dtype=torch.bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return fresh


def perplexity(nats: Float[Tensor, " texts"], tokens: Int[Tensor, " texts"]) -> Estimate:
    """exp(total nats / total tokens)."""
    nats_per_token = ratio(nats, tokens)
    value = exp(nats_per_token.value)
    return Estimate(value, value * nats_per_token.se, nats_per_token.n)


def bits_per_byte(nats: Float[Tensor, " texts"], sizes: Int[Tensor, " texts"]) -> Estimate:
    """Total nats / log 2 / total bytes; `sizes` are the texts' bytes in UTF-8."""
    return ratio(nats.double() / log(2), sizes)


# ---------------------------------------------------------------- the metrics


@METRICS.register(
    "mauve",
    title="MAUVE",
    heading="MAUVE against held-out text",
    better=1,
    limits=(0, 1.01),
    role=QUALITY,
    world="text",
    reads="judge",
)
def mauve(sample: Sample) -> Estimate | None:
    """How much the texts, as a crowd, overlap with held-out ones, 0 to 1; compare equal n."""
    texts, references = (sample.readings.get(name) for name in ("judge", "references"))
    if texts is None or references is None:
        return None
    return compute_mauve(texts.features, references.features)


@METRICS.register(
    "replay_bpb",
    title="replay bits/byte",
    heading="Bits per byte of held-out text, by replay",
    better=-1,
    world="text",
)
def replay_bpb(sample: Sample) -> Estimate | None:
    """Bits of held-out text under the policy; exact if its order is fixed, else at most."""
    replay: Replay | None = sample.readings.get("replay")
    if replay is None:
        return None
    bits = bits_per_byte(replay.nats, replay.bytes)
    extra = {
        "bound": replay.bound,
        "paths": replay.paths,
        "one_path": bits_per_byte(replay.one_path, replay.bytes).value,
        # The same passages for every policy: with each one's nats, policies compare in pairs.
        "nats": [round(x, 3) for x in replay.nats.tolist()],
        "bytes": replay.bytes.tolist(),
    }
    return Estimate(bits.value, bits.se, bits.n, extra)


def _read(sample: Sample, reader: str, kind: str) -> Estimate | None:
    """Bits per byte or perplexity under a reader, or what its own test split gave."""
    tested: dict[str, Any] = sample.readings.get("tested") or {}
    if reader == "own" and tested.get(kind):
        known = tested[kind]
        return Estimate(
            known["value"], float("nan") if known["se"] is None else known["se"], known["n"]
        )
    reading: Reading | None = sample.readings.get(reader)
    if reading is None:
        return None
    if kind == "bpb":
        return bits_per_byte(reading.nats, reading.bytes)
    return perplexity(reading.nats, reading.tokens)


@METRICS.register(
    "judge_bpb",
    title="judge bits/byte",
    heading="Bits per byte under the judge",
    world="text",
    reads="judge",
)
def judge_bpb(sample: Sample) -> Estimate | None:
    """How unlikely the texts are to another language model, the judge."""
    return _read(sample, "judge", "bpb")


@METRICS.register(
    "judge_ppl",
    title="judge perplexity",
    heading="Perplexity under the judge",
    digits=1,
    drawn=False,
    world="text",
    reads="judge",
)
def judge_ppl(sample: Sample) -> Estimate | None:
    """The same per token of the judge: as unsure as between so many equal choices."""
    return _read(sample, "judge", "ppl")


@METRICS.register(
    "own_bpb", title="own bits/byte", heading="Bits per byte under our own AR model", world="text"
)
def own_bpb(sample: Sample) -> Estimate | None:
    """How unlikely the texts are to the AR model trained on the same books."""
    return _read(sample, "own", "bpb")


@METRICS.register(
    "own_ppl",
    title="own perplexity",
    heading="Perplexity under our own AR model",
    digits=1,
    drawn=False,
    world="text",
)
def own_ppl(sample: Sample) -> Estimate | None:
    """The same per token: as unsure as between so many equal choices."""
    return _read(sample, "own", "ppl")


@METRICS.register(
    "entropy", title="token entropy", heading="Token entropy of a text, nats", world="text"
)
def entropy(sample: Sample) -> Estimate | None:
    """How many different tokens a text has and how evenly, in nats."""
    return plain_mean(token_entropy(sample.tokens))


def _repeated(sample: Sample, n: int) -> Estimate | None:
    return plain_mean(repetition(sample.tokens, n)) if sample.tokens.shape[1] >= n else None


@METRICS.register(
    "rep1", title="repeated tokens", heading="Share of repeated tokens", limits=(0, 1), world="text"
)
def rep1(sample: Sample) -> Estimate | None:
    """Tokens of a text that have occurred in it before."""
    return _repeated(sample, 1)


@METRICS.register(
    "rep2",
    title="repeated pairs",
    heading="Share of repeated pairs of tokens",
    limits=(0, 1),
    world="text",
)
def rep2(sample: Sample) -> Estimate | None:
    """The same of pairs of neighbouring tokens."""
    return _repeated(sample, 2)


@METRICS.register(
    "rep3",
    title="repeated triples",
    heading="Share of repeated triples of tokens",
    limits=(0, 1),
    world="text",
)
def rep3(sample: Sample) -> Estimate | None:
    """The same of three tokens in a row."""
    return _repeated(sample, 3)


@METRICS.register(
    "accuracy",
    title="accuracy",
    heading="Share of questions answered right",
    better=1,
    limits=(0, 1),
    role=QUALITY,
    world=None,
    reads="score",
)
def accuracy(sample: Sample) -> Estimate | None:
    """Questions whose answer is exactly right."""
    right = sample.readings.get("score")
    return None if right is None else plain_mean(right)
