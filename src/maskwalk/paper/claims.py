"""The paper's claims about graph walks, each as comparisons that records can decide.

A claim says that some cells have more coherence (or a smaller TV) than others. A comparison is
decided where the 95 % interval of the difference leaves zero out (of two independent means, which
overstates it for samplers that share their prompts). A claim *holds* in a mode if all of its
comparisons do, is *reversed* if none does and at least one points the other way, *open* if none is
decided, and *mixed* otherwise. What is claimed to be about equal *holds* if no difference is
decided.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maskwalk.bench.records import Record
from maskwalk.paper.compare import mode_of
from maskwalk.specs import parse
from maskwalk.stats import NORMAL, combined, settled_se
from maskwalk.worlds.metrics import METRICS

TREE, DENSE, CHAIN, DISTANT = "Tree", "Degree 7", "Chain of 10", "Distant-K"
TWO = {b: f"2 communities, b={b}" for b in (1, 8, 64)}
GUIDED = "guided_bisection(order={}, score='entropy')"
BISECTION, RANDOM, ENTROPY = "bisection(order=1)", "random(block=1)", "entropy(block=1)"
PARALLEL = (2, 4, 6, 8)
RULES = ("entropy", "random", "confidence", "margin")
SHORT = {"coherence": "", "tv1": "TV "}


@dataclass(frozen=True)
class At:
    """One cell: a graph (by its title), a task and a sampler."""

    graph: str
    task: str
    sampler: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and the pairs (more, less) that decide it."""

    said: str
    where: str
    pairs: tuple[tuple[At, At], ...]
    metric: str = "coherence"
    equal: bool = False  # claimed to be about the same
    shown: int = 3  # pairs written out


def _versus(
    graphs: Iterable[str], task: str, more: Iterable[str], less: Iterable[str]
) -> tuple[tuple[At, At], ...]:
    return tuple((At(g, task, a), At(g, task, b)) for g in graphs for a in more for b in less)


def _steps(rule: str, graph: str, task: str) -> tuple[tuple[At, At], ...]:
    one = At(graph, task, f"{rule}(block=1)")
    return tuple((one, At(graph, task, f"{rule}(block={k})")) for k in PARALLEL)


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
        "Edge density opens the gap between entropy and random, one at a time (coherence)",
        "5.2, unconditional",
        _versus([DENSE], "unconditional", [ENTROPY], [RANDOM]),
    ),
    Claim(
        "Edge density opens the gap between entropy and random (TV: random's is larger)",
        "5.2, unconditional",
        _versus([DENSE], "unconditional", [RANDOM], [ENTROPY]),
        metric="tv1",
    ),
    Claim(
        "Bisection keeps the coherence of one-at-a-time random at a fifth of the calls",
        "5.2, unconditional",
        _versus([TREE, DENSE], "unconditional", [BISECTION], [RANDOM]),
        equal=True,
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
            (
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
        equal=True,
    ),
    Claim(
        "Bisection improves as its order approaches K=4",
        "5.4, distant-K",
        _versus([DISTANT], "unconditional", ["bisection(order=4)"], ["bisection(order=1)"])
        + _versus([DISTANT], "unconditional", [GUIDED.format(4)], [GUIDED.format(1)]),
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
            (At(TWO[64], "bottleneck", s), At(g, "bottleneck", s))
            for s in (ENTROPY, RANDOM, BISECTION, GUIDED.format(1))
            for g in (TWO[1], CHAIN)
        ),
        shown=4,
    ),
)


def verdicts(records: Iterable[Record], claims: tuple[Claim, ...] = CLAIMS) -> list[dict[str, Any]]:
    """Every claim with its verdict and numbers in each mode that has the cells."""
    cells: dict[tuple[str, At], Record] = {}
    for record in records:
        at = At(str(record.get("title", "")), parse(record["task"]).name, record["sampler"])
        cells[mode_of(record), at] = record
    modes = list(dict.fromkeys(mode for mode, _ in cells))
    return [
        {
            "claim": claim.said,
            "where": claim.where,
            "modes": {mode: _judge(claim, mode, cells) for mode in modes},
        }
        for claim in claims
    ]


def _judge(claim: Claim, mode: str, cells: dict[tuple[str, At], Record]) -> dict[str, Any] | None:
    """The verdict in one mode; None where a cell was not run."""
    scores, numbers = [], []
    for pair in claim.pairs:
        records = [cells[mode, at] for at in pair if (mode, at) in cells]
        known = [
            (estimate["value"], _error(estimate, record, claim.metric))
            for record in records
            if (estimate := record["metrics"].get(claim.metric) or {}).get("value") is not None
        ]
        if len(known) < 2:
            return None
        (more, more_se), (less, less_se) = known
        error, difference = combined(more_se, less_se), more - less
        scores.append(difference / max(error, 1e-9))
        numbers.append(f"{SHORT[claim.metric]}{_number(more)} : {_number(less)}")
    above = sum(score > NORMAL for score in scores)
    below = sum(score < -NORMAL for score in scores)
    if claim.equal:
        verdict = "holds" if above + below == 0 else "lower" if not above else "mixed"
        verdict = "higher" if above and not below else verdict
    elif above == len(scores):
        verdict = "holds"
    elif above + below == 0:
        verdict = "open"
    else:
        verdict = "mixed" if above else "reversed"
    return {"verdict": verdict, "decided": [above, below, len(scores)], "numbers": numbers}


def _error(estimate: dict[str, Any], record: Record, metric: str) -> float | None:
    share = METRICS.describe(metric).share
    prompts = record.get("count") or estimate["n"]
    return settled_se(estimate["value"], estimate["se"], prompts, share)


def _number(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def markdown(found: list[dict[str, Any]], claims: tuple[Claim, ...] = CLAIMS) -> str:
    """The verdicts as a Markdown table; more : less, and how many comparisons agree."""
    modes = list(dict.fromkeys(mode for row in found for mode in row["modes"]))
    lines = ["| claim | where | " + " | ".join(modes) + " |", "|---" * (len(modes) + 2) + "|"]
    for row, claim in zip(found, claims):
        cells = [_cell(row["modes"].get(mode), claim.shown) for mode in modes]
        lines.append(f"| {row['claim']} | {row['where']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(judged: dict[str, Any] | None, most: int) -> str:
    if judged is None:
        return "–"
    above, _, count = judged["decided"]
    numbers = judged["numbers"][:most]
    more = f" ({above} of {count})" if count > most else ""
    return f"**{judged['verdict']}**{more} " + ", ".join(numbers) + (" …" if count > most else "")
