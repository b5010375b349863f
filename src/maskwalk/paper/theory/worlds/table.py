"""The law of random, certainty-first and bisection at equal calls, in a small instance of each.

For every number of calls that bisection of order 1 or bisection along the world takes: random and
entropy in blocks as equal as possible, the larger ones last; every order of bisection in the line
that takes as many calls; along the world. Last the shortest plan that is exact at all.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Bool
from torch import Tensor

from maskwalk.analysis.law import total_variation
from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.paper.theory.check import EXACT
from maskwalk.paper.theory.worlds.instance import Instance, divergence, instance
from maskwalk.paper.theory.worlds.plans import shortest_exact_plan
from maskwalk.samplers import Bisection, Planned

SPECS: tuple[tuple[str, int], ...] = (  # and how many of the last tokens are given
    ("latin(n=3)", 0),
    ("sudoku(box=2)", 8),
    ("addition(digits=2, base=2, order='plain')", 0),
    ("addition(digits=2, base=2, order='reversed')", 0),
    ("addition(digits=2, base=2, order='interleaved')", 0),
    ("dyck(kinds=2, depth=3, length=6)", 0),
    ("regular(length=7)", 0),
    ("hmm(states=4, tokens=4, length=7, successors=2, emissions=2)", 0),
    ("pcfg(nonterminals=5, words=3, length=7, branches=2, lexicon=1)", 0),
    ("hierarchy(depth=3, symbols=3, nodes='hidden')", 0),
    ("hierarchy(depth=2, symbols=3, nodes='shown')", 0),
    ("potts(height=2, width=3, order='rows')", 0),
    ("potts(height=2, width=3, order='columns')", 0),
)
COLUMNS = ("sampler", "calls", "coherence", "TV", "KL")
ALONG, PLAN = "bisection along the world", "shortest exact plan"


@dataclass(frozen=True)
class InRounds(UnmaskingPolicy):
    """`sizes[r]` positions in round r: those with the lowest score, or random ones."""

    sizes: tuple[int, ...]
    score: str = ""

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """This round's block."""
        size = self.sizes[view.round]
        return view.lowest(view.score(self.score), size) if self.score else view.random(size), state


@dataclass(frozen=True)
class Row:
    """A sampler in a world: its calls, and how far its law is from the truth."""

    world: str
    sequences: int
    sampler: str
    calls: int
    coherence: float | None  # None where every sequence is possible
    tv: float
    kl: float  # KL(truth ‖ sampler), in nats

    def cells(self) -> tuple[str, ...]:
        """What stands in the columns."""
        measures = map(number, (self.coherence, self.tv, self.kl))
        return self.sampler, str(self.calls), *measures

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def instances() -> list[Instance]:
    """One small instance of each world."""
    return [instance(spec, given) for spec, given in SPECS]


def laws(at: Instance) -> Iterator[Row]:
    """The rows of one world."""
    line = {k: at.calls(Bisection(k)) for k in range(1, len(at.masked) - 1)}
    along = None
    if at.separators is not None:
        along = Bisection(along="world", world=at.world)
    ways = {line[1]} | ({at.calls(along)} if along else set())
    for calls in sorted(ways):
        sizes = even(len(at.masked), calls)
        blocks = "+".join(map(str, sizes))
        yield row(at, f"random {blocks}", InRounds(sizes), calls)
        yield row(at, f"entropy {blocks}", InRounds(sizes, "entropy"), calls)
        for k in [k for k in line if line[k] == calls]:
            yield row(at, f"bisection(order={k})", Bisection(k), calls)
        if along is not None and at.calls(along) == calls:
            yield row(at, ALONG, along, calls)
    turns = shortest_exact_plan(at)
    yield row(at, PLAN, Planned(turns), max(turns))


def even(positions: int, calls: int) -> tuple[int, ...]:
    """Blocks as equal as possible, the larger ones last."""
    return tuple((positions + r) // calls for r in range(calls))


def row(at: Instance, name: str, policy: UnmaskingPolicy, calls: int) -> Row:
    """The three measures of one policy's law."""
    made = at.law(policy)
    valid = None if at.all_possible else at.world.valid(made[0])
    coherence = None if valid is None else float(made[1][valid.all(1)].sum())
    tv = len(at.canvas) * total_variation(made, at.truth)
    return Row(at.name, len(at.truth[1]), name, calls, coherence, tv, divergence(at.truth, made))


def number(value: float | None) -> str:
    """Four digits; 0 only if it is, up to rounding; a dash where there is nothing to say.

    Rounded a hair upwards, so that numbers that differ by rounding alone look the same.
    """
    if value is None:
        return "–"
    return "0" if abs(value) < EXACT else f"{value + 1e-9:.4f}"
