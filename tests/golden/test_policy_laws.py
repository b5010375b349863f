"""The field's policies at temperature 1: their laws from the plain rules of this directory.

A plain recursion takes a rule (rules.py, written from its formula) from canvas to canvas, through
every token of every position it reveals, weighted by the marginals; sampler_law enumerates the
package's own policy. No two scores of this law tie.
"""

from copy import deepcopy
from itertools import product
from math import prod
from typing import Any

import pytest
import torch

from maskwalk.analysis.law import sampler_law, total_variation
from maskwalk.samplers import SAMPLERS
from tests.golden import rules
from tests.golden.plain import Rule, Seen, blocks_of
from tests.test_field_laws import Arbitrary, Law

THREE = Arbitrary(length=4, vocab_size=3)
MASK, LENGTH = THREE.mask_id, THREE.length
STARTS = ([MASK] * LENGTH, [1, MASK, MASK, MASK], [MASK, MASK, 2, MASK])


def marginals(canvas: list[int]) -> list[list[float]]:
    everywhere = torch.ones((1, LENGTH), dtype=torch.bool)
    return THREE(torch.tensor([canvas]), everywhere).exp().tolist()


def law_of(rule: Rule, start: list[int], size: int | None = None) -> Law:
    """Every output from a start, with its probability."""
    law: dict[tuple[int, ...], float] = {}
    blocks = blocks_of(start, MASK, size)

    def go(canvas: list[int], weight: float, round: int, memory: Any, was: Any) -> None:
        if MASK not in canvas:
            law[tuple(canvas)] = law.get(tuple(canvas), 0.0) + weight
            return
        block = next(one for one in blocks if any(canvas[i] == MASK for i in one))
        masked = [i for i in block if canvas[i] == MASK]
        if was["block"] != block:
            was = {"block": block, "step": 0, "total": len(masked), "memory": {}}
        memory, was = deepcopy(memory), deepcopy(was)
        span = LENGTH if size is None else min(size, LENGTH)
        seen = Seen(
            canvas=canvas,
            mask=MASK,
            masked=masked,
            p=marginals(canvas),
            start=block.start,
            span=span,
            round=round,
            step=was["step"],
            total=was["total"],
            uniforms=lambda purpose, round: [],
            memory=memory,
            block_memory=was["memory"],
        )
        chosen = sorted(set(rule(seen)))
        was["step"] += 1
        for drawn in product(range(THREE.vocab_size), repeat=len(chosen)):
            after = list(canvas)
            for i, x in zip(chosen, drawn):
                after[i] = x
            p = prod(seen.p[i][x] for i, x in zip(chosen, drawn))
            go(after, weight * p, round + 1, memory, was)

    go(list(start), 1.0, 0, {}, {"block": None})
    assert sum(law.values()) == pytest.approx(1)
    return torch.tensor(list(law)), torch.tensor(list(law.values()), dtype=torch.float64)


SURE = rules.greedy("confidence")
POLICIES: dict[str, tuple[Rule, int | None]] = {
    "confidence(block=1)": (SURE, None),
    "confidence(block=2)": (rules.greedy("confidence", 2), None),
    "entropy(block=1)": (rules.greedy("entropy"), None),
    "entropy(steps=3)": (rules.in_steps("entropy", 3), None),
    "margin(block=2)": (rules.greedy("margin", 2), None),
    "threshold(tau=0.7)": (rules.threshold(0.7), None),
    "factor(f=1.0)": (rules.factor(1.0), None),
    "entropy_bounded(gamma=0.6)": (rules.entropy_bounded(0.6), None),
    "constant_entropy(h=1.2)": (rules.constant_entropy(1.2), None),
    "frechet(margin=0.2)": (rules.frechet(0.2), None),
    "dus()": (rules.dus(), None),
    "dus(merge=False, skip=0.7)": (rules.dus(merge=False, skip=0.7), None),
    "halton(steps=3)": (rules.halton(3), None),
    "hierarchy(low=0.5, high=0.8)": (rules.hierarchy(0.5, 0.8), None),
    "local_leap(anchor=0.7, near=0.5, radius=1)": (rules.local_leap(0.7, 0.5, 1), None),
    "klass(conf=0.5, kl=0.3, window=1)": (rules.klass(0.5, 0.3, 1), None),
    "pc(block=1)": (rules.pc(0.25, 10.0, 1), None),
    "pc(decay=0.0, alpha=0.8, block=2)": (rules.pc(0.0, 0.8, 2), None),
    "spaced(confidence(block=3), gap=2)": (rules.spaced(rules.greedy("confidence", 3), 2), None),
    "early_commit(early=1.5, mid=1.0, late=0.5)": (rules.early_commit(SURE, 1.5, 1.0, 0.5), None),
    "blocks(2, entropy(block=1))": (rules.greedy("entropy"), 2),
    "blocks(3, dus())": (rules.dus(), 3),
    "blocks(3, halton(steps=2))": (rules.halton(2), 3),
    "blocks(2, pc(block=1))": (rules.pc(0.25, 10.0, 1), 2),
    "blocks(3, klass(conf=0.5, kl=0.3, window=1))": (rules.klass(0.5, 0.3, 1), 3),
    "blocks(3, early_commit(pc(), 1.5, 1.0, 0.5))": (
        rules.early_commit(rules.pc(0.25, 10.0, 1), 1.5, 1.0, 0.5),
        3,
    ),
}


@pytest.mark.parametrize("spec", POLICIES)
def test_the_law_is_that_of_the_formula(spec: str) -> None:
    rule, size = POLICIES[spec]
    policy: Any = SAMPLERS.build(spec)
    others = 0.0
    for start in STARTS:
        found, expected = sampler_law(policy, THREE, torch.tensor(start)), law_of(rule, start, size)
        assert total_variation(found, expected) < 1e-12, start
        others += total_variation(found, law_of(lambda seen: seen.masked[:1], start))
    assert others > 0.01  # left to right has another law
