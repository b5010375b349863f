"""Realistic made-up records for the tests of the report; nothing here is a result."""

import hashlib
import json
import math
import re
import zlib
from base64 import b64decode
from typing import Any

import numpy as np

GRAPHS = {  # title: (graph, walk, how hard parallel draws are)
    "spanning tree": ("st_er(nodes=500, p=0.0)", "lazy(stay=0.5, start='uniform')", 0.5),
    "degree 7": ("st_er(nodes=500, p=0.01)", "lazy(stay=0.125, start='uniform')", 1.0),
    "two communities, 1 bridge": (
        "two_communities(nodes=250, p=0.02, bridges=1)",
        "lazy(stay=0.125, start='uniform')",
        1.1,
    ),
    "two communities, 8 bridges": (
        "two_communities(nodes=250, p=0.02, bridges=8)",
        "lazy(stay=0.125, start='uniform')",
        1.05,
    ),
    "two communities, 64 bridges": (
        "two_communities(nodes=250, p=0.02, bridges=64)",
        "lazy(stay=0.125, start='uniform')",
        1.0,
    ),
    "community chain": (
        "community_chain(communities=10, nodes=50, p=0.106377551)",
        "lazy(stay=0.125, start='uniform')",
        0.8,
    ),
}
TASKS = ("unconditional()", "endpoints(start=None, end=None)", "bottleneck(separation=None)")
BLOCKS: tuple[int | str, ...] = (1, 2, 4, 6, 8, "exponential")
SAMPLERS = [
    *(f"{f}(block={b!r})" for f in ("random", "entropy", "confidence", "margin") for b in BLOCKS),
    "bisection(order=1)",
    "guided_bisection(order=1, score='entropy')",
    "left_to_right()",
]
MODES = (
    ("oracle", "exact"),
    ("network(model='degree_7')", "exact"),
    ("network(model='degree_7')", "as_published"),
)


def walk_of(graph: str, law: str, length: int = 24, seed: int = 0) -> str:
    """A world of walks as records spell it."""
    return f"walk(graph={graph}, law={law}, length={length}, seed={seed})"


def draw(**changes: Any) -> str:
    """A draw as records spell it."""
    plain = {"precision": "float64", "temperature": 1.0, "top_p": 1.0, "top_p_strict": 1.0}
    values = plain | {"min_p": 0.0, "floor": 0.0} | changes
    return f"draw({', '.join(f'{key}={value!r}' for key, value in values.items())})"


def reveal_rounds(sampler: str, hidden: list[int], rng: np.random.Generator) -> list[list[int]]:
    """The positions of every round, as the sampler's family would choose them (roughly)."""
    if "bisection" in sampler:
        rounds: list[list[int]] = []
        chunks = [hidden]
        while any(chunks):
            middle = [c[(len(c) - 1) // 2] for c in chunks if c]
            chunks = [
                part
                for c in chunks
                if c
                for part in (c[: (len(c) - 1) // 2], c[(len(c) - 1) // 2 + 1 :])
            ]
            rounds.append(middle)
        return rounds
    order = hidden if "left" in sampler else [hidden[i] for i in rng.permutation(len(hidden))]
    rounds, at, size = [], 0, 1
    while at < len(order):
        if "exponential" in sampler:
            step, size = size, 2 * size
        else:
            step = int(sampler.split("block=")[1].rstrip(")")) if "block=" in sampler else 1
        rounds.append(order[at : at + step])
        at += step
    return rounds


def trace(
    sampler: str, task: str, length: int, ok: bool, rng: np.random.Generator
) -> dict[str, Any]:
    hidden = list(range(length)) if task.startswith("uncond") else list(range(1, length - 1))
    revealed = [-1] * length
    for number, positions in enumerate(reveal_rounds(sampler, hidden, rng)):
        for position in positions:
            revealed[position] = number
    valid = [True] * length
    if not ok:
        for position in rng.choice(np.arange(1, length), size=2, replace=False):
            valid[int(position)] = False
    spread = [None if r < 0 else round(float(5 * math.exp(-0.2 * r)), 4) for r in revealed]
    tokens = [int(x) for x in rng.integers(0, 500, length)]
    return {"tokens": tokens, "rounds": revealed, "entropy": spread, "valid": valid}


def record(
    title: str = "spanning tree",
    task: str = TASKS[0],
    sampler: str = "bisection(order=1)",
    mode: tuple[str, str] = MODES[0],
    count: int = 512,
    length: int = 24,
    cell: int = 0,
) -> dict[str, Any]:
    """One record; the same arguments give the same record."""
    name = "|".join(map(str, (title, task, sampler, mode, count, length)))
    digest = hashlib.sha256(name.encode()).hexdigest()
    rng = np.random.default_rng(int(digest[:12], 16))
    graph, walk, hard = GRAPHS[title]
    denoiser, draws = mode
    published = draws == "as_published"
    given = 0 if task.startswith("uncond") else 2
    rounds = reveal_rounds(sampler, list(range(length - given)), rng)
    calls = len(rounds) + (1.4 if "guided" in sampler else 0.0)
    crowd = max(len(r) for r in rounds) if "bisection" not in sampler else 1
    bias = {"entropy": 1.9, "confidence": 1.6, "margin": 2.2, "random": 1.0}
    family = sampler.split("(")[0]
    if title == "spanning tree":  # greedy orders win on the tree and lose elsewhere
        bias = {k: 2.2 - v for k, v in bias.items()}
    chance = math.exp(-0.33 * hard * max(bias.get(family, 0.0), 0.15) * (crowd - 1))
    if denoiser != "oracle":
        greedy = family in ("entropy", "confidence", "margin")
        chance *= 0.99 if greedy and published else 1 - 0.25 * hard + 0.1 * greedy
    good = int(rng.binomial(count, min(chance, 1.0)))
    value = good / count
    se = math.sqrt(value * (1 - value) / count)
    floor = 0.21 * hard
    excess = 0.45 * (1 - value) + (0.2 if published and family == "entropy" else 0.0)
    excess = max(excess + float(rng.normal(0, 0.001)), -0.003)
    metrics: dict[str, Any] = {
        "coherence": {"value": value, "se": se, "n": count, "group_sd": se * 2},
        "transition_validity": {"value": 1 - (1 - value) / 8, "se": se / 8, "n": count},
        "first_invalid": {"value": None, "se": None, "n": 0}
        if good == count
        else {"value": 11.2, "se": 0.4, "n": count - good},
        "tv1": None
        if given
        else {
            "value": floor + excess,
            "se": 0.002,
            "n": count,
            "floor": floor,
            "floor_se": 0.001,
            "excess": excess,
        },
        "calls": {
            "value": calls,
            "se": 0.0,
            "n": count,
            "max": math.ceil(calls + 1.2) if "guided" in sampler else calls,
        },
        "tokens_per_call": {"value": (length - given) / calls, "se": 0.0, "n": count},
    }
    return {
        "schema": 2, "key": digest, "experiment": "fake", "version": "0.1.0", "commit": "0123abc",
        "world": walk_of(graph, walk, length), "title": title,
        "task": task, "sampler": sampler, "denoiser": denoiser, "mode": draws,
        "draw": draw(precision="bfloat16" if published else "float64"),
        "ties": "index" if published else "uniform", "count": count, "per_prompt": 1, "seed": 0,
        "cell": cell, "metrics": metrics, "seconds": 0.31,
        "trace": trace(sampler, task, length, bool(rng.random() < value), rng),
        "notes": ["impossible evidence: limit of a vanishing uniform leak"] if value < 1 else [],
    }  # fmt: skip


def records(
    graphs: int = 6,
    tasks: int = 3,
    modes: int = 3,
    samplers: list[str] | None = None,
    count: int = 512,
) -> list[dict[str, Any]]:
    """A whole experiment in the order a bench would write it."""
    out: list[dict[str, Any]] = []
    for mode in MODES[:modes]:
        for task in TASKS[:tasks]:
            for title in list(GRAPHS)[:graphs]:
                for sampler in samplers or SAMPLERS:
                    out.append(record(title, task, sampler, mode, count, cell=len(out)))
    return out


SOME = ["random(block=1)", "random(block=2)", "random(block='exponential')", "bisection(order=1)"]


def small(**changes: Any) -> list[dict[str, Any]]:
    return records(**{"graphs": 2, "tasks": 2, "modes": 2, "samplers": SOME} | changes)


def with_coherence(
    record: dict[str, Any], value: float | None, se: float | None = 0.01
) -> dict[str, Any]:
    metrics = record["metrics"] | {"coherence": {"value": value, "se": se, "n": 512}}
    return record | {"metrics": metrics}


def reproduction(samplers: list[str] | None = None, modes: int = 3) -> list[dict[str, Any]]:
    """Records with what a reproduction adds: published values, axes, curves of their own."""
    out = records(6, 3, modes, samplers)
    bridges = {"1 bridge": 1, "8 bridges": 8, "64 bridges": 64}
    for i, one in enumerate(out):
        value = one["metrics"]["coherence"]["value"]
        one["published"] = {"value": round(min(value + 0.02 * (i % 3), 1.0), 3), "sd": 0.012}
        crossing = one["task"].startswith("bottleneck")
        for words, b in bridges.items():
            if one["title"].endswith(words) and crossing:
                one["axis"] = {"name": "bridges b", "value": b}
        if one["title"] == "community chain" and crossing:
            rows = [{"at": h, "value": value * 0.95**h, "se": 0.02, "n": 640} for h in range(1, 10)]
            one["metrics"]["coherence_by_separation"] = {"by": rows}
    return out + distant(len(out), modes)


def distant(first: int = 0, modes: int = 1) -> list[dict[str, Any]]:
    """Coherence and calls against the sampler's own memory order, with two level lines."""
    out: list[dict[str, Any]] = []
    for mode in MODES[1:] if modes > 1 else MODES[:1]:
        for k in (*range(1, 9), None):
            names = ("bisection(order={})", "guided_bisection(order={}, score='entropy')")
            chosen = [name.format(k) for name in names]
            if k is None:
                chosen = ["random(block=1)", "entropy(block=1)"]
            for name in chosen:
                one = record("degree 7", TASKS[0], name, mode, cell=first + len(out))
                value = 0.8 if k is None else 0.9 * min(k, 5) / 5
                one = with_coherence(one, value)
                calls = 24.0 if k is None else 5.0 + 1.5 * k + (2.0 if "guided" in name else 0.0)
                one["metrics"]["calls"] = {"value": calls, "se": 0.0, "n": 512, "max": calls}
                world = walk_of(GRAPHS["degree 7"][0], "distant(K=4, skip_recent=2)")
                one |= {"title": "distant-K", "world": world}
                one["axis"] = {"name": "memory order", "value": k, "marks": [4, 5]}
                out.append(one)
    return out


COINS = {"coins(length=8, parity='even')": "even parity", "coins(length=4, parity='even')": "short"}


def coins(worlds: int = 1, modes: int = 1) -> list[dict[str, Any]]:
    """A third world, with the metrics every world has and one of a user's own."""
    out: list[dict[str, Any]] = []
    for mode in MODES[:modes]:
        for world, title in list(COINS.items())[:worlds]:
            length = 8 if "8" in world else 4
            for sampler in SOME:
                one = record("degree 7", TASKS[0], sampler, mode, count=256, length=length)
                kept = ("coherence", "first_invalid", "calls", "tokens_per_call")
                one["metrics"] = {key: one["metrics"][key] for key in kept}
                one |= {"world": world, "title": title, "experiment": "coins", "cell": len(out)}
                out.append(with_own(one, 2.0 + len(sampler) / 7))
    return out


OWN = {
    "key": "heads", "title": "heads shown", "meaning": "Mean number of heads", "heading": "",
    "better": -1, "digits": 2, "limits": [0, None], "role": "", "drawn": True,
}  # fmt: skip


def with_own(record: dict[str, Any], value: float) -> dict[str, Any]:
    """The record with a metric from a user's file, which it describes itself."""
    metrics = record["metrics"] | {"heads": {"value": value, "se": 0.05, "n": 256}}
    return record | {"metrics": metrics, "described": {"heads": OWN}}


def data_of(page: str) -> dict[str, Any]:
    """What a page carries for its scripts, packed or not."""
    found = re.search(r'id="data"( data-packed(?:="")?)?>(.*?)</script>', page, re.DOTALL)
    assert found
    text = zlib.decompress(b64decode(found[2]), -zlib.MAX_WBITS) if found[1] else found[2]
    return json.loads(text)
