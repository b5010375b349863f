"""Greedy margin: reveal where the gap between the two likeliest tokens is largest.

Source: the paper, §2. Public code scores the tempered marginals: see confidence.
"""

from dataclasses import dataclass
from typing import ClassVar

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.samplers.parts.greedy import Greedy


@SAMPLERS.register("margin")
@dataclass(frozen=True)
class Margin(Greedy):
    """Greedy: the `block` positions with the largest gap between the two likeliest tokens."""

    ranks_by: ClassVar[str] = "margin"
