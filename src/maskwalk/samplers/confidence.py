"""Greedy confidence: reveal the positions with the largest probability max p_i.

Source: the paper, §2; MaskGIT [arXiv 2202.04200] ranks drawn tokens so (see low_confidence).
"""

from dataclasses import dataclass
from typing import ClassVar

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.samplers.parts.greedy import Greedy


@SAMPLERS.register("confidence")
@dataclass(frozen=True)
class Confidence(Greedy):
    """Greedy: the `block` positions with the largest probability max p_i."""

    ranks_by: ClassVar[str] = "confidence"
