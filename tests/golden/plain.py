"""A plain decoding loop, one sequence at a time: what a rule's reveal rounds are compared with.

A rule is a function of what it may see (`Seen`) to the positions it reveals. The loop takes the
likeliest token there, or, following a trace, the token that was drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import Any

from tests.golden.toys import Toy

Uniforms = Callable[[str, int], list[float]]  # (what for, round) -> a number for every position


@dataclass
class Seen:
    """What a rule sees in a round."""

    canvas: list[int]
    mask: int
    masked: list[int]  # the open positions: of the block, if there are blocks
    p: list[list[float]]  # the marginal of every masked position
    start: int  # where the block begins, and how long it is
    span: int
    round: int  # since the beginning, and in this block
    step: int
    total: int  # positions masked when the block began
    uniforms: Uniforms
    memory: dict[str, Any] = field(default_factory=dict)  # kept for the sequence
    block_memory: dict[str, Any] = field(default_factory=dict)

    def sure(self, i: int) -> float:
        """c_i = max p_i."""
        return max(self.p[i])

    def score(self, name: str, i: int) -> float:
        """A score; lower is sooner."""
        if name == "confidence":
            return -self.sure(i)
        if name == "margin":
            first, second = sorted(self.p[i], reverse=True)[:2]
            return second - first
        return entropy(self.p[i])

    def first(self, count: int, key: Callable[[int], float]) -> list[int]:
        """The `count` masked positions of lowest key, ties by position."""
        return sorted(self.masked, key=lambda i: (key(i), i))[:count]


Rule = Callable[[Seen], list[int]]


def entropy(p: list[float]) -> float:
    """-Σ p log p, in nats."""
    return -sum(x * log(x) for x in p if x > 0)


def blocks_of(canvas: list[int], mask: int, size: int | None) -> list[range]:
    """The blocks: the whole canvas, or parts of `size` behind the prompt."""
    length = len(canvas)
    if size is None:
        return [range(length)]
    begin = 0
    while begin < length and canvas[begin] != mask:
        begin += 1
    return [range(at, min(at + size, length)) for at in range(begin, length, size)]


def reveal_rounds(
    toy: Toy,
    start: list[int],
    rule: Rule,
    size: int | None = None,
    uniforms: Uniforms = lambda purpose, round: [],
    drawn: list[int] | None = None,
    shape: Callable[[list[float]], list[float]] = list,
) -> tuple[list[int], list[int]]:
    """(the round every position is revealed in, -1 if given; the tokens).

    `drawn`: tokens to write instead of the likeliest. `shape`: what is done to the marginals a rule
    ranks by.
    """
    canvas, rounds, now = list(start), [-1] * len(start), 0
    memory: dict[str, Any] = {}
    for block in blocks_of(start, toy.mask_id, size):
        total = sum(canvas[i] == toy.mask_id for i in block)
        block_memory: dict[str, Any] = {}
        step = 0
        while masked := [i for i in block if canvas[i] == toy.mask_id]:
            raw = toy.probs(canvas)
            seen = Seen(
                canvas=list(canvas),
                mask=toy.mask_id,
                masked=masked,
                p=[shape(p) for p in raw],
                start=block.start,
                span=len(start) if size is None else min(size, len(start)),
                round=now,
                step=step,
                total=total,
                uniforms=uniforms,
                memory=memory,
                block_memory=block_memory,
            )
            chosen = set(rule(seen))
            assert chosen and chosen <= set(masked)
            for i in chosen:
                canvas[i] = raw[i].index(max(raw[i])) if drawn is None else drawn[i]
                rounds[i] = now
            now, step = now + 1, step + 1
    return rounds, canvas
