"""Losses: what each sampler loses against the law, in nats, where, and why.

For one (law, denoiser, prompts, sampler) exact sequences are replayed (see replay.py) and the loss
is split by round into dependence (positions drawn together that are not independent: the sampler's
fault) and denoiser error. `regret` is the dependence above that of the best plan of sets with as
many rounds (see optimum/sets.py), where that can be computed; a sampler that takes 4.3 calls on
average is compared with a mixture of the best plans of 4 and 5.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from math import isinf, isnan
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.analysis.likelihood import estimate
from maskwalk.analysis.plans import (
    Plan,
    best_chain_sets,
    best_sets,
    information_curve,
    listed_entropies,
    optimal_sizes,
    triple_entropies,
    walked_triples,
)
from maskwalk.analysis.plans.sets import SEARCHED
from maskwalk.analysis.replay import Replayed, bridges, replay, truth_of
from maskwalk.decoding.arguments import as_sampler
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser
from maskwalk.errors import MaskwalkError, whole
from maskwalk.samplers.optimal_random import OptimalRandom
from maskwalk.samplers.planned import Planned
from maskwalk.streams import Streams
from maskwalk.worlds.tasks import Prompts
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles import Oracle
from maskwalk.worlds.world import Listed, World, as_world

BATCH = 512  # sequences replayed at once; results do not depend on it

# The 24 rows of the paper's coherence tables, in their order.
PAPER = (
    "bisection(order=1)",
    "guided_bisection(order=1, score='entropy')",
    *(f"entropy(block={b!r})" for b in (1, 2, 4, 6, 8, "exponential")),
    *(f"random(block={b!r})" for b in (1, 2, 4, 6, 8, "exponential")),
    *(f"confidence(block={b})" for b in (1, 2, 4, 6, 8)),
    *(f"margin(block={b})" for b in (1, 2, 4, 6, 8)),
)

Plans = Callable[[int], Plan]  # the best plan for a number of calls
Row = dict[str, Any]


def exact_sequences(
    world: World | str, prompts: Prompts, seed: int = 0, oracle: Denoiser | None = None
) -> tuple[Int[Tensor, "n length"], Bool[Tensor, "n length"]]:
    """Sequences to replay, distributed as the law given the prompts, and which tokens are given.

    Between given tokens they are drawn afresh with the oracle (constructed prompts come with those
    of another law). A law without an oracle has prompts from its own held-out sequences.
    """
    world = as_world(world)
    given = prompts.tokens != world.vocab_size
    oracle = truth_of(world) if oracle is None else oracle
    if prompts.conditional and (prompts.answers is None or oracle is not None):
        return bridges(world, prompts.tokens, seed, oracle), given
    if prompts.answers is None:
        raise MaskwalkError("These prompts come without answers, so there is nothing to replay.")
    return prompts.answers, given


def diagnose(
    world: World | str | None,
    denoiser: Denoiser | str,
    sampler: Sampler | str,
    sequences: Int[Tensor, "n length"],
    given: Bool[Tensor, "n length"] | None = None,
    *,
    seed: int = 0,
    draw: Draw | None = None,
    ties: str = "uniform",
    orders: int = 1,
    plans: Plans | None = None,
    law: Denoiser | None = None,
    batch: int = BATCH,
) -> Row:
    """One row of losses: estimates, the loss by round, and (with `plans`) the regret.

    `world=None` gives the negative log-likelihood only, and with a `law` in its place (the model
    itself, on text) the dependence under that. Rounds are counted from 0, as in a trace;
    `example` tells the first walk: in which round each position, and what it cost.
    """
    began = time.perf_counter()
    world = None if world is None else as_world(world)
    denoiser, sampler = as_denoiser(denoiser, world), as_sampler(sampler)
    given = torch.zeros_like(sequences, dtype=torch.bool) if given is None else given
    replays = []
    for order in range(whole("orders", orders, 1)):
        ids = torch.arange(len(sequences), device=sequences.device)
        parts = [
            replay(
                sampler,
                denoiser,
                sequences[some],
                streams=Streams(seed + order, some),
                draw=draw,
                ties=ties,
                given=given[some],
                world=world,
                law=law,
            )
            for some in ids.split(batch)
        ]
        replays.append(_join(parts))
    likelihood = estimate(replays, full_support=getattr(world, "full_support", False))
    calls = torch.cat([r.calls for r in replays]).to(torch.float64)
    row: Row = {"sampler": repr(sampler), "calls": float(calls.mean())}
    row |= {"calls_max": int(calls.max()), **asdict(likelihood), "reliable": likelihood.reliable}
    row["kl_infinite"] = likelihood.kl is not None and isinf(likelihood.kl)
    row["rounds"] = _rounds(_join(replays))
    losses = [_cost(part) for part in row["rounds"]]
    row["worst_round"] = losses.index(max(losses)) if replays[0].split else None
    row["example"] = _example(replays[0], sequences)
    row["best"] = row["regret"] = None
    if plans is not None and likelihood.dependence is not None:
        row["best"] = least(plans, row["calls"])
        row["regret"] = likelihood.dependence - row["best"]
    row["seconds"] = round(time.perf_counter() - began, 3)
    return row


def _cost(part: Row) -> float:
    return (part["dependence"] or 0.0) + (part["denoiser"] or 0.0)


def _join(parts: list[Replayed]) -> Replayed:
    laws = [p.log_law for p in parts if p.log_law is not None]
    return Replayed(
        round=torch.cat([p.round for p in parts]),
        log_prob=torch.cat([p.log_prob for p in parts]),
        calls=torch.cat([p.calls for p in parts]),
        random=any(p.random for p in parts),
        log_law=torch.cat(laws) if len(laws) == len(parts) else None,
        split={name: torch.cat([p.split[name] for p in parts]) for name in parts[0].split},
    )


def _rounds(replayed: Replayed) -> list[Row]:
    """What each round reveals and loses: means over all sequences, so that they add up.

    `positions` is the set revealed most often in that round, with its share of the sequences and
    the mean loss of those.
    """
    parts = {name: replayed.split.get(name) for name in ("dependence", "denoiser")}
    sums = {k: None if v is None else replayed.per_round(v) for k, v in parts.items()}
    nll = replayed.per_round(-replayed.log_prob)
    rows = []
    for r in range(replayed.rounds):
        here = replayed.round == r
        sets, group, counts = here.unique(dim=0, return_inverse=True, return_counts=True)
        counts = torch.where(sets.any(1), counts, 0)
        common = int(counts.argmax())
        row: Row = {
            "walks": float(here.any(1).double().mean()),
            "revealed": float(here.sum(1).double().mean()),
            "nll": float(nll[:, r].mean()),
            **{k: None if v is None else float(v[:, r].mean()) for k, v in sums.items()},
            "positions": sets[common].nonzero()[:, 0].tolist(),
            "share": float(counts[common]) / len(here),
        }
        known = [v[:, r] for v in sums.values() if v is not None]
        row["cost"] = float(torch.stack(known).sum(0)[group == common].mean()) if known else None
        rows.append(row)
    return rows


def _example(replayed: Replayed, sequences: Int[Tensor, "n length"]) -> Row:
    """The first walk, position by position; the parts are null where there is no split."""
    costs = {name: replayed.split.get(name) for name in ("dependence", "denoiser")}
    return {
        "tokens": sequences[0].tolist(),
        "rounds": replayed.round[0].tolist(),
        **{name: None if cost is None else cost[0].tolist() for name, cost in costs.items()},
    }


def best_plans(
    world: World | str,
    sequences: Int[Tensor, "n length"],
    given: Bool[Tensor, "n length"],
    oracle: Denoiser | None = None,
) -> Plans | None:
    """The plan of sets that loses least, for any number of calls; None where it is not computed.

    First-order laws: exactly, or (between given tokens) from the entropies along these sequences.
    Other laws: by searching all plans of sequences of at most eight tokens.
    """
    world = as_world(world)
    pattern = given[0].nonzero()[:, 0].tolist()
    free = sequences.shape[1] - len(pattern)
    if not bool((given == given[0]).all()) or free == 0:
        return None
    oracle = truth_of(world) if oracle is None else oracle
    if isinstance(world, ChainLaw | ScheduleLaw) and isinstance(oracle, Oracle):
        triples = walked_triples(oracle, sequences, pattern) if pattern else triple_entropies(world)
        return cache(lambda calls: best_chain_sets(triples, min(calls, free), pattern))
    if not pattern and free <= SEARCHED and isinstance(world, Listed):
        try:
            joint = listed_entropies(world)
        except MaskwalkError:
            return None
        return cache(lambda calls: best_sets(joint, world.length, min(calls, free)))
    return None


def least(plans: Plans, calls: float) -> float:
    """The least dependence for a mean number of calls: a mixture of the two nearest plans."""
    low = max(1, int(calls))
    part = min(max(calls - low, 0.0), 1.0)
    return (1 - part) * plans(low).nats + (part * plans(low + 1).nats if part else 0.0)


def optimal(
    denoiser: Denoiser,
    sequences: Int[Tensor, "n length"],
    given: Bool[Tensor, "n length"],
    calls: Sequence[int],
    plans: Plans | None = None,
    seed: int = 0,
) -> Iterator[tuple[str, Sampler]]:
    """The best of both kinds for each number of calls, as specs: block sizes for a random order
    (from the denoiser's information curve), and a plan of sets where `plans` are known."""
    curve = information_curve(denoiser, sequences, given, seed)
    for n in calls:
        sizes = optimal_sizes(curve, n)
        yield f"optimal_random(sizes={sizes})", OptimalRandom(sizes=sizes)
        if plans is not None:
            turns = plans(n).turns(sequences.shape[1])
            yield f"planned(turns={turns})", Planned(turns=turns)


def for_json(value: Any) -> Any:
    """The same with null for numbers JSON cannot hold (an infinite KL has `kl_infinite`)."""
    if isinstance(value, dict):
        return {k: for_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [for_json(v) for v in value]
    return None if isinstance(value, float) and (isnan(value) or isinf(value)) else value
