"""What a policy is tried on: scenes, and the baselines it has to beat there.

A scene is a structure (the world of a shipped model), a task, and a denoiser: the law's own oracle,
where every broken sequence is the sampler's fault, or the shipped model. Scenes and baselines
are fixed, so two people who evaluate the same policy read the same numbers.

The baselines' settings span the calls from 1 to one per token. A network call costs hundreds of the
oracle's, so with a model the list is shorter: what is never on the front of the longer one is left
out, and a curve has fewer points. Baselines keep the law up to what drawing together costs: rules
that shape it are no measure of coherence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from maskwalk.bench.cell import Cell
from maskwalk.denoisers.resolve import ZOO, world_of
from maskwalk.errors import unknown
from maskwalk.specs import parse

ORACLE_BASELINES = (
    "random(block=24)",
    *(f"random(block={block})" for block in (8, 4, 2, 1)),
    *(f"{name}(block={b})" for name in ("entropy", "confidence", "margin") for b in (4, 2, 1)),
    "bisection",
    "guided_bisection",
    "left_to_right",
    "dus",
    *(f"threshold(tau={tau})" for tau in (0.5, 0.7)),
    *(f"entropy_bounded(gamma={gamma})" for gamma in (1.0, 3.0)),
    "dus(base=3)",
    *(f"halton(steps={steps})" for steps in (4, 8)),
    *(f"dependence_bounded(budget={budget})" for budget in (0.5, 2.0)),
    *(f"random_sizes(steps={steps})" for steps in (4, 8)),
    "frechet",
    "early_commit",
)
MODEL_BASELINES = (
    "left_to_right",
    "entropy(block=1)",
    "entropy(block=2)",
    "confidence(block=2)",
    "random(block=2)",
    "entropy(block=4)",
    "random(block=4)",
    "guided_bisection",
    "bisection",
    "dus",
    "random(block=24)",
    "threshold(tau=0.5)",
)
FULL_MODEL_BASELINES = (
    *MODEL_BASELINES,
    "confidence(block=1)",
    "margin(block=1)",
    "margin(block=2)",
    "random(block=1)",
    "threshold(tau=0.7)",
    "entropy_bounded(gamma=1.0)",
    "hierarchy",
    "halton(steps=8)",
    "dependence_bounded(budget=0.5)",
    "random_sizes(steps=8)",
    "frechet",
    "early_commit",
)

TREE, DEGREE, TWO, CHAIN = (
    ("tree", "st_er_p0"),
    ("degree 7", "st_er_deg7"),
    ("two communities", "two_b1"),
    ("chain", "chain_m10"),
)
WIDER = ("two, 8 bridges", "two_b8")


@dataclass(frozen=True)
class Scene:
    """A structure, a task, a denoiser, and the baselines to compare with there."""

    structure: str
    zoo: str  # the shipped model whose world this is
    task: str
    model: bool  # whether the shipped model denoises, rather than the oracle
    count: int  # prompts
    baselines: tuple[str, ...]
    replayed: int = 32  # exact sequences forced through the policy
    graph_seed: int | None = None  # another graph of the family; the models know only their own
    per_prompt: int = 1
    seed: int = 0

    @property
    def title(self) -> str:
        """How tables call it."""
        other = "" if self.graph_seed is None else f" (graph {self.graph_seed})"
        return f"{self.structure}{other} · {self.task} · {'model' if self.model else 'oracle'}"

    def cell(self, sampler: str = "left_to_right") -> Cell:
        """The cell of one sampler in this scene: the same prompts and streams for all."""
        world = world_of(f"{ZOO}{self.zoo}")
        if world is not None and self.graph_seed is not None:
            world = str(
                replace(parse(world), kwargs={**parse(world).kwargs, "seed": self.graph_seed})
            )
        return Cell.checked(
            world=world,
            task=self.task,
            sampler=sampler,
            denoiser=f"{ZOO}{self.zoo}" if self.model else "oracle",
            count=self.count,
            per_prompt=self.per_prompt,
            seed=self.seed,
        )


def _quick() -> Iterator[Scene]:
    """Five scenes with the oracle, two with a model."""
    for place, task in (
        (DEGREE, "unconditional"),
        (DEGREE, "endpoints"),
        (TREE, "endpoints"),
        (TWO, "bottleneck"),
        (CHAIN, "bottleneck"),
    ):
        yield Scene(*place, task, False, 128, ORACLE_BASELINES)
    for place, task in ((DEGREE, "unconditional"), (TWO, "bottleneck")):
        yield Scene(*place, task, True, 64, MODEL_BASELINES)


def _full() -> Iterator[Scene]:
    """Two tasks of five structures, two graphs each with the oracle, and all five models."""
    for place in (TREE, DEGREE, TWO, WIDER, CHAIN):
        own = "endpoints" if place in (TREE, DEGREE) else "bottleneck"
        for task in ("unconditional", own):
            for graph_seed in (None, 1):
                yield Scene(*place, task, False, 256, ORACLE_BASELINES, 64, graph_seed)
            yield Scene(*place, task, True, 192, FULL_MODEL_BASELINES, 64)


# Worlds other than walks; a strip is none of them, for there every sequence is coherent.
WORLDS = (
    ("Latin square", "latin"),
    ("sudoku", "sudoku"),
    ("addition", "addition"),
    ("sum by columns", "addition_interleaved"),
    ("Dyck", "dyck"),
    ("regular", "regular"),
    ("HMM", "hmm"),
    ("PCFG", "pcfg"),
    ("hidden tree", "hierarchy"),
    ("shown tree", "hierarchy_shown"),
)


def _worlds() -> Iterator[Scene]:
    """Ten worlds with the oracle, two with a model."""
    for place in WORLDS:
        yield Scene(*place, "unconditional", False, 128, ORACLE_BASELINES)
    for place in (WORLDS[1], WORLDS[6]):
        yield Scene(*place, "unconditional", True, 64, MODEL_BASELINES)


SUITES = {"quick": tuple(_quick()), "full": tuple(_full()), "worlds": tuple(_worlds())}


def scenes(suite: str) -> tuple[Scene, ...]:
    """The scenes of a suite by its name."""
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    return SUITES[suite]
