"""Public decoders of text, written again from their formulas as plain loops over logits.

    llada        ML-GSAI/LLaDA b7e6c35, generate.py: blocks, N // T a step, the surest draws first,
                 guidance u + (s + 1)(c - u)
    dream        DreamLM/Dream fac0a7f (its code as NVlabs/Fast-dLLM 24cc59e carries it,
                 dream/model/generation_utils.py): logits shifted by one, times linspace(1, eps),
                 int(m (1 - s/t)) of m masked ones a step; entropy, maskgit_plus, topk_margin,
                 origin
    fast_dllm    NVlabs/Fast-dLLM 24cc59e, llada/generate.py: threshold, no cache; its factor from
                 the paper, arXiv 2505.22618: the largest n with (n + 1)(1 - c_n) < f
    mdlm         kuleshov-group/mdlm c112c52, diffusion.py: coins of (t - s)/t, then the argmax

`logits` is a function from a list of tokens to a table, one row per position. Draws are argmaxes.
Where a decoder tosses coins, they are given: coins(step) has one for every position.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Logits = Callable[[list[int]], Tensor]
Coins = Callable[[int], list[float]]


def likeliest(canvas: list[int], places: list[int], logits: Logits) -> dict[int, tuple[float, int]]:
    """(the probability of the likeliest token, that token) at some places."""
    table = logits(canvas)
    found = {}
    for i in places:
        p = torch.softmax(table[i].double(), -1)
        token = int(table[i].argmax())
        found[i] = (float(p[token]), token)
    return found


def masked(canvas: list[int], mask: int, places: range) -> list[int]:
    return [i for i in places if canvas[i] == mask]


def llada(
    logits: Logits, prompt: list[int], mask: int, new: int, block: int, steps: int
) -> list[int]:
    """`steps` over all blocks, as its argument of that name."""
    canvas = [*prompt, *[mask] * new]
    blocks = new // block
    assert new % block == 0 and steps % blocks == 0
    for start in range(len(prompt), len(canvas), block):
        here = range(start, start + block)
        each, extra = divmod(len(masked(canvas, mask, here)), steps // blocks)
        for step in range(steps // blocks):
            found = likeliest(canvas, masked(canvas, mask, here), logits)
            surest = sorted(found, key=lambda i: -found[i][0])
            for i in surest[: each + (step < extra)]:
                canvas[i] = found[i][1]
    return canvas


def guided(logits: Logits, prompt: list[int], mask: int, scale: float) -> Logits:
    """Logits led away from those without the prompt."""

    def both(canvas: list[int]) -> Tensor:
        free = logits([mask] * len(prompt) + canvas[len(prompt) :])
        return free + (scale + 1) * (logits(canvas) - free)

    return both


def fast_dllm(
    logits: Logits,
    prompt: list[int],
    mask: int,
    new: int,
    block: int,
    threshold: float | None = None,
    factor: float | None = None,
) -> tuple[list[int], int]:
    """(tokens, calls)."""
    canvas, calls = [*prompt, *[mask] * new], 0
    for start in range(len(prompt), len(canvas), block):
        here = range(start, min(start + block, len(canvas)))
        while left := masked(canvas, mask, here):
            calls += 1
            found = likeliest(canvas, left, logits)
            surest = sorted(found, key=lambda i: -found[i][0])
            sure = [found[i][0] for i in surest]
            if threshold is not None:
                count = sum(c >= threshold for c in sure)
            else:
                assert factor is not None
                good = [n for n, c in enumerate(sure, 1) if (n + 1) * (1 - c) < factor]
                count = max(good, default=0)
            for i in surest[: max(1, count)]:
                canvas[i] = found[i][1]
    return canvas, calls


def shifted(logits: Logits) -> Logits:
    """Row i speaks of i + 1; the first position reads its own."""

    def moved(canvas: list[int]) -> Tensor:
        table = logits(canvas)
        return torch.cat([table[:1], table[:-1]])

    return moved


def truncated(row: Tensor, top_p: float | None, top_k: int | None) -> Tensor:
    """Logits without what top-p, then top-k cut off."""
    row = row.clone()
    if top_p is not None and top_p < 1:
        order = row.argsort(descending=True, stable=True)
        total = torch.softmax(row, -1)[order].cumsum(0)
        for j in range(1, len(order)):
            if total[j - 1] > top_p:
                row[order[j]] = -torch.inf
    if top_k is not None:
        row[row < row.topk(top_k).values[-1]] = -torch.inf
    return row


def dream(
    logits: Logits,
    prompt: list[int],
    mask: int,
    new: int,
    steps: int,
    rule: str,
    top_p: float | None = None,
    top_k: int | None = None,
    eps: float = 1e-3,
    coins: Coins | None = None,
) -> list[int]:
    """`logits` are shifted already."""
    canvas = [*prompt, *[mask] * new]
    times = torch.linspace(1, eps, steps + 1)
    for step in range(steps):
        left = masked(canvas, mask, range(len(canvas)))
        if not left:
            break
        table = logits(canvas)
        share = 1 - float(times[step + 1] / times[step]) if step < steps - 1 else 1.0
        rows = {i: truncated(table[i], top_p, top_k) for i in left}
        if rule == "origin":
            assert coins is not None
            chosen = [i for i in left if coins(step)[i] < share]
        else:
            count = int(len(left) * share)
            chosen = sorted(left, key=lambda i: -certainty(rows[i], rule))[:count]
        for i in chosen:
            canvas[i] = int(rows[i].argmax())
    return canvas


def certainty(row: Tensor, rule: str) -> float:
    p = torch.softmax(row, -1)
    if rule == "maskgit_plus":
        return float(p.max())
    if rule == "topk_margin":
        top = p.topk(2).values
        return float(top[0] - top[1])
    assert rule == "entropy"
    return float((p * torch.log(p + 1e-10)).sum())


def mdlm(
    logits: Logits,
    prompt: list[int],
    mask: int,
    new: int,
    steps: int,
    coins: Coins,
    eps: float = 1e-5,
) -> list[int]:
    """Time from 1 to eps; what is left then gets its argmax."""
    canvas = [*prompt, *[mask] * new]
    for step in range(steps):
        t, s = (1 - k * (1 - eps) / steps for k in (step, step + 1))
        left = masked(canvas, mask, range(len(canvas)))
        chosen = [i for i in left if coins(step)[i] < (t - s) / t]
        table = logits(canvas)
        for i in chosen:
            canvas[i] = int(table[i].argmax())
    table = logits(canvas)
    return [int(table[i].argmax()) if x == mask else x for i, x in enumerate(canvas)]
