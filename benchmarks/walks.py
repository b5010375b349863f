"""How fast walks are drawn, as ratios to igraph and networkx measured in this same run.

    python benchmarks/walks.py

All draw the same law: uniform start, then a uniform neighbour (not lazy, since igraph and networkx
have no lazy walk). Slower competitors draw fewer walks and their time is scaled up; the table says
how many. Every time is the best of a few repeats. Exits with 1 if a ratio falls short.
"""

import random
import sys
import time
from collections.abc import Callable

import igraph
import networkx as nx

from maskwalk.worlds.walks.graphs import GRAPHS, Graph
from maskwalk.worlds.walks.laws import WALKS

WALKS_WANTED, LENGTH = 100_000, 24
GRAPH = "st_er(nodes=500, p=0.0100683294)"


def best(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def with_igraph(graph: Graph, count: int) -> Callable[[], object]:
    edges = [(a, b) for a, b in zip(graph.sources.tolist(), graph.targets.tolist()) if a < b]
    theirs = igraph.Graph(graph.nodes, edges)
    draw = random.Random(0)
    starts = [draw.randrange(graph.nodes) for _ in range(count)]
    return lambda: [theirs.random_walk(start, LENGTH - 1) for start in starts]


def as_networkx(graph: Graph) -> nx.Graph:
    theirs = nx.Graph()
    theirs.add_nodes_from(range(graph.nodes))
    theirs.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist()))
    return theirs


def with_networkx_loop(graph: Graph, count: int) -> Callable[[], object]:
    theirs = as_networkx(graph)

    def work() -> object:
        draw, nodes, walks = random.Random(0), list(theirs), []
        for _ in range(count):
            walk = [draw.choice(nodes)]
            while len(walk) < LENGTH:
                walk.append(draw.choice(list(theirs.neighbors(walk[-1]))))
            walks.append(walk)
        return walks

    return work


def with_random_paths(graph: Graph, count: int) -> Callable[[], object]:
    theirs = as_networkx(graph)
    # path_length counts steps: a path has path_length + 1 nodes.
    return lambda: list(nx.generate_random_paths(theirs, count, path_length=LENGTH - 1, seed=0))


def main() -> int:
    graph = GRAPHS.build(GRAPH, seed=0)
    laws = {w: WALKS.build(w, graph=graph, length=LENGTH) for w in
            ("lazy(stay=0)", "lazy(stay=0.125)", "distant(K=4, skip_recent=2)")}  # fmt: skip
    print(f"{WALKS_WANTED:,} walks of {LENGTH} nodes on {GRAPH}: seconds, measured on this machine")
    seconds = {}
    for walk, law in laws.items():
        law.sample(1000, seed=0)
        seconds[walk] = best(lambda law=law: law.sample(WALKS_WANTED, seed=0))
        print(f"  maskwalk {walk:36s} {seconds[walk]:9.3f}")
    ours = seconds["lazy(stay=0)"]
    met = True
    for name, make, count, wanted in (
        ("igraph random_walk", with_igraph, 100_000, 5),
        ("networkx, plain loop", with_networkx_loop, 10_000, 20),
        ("networkx generate_random_paths", with_random_paths, 2_000, 100),
    ):
        theirs = best(make(graph, count)) * WALKS_WANTED / count
        met &= theirs / ours >= wanted
        scaled = "" if count == WALKS_WANTED else f" (scaled up from {count:,} walks)"
        print(f"  {name:45s} {theirs:9.3f}   {theirs / ours:6.1f}x (wanted {wanted}x){scaled}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
