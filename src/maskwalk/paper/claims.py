"""The paper's claims about graph walks, each as comparisons that records can decide.

A comparison is a contrast of cells, Σ w·value with Σ w = 0 where it is one of means: more − less,
a gap less another gap, a linear trend over orders. A claim says that its contrasts are above zero,
or (`margin`) that they are zero up to a margin. `ledger.py` judges them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

TREE, DENSE, CHAIN, DISTANT = "Tree", "Degree 7", "Chain of 10", "Distant-K"
TWO = {b: f"2 communities, b={b}" for b in (1, 8, 64)}
GUIDED = "guided_bisection(order={}, score='entropy')"
BISECTION, RANDOM, ENTROPY = "bisection(order=1)", "random(block=1)", "entropy(block=1)"
PARALLEL = (2, 4, 6, 8)
RULES = ("entropy", "random", "confidence", "margin")
COHERENCE_MARGIN, TV_MARGIN = 0.05, 0.02  # what counts as the same


@dataclass(frozen=True)
class At:
    """One cell: a graph (by its title), a task and a sampler."""

    graph: str
    task: str
    sampler: str


Contrast = tuple[tuple[float, At], ...]


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and the contrasts that decide it."""

    said: str
    where: str
    contrasts: tuple[Contrast, ...]
    metric: str = "coherence"
    margin: float | None = None  # claimed to be the same, up to this
    shown: int = 3  # contrasts written out


def more(one: At, other: At) -> Contrast:
    """The first has more than the second."""
    return (1.0, one), (-1.0, other)


def wider(one: Contrast, other: Contrast) -> Contrast:
    """The first gap is wider than the second."""
    return (*one, *((-weight, at) for weight, at in other))


def rising(cells: Iterable[At]) -> Contrast:
    """A linear trend over cells in order."""
    some = list(cells)
    middle = (len(some) - 1) / 2
    return tuple((step - middle, at) for step, at in enumerate(some))


def _versus(
    graphs: Iterable[str], task: str, ahead: Iterable[str], behind: Iterable[str]
) -> tuple[Contrast, ...]:
    first, second = list(ahead), list(behind)
    return tuple(
        more(At(g, task, a), At(g, task, b)) for g in graphs for a in first for b in second
    )


def _steps(rule: str, graph: str, task: str) -> tuple[Contrast, ...]:
    one = At(graph, task, f"{rule}(block=1)")
    return tuple(more(one, At(graph, task, f"{rule}(block={k})")) for k in PARALLEL)


def _gap(graph: str, ahead: str, behind: str) -> Contrast:
    return more(At(graph, "unconditional", ahead), At(graph, "unconditional", behind))


def _orders(sampler: str, orders: Iterable[int]) -> list[At]:
    return [At(DISTANT, "unconditional", sampler.format(k)) for k in orders]


PLAIN = "bisection(order={})"
ONE_AT_A_TIME = [f"{rule}(block=1)" for rule in RULES]
ACCELERATED = [f"{rule}(block={k})" for rule in RULES for k in PARALLEL] + [
    "random(block='exponential')",
    "entropy(block='exponential')",
]
CLAIMS = (
    Claim(
        "On the tree entropy two at a time loses to random; edges turn that around",
        "Figure 1, endpoints",
        (
            *_versus([TREE], "endpoints", ["random(block=2)"], ["entropy(block=2)"]),
            *_versus([DENSE], "endpoints", ["entropy(block=2)"], ["random(block=2)"]),
        ),
    ),
    Claim(
        "Edge density widens the gap between entropy and random, one at a time (coherence)",
        "5.2, unconditional",
        (wider(_gap(DENSE, ENTROPY, RANDOM), _gap(TREE, ENTROPY, RANDOM)),),
    ),
    Claim(
        "Edge density widens the gap between random and entropy, one at a time (TV)",
        "5.2, unconditional",
        (wider(_gap(DENSE, RANDOM, ENTROPY), _gap(TREE, RANDOM, ENTROPY)),),
        metric="tv1",
    ),
    Claim(
        "Bisection keeps the coherence of one-at-a-time random at a fifth of the calls",
        "5.2, unconditional",
        _versus([TREE, DENSE], "unconditional", [BISECTION], [RANDOM]),
        margin=COHERENCE_MARGIN,
    ),
    Claim(
        "Bisection preserves transition fidelity (its TV is that of one-at-a-time random)",
        "5.2, unconditional",
        _versus([TREE, DENSE], "unconditional", [BISECTION, GUIDED.format(1)], [RANDOM]),
        metric="tv1",
        margin=TV_MARGIN,
        shown=4,
    ),
    Claim(
        "Aggressive parallel random and entropy lose coherence",
        "5.2, unconditional",
        tuple(p for g in (TREE, DENSE) for r in RULES[:2] for p in _steps(r, g, "unconditional")),
    ),
    Claim(
        "At b=1 random one at a time beats entropy",
        "5.3, two communities",
        _versus([TWO[1]], "bottleneck", [RANDOM], [ENTROPY]),
    ),
    Claim(
        "… and the order flips as the bottleneck is relaxed",
        "5.3, two communities",
        _versus([TWO[8], TWO[64]], "bottleneck", [ENTROPY], [RANDOM]),
    ),
    Claim(
        "At b=1 guided bisection beats all baselines",
        "5.3, two communities",
        _versus([TWO[1]], "bottleneck", [GUIDED.format(1)], ONE_AT_A_TIME),
        shown=4,
    ),
    Claim(
        "On the chain entropy works well one at a time",
        "5.3, chain",
        _versus([CHAIN], "bottleneck", [ENTROPY], [RANDOM]),
    ),
    Claim(
        "… and in parallel becomes comparable to or worse than random",
        "5.3, chain",
        tuple(
            more(
                At(CHAIN, "bottleneck", f"random(block={k})"),
                At(CHAIN, "bottleneck", f"entropy(block={k})"),
            )
            for k in PARALLEL
        ),
        shown=2,
    ),
    Claim(
        "On the chain bisection is competitive with one-at-a-time samplers",
        "5.3, chain",
        _versus([CHAIN], "bottleneck", [BISECTION, GUIDED.format(1)], [RANDOM]),
        margin=COHERENCE_MARGIN,
    ),
    Claim(
        "Bisection improves as its order approaches K=4 (a trend over orders 1 to 4)",
        "5.4, distant-K",
        (rising(_orders(PLAIN, range(1, 5))), rising(_orders(GUIDED, range(1, 5)))),
    ),
    Claim(
        "… at every step of the order",
        "5.4, distant-K",
        tuple(
            more(after, before)
            for name in (PLAIN, GUIDED)
            for before, after in pairwise(_orders(name, range(1, 5)))
        ),
        shown=6,
    ),
    Claim(
        "Plain bisection of order 4 stays slightly below random one at a time",
        "5.4, distant-K",
        _versus([DISTANT], "unconditional", [RANDOM], ["bisection(order=4)"]),
    ),
    Claim(
        "Guided bisection of order 4 is substantially above random one at a time",
        "5.4, distant-K",
        _versus([DISTANT], "unconditional", [GUIDED.format(4)], [RANDOM]),
    ),
    Claim(
        "Entropy one at a time is best overall",
        "5.4, distant-K",
        _versus(
            [DISTANT],
            "unconditional",
            [ENTROPY],
            [
                RANDOM,
                *(f"bisection(order={k})" for k in range(1, 9)),
                *map(GUIDED.format, range(1, 9)),
            ],
        ),
    ),
    Claim(
        "Guided bisection of order 4 recovers the coherence of entropy one at a time",
        "5.4, distant-K",
        _versus([DISTANT], "unconditional", [GUIDED.format(4)], [ENTROPY]),
        margin=COHERENCE_MARGIN,
    ),
    Claim(
        "… at substantially smaller depth (half its calls)",
        "5.4, distant-K",
        (((0.5, At(DISTANT, "unconditional", ENTROPY)), (-1.0, _orders(GUIDED, [4])[0])),),
        metric="calls",
    ),
    Claim(
        "Greedy constant-k schedules degrade sharply",
        "appendix, trends",
        tuple(
            pair
            for task in ("unconditional", "endpoints")
            for rule in ("entropy", "confidence", "margin")
            for pair in _steps(rule, DENSE, task)
        ),
    ),
    Claim(
        "… confidence most of all",
        "appendix, trends",
        _versus(
            [TREE, DENSE],
            "endpoints",
            ["entropy(block=2)", "margin(block=2)"],
            ["confidence(block=2)"],
        ),
        shown=4,
    ),
    Claim(
        "Exponential schedules degrade sharply",
        "appendix, trends",
        tuple(
            more(At(g, task, f"{rule}(block=1)"), At(g, task, f"{rule}(block='exponential')"))
            for task in ("unconditional", "endpoints")
            for g in (TREE, DENSE)
            for rule in ("entropy", "random")
        ),
        shown=4,
    ),
    Claim(
        "Guided bisection is the strongest accelerated sampler",
        "appendix, trends",
        _versus(
            [TREE, DENSE, *TWO.values(), CHAIN],
            "endpoints",
            [GUIDED.format(1)],
            [BISECTION, *ACCELERATED],
        ),
    ),
    Claim(
        "Guided bisection beats random one at a time",
        "tables, endpoints",
        _versus([TREE, DENSE, *TWO.values(), CHAIN], "endpoints", [GUIDED.format(1)], [RANDOM]),
        shown=6,
    ),
    Claim(
        "Coherence is lowest where crossings are rare, and improves with wider bottlenecks",
        "appendix, trends",
        tuple(
            more(At(TWO[64], "bottleneck", s), At(g, "bottleneck", s))
            for s in (ENTROPY, RANDOM, BISECTION, GUIDED.format(1))
            for g in (TWO[1], CHAIN)
        ),
        shown=4,
    ),
    Claim(
        "… with b=8 between b=1 and b=64",
        "appendix, trends",
        tuple(
            more(At(TWO[above], "bottleneck", s), At(TWO[below], "bottleneck", s))
            for s in (ENTROPY, RANDOM, BISECTION, GUIDED.format(1))
            for below, above in ((1, 8), (8, 64))
        ),
        shown=8,
    ),
)
