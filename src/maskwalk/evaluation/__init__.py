"""`maskwalk.evaluate`: is this policy better than what there is? The contract, then the suite."""

from maskwalk.evaluation.result import Evaluation
from maskwalk.evaluation.run import evaluate
from maskwalk.evaluation.trial import broken_checks

__all__ = ["Evaluation", "broken_checks", "evaluate"]
