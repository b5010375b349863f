"""One claim, checked; and the two exact quantities the checks are made of.

Both are computed from the law of the policy objects that `decode` runs (`analysis.law`), with ties
broken in every way with equal weight: no simulation, so the only error is float64 rounding.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.analysis.law import bridge_law, sampler_law, total_variation
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.denoiser import Denoiser
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw
from maskwalk.worlds.walks.oracles import oracle_for

EXACT = 1e-12  # equal up to rounding


@dataclass(frozen=True)
class Check:
    """What is claimed, what the formula predicts, what was computed, and whether they agree."""

    claim: str
    predicted: str
    computed: str
    holds: bool
    seconds: float = 0.0
    why: str = ""  # a sentence, where one is needed

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {key: value for key, value in asdict(self).items() if key != "why" or value}


def build(graph: str, walk: str, length: int) -> WalkLaw:
    """The law that two specs name."""
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=0), length=length)


def blank(law: WalkLaw) -> Int[Tensor, " length"]:
    """A canvas with nothing revealed."""
    return torch.full((law.length,), law.vocab_size)


def distance(policy: UnmaskingPolicy, law: WalkLaw, oracle: Denoiser | None = None) -> float:
    """Total variation of the policy's law, from a blank canvas, to the true one."""
    made = sampler_law(policy, oracle or oracle_for(law), blank(law))
    return total_variation(made, bridge_law(law, blank(law), law.vocab_size))


def bridged_distance(policy: UnmaskingPolicy, law: WalkLaw) -> float:
    """The same with both endpoints given, summed over all pairs that a walk joins."""
    walks, log_probs = law.support()
    ends, pair = torch.unique(walks[:, [0, -1]], dim=0, return_inverse=True)
    canvases = blank(law).repeat(len(ends), 1)
    canvases[:, [0, -1]] = ends
    # All pairs at once, equally likely: their walks differ, so the distances add up.
    probs = log_probs.exp()
    total = torch.zeros(len(ends), dtype=torch.float64).index_add(0, pair, probs)
    truth = walks, probs / total[pair] / len(ends)
    return len(ends) * total_variation(sampler_law(policy, oracle_for(law), canvases), truth)


def coherence(policy: UnmaskingPolicy, law: WalkLaw, ties: str = "uniform") -> float:
    """The probability that the policy's output, from a blank canvas, is a walk at all."""
    walks, probs = sampler_law(policy, oracle_for(law), blank(law), ties=ties)
    return float(probs[law.valid(walks).all(1)].sum())


def same_law(claim: str, tv: float) -> Check:
    """The check that a law is the true one."""
    return Check(claim, "TV 0", f"TV {tv:.0e}", tv < EXACT)


def other_law(claim: str, tv: float) -> Check:
    """The check that a law is not the true one."""
    return Check(claim, "TV > 0", f"TV {tv:.4f}", tv > 1e-3)


def small_error(claim: str, predicted: str, error: float) -> Check:
    """The check that the largest difference of several pairs of numbers is rounding."""
    return Check(claim, predicted, f"error {error:.0e}", bool(error < EXACT))


def same_number(claim: str, predicted: float, computed: float, within: float = EXACT) -> Check:
    """The check that two numbers agree."""
    return Check(claim, f"{predicted:.4f}", f"{computed:.4f}", abs(predicted - computed) < within)
