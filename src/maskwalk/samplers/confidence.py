"""Greedy confidence: reveal the positions with the largest probability max p_i.

Source: the paper, §2; MaskGIT [arXiv 2202.04200] ranks drawn tokens so (see low_confidence). Public
code (Dream's maskgit_plus, topk_margin and entropy) scores the marginals *after* temperature and
truncation; here they are the model's own, unless draw(…, scores='shaped') asks for the tempered
ones. Dream's maskgit_plus also reads the drawn token's probability, not the largest, unless the
temperature is 0.
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
