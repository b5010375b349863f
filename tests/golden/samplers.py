"""Samplers that toss coins, draw first, verify or remask, as plain loops from their formulas.

Each gives the canvas after every round, starting with the first one, with the likeliest token
wherever one is drawn; coins fall by numbers that are handed in. Nothing is imported from maskwalk.
"""

from collections.abc import Iterator
from math import exp, floor, log

from tests.golden.plain import Uniforms, blocks_of
from tests.golden.toys import Toy

Canvas = list[int]


def best(p: list[float]) -> int:
    """The likeliest token."""
    return p.index(max(p))


def ancestral(
    toy: Toy, start: Canvas, uniforms: Uniforms, steps: int, finish: str = "draw", eps: float = 0.0
) -> Iterator[Canvas]:
    """t from 1 to eps; each masked position unmasks with probability (t - s)/t."""
    canvas = list(start)
    yield list(canvas)
    for k in range(steps):
        if toy.mask_id not in canvas:
            return
        t, s = (1 - j * (1 - eps) / steps for j in (k, k + 1))
        p, u = toy.probs(canvas), uniforms("choice", k)
        all_now = finish == "last" and k == steps - 1
        for i in range(len(canvas)):
            if canvas[i] == toy.mask_id and (all_now or u[i] < (t - s) / t):
                canvas[i] = best(p[i])
        yield list(canvas)
    if toy.mask_id in canvas:
        p = toy.probs(canvas)
        yield [best(p[i]) if x == toy.mask_id else x for i, x in enumerate(canvas)]


def loop_alpha(t: float) -> float:
    """The share revealed in ReMDM's loop: .9 between t = .55 and .05."""
    if t >= 0.55:
        return (1 - t) * 0.9 / 0.45
    return 0.9 if t >= 0.05 else 0.9 + (0.05 - t) / 0.05 * 0.1


def remdm(
    toy: Toy, start: Canvas, uniforms: Uniforms, kind: str, steps: int, eta: float
) -> Iterator[Canvas]:
    """Revealed positions remask with probability σ, masked ones unmask so that α stays."""
    canvas, mask = list(start), toy.mask_id
    free = [i for i, x in enumerate(start) if x == mask]
    at_reveal: dict[int, float] = {}
    yield list(canvas)
    for k in range(steps if free else 0):
        t, s = 1 - k / steps, 1 - (k + 1) / steps
        now, then = (loop_alpha(t), loop_alpha(s)) if kind == "loop" else (1 - t, 1 - s)
        most = min(1.0, (1 - then) / now) if now > 0 else 1.0
        weights = {i: exp(-at_reveal[i]) for i in free if canvas[i] != mask}
        p, u = toy.probs(canvas), uniforms("choice", k)
        after = list(canvas)
        for i in free:
            if kind == "conf":
                sigma = 0.0 if canvas[i] == mask else most * weights[i] / sum(weights.values())
            elif kind == "rescale":
                sigma = eta * most
            else:
                sigma = min(eta, most)
                if kind == "loop" and not 0.05 < t <= 0.55:
                    sigma = 0.0
            if canvas[i] != mask:
                if u[i] < sigma:
                    after[i] = mask
            elif now == 1 or u[i] < (then - (1 - sigma) * now) / (1 - now):
                after[i], at_reveal[i] = best(p[i]), max(p[i])
        canvas = after
        yield list(canvas)


def p2(toy: Toy, start: Canvas, eta: float, steps: int, rescore: bool = False) -> Iterator[Canvas]:
    """Draw all, then mask the ⌊N (1 - κ)⌋ lowest log p, those of revealed ones times η."""
    canvas, mask = list(start), toy.mask_id
    free = [i for i, x in enumerate(start) if x == mask]
    log_p: dict[int, float] = {}
    yield list(canvas)
    for k in range(steps):
        if mask not in canvas:
            return
        revealed = [i for i in free if canvas[i] != mask]
        if rescore:
            for parity in (0, 1):
                half = [i for i in revealed if i % 2 == parity]
                asked = toy.probs([mask if i in half else x for i, x in enumerate(canvas)])
                log_p |= {i: log(asked[i][canvas[i]]) for i in half}
        p = toy.probs(canvas)
        for i in free:
            if canvas[i] == mask:
                canvas[i], log_p[i] = best(p[i]), log(max(p[i]))
        score = {i: (eta if i in revealed else 1.0) * log_p[i] for i in free}
        count = floor(len(free) * (steps - k - 1) / steps + 1e-9)
        for i in sorted(free, key=lambda i: (score[i], i))[:count]:
            canvas[i] = mask
        yield list(canvas)


def speculative(
    toy: Toy, start: Canvas, uniforms: Uniforms, draft: str, k: int
) -> Iterator[Canvas]:
    """Draft the next k; go through them, and stop at the first that one at a time would not say."""
    canvas, mask, round = list(start), toy.mask_id, 0
    yield list(canvas)
    while mask in canvas:
        u = uniforms("choice", round)
        order = [i for i, x in enumerate(canvas) if x == mask]
        if draft == "random":
            order.sort(key=lambda i: u[i])
        p = toy.probs(canvas)
        for i in order[:k]:
            right = best(toy.probs(canvas)[i])
            canvas[i] = right
            if right != best(p[i]):
                break
        round += 1
        yield list(canvas)


# ------------------------------------------------------------- what public decoders do, argmaxes


def llada(toy: Toy, start: Canvas, steps: int, block: int) -> Iterator[Canvas]:
    """`steps` steps for a block of the answer; each keeps its share of the surest argmaxes."""
    canvas, mask = list(start), toy.mask_id
    yield list(canvas)
    for part in blocks_of(start, mask, block):
        total = sum(canvas[i] == mask for i in part)
        shares = [total // steps + (k < total % steps) for k in range(steps)]
        for share in shares:
            p = toy.probs(canvas)
            masked = [i for i in part if canvas[i] == mask]
            if not share:
                continue
            for i in sorted(masked, key=lambda i: -max(p[i]))[:share]:
                canvas[i] = best(p[i])
            yield list(canvas)


def fast_dllm(toy: Toy, start: Canvas, threshold: float, block: int) -> Iterator[Canvas]:
    """In order of confidence: the first, and every other one that reaches the threshold."""
    canvas, mask = list(start), toy.mask_id
    yield list(canvas)
    for part in blocks_of(start, mask, block):
        while masked := [i for i in part if canvas[i] == mask]:
            p = toy.probs(canvas)
            order = sorted(masked, key=lambda i: -max(p[i]))
            for number, i in enumerate(order):
                if number == 0 or max(p[i]) >= threshold:
                    canvas[i] = best(p[i])
            yield list(canvas)


def dinfer(toy: Toy, start: Canvas, threshold: float, block: int) -> Iterator[Canvas]:
    """All at or above the threshold, which is never above the largest confidence less 1e-5."""
    canvas, mask = list(start), toy.mask_id
    yield list(canvas)
    for part in blocks_of(start, mask, block):
        while masked := [i for i in part if canvas[i] == mask]:
            p = toy.probs(canvas)
            bar = min(threshold, max(max(p[i]) for i in masked) - 1e-5)
            for i in masked:
                if max(p[i]) >= bar:
                    canvas[i] = best(p[i])
            yield list(canvas)


def shaped(p: list[float], temperature: float = 1.0, top_p: float = 1.0) -> list[float]:
    """A marginal sharpened by the temperature, then cut after the token that crosses top_p."""
    sharp = [x ** (1 / temperature) for x in p]
    sharp = [x / sum(sharp) for x in sharp]
    total, kept = 0.0, [0.0] * len(p)
    for x in sorted(range(len(p)), key=lambda x: -sharp[x]):
        if total < top_p:
            kept[x] = sharp[x]
        total += sharp[x]
    return [x / sum(kept) for x in kept]
