"""Greedy entropy: reveal the positions with the lowest entropy H_i = -Σ p_i log p_i.

Source: the paper, §2. Public code scores the tempered marginals: see confidence.
"""

from dataclasses import dataclass
from typing import ClassVar

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.samplers.parts.greedy import Greedy


@SAMPLERS.register("entropy")
@dataclass(frozen=True)
class Entropy(Greedy):
    """Greedy: the `block` positions with the lowest entropy H_i = -Σ p_i log p_i."""

    ranks_by: ClassVar[str] = "entropy"
