"""The rules `maskwalk tune` tries: settings whose calls are known, and knobs to be turned.

With M masked positions and a budget of N calls a rule that reveals b at a time gets b = ⌈M/N⌉, one
with a number of steps gets N, and bisection the largest order k with k⌈log₂(M/k + 1)⌉ ≤ N. Rules
whose calls depend on the model have a knob; calls rise or fall with it, so it is found by halving.
"""

from dataclasses import dataclass
from math import ceil, log2

from maskwalk.errors import whole
from maskwalk.samplers import SAMPLERS

BLOCKS = ("random", "entropy", "confidence", "margin")
STEPS = ("halton", "random_sizes", "ancestral", "low_confidence")


@dataclass(frozen=True)
class Knob:
    """A number that sets a rule's calls, between two ends; halved on its own scale."""

    rule: str  # a spec with {} for the number
    low: float
    high: float
    rising: bool  # whether calls rise with it
    scale: str = "ratio"  # ratio (of positive numbers), odds (of shares) or whole

    def spec(self, value: float) -> str:
        """The rule at this number."""
        text = str(round(value)) if self.scale == "whole" else f"{value:.4g}"
        return SAMPLERS.canonical(self.rule.format(text))

    def middle(self, low: float, high: float) -> float | None:
        """Half-way between two numbers; None where there is nothing left between them."""
        if self.scale == "whole":
            return (low + high) // 2 if high - low > 1 else None
        if self.scale == "odds":
            odds = float((low / (1 - low) * high / (1 - high)) ** 0.5)
            return odds / (1 + odds)
        return float((low * high) ** 0.5)


def knobs(masked: int) -> list[Knob]:
    """The rules whose calls depend on what the model answers."""
    return [
        Knob("guided_bisection(order={})", 1, max(2, masked), True, "whole"),
        Knob("threshold(tau={})", 0.01, 0.99, True, "odds"),
        Knob("entropy_bounded(gamma={})", 0.01, 1000.0, False),
        Knob("constant_entropy(h={})", 0.1, 1000.0, False),
    ]


def bisection_calls(order: int, masked: int) -> int:
    """The most calls of plain bisection: k⌈log₂(M/k + 1)⌉."""
    return order * ceil(log2(masked / order + 1))


def settings(masked: int, calls: int) -> list[str]:
    """The settings with at most `calls` calls on `masked` positions, whatever the model says."""
    whole("masked", masked, 1), whole("calls", calls, 1)
    block = ceil(masked / calls)
    specs = [f"{name}(block={block})" for name in BLOCKS]
    orders = [k for k in range(1, masked + 1) if bisection_calls(k, masked) <= calls]
    specs += [f"bisection(order={orders[-1]})"] if orders else []
    specs += ["dus(base=2)"] if bisection_calls(1, masked) <= calls else []
    specs += [f"{name}(steps={min(calls, masked)})" for name in STEPS]
    specs += ["left_to_right"] if calls >= masked else []
    return [SAMPLERS.canonical(spec) for spec in specs]
