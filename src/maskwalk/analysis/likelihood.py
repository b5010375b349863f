"""What replayed sequences say of a sampler: KL, coherence, and how far the numbers can be trusted.

With x_1 … x_n ~ ν replayed K times each, S_jk = log ν(x_j) − log q_ωk(x_j):

    kl          mean over j of −log (1/K) Σ_k e^{−S_jk}: exact if the policy consumed no randomness,
                else an upper bound on KL(ν ‖ sampler), tighter the larger K is
    coherence   mean of e^{−S}: the sampler's probability of the law's support, whatever ω
    ess         (Σ w)² / Σ w² of w_j = (1/K) Σ_k e^{−S_jk}; below 50 a few sequences carry the
                mean and the coherence is unreliable (too low, most likely)
    lost        share of sequences the sampler cannot produce at all; then KL is infinite
    kl_rest     where KL is infinite: KL(ν given A ‖ sampler), A the sequences it can produce;
                mean of S over those, less log(1 − lost). Truncated draws (top-p, floor) lose the
                tails of the law for good, and this says what they do to all the rest

Where the split is known, the mean of S is replaced by that of its conditional means (dependence +
denoiser): the same expectation, less noise, and the table adds up: kl = dependence + denoiser −
mixing, mixing ≥ 0 being what the K orders gain over one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isinf, log, log1p, nan

import torch
from jaxtyping import Float64
from torch import Tensor

from maskwalk.analysis.replay import Replayed
from maskwalk.errors import MaskwalkError
from maskwalk.stats import weighted_mean

ENOUGH = 50  # effective sequences that make a coherence from replay reliable


@dataclass(frozen=True)
class Likelihood:
    """Estimates from `n` sequences; None where the law or its oracle is not known."""

    n: int
    orders: int
    kl_kind: str  # "exact", or "upper" if the policy consumed randomness
    nll: float  # −log of the sampler's probability, nats per walk (an upper bound likewise)
    nll_se: float
    lost: float
    kl: float | None = None
    kl_se: float | None = None
    kl_rest: float | None = None
    kl_rest_se: float | None = None
    coherence: float | None = None
    coherence_se: float | None = None
    ess: float | None = None
    dependence: float | None = None
    dependence_se: float | None = None
    denoiser: float | None = None
    denoiser_se: float | None = None
    mixing: float | None = None

    @property
    def reliable(self) -> bool | None:
        """Whether enough sequences carry the coherence."""
        return None if self.ess is None else self.ess >= ENOUGH


def estimate(
    replays: Sequence[Replayed],
    weights: Float64[Tensor, " batch"] | None = None,
    full_support: bool = False,
) -> Likelihood:
    """Estimates from the same sequences replayed under one or more orders.

    `weights` (that sum to 1) turn the means into exact sums: all sequences of a small law, each
    with its probability. Under a law of full support every sequence is coherent: no estimate then.
    """
    if not replays:
        raise MaskwalkError("There is nothing to estimate from: no replay was given.")
    mean = partial(weighted_mean, weights=weights)
    log_q = _log_mean(torch.stack([r.log_prob.sum(1) for r in replays]))
    estimates: dict[str, float] = {}
    estimates["nll"], estimates["nll_se"] = mean(-log_q)
    estimates["lost"] = mean((log_q == -torch.inf).to(torch.float64))[0]
    log_law = replays[0].log_law
    if log_law is not None:
        loss = log_law - log_q
        ratio = (-loss).exp()
        if not full_support:
            estimates["coherence"], estimates["coherence_se"] = mean(ratio)
            estimates["ess"] = len(ratio) * mean(ratio)[0] ** 2 / max(mean(ratio**2)[0], 1e-300)
        paths = torch.stack([log_law - r.log_prob.sum(1) for r in replays]).mean(0)
        mixing = torch.where(paths.isinf(), 0.0, paths - loss)
        if replays[0].split:
            parts = [
                torch.stack([r.split[name].sum(1) for r in replays]).mean(0)
                for name in ("dependence", "denoiser")
            ]
            for name, part in zip(("dependence", "denoiser"), parts):
                estimates[name], estimates[f"{name}_se"] = mean(part)
            estimates["mixing"] = mean(mixing)[0]
            loss = parts[0] + parts[1] - mixing
        estimates["kl"], estimates["kl_se"] = mean(loss)
        if isinf(estimates["kl"]):
            rest = _rest(log_law - log_q, estimates["lost"], weights)
            estimates["kl_rest"], estimates["kl_rest_se"] = rest
    elif replays[0].split:  # a denoiser stands for the law: its own chain says what blocks lose
        part = torch.stack([r.split["dependence"].sum(1) for r in replays]).mean(0)
        estimates["dependence"], estimates["dependence_se"] = mean(part)
    kind = "upper" if any(r.random for r in replays) else "exact"
    return Likelihood(n=len(log_q), orders=len(replays), kl_kind=kind, **estimates)


def _rest(
    loss: Float64[Tensor, " batch"], lost: float, weights: Float64[Tensor, " batch"] | None
) -> tuple[float, float]:
    """KL of the law given what can be produced, along the paths; infinite where nothing can be."""
    kept = ~loss.isinf()
    if not bool(kept.any()):
        return inf, nan
    part = None if weights is None else weights[kept] / weights[kept].sum()
    value, se = weighted_mean(loss[kept], weights=part)
    return value - log1p(-lost), se


def _log_mean(logs: Float64[Tensor, "orders batch"]) -> Float64[Tensor, " batch"]:
    return logs.logsumexp(0) - log(len(logs)) if len(logs) > 1 else logs[0]
