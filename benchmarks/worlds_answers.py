"""The tables of docs/worlds.md: from the records of the atlas of worlds, and from the laws.

python benchmarks/worlds_answers.py results/worlds                    # everything
python benchmarks/worlds_answers.py results/worlds --only best        # one table
"""

import argparse
import re
from collections.abc import Callable, Iterable
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch

from maskwalk import WORLDS, World, diagnose, information_curve, optimal_sizes
from maskwalk.bench.kinds import kind_of
from maskwalk.bench.labels import samplers as labels
from maskwalk.bench.law_cells import only_law
from maskwalk.bench.records import Record, latest, load_records
from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.estimates import plus_minus
from maskwalk.resources import zoo_manifest
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import parse
from maskwalk.stats import NORMAL, best_mixture, combined, settled_se

BUDGETS = (4, 8, 12)
CERTAIN = ("entropy", "confidence", "margin")
EXPERIMENT = Path(__file__).parent.parent / "experiments" / "worlds.toml"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(list(head)), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float, se: float | None, digits: int = 3) -> str:
    """.512 ± .043: half of a 95 % interval."""
    half = "" if se is None or se != se else plus_minus(NORMAL * se, digits)
    text = re.sub(r"\b0\.", ".", f"{value:.{digits}f}{half}")
    return re.sub(r"^-(\.0+)(?!\d)", r"\1", text)


class Atlas:
    """The records by world, mode and task."""

    def __init__(self, directory: str) -> None:
        records = latest(load_records(Path(directory)))
        self.records = [r for r in records if "world" in r and not only_law(r)]
        self.titles = list(dict.fromkeys(r["title"] for r in self.records))
        specs = list(dict.fromkeys(r["sampler"] for r in self.records))
        self.labels = {s.spec: s.label for s in labels(specs)}

    def panel(self, title: str, oracle: bool, task: str = "unconditional()") -> list[Record]:
        """All samplers of one world."""
        return [
            r
            for r in self.records
            if r["title"] == title and (r["denoiser"] == "oracle") == oracle and r["task"] == task
        ]

    def world(self, title: str) -> World:
        """The world of a title."""
        spec = next(r["world"] for r in self.records if r["title"] == title)
        return WORLDS.build(spec)


def value(record: Record, key: str) -> tuple[float, float] | None:
    """A metric's value and standard error; a share of 0 or 1 has the error of its rule."""
    known = record["metrics"].get(key)
    if known is None or known["value"] is None:
        return None
    se = settled_se(known["value"], known["se"], known["n"], key == "coherence")
    return known["value"], float("nan") if se is None else se


def best(atlas: Atlas) -> str:
    """The best rule at each budget, by coherence; a strip by KL per token."""
    rows = []
    for oracle in (True, False):
        for title in atlas.titles:
            cells = []
            for budget in BUDGETS:
                cells.append(_leader(atlas, atlas.panel(title, oracle), budget))
            rows.append([title, "oracle" if oracle else "model", *cells])
    return table(["world", "with", *(f"≤ {b} calls" for b in BUDGETS)], rows)


def _leader(atlas: Atlas, records: list[Record], budget: int) -> str:
    metric, sign = (
        ("coherence", 1) if any(value(r, "coherence") for r in records) else ("replay_kl", -1)
    )
    lawful = [r for r in records if kind_of(r) != SHAPED]  # others may win by another law
    cheap = [r for r in lawful if r["metrics"]["calls"]["value"] <= budget + 1e-9]
    known = [(r, found) for r in cheap if (found := value(r, metric))]
    if metric == "replay_kl":  # a bound is beaten by no number, and beats none
        known = [(r, f) for r, f in known if not r["metrics"][metric].get("bound")]
    if not known:
        return "–"
    record, found = max(known, key=lambda pair: (sign * pair[1][0], -_calls(pair[0])))
    unit = "" if metric == "coherence" else " nats"
    return f"{atlas.labels[record['sampler']]} {number(*found)}{unit}"


def _calls(record: Record) -> float:
    return float(record["metrics"]["calls"]["value"])


def duel_given(atlas: Atlas) -> str:
    """The same where a random half of the positions is given, with the oracle."""
    return duel(atlas, "given(share=0.5)", (True,))


def duel(
    atlas: Atlas, task: str = "unconditional()", oracles: tuple[bool, ...] = (True, False)
) -> str:
    """Bisection against the best mixture of certainty-first settings at its calls."""
    rows = []
    for oracle in oracles:
        for title in atlas.titles:
            records = atlas.panel(title, oracle, task)
            (own,) = [r for r in records if r["sampler"] == "bisection(order=1)"]
            if value(own, "coherence") is None:
                continue
            mine, mine_se = value(own, "coherence") or (0, 0)
            rivals = {
                "certainty first": [r for r in records if parse(r["sampler"]).name in CERTAIN],
                "random order": [r for r in records if parse(r["sampler"]).name == "random"],
            }
            cells = []
            for group in rivals.values():
                mean, se = _mixed(group, _calls(own))
                cells += [number(mean, se), number(mine - mean, combined(mine_se, se))]
            rows.append(
                [
                    title,
                    "oracle" if oracle else "model",
                    f"{_calls(own):.1f}".removesuffix(".0"),
                    number(mine, mine_se),
                    *cells,
                ]
            )
    head = [
        "world",
        "with",
        "calls",
        "bisection",
        "certainty first",
        "difference",
        "random order",
        "difference",
    ]
    return table(head, rows)


def _mixed(records: list[Record], calls: float) -> tuple[float, float]:
    """The coherence of the best mixture of settings at so many calls, and its error."""
    found = [value(r, "coherence") or (0.0, 0.0) for r in records]
    weights = best_mixture(
        np.array([_calls(r) for r in records]), np.array([f[0] for f in found]), calls
    )
    if weights is None:
        return float("nan"), float("nan")
    return (
        float(sum(w * f[0] for w, f in zip(weights, found))),
        sqrt(sum((w * f[1]) ** 2 for w, f in zip(weights, found))),
    )


def along(atlas: Atlas) -> str:
    """What the world's own separators gain over blocks in the line of tokens."""
    rows = []
    names = ["bisection(order=1, along='world')", *(f"bisection(order={k})" for k in (1, 2, 4, 8))]
    for title in atlas.titles:
        for oracle in (True, False):
            records = {r["sampler"]: r for r in atlas.panel(title, oracle)}
            if names[0] not in records:
                continue
            cells = []
            for name in names:
                record = records[name]
                coherence = value(record, "coherence")
                kl = value(record, "replay_kl")
                shown = "" if coherence is None else f"{number(*coherence)}, "
                cells.append(f"{_calls(record):.0f}: {shown}{number(*(kl or (0, 0)))}")
            rows.append([title, "oracle" if oracle else "model", *cells])
    return table(["world", "with", "along the world", *(f"order {k}" for k in (1, 2, 4, 8))], rows)


# ---------------------------------------------------------------- from the laws


@cache
def pair_information(spec: str) -> np.ndarray:
    """I(x_i; x_j) in nats for every pair of positions, from the oracle."""
    world = WORLDS.build(spec)
    vocab, length, oracle = world.vocab_size, world.length, world.oracle()
    assert oracle is not None
    blank = torch.full((1, length), vocab)
    first = oracle(blank).exp()
    result = np.zeros((length, length))
    for i in range(length):
        values = (first[i] > 0).nonzero()[:, 0]
        canvas = blank.repeat(len(values), 1)
        canvas[:, i] = values
        rest = oracle(canvas).exp().view(len(values), length - 1, vocab)
        others = torch.cat([first[:i], first[i + 1 :]])
        terms = torch.where(rest > 0, rest * (rest / others).log(), 0.0).sum(2)
        nats = (first[i, values, None] * terms).sum(0).numpy()
        result[i, np.arange(length) != i] = nats
    return result


def world_graph(world: Any) -> nx.Graph | None:
    """Positions that a factor of the law joins; None where hidden states join everything."""
    graph = nx.Graph()
    if hasattr(world, "units"):
        for unit in world.units().tolist():
            graph.add_edges_from(nx.complete_graph(unit).edges)
    elif hasattr(world, "a"):
        columns = [list(c.positions) for c in world.columns]
        for left, right in zip(columns, [*columns[1:], []]):
            graph.add_edges_from(nx.complete_graph([*left, *right]).edges)
    elif hasattr(world, "cells"):
        graph.add_edges_from(world.pairs())
    elif getattr(world, "shown", False):
        for level in range(world.depth):
            children = np.array(world.positions(level + 1)).reshape(-1, world.branching)
            for parent, family in zip(world.positions(level), children.tolist()):
                graph.add_edges_from(nx.complete_graph((parent, *family)).edges)
    else:
        return None
    return graph


def distances(atlas: Atlas) -> str:
    """Mean pairwise information by distance in the tokens, and by distance in the world's graph."""
    rows = []
    for title in atlas.titles:
        spec = next(r["world"] for r in atlas.records if r["title"] == title)
        nats, world = pair_information(spec), atlas.world(title)
        place = np.arange(world.length)
        apart = np.abs(place[:, None] - place)
        cells = [
            _mean(nats, apart == 1),
            _mean(nats, (apart > 1) & (apart <= 4)),
            _mean(nats, apart > 4),
        ]
        graph = world_graph(world)
        if graph is None:
            cells += ["–", "–"]
        else:
            steps = np.full(nats.shape, 99)
            for i, others in nx.all_pairs_shortest_path_length(graph):
                for j, d in others.items():
                    steps[i, j] = d
            cells += [_mean(nats, steps == 1), _mean(nats, (steps > 1))]
        rows.append([title, *cells])
    head = ["world", "next token", "2 to 4 apart", "farther", "neighbours in the world", "others"]
    return table(head, rows)


def _mean(nats: np.ndarray, where: np.ndarray) -> str:
    return f"{nats[where].mean():.4f}" if where.any() else "–"


def sizes(atlas: Atlas, titles: Iterable[str] = (), sequences: int = 256) -> str:
    """Random order: constant blocks against the block sizes that the information curve asks for."""
    rows = []
    for title in titles or atlas.titles:
        world = atlas.world(title)
        oracle, tokens = world.oracle(), world.sample(sequences, 0)
        assert oracle is not None
        curve = information_curve(oracle, world.sample(sequences, 1))  # others than are replayed
        cells = []
        for block in (4, 2):
            calls = -(-world.length // block)
            planned = optimal_sizes(curve, calls)
            losses = [
                diagnose(world, oracle, SAMPLERS.build(spec), tokens)
                for spec in (f"random(block={block})", f"optimal_random(sizes={planned})")
            ]
            same, better = (
                number(row["dependence"] / world.length, row["dependence_se"] / world.length)
                for row in losses
            )
            cells += [str(calls), same, better, "-".join(map(str, planned))]
        rows.append([title, *cells])
    head = ["world", *(["calls", "equal blocks", "planned", "sizes"] * 2)]
    return table(head, rows)


def cards(atlas: Atlas) -> str:
    """The models: held-out bound, floor, and coherence of certainty first, one token a call."""
    rows = []
    for name, about in zoo_manifest().items():
        if "task" in about:
            shares = [
                number(about[key], None) if key in about else "–"
                for key in ("coherence", "coherence_given", "coherence_task")
            ]
            bound = number(about["bound"], about["bound_se"])
            floor = number(about["floor"], about["floor_se"] or None)
            rows.append([f"`zoo:{name}`", bound, floor, *shares, f"`{about['task']}`"])
    return table(["model", "bound", "floor", "whole", "half given", "own task", "which is"], rows)


def carries(atlas: Atlas) -> str:
    """Wrong sums by the longest chain of carries, both operands given."""
    groups = ((0, 1), (2, 3), (4, 8))
    rows = []
    for record in atlas.records:
        parts = record["metrics"]["coherence_by_carries"]
        assert parts is not None
        cells = []
        for low, high in groups:
            some = [p for p in parts["by"] if low <= p["at"] <= high]
            n = sum(p["n"] for p in some)
            wrong = sum((1 - p["value"]) * p["n"] for p in some) / n
            se = settled_se(wrong, sqrt(wrong * (1 - wrong) / n), n)
            cells.append(number(wrong, se, 4))
        rows.append(
            [record["title"], atlas.labels[record["sampler"]], f"{_calls(record):.1f}", *cells]
        )
    head = [
        "order of the digits",
        "sampler",
        "calls",
        *(f"chains of {a} to {b}" for a, b in groups),
    ]
    return table(head, rows)


TABLES: dict[str, Callable[[Atlas], str]] = {
    "best": best,
    "duel": duel,
    "duel_given": duel_given,
    "along": along,
    "distances": distances,
    "sizes": sizes,
    "cards": cards,
    "carries": carries,
}


kept = cache(Atlas)


def verify(name: str, directory: str, *titles: str) -> str:
    """A table for `maskwalk verify`; of `sizes`, which takes a minute, the worlds named."""
    atlas = kept(directory)
    return sizes(atlas, titles) if titles else TABLES[name](atlas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records", help="a directory with the records of experiments/worlds.toml")
    parser.add_argument("--only", choices=TABLES, action="append")
    args = parser.parse_args()
    atlas = Atlas(args.records)
    for name in args.only or [n for n in TABLES if n != "carries"]:
        print(f"{name}: {TABLES[name].__doc__}\n\n{TABLES[name](atlas)}\n")


if __name__ == "__main__":
    main()
