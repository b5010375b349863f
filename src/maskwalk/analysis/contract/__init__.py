"""The contract every sampler keeps: the checks, and small laws to try one on."""

from maskwalk.analysis.contract.checks import (
    CHECKS,
    FALSE_ALARM,
    BrokenContract,
    Stand,
    failures,
    goodness_of_fit,
)
from maskwalk.analysis.contract.trial import broken_checks

__all__ = [
    "CHECKS",
    "FALSE_ALARM",
    "BrokenContract",
    "Stand",
    "broken_checks",
    "failures",
    "goodness_of_fit",
]
