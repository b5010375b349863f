"""The best there is: block sizes for a random order, and sequences of sets for a fixed one."""

from maskwalk.analysis.plans.curve import (
    Curve,
    exact_curve,
    information_curve,
    optimal_sizes,
    schedule_cost,
)
from maskwalk.analysis.plans.entropies import (
    Entropies,
    chain_entropies,
    dependence,
    listed_entropies,
    triple_entropies,
    walked_triples,
)
from maskwalk.analysis.plans.sets import Plan, best_chain_sets, best_sets, plan_cost, spread_sets

__all__ = [
    "Curve",
    "Entropies",
    "Plan",
    "best_chain_sets",
    "best_sets",
    "chain_entropies",
    "dependence",
    "exact_curve",
    "information_curve",
    "listed_entropies",
    "optimal_sizes",
    "plan_cost",
    "schedule_cost",
    "spread_sets",
    "triple_entropies",
    "walked_triples",
]
