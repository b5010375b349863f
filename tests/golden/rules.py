"""The field's policies as plain loops over numbers, written from their formulas alone.

Every function takes the rule's parameters and gives a `Rule` (plain.py): the positions to reveal,
from what can be seen. Nothing here is imported from maskwalk.
"""

from math import acos, exp, floor, log, pi

from tests.golden.plain import Rule, Seen, entropy

SLACK = 1e-9  # the sums of entropies may pass their bound by as much, for rounding


def greedy(score: str, block: int | str = 1) -> Rule:
    """The `block` lowest scores; "exponential": 1, 2, 4, … by the round."""

    def rule(seen: Seen) -> list[int]:
        count = 2**seen.round if isinstance(block, str) else block
        return seen.first(count, lambda i: seen.score(score, i))

    return rule


def in_steps(score: str, steps: int) -> Rule:
    """LLaDA's counts: N // T a step, one more in the first N mod T."""

    def rule(seen: Seen) -> list[int]:
        count = seen.total // steps + (seen.step < seen.total % steps)
        return seen.first(max(1, count), lambda i: seen.score(score, i))

    return rule


def in_late_steps(score: str, steps: int, eps: float = 1e-3) -> Rule:
    """Dream's counts: of m masked ⌊m (1 - s/t)⌋, all in the last step; empty steps are skipped."""

    def rule(seen: Seen) -> list[int]:
        k = seen.block_memory.get("k", 0)
        while True:
            t, s = (1 - j * (1 - eps) / steps for j in (k, k + 1))
            left = len(seen.masked)
            count = floor(left * (1 - s / t)) if k < steps - 1 else left
            k += 1
            if count:
                break
        seen.block_memory["k"] = k
        return seen.first(count, lambda i: seen.score(score, i))

    return rule


def threshold(tau: float) -> Rule:
    """All at least as sure as tau, else the surest."""

    def rule(seen: Seen) -> list[int]:
        sure = [i for i in seen.masked if seen.sure(i) >= tau]
        return sure or seen.first(1, lambda i: -seen.sure(i))

    return rule


def factor(f: float) -> Rule:
    """The n surest, n the largest with (n + 1)(1 - c_(n)) < f."""

    def rule(seen: Seen) -> list[int]:
        order = seen.first(len(seen.masked), lambda i: -seen.sure(i))
        best = 1
        for n, i in enumerate(order, 1):
            if (n + 1) * (1 - seen.sure(i)) < f:
                best = n
        return order[:best]

    return rule


def entropy_bounded(gamma: float, score: str = "entropy") -> Rule:
    """The longest prefix with Σ H - max H ≤ γ."""

    def rule(seen: Seen) -> list[int]:
        order = seen.first(len(seen.masked), lambda i: seen.score(score, i))
        best = 1
        for n in range(1, len(order) + 1):
            nats = [entropy(seen.p[i]) for i in order[:n]]
            if sum(nats) - max(nats) <= gamma + SLACK:
                best = n
        return order[:best]

    return rule


def constant_entropy(h: float) -> Rule:
    """The longest prefix with Σ H ≤ h."""

    def rule(seen: Seen) -> list[int]:
        order = seen.first(len(seen.masked), lambda i: entropy(seen.p[i]))
        best = 1
        for n in range(1, len(order) + 1):
            if sum(entropy(seen.p[i]) for i in order[:n]) <= h + SLACK:
                best = n
        return order[:best]

    return rule


def dus_levels(span: int, base: int, merge: bool) -> list[set[int]]:
    """The levels of DUS over `span` positions."""
    levels: list[set[int]] = []
    taken: set[int] = set()
    t = 1
    while span // base**t >= 1:
        stride = span // base**t
        new = {i for i in range(span) if i % stride == 0} - taken
        if new:
            levels.append(new)
            taken |= new
        t += 1
    if rest := set(range(span)) - taken:
        levels.append(rest)
    if merge and len(levels) > 1 and len(levels[-1]) < len(levels[-2]):
        levels[-2:] = [levels[-2] | levels[-1]]
    return levels


def dus(base: int = 2, merge: bool = True, skip: float = 0.0) -> Rule:
    """A level a round; levels with nothing masked take none; what is put off joins the next."""

    def rule(seen: Seen) -> list[int]:
        levels = dus_levels(seen.span, base, merge)
        level = seen.block_memory.get("level", -1) + 1
        while True:
            turn = set().union(*levels[: level + 1])
            here = [i for i in seen.masked if i - seen.start in turn]
            if here:
                break
            level += 1
        seen.block_memory["level"] = level
        likely = [i for i in here if seen.sure(i) >= skip]
        return likely or [max(here, key=seen.sure)]

    return rule


def halton(steps: int) -> Rule:
    """Van der Corput order; ⌊N (1 - 2/π arccos(t/T))⌋ revealed after step t."""

    def order(span: int) -> list[int]:
        found: list[int] = []
        j = 1
        while len(found) < span - (0 not in found):
            x, digit, rest = 0.0, 0.5, j
            while rest:
                x, digit, rest = x + digit * (rest % 2), digit / 2, rest // 2
            if (place := floor(span * x)) not in found:
                found.append(place)
            j += 1
        return found if 0 in found else [*found, 0]

    def rule(seen: Seen) -> list[int]:
        t = min(seen.step + 1, steps)
        revealed = floor(seen.total * (1 - 2 / pi * acos(t / steps)) + 1e-9)
        count = max(1, revealed - (seen.total - len(seen.masked)))
        turn = [seen.start + place for place in order(seen.span)]
        return [i for i in turn if i in seen.masked][:count]

    return rule


def segments(masked: list[int]) -> list[list[int]]:
    """The maximal runs of neighbours."""
    found: list[list[int]] = []
    for i in masked:
        if found and found[-1][-1] == i - 1:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def hierarchy(low: float, high: float) -> Rule:
    """The surest of each run if above `low`, all above `high`; else the surest of all."""

    def rule(seen: Seen) -> list[int]:
        best = [max(run, key=seen.sure) for run in segments(seen.masked)]
        chosen = [i for i in best if seen.sure(i) > low]
        chosen += [i for i in seen.masked if seen.sure(i) > high]
        return chosen or [max(seen.masked, key=seen.sure)]

    return rule


def local_leap(anchor: float, near: float, radius: int) -> Rule:
    """Anchors, and what is near one and sure enough; else the surest."""

    def rule(seen: Seen) -> list[int]:
        anchors = [i for i in seen.masked if seen.sure(i) >= anchor]
        leaps = [
            i
            for i in seen.masked
            if seen.sure(i) >= near and any(abs(i - a) <= radius for a in anchors)
        ]
        return anchors + leaps or [max(seen.masked, key=seen.sure)]

    return rule


def klass(conf: float, kl: float, window: int) -> Rule:
    """Sure, and KL(now ‖ before) below the bound in the last rounds, from the block's own
    `window`-th round on; else the surest. Every masked position of the sequence has a history."""

    def rule(seen: Seen) -> list[int]:
        everywhere = [i for i, x in enumerate(seen.canvas) if x == seen.mask]
        before, quiet = seen.memory.get("before"), seen.memory.setdefault("quiet", {})
        for i in everywhere:
            if before is None:
                quiet[i] = 0
                continue
            moved = sum(x * (log(x) - log(y)) for x, y in zip(seen.p[i], before[i]) if x > 0)
            quiet[i] = quiet[i] + 1 if moved < kl else 0
        seen.memory["before"] = {i: seen.p[i] for i in everywhere}
        still = [i for i in seen.masked if quiet[i] >= window and seen.step >= window - 1]
        return [i for i in still if seen.sure(i) >= conf] or [max(seen.masked, key=seen.sure)]

    return rule


def pc(decay: float, alpha: float, block: int) -> Rule:
    """The largest e^{-λ i} min(α, -p log f), f the mean marginal of the sequence's first round."""

    def rule(seen: Seen) -> list[int]:
        if "f" not in seen.memory:
            everywhere = [i for i, x in enumerate(seen.canvas) if x == seen.mask]
            vocab = range(len(seen.p[0]))
            seen.memory["f"] = [
                sum(seen.p[i][x] for i in everywhere) / len(everywhere) for x in vocab
            ]

        def value(i: int) -> float:
            x = seen.p[i].index(seen.sure(i))
            calibrated = min(alpha, -seen.sure(i) * log(seen.memory["f"][x]))
            return exp(-decay * (i - seen.start)) * calibrated

        return seen.first(block, lambda i: -value(i))

    return rule


def spaced(inner: Rule, gap: int, score: str = "confidence") -> Rule:
    """The inner picks in order of score, each `gap` from those accepted."""

    def rule(seen: Seen) -> list[int]:
        accepted: list[int] = []
        for i in sorted(inner(seen), key=lambda i: seen.score(score, i)):
            if all(abs(i - a) >= gap for a in accepted):
                accepted.append(i)
        return accepted

    return rule


def frechet(margin: float) -> Rule:
    """The n surest, n the largest with Σ c - (n - 1) - (1 - c_(n)) > margin."""

    def rule(seen: Seen) -> list[int]:
        order = seen.first(len(seen.masked), lambda i: -seen.sure(i))
        best = 1
        for n in range(1, len(order) + 1):
            sure = [seen.sure(i) for i in order[:n]]
            if sum(sure) - (n - 1) - (1 - sure[-1]) > margin:
                best = n
        return order[:best]

    return rule


def early_commit(inner: Rule, early: float, mid: float, late: float) -> Rule:
    """Everything once the mean gap of the two likeliest tokens is wide, else the inner picks."""

    def rule(seen: Seen) -> list[int]:
        chosen = inner(seen)
        tops = [sorted(seen.p[i], reverse=True)[:2] for i in seen.masked]
        gap = sum(min(50.0, log(one) - log(two)) for one, two in tops) / len(tops)
        share = (seen.total - len(seen.masked) + len(chosen)) / seen.total
        bar = early if share < 0.33 else mid if share < 0.67 else late
        return list(seen.masked) if gap >= bar else chosen

    return rule


def bisection(seen: Seen) -> list[int]:
    """The middle of every masked run (the left one of two): DUS's binary levels."""
    return [run[(len(run) - 1) // 2] for run in segments(seen.masked)]


def random(block: int) -> Rule:
    """The `block` positions with the smallest numbers of their own."""

    def rule(seen: Seen) -> list[int]:
        keys = seen.uniforms("tie", seen.round)
        return seen.first(block, lambda i: keys[i])

    return rule


def first_hitting(seen: Seen) -> list[int]:
    """Times uniform on (0, t): the latest of them is the next event."""
    times = seen.uniforms("choice", seen.round)
    return [max(seen.masked, key=lambda i: times[i])]


def stochastic(score: str, temperature: float, anneal: bool, block: int = 1) -> Rule:
    """The lowest s_i - T m g_i, g_i Gumbel, m the share of the block that is masked still."""

    def rule(seen: Seen) -> list[int]:
        u = seen.uniforms("noise", seen.round)
        share = len(seen.masked) / seen.total if anneal else 1.0

        def noisy(i: int) -> float:
            return seen.score(score, i) + temperature * share * log(-log(u[i]))

        return seen.first(block, noisy)

    return rule
