"""When a sampler's law is the true law ν: one position at a time, or bisection of enough order.

Any order [paper, lemma "Exactness of sequential unmasking"]: ∏_r ν(x_{σ_r} | x_{σ_<r}) = ν(x), also
where the next position depends on what was revealed. Bisection [lemma "Exactness of order-k
bisection sampling"]: a revealed block of k neighbours separates an order-k law, so the middle
blocks of different runs are independent and their product of marginals is the true conditional.

A separator narrower than the order leaks. The distant-K walk reads lags 4 and 5 where K = 4, so it
is of order K + 1 and bisection needs blocks of 5, not of the 4 in its name.
"""

from collections.abc import Iterator

from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.scores import SCORES
from maskwalk.paper.theory.check import (
    Check,
    bridged_distance,
    build,
    distance,
    other_law,
    same_law,
)
from maskwalk.samplers import (
    Bisection,
    Confidence,
    Entropy,
    GuidedBisection,
    LeftToRight,
    Margin,
    Random,
)
from maskwalk.worlds.walks.oracles import EnumerationOracle, oracle_for

# Other weights after every history, so nonreversible; all nodes joined, or a tree (true zeros).
JOINED, TREE = "st_er(nodes=3, p=1.0)", "st_er(nodes=3, p=0.0)"
SEQUENTIAL: dict[str, UnmaskingPolicy] = {
    "random": Random(),
    "entropy": Entropy(),
    "confidence": Confidence(),
    "margin": Margin(),
    "left to right": LeftToRight(),
}
SEQUENTIAL_LAWS = (
    (TREE, "lazy(stay=0.125)", 5),
    (JOINED, "markov(order=1, seed=1)", 5),
    (JOINED, "markov(order=2, seed=1)", 5),
    (TREE, "distant(K=2, skip_recent=0)", 5),
    ("bottleneck_dag(corridors=1, width=3)", "dag()", 4),
    (TREE, "schedule(laws=[lazy(stay=0.125), lazy(stay=0.5)], turn=1)", 5),
)
BISECTION_LAWS = {
    1: ((TREE, "lazy(stay=0.125)", 7), (JOINED, "markov(order=1, seed=1)", 7)),
    2: ((TREE, "markov(order=2, seed=1)", 6), (JOINED, "markov(order=2, seed=1)", 6)),
    3: ((TREE, "markov(order=3, seed=1)", 7), (JOINED, "markov(order=3, seed=1)", 7)),
}
# A kernel per step: alternating (true zeros), and three in a row (nonreversible).
TIMED_LAWS = (
    (TREE, "schedule(laws=[lazy(stay=0.125), lazy(stay=0.5)], turn=1)", 7),
    (JOINED, "schedule(laws=[markov(seed=1), markov(seed=2), markov(seed=3)])", 7),
)
DISTANT = ("st_er(nodes=6, p=0.0)", "distant(K=4, skip_recent=2)", 7)


def sequential() -> Iterator[Check]:
    """One position at a time, every order of revealing gives ν: from scratch and bridged."""
    laws = [build(*spec) for spec in SEQUENTIAL_LAWS]
    for name, policy in SEQUENTIAL.items():
        tv = max(max(distance(policy, law), bridged_distance(policy, law)) for law in laws)
        yield same_law(f"one at a time: {name}", tv)


def bisection() -> Iterator[Check]:
    """Bisection of the law's order gives ν; of a lower order it does not."""
    for k, specs in BISECTION_LAWS.items():
        laws = [build(*spec) for spec in specs]
        guided: list[UnmaskingPolicy] = [GuidedBisection(k, score) for score in SCORES]
        for name, policies in (("bisection", [Bisection(k)]), ("guided", guided)):
            free = max(distance(p, law) for p in policies for law in laws)
            yield same_law(f"{name} k={k}, law of order {k}", free)
            bridged = max(bridged_distance(p, law) for p in policies for law in laws)
            yield same_law(f"{name} k={k}, law of order {k}, bridged", bridged)
    for k in (1, 2):
        law = build(*BISECTION_LAWS[k + 1][1])
        yield other_law(f"bisection k={k}, law of order {k + 1}", distance(Bisection(k), law))
    yield from timed()
    yield from distant()


def timed() -> Iterator[Check]:
    """The same where every step has its own kernel; with the first kernel's oracle it is not ν."""
    laws = [build(*spec) for spec in TIMED_LAWS]
    guided: list[UnmaskingPolicy] = [GuidedBisection(1, score) for score in SCORES]
    for name, policies in (("bisection", [Bisection(1)]), ("guided", guided)):
        free = max(distance(p, law) for p in policies for law in laws)
        yield same_law(f"{name} k=1, kernels P_t", free)
        bridged = max(bridged_distance(p, law) for p in policies for law in laws)
        yield same_law(f"{name} k=1, kernels P_t, bridged", bridged)
    graph, _, length = TIMED_LAWS[1]
    first = oracle_for(build(graph, "markov(seed=1)", length))
    yield other_law("bisection k=1, told P_1 alone", distance(Bisection(1), laws[1], first))


def distant() -> Iterator[Check]:
    """Distant-4 on six nodes: blocks of 4 are not enough, blocks of 5 are."""
    law = build(*DISTANT)
    oracle = EnumerationOracle(law)  # quicker here than 6^5 lifted states
    for k, outcome in ((4, other_law), (5, same_law)):
        for name, policy in (("bisection", Bisection(k)), ("guided", GuidedBisection(k))):
            tv = distance(policy, law, oracle)
            yield outcome(f"{name} k={k}, distant-4, V=6", tv)
