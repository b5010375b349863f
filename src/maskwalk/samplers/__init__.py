"""The table of samplers: one policy a file, one line here.

A new sampler is a class with `@SAMPLERS.register("name")` in a file of its own, imported below (or
brought in with `--include my_file.py`); it then appears in `maskwalk list`, the contract test, the
benchmark and the report.
"""

from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.confidence import Confidence
from maskwalk.samplers.entropy import Entropy
from maskwalk.samplers.guided_bisection import GuidedBisection
from maskwalk.samplers.left_to_right import LeftToRight
from maskwalk.samplers.margin import Margin
from maskwalk.samplers.random import Random
from maskwalk.samplers.table import SAMPLERS

__all__ = [
    "SAMPLERS",
    "Bisection",
    "Confidence",
    "Entropy",
    "GuidedBisection",
    "LeftToRight",
    "Margin",
    "Random",
]
