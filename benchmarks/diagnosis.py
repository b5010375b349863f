"""The figures of docs/diagnosis.md that no command prints, as tables of Markdown:

    python benchmarks/diagnosis.py > results/diagnosis/answers.md

1. How much less noise the conditional means have than the paths they replace.
2. What evenly spread sets lose on the two ST-ER graphs, next to the best plan.
3. The search over all plans against the first-order programme and even spreading, order-2 laws.
4. Coherence by replay of held-out walks and of training walks, next to the sampled one.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch

from maskwalk.analysis.likelihood import estimate
from maskwalk.analysis.plans import (
    Entropies,
    best_chain_sets,
    best_sets,
    chain_entropies,
    listed_entropies,
    plan_cost,
    spread_sets,
    triple_entropies,
)
from maskwalk.analysis.replay import replay
from maskwalk.bench.cell import Cell
from maskwalk.decoding.decode import decode
from maskwalk.denoisers.resolve import build_denoiser
from maskwalk.samplers import SAMPLERS
from maskwalk.stats import NORMAL
from maskwalk.streams import Streams
from maskwalk.training.zoo import TRAIN_SEED
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.walks.oracles import oracle_for
from maskwalk.worlds.walks.world import walk_world
from maskwalk.worlds.world import build_world

GRAPHS = {
    "degree 7": ("st_er(nodes=500, p=0.0100683294)", "lazy(stay=0.125)"),
    "tree": ("st_er(nodes=500, p=0.0)", "lazy(stay=0.5)"),
}


def noise(walks: int = 64) -> None:
    """Dependence in nats, estimated both ways from the same walks."""
    law = build_world(walk_world(GRAPHS["degree 7"][0], GRAPHS["degree 7"][1], 24, 0))
    rows = []
    for spec in ("dependence_bounded(budget=0.1)", "random(block=2)", "entropy(block=2)"):
        found = replay(
            SAMPLERS.build(spec), oracle_for(law), law.sample(walks, 0),
            streams=Streams(0, walks), world=law,
        )  # fmt: skip
        said = []
        for kind in ("dependence", "dependence_path"):
            nats = found.split[kind].sum(1)
            said.append(f"{float(nats.mean()):.4f} ± {NORMAL * float(nats.std()) / walks**0.5:.4f}")
        rows.append([spec, *said])
    tell(noise, ["sampler", "conditional means", "paths"], rows)


def spread(calls: tuple[int, ...] = (4, 3)) -> None:
    """Evenly spread sets and the best plan, exactly."""
    rows = []
    for name, (graph, walk) in GRAPHS.items():
        law = build_world(walk_world(graph, walk, 24, 0))
        triples, joint = triple_entropies(law), chain_entropies(law)
        for n in calls:
            even = sum(plan_cost(joint, spread_sets(24, n)))
            best = best_chain_sets(triples, n).nats
            rows.append([f"{name}, {n} calls", f"{best:.2f}", f"{even:.2f}"])
    tell(spread, ["graph", "best plan", "evenly spread"], rows)


def second_order(seeds: tuple[int, ...] = (0, 1, 2), length: int = 8) -> None:
    """Plans for order-2 laws of 4 nodes: search, first-order programme, even spreading."""
    rows = []
    for rounds in (2, 3, 4):
        found: dict[str, list[str]] = {"search": [], "programme": [], "even": []}
        for seed in seeds:
            law = build_world(
                walk_world("st_er(nodes=4, p=0.3)", f"markov(order=2, seed={seed})", length)
            )
            joint = listed_entropies(law)
            plan = best_chain_sets(_triples(joint, length), rounds)
            found["search"].append(f"{best_sets(joint, length, rounds).nats:.3f}")
            found["programme"].append(f"{sum(plan_cost(joint, plan.sets)):.3f}")
            found["even"].append(f"{sum(plan_cost(joint, spread_sets(length, rounds))):.3f}")
        rows.append([f"{rounds} rounds", *(" / ".join(nats) for nats in found.values())])
    tell(second_order, ["rounds", *found], rows)


def memory(walks: int = 768) -> None:
    """What a model has memorised: replay of walks it was trained on promises too much."""
    cell = Cell.checked(denoiser="zoo:st_er_deg7", task="unconditional", sampler="guided_bisection")
    law = build_world(cell.world)
    network = build_denoiser(cell.denoiser, law, "cpu")
    sampler, rows = SAMPLERS.build(cell.sampler), []
    held = TASKS.build(cell.task, world=law, prompts=walks, seed=0).answers
    for name, some in (("held-out", held), ("training", law.sample(walks, TRAIN_SEED))):
        found = estimate([replay(sampler, network, some, streams=Streams(2, walks), world=law)])
        rows.append([f"{name} walks", f"{found.coherence:.3f} ± {NORMAL * found.coherence_se:.3f}"])
    blank = torch.full((walks, law.length), network.mask_id)
    made = decode(sampler, network, blank, streams=Streams(3, walks)).tokens
    share = float(law.valid(made).all(1).double().mean())
    error = (share * (1 - share) / walks) ** 0.5
    rows.append(["sampled", f"{share:.3f} ± {NORMAL * error:.3f}"])
    tell(memory, ["zoo:st_er_deg7, guided bisection", "coherence"], rows)


def tell(of: Callable[..., None], head: list[str], rows: list[list[str]]) -> None:
    """Prints a table under the first line of what it is."""
    lines = ["", f"{of.__doc__}", "", *(f"| {' | '.join(row)} |" for row in (head, *rows))]
    lines.insert(4, "|---" * len(head) + "|")
    print("\n".join(lines), flush=True)


def _triples(joint: Entropies, length: int) -> np.ndarray:
    """H(X_i | X_a, X_b) of any law, at places shifted by one as in maskwalk.optimum.entropies."""
    found = np.full((length + 2,) * 3, np.inf)
    for a, i, b in combinations(range(-1, length + 1), 3):
        ends = frozenset({a, b} - {-1, length})
        if 0 <= i < length:
            found[a + 1, i + 1, b + 1] = joint(ends | {i}) - joint(ends)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("# What `python benchmarks/diagnosis.py` prints")
    noise()
    spread()
    second_order()
    memory()
