"""Where a policy stands against the baselines' front, scene by scene, and the sentence about it.

    beyond   more coherent than the front at its number of calls
    inside   less coherent than the front at its number of calls; or (†) that is not shown, but with
             a quarter fewer calls the front keeps 95 % of its coherence
    on       neither is shown
    void     neither the policy nor the front is coherent 5 % of the time: nothing to compare

Both claims are tests at 5 % after Holm's correction over all comparisons of the evaluation (every
setting in every scene). On a structure, with the oracle or with a model, a policy is `beyond` if it
is in any scene at any setting, `inside` if it is everywhere, else `on` (void ones left out).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.bench.verdict.pairing import opponents
from maskwalk.bench.verdict.suite import Scene
from maskwalk.stats import (
    LEVEL,
    Difference,
    above_zero,
    best_mixture,
    fewest_calls,
    holm,
    mixture_front,
    paired_difference,
)

FEWER, KEPT, VOID = 0.75, 0.95, 0.05


@dataclass(frozen=True, eq=False)
class Comparison:
    """One setting of the policy in one scene, against the baselines there."""

    scene: Scene
    setting: str
    outcome: Outcome
    best: Outcome | None  # the best single baseline with at most as many calls
    single: Difference | None  # against that one (chosen on other prompts)
    front: Difference | None  # against the front (likewise); None: no baseline is so cheap
    same: float | None  # the fewest calls with which the front is as coherent
    cheaper: float  # p-value: with a quarter fewer calls the front keeps 95 % of the coherence
    loss: dict[str, Any] | None = None  # `maskwalk diagnose`'s row, where it can be replayed
    p: float = 1.0  # of the difference to the front, after Holm
    position: str = "on"
    dearer: bool = False  # inside by calls rather than by coherence (†)

    @property
    def calls(self) -> float:
        """Denoiser calls a sequence."""
        return float(self.outcome.calls.mean())

    @property
    def coherence(self) -> float:
        """Share of coherent sequences."""
        return float(self.outcome.coherent.mean())

    @property
    def void(self) -> bool:
        """Whether neither side is coherent often enough to compare."""
        other = 0.0 if self.front is None else self.coherence - self.front.value
        return max(self.coherence, other) < VOID


def compare(
    scene: Scene, setting: str, outcome: Outcome, baselines: Sequence[Outcome]
) -> Comparison:
    """Meets the baselines of a scene, prompt by prompt."""
    at, own = float(outcome.calls.mean()), outcome.coherent
    calls = np.array([b.calls.mean() for b in baselines])
    quality = np.array([b.coherent.mean() for b in baselines])
    weights = best_mixture(calls, quality, at, single=True)
    one, mixed = (opponents(baselines, at, single) for single in (True, False))
    fewer = opponents(baselines, FEWER * at)
    return Comparison(
        scene,
        setting,
        outcome,
        best=None if weights is None else baselines[int(weights.argmax())],
        single=None if one is None else paired_difference(own - one),
        front=None if mixed is None else paired_difference(own - mixed),
        same=fewest_calls(calls, quality, float(own.mean())) if own.any() else None,
        cheaper=1.0 if fewer is None else above_zero(fewer - KEPT * own),
    )


def judge(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same with positions, after Holm's correction over all of them."""
    adjusted = holm(np.array([1.0 if c.front is None else c.front.p for c in found])).tolist()
    dearer = holm(np.array([c.cheaper for c in found])).tolist()
    judged = []
    for c, p, calls in zip(found, adjusted, dearer):
        lower = c.front is not None and c.front.value < 0
        position = ("inside" if lower else "beyond") if p < LEVEL else "on"
        by_calls = position == "on" and calls < LEVEL
        position = "inside" if by_calls else "void" if c.void else position
        judged.append(replace(c, p=p, position=position, dearer=by_calls))
    return tuple(judged)


def front_of(baselines: Sequence[Outcome]) -> list[Outcome]:
    """The baselines on the hull, by calls."""
    calls = np.array([b.calls.mean() for b in baselines])
    quality = np.array([b.coherent.mean() for b in baselines])
    return [baselines[i] for i in mixture_front(calls, quality)]


Place = tuple[str, bool]  # a structure, and whether the model denoises


def standing(found: Sequence[Comparison]) -> dict[Place, str]:
    """The position on every structure, with the oracle and with the model."""
    where: dict[Place, set[str]] = {}
    for c in found:
        where.setdefault((c.scene.structure, c.scene.model), set()).add(c.position)
    return {place: _overall(seen) for place, seen in where.items()}


def _overall(seen: set[str]) -> str:
    if "beyond" in seen:
        return "beyond"
    return "void" if seen == {"void"} else "on" if "on" in seen else "inside"


def sentence(name: str, found: Sequence[Comparison]) -> str:
    """One plain sentence: where it stands, with the oracle and with the models, and by how much."""
    at = standing(found)
    clauses = []
    for model, words in ((False, "with the oracle"), (True, "with the shipped models")):
        here = {structure: at[structure, m] for structure, m in at if m == model}
        parts = [
            f"{text} {_listed([s for s in here if here[s] == position], len(here))}"
            for position, text in (
                ("beyond", "beyond the baselines' front on"),
                ("on", "on the front on"),
                ("inside", "inside the front on"),
                ("void", "not coherent enough to tell on"),
            )
            if position in here.values()
        ]
        if parts:
            clauses.append(f"{words}, {', '.join(parts)}")
    return f"{name} is, {'; '.join(clauses)}: {_reason(found, at)}."


def _reason(found: Sequence[Comparison], at: dict[Place, str]) -> str:
    """What the sentence rests on: the best there is to say of the policy."""
    overall = set(at.values())
    decided = [c for c in found if c.front is not None and c.position != "void"]
    if not decided:
        return "neither it nor any baseline as cheap is coherent 5 % of the time"
    best = max(decided, key=lambda c: (c.position == "beyond", c.front.value if c.front else -2.0))
    assert best.front is not None
    where = f"{best.setting}, {best.scene.title}"
    if "beyond" in overall:
        return (
            f"at {best.calls:.3g} calls it is coherent {best.front.value:.2f} more often ({where})"
        )
    if "inside" not in overall:
        return "no baseline is shown to be better or worse at its calls"
    if overall != {"inside"}:
        return "nowhere is it shown to be better than the baselines at its calls"
    if best.dearer and best.same is not None:
        return f"even its best takes {best.calls:.3g} calls where {best.same:.3g} do ({where})"
    return (
        f"even its best is coherent {-best.front.value:.2f} less often than the front at "
        f"{best.calls:.3g} calls ({where})"
    )


def _listed(names: list[str], total: int) -> str:
    if len(names) == total and total > 1:
        return "every structure"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
