"""What is measured of texts as tokens, and estimates over texts with their standard errors.

    token_entropy   entropy of a text's own token frequencies, in nats (as MDLM and ReMDM report it)
    repetition      share of a text's n-grams that occurred earlier in it
    perplexity      exp(nats / tokens) over all texts together;  bits_per_byte  likewise

An estimate is {"value", "se", "n"}, n the number of texts. The texts are the sample: the standard
error of a ratio of totals is that of its linearised terms (delta method), and a single text has
none (null).
"""

from math import log
from typing import Any

import torch
from jaxtyping import Float, Float64, Int, Real
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.stats import Estimate, mean


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


def estimate(values: Real[Tensor, " texts"]) -> dict[str, Any]:
    """The mean over texts and its standard error."""
    _require(len(values))
    found = mean(values, torch.arange(len(values)))
    return Estimate(found.value, found.se, found.n, {}).as_dict()


def perplexity(nats: Float[Tensor, " texts"], tokens: Int[Tensor, " texts"]) -> dict[str, Any]:
    """exp(total nats / total tokens)."""
    found = _ratio(nats, tokens)
    value = torch.tensor(found["value"], dtype=torch.float64).exp().item()
    return found | {"value": value, "se": None if found["se"] is None else value * found["se"]}


def bits_per_byte(nats: Float[Tensor, " texts"], sizes: Int[Tensor, " texts"]) -> dict[str, Any]:
    """Total nats / log 2 / total bytes; `sizes` are the texts' bytes in UTF-8."""
    return _ratio(nats.double() / log(2), sizes)


def _ratio(amounts: Float[Tensor, " texts"], sizes: Int[Tensor, " texts"]) -> dict[str, Any]:
    """Σ amounts / Σ sizes, as the mean of the terms it is to first order."""
    _require(len(sizes), int(sizes.sum()))
    amounts, weights = amounts.double().cpu(), sizes.double().cpu()
    ratio = amounts.sum() / weights.sum()
    return estimate(ratio + (amounts - ratio * weights) / weights.mean())


def _require(texts: int, size: int = 1) -> None:
    if texts == 0 or size <= 0:
        raise MaskwalkError("There is nothing to measure: give at least one text, and not empty.")
