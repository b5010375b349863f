"""The table of samplers: one rule a file, one line here.

A new sampler is a class with `@SAMPLERS.register("name")` in a file of its own, imported below (or
brought in with `--include my_file.py`); it then appears in `maskwalk list`, the contract test, the
benchmark and the report.
"""

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.samplers.ancestral import Ancestral
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.blocks import Blocks
from maskwalk.samplers.confidence import Confidence
from maskwalk.samplers.constant_entropy import ConstantEntropy
from maskwalk.samplers.core import Core
from maskwalk.samplers.corrected import Corrected
from maskwalk.samplers.credit import Credit
from maskwalk.samplers.dependence_bounded import DependenceBounded
from maskwalk.samplers.dus import Dus
from maskwalk.samplers.early_commit import EarlyCommit
from maskwalk.samplers.entropy import Entropy
from maskwalk.samplers.entropy_bounded import EntropyBounded
from maskwalk.samplers.factor import Factor
from maskwalk.samplers.first_hitting import FirstHitting
from maskwalk.samplers.frechet import Frechet
from maskwalk.samplers.guided_bisection import GuidedBisection
from maskwalk.samplers.halton import Halton
from maskwalk.samplers.hierarchy import Hierarchy
from maskwalk.samplers.info_gain import InfoGain
from maskwalk.samplers.klass import Klass
from maskwalk.samplers.left_to_right import LeftToRight
from maskwalk.samplers.local_leap import LocalLeap
from maskwalk.samplers.lossless import Lossless
from maskwalk.samplers.low_confidence import LowConfidence
from maskwalk.samplers.margin import Margin
from maskwalk.samplers.maskgit import Maskgit
from maskwalk.samplers.moment import Moment
from maskwalk.samplers.optimal_random import OptimalRandom
from maskwalk.samplers.p2 import P2
from maskwalk.samplers.pc import Pc
from maskwalk.samplers.planned import Planned
from maskwalk.samplers.punt import Punt
from maskwalk.samplers.random import Random
from maskwalk.samplers.random_sizes import RandomSizes
from maskwalk.samplers.remdm import Remdm
from maskwalk.samplers.self_correct import SelfCorrect
from maskwalk.samplers.spaced import Spaced
from maskwalk.samplers.speculative import Speculative
from maskwalk.samplers.stochastic import Stochastic
from maskwalk.samplers.threshold import Threshold
from maskwalk.samplers.threshold_drawn import ThresholdDrawn
from maskwalk.samplers.wino import Wino

__all__ = [
    "P2",
    "SAMPLERS",
    "Ancestral",
    "Bisection",
    "Blocks",
    "Confidence",
    "ConstantEntropy",
    "Core",
    "Corrected",
    "Credit",
    "DependenceBounded",
    "Dus",
    "EarlyCommit",
    "Entropy",
    "EntropyBounded",
    "Factor",
    "FirstHitting",
    "Frechet",
    "GuidedBisection",
    "Halton",
    "Hierarchy",
    "InfoGain",
    "Klass",
    "LeftToRight",
    "LocalLeap",
    "Lossless",
    "LowConfidence",
    "Margin",
    "Maskgit",
    "Moment",
    "OptimalRandom",
    "Pc",
    "Planned",
    "Punt",
    "Random",
    "RandomSizes",
    "Remdm",
    "SelfCorrect",
    "Spaced",
    "Speculative",
    "Stochastic",
    "Threshold",
    "ThresholdDrawn",
    "Wino",
]
