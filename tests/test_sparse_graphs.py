"""Graphs too large for a coin per pair: the same law, nested in p, built in the time of the edges.

Coins and lists are compared where both can be drawn; a million nodes are built once.
"""

import time
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.graphs import GRAPHS, Graph, pairs
from maskwalk.worlds.walks.graphs.pairs import by_coins, coins, listed

FALSE_ALARM = 1e-6  # of each chi-square test; seeds are fixed, so a pass stays a pass
STREAMS = (2, 3)
FAMILIES = (
    "st_er(nodes=40, p=0.1)",
    "weighted(nodes=30, p=0.1)",
    "directed(nodes=30, p=0.1)",
    "two_communities(nodes=25, p=0.1, bridges=4)",
    "community_chain(communities=4, nodes=12, p=0.1)",
    "community_hierarchy(depth=2, branching=2, nodes=6, p=0.2)",
)


def set_of(found: np.ndarray) -> frozenset[tuple[int, int]]:
    return frozenset(map(tuple, found.tolist()))


def arcs(graph: Graph) -> set[tuple[int, int]]:
    return set(zip(graph.sources.tolist(), graph.targets.tolist()))


@pytest.fixture
def no_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists at any size."""
    monkeypatch.setattr(pairs, "TOSSED", 0)
    monkeypatch.setattr(pairs, "DENSE", 1.0)


@pytest.mark.parametrize("ordered", [True, False])
def test_listed_pairs_have_the_law_of_coins(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 64 sets of pairs of three or four nodes, counted; in blocks of four pairs."""
    monkeypatch.setattr(pairs, "BLOCK", 4)
    nodes, p = (3, 0.3) if ordered else (4, 0.3)
    every = list((permutations if ordered else combinations)(range(nodes), 2))
    assert len(every) == 6
    for way in (listed, coins):
        where = STREAMS if way is listed else STREAMS[0]
        drawn = [set_of(way(s, where, nodes, p, ordered)) for s in range(4000)]  # type: ignore[operator]
        seen = Counter(frozenset(x for x in some if x[0] != x[1]) for some in drawn)
        sets = [frozenset(some) for n in range(7) for some in combinations(every, n)]
        law = [p ** len(some) * (1 - p) ** (6 - len(some)) for some in sets]
        assert set(seen) <= set(sets)
        assert chisquare([seen[s] for s in sets], [4000 * q for q in law]).pvalue > FALSE_ALARM


def test_the_number_of_pairs_is_binomial() -> None:
    """Over several blocks of 2^16 and a rest; the CDF is scipy's."""
    trials, p = 5 * pairs.BLOCK + 12_345, 1e-4
    drawn = np.array([pairs._binomial(seed, 7, trials, p) for seed in range(2000)])
    law = binom(trials, p)
    edges = [-1, *(int(law.ppf(q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9)), trials]
    expected = np.diff(law.cdf(edges)) * len(drawn)
    seen = np.histogram(drawn, bins=np.array(edges) + 0.5)[0]
    assert chisquare(seen, expected).pvalue > FALSE_ALARM
    for n, q in ((6, 0.3), (pairs.BLOCK, 7e-6), (pairs.BLOCK, 0.009), (1, 0.5)):
        cdf = pairs._binomial_cdf(n, q)
        np.testing.assert_allclose(cdf, binom(n, q).cdf(np.arange(len(cdf))), rtol=1e-9)
        assert cdf[-1] > 1 - 1e-12 or len(cdf) == n


@pytest.mark.parametrize("spec", FAMILIES)
def test_every_family_keeps_its_shape_without_coins(spec: str, no_coins: None) -> None:
    """A connected graph of the same nodes, other edges for another seed; p only adds edges."""
    graph = GRAPHS.build(spec, seed=1)
    assert arcs(graph) != arcs(GRAPHS.build(spec, seed=2))
    more = GRAPHS.build(spec.replace("p=0.1", "p=0.3").replace("p=0.2", "p=0.4"), seed=1)
    tree = GRAPHS.build(spec.replace("p=0.1", "p=0").replace("p=0.2", "p=0"), seed=1)
    assert arcs(tree) < arcs(graph) < arcs(more)
    assert len(arcs(graph)) == len(graph.sources) and (graph.out_degree > 0).all()
    assert graph.roots == more.roots == tree.roots
    if not graph.directed:
        assert all((b, a) in arcs(graph) for a, b in arcs(graph))


def test_communities_draw_from_streams_of_their_own(no_coins: None) -> None:
    graph = GRAPHS.build("community_chain(communities=6, nodes=40, p=0.2)", seed=0).inside()
    insides = {
        frozenset((a % 40, b % 40) for a, b in arcs(graph) if a // 40 == c) for c in range(6)
    }
    assert len(insides) == 6


def test_half_a_table_of_coins_is_the_same_table() -> None:
    nodes, p = 4099, 0.0007  # above 4,096 only the upper half is drawn
    both = coins(3, 2, nodes, p)
    upper = coins(3, 2, nodes, p, ordered=False)
    assert upper.tolist() == both[both[:, 0] < both[:, 1]].tolist()
    assert len(upper) > 5000


def test_where_coins_end() -> None:
    """Graphs of 20,000 nodes and fewer are those there were before there were lists: all that a
    committed record or a trained model is about."""
    assert by_coins(20_000.0**2, 1e-4) and not by_coins(20_001.0**2, 1e-4)
    assert by_coins(1e12, 0.01)  # dense: a list would save nothing


def test_a_million_nodes_in_seconds() -> None:
    began = time.process_time()
    graph = GRAPHS.build("st_er(nodes=1000000, p=7e-6)", seed=0)
    assert time.process_time() - began < 30
    pairs_ = 10**6 * (10**6 - 1) / 2
    expected = (10**6 - 1) + 7e-6 * (pairs_ - 10**6 + 1)
    assert abs(len(graph.sources) / 2 - expected) < 6 * (7e-6 * pairs_) ** 0.5
    assert (graph.out_degree > 0).all() and (graph.sources != graph.targets).all()
    assert (np.diff(graph.sources * 10**6 + graph.targets) > 0).all()
    mean = graph.targets.mean()  # of uniform ends: six standard deviations
    assert abs(mean - 499_999.5) < 6 * 10**6 / (12 * len(graph.sources) / 2) ** 0.5 * 2


def test_a_dense_graph_of_very_many_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWALK_MEMORY", "10000")
    with pytest.raises(MaskwalkError, match="would take"):
        GRAPHS.build("st_er(nodes=1000000, p=0.02)", seed=0)
