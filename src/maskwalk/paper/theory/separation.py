"""The bottleneck DAG, checked: the policies for small K, the closed forms for K up to a million."""

from collections.abc import Iterator

import numpy as np

from maskwalk.paper.theory.bottleneck import (
    bottleneck,
    entropy_two,
    entropy_two_asymptote,
    entropy_two_bound,
    entropy_two_exactly,
    first_passing,
    first_passing_predicted,
    paper_bound,
    random_two,
    random_two_exactly,
    random_two_limit,
    union_bound,
)
from maskwalk.paper.theory.check import EXACT, Check, coherence, same_number, small_error
from maskwalk.samplers import Entropy, Random

LIMIT = 10**6
WIDTH = 4  # the paper's figure


def bottleneck_checks() -> Iterator[Check]:
    """Enumeration, then bounds, then limits, then the gap."""
    yield from enumerated()
    yield from bounds()
    yield from limits()
    yield from gaps()


def enumerated() -> Iterator[Check]:
    """The law of the policies themselves against the recurrence and the exact formula."""
    for K in (1, 2, 3):
        computed = coherence(Entropy(2), bottleneck(K, WIDTH))
        predicted = float(entropy_two(K, WIDTH)[K])
        yield same_number(f"bottleneck K={K} W={WIDTH}: entropy-two", predicted, computed)
    for K, W in ((1, WIDTH), (2, WIDTH), (3, 2)):  # K=3, W=4 has 10^6 partial walks
        computed = coherence(Random(2), bottleneck(K, W))
        predicted = float(random_two(np.array([K]), W)[0])
        yield same_number(f"bottleneck K={K} W={W}: random-two", predicted, computed)
    computed = coherence(Entropy(2), bottleneck(3, WIDTH), ties="index")
    yield same_number("  entropy-two, ties by index: W^-3", WIDTH**-3.0, computed)
    error = max(
        abs(float(entropy_two_exactly(K, W)) - entropy_two(K, W)[K])
        for K in (5, 20, 50)
        for W in (2, WIDTH)
    )
    yield small_error("entropy-two = 2F1(-K, q/4; 1/2; 2)", "K <= 50", error)
    error = max(
        abs(float(random_two_exactly(K, W)) - random_two(np.array([K]), W)[0])
        for K in (5, 50, 200)
        for W in (2, WIDTH)
    )
    yield small_error("random-two: float = fraction", "K <= 200", error)


def bounds() -> Iterator[Check]:
    """The bounds of the proof, at every K up to the limit."""
    K = np.arange(1, LIMIT + 1)
    coherences = random_two(K, WIDTH)
    for levels, whose in ((3, "paper's"), (4, "all 4K")):
        slack = coherences - union_bound(K, WIDTH, levels)
        yield Check(
            f"random-two >= 1-qK/({levels}K-1), {whose}",
            "slack >= 0",
            f"{slack.min():.3f} to {slack.max():.3f}",
            bool((slack > -EXACT).all()),
        )
    even = np.arange(2, LIMIT + 1, 2)
    slack = entropy_two_bound(even, WIDTH) - entropy_two(LIMIT, WIDTH)[even]
    yield Check(
        "entropy-two <= (4/(K+2))^(q/4), even K",
        "slack >= 0",
        f"{slack.min():.3f} to {slack.max():.3f}",
        bool((slack > -EXACT).all()),
    )


def limits() -> Iterator[Check]:
    """How each tends to its limit."""
    last = float(random_two(np.array([LIMIT]), WIDTH)[0])
    yield same_number(
        f"random-two -> e^(-q/4), W={WIDTH}", random_two_limit(WIDTH), last, within=1e-6
    )
    for K in (1001, LIMIT):
        predicted = entropy_two_asymptote(K, WIDTH, 1 - 2 * (K % 2))
        computed = float(entropy_two(LIMIT, WIDTH)[K])
        # The next term is 1/K of the leading ones.
        claim = f"entropy-two ~ c K^(-q/4), K={_power(K)}"
        yield same_number(claim, predicted, computed, within=predicted / K)


def gaps() -> Iterator[Check]:
    """The gap random-two minus entropy-two, and the first even K beyond the paper's bound."""
    for K in (100, 10**3, 10**5, LIMIT):
        computed = float(random_two(np.array([K]), WIDTH)[0] - entropy_two(LIMIT, WIDTH)[K])
        predicted = random_two_limit(WIDTH) - entropy_two_asymptote(K, WIDTH, 1)
        yield same_number(f"gap, W={WIDTH}, K={_power(K)}", predicted, computed, within=1 / K)
    yield Check(
        f"limit of the gap > 2/3+1/(3W), W={WIDTH}",
        f"> {paper_bound(WIDTH):.4f}",
        f"{random_two_limit(WIDTH):.4f}",
        random_two_limit(WIDTH) > paper_bound(WIDTH),
    )
    for W in (2, 3, 4, 8):
        predicted = first_passing_predicted(W)
        first, stays = first_passing(W, LIMIT)
        yield Check(
            f"first even K past that bound, W={W}",
            f"about {predicted:.3g}",
            f"none <= {LIMIT:.0e}".replace("e+0", "e") if first is None else f"{first:,}",
            predicted > LIMIT if first is None else stays and abs(predicted / first - 1) < 0.01,
        )


def _power(K: int) -> str:
    """1000000 as 10^6; other numbers as they are."""
    digits = str(K)
    return f"10^{len(digits) - 1}" if K > 100 and set(digits[1:]) == {"0"} else digits
