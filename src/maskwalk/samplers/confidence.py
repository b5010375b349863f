"""Greedy confidence: reveal the positions with the largest probability max p_i (paper, §2)."""

from dataclasses import dataclass
from typing import ClassVar

from maskwalk.samplers.shared.greedy import Greedy
from maskwalk.samplers.table import SAMPLERS


@SAMPLERS.register("confidence")
@dataclass(frozen=True)
class Confidence(Greedy):
    """Greedy: the `block` positions with the largest probability max p_i."""

    ranks_by: ClassVar[str] = "confidence"
