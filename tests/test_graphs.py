"""Graph families: structure, distribution, stability across machines, and bad input."""

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from maskwalk.errors import MaskwalkError
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.walks.graphs import GRAPHS, Graph, from_networkx
from maskwalk.worlds.walks.graphs.families import PAIR
from maskwalk.worlds.walks.graphs.pairs import coins

FALSE_ALARM = 1e-6  # of each chi-square test; seeds are fixed, so a pass stays a pass

# One small member of every family, and the digest of its arcs: the same on every machine.
EXAMPLES = {
    "st_er(nodes=60, p=0.05)": "9bcab9e529f04de0",
    "weighted(nodes=30, p=0.1, heaviest=7)": "ad74cd560af8e09f",
    "directed(nodes=30, p=0.05)": "1bdf885c22c79df9",
    "two_communities(nodes=25, p=0.1, bridges=4)": "08e4f19f9a1fc7db",
    "community_chain(communities=4, nodes=12, p=0.1)": "cfe2ec2631694343",
    "community_hierarchy(depth=2, branching=2, nodes=6, p=0.2)": "d122528d60f78204",
    "tree_line_dag(chains=3, length=4)": "daa97118fd5e172d",
    "bottleneck_dag(corridors=2, width=3)": "69c40aacc54ed3ec",
}


def build(spec: str, seed: int = 0) -> Graph:
    return GRAPHS.build(spec, seed=seed)


def edges(graph: Graph) -> set[tuple[int, int]]:
    pairs = zip(graph.sources.tolist(), graph.targets.tolist())
    return {(a, b) for a, b in pairs if graph.directed or a < b}


def as_networkx(graph: Graph) -> nx.Graph:
    out = nx.DiGraph() if graph.directed else nx.Graph()
    out.add_nodes_from(range(graph.nodes))
    out.add_edges_from(edges(graph))
    return out


def test_every_family_has_an_example():
    assert {spec.split("(")[0] for spec in EXAMPLES} == set(GRAPHS) - {"file"}


@pytest.mark.parametrize("spec", EXAMPLES)
def test_every_family_makes_sorted_unique_arcs(spec):
    graph = build(spec)
    arcs = list(zip(graph.sources.tolist(), graph.targets.tolist()))
    assert arcs == sorted(set(arcs))
    assert all(a != b for a, b in arcs)
    assert (graph.weights > 0).all()
    dense = graph.adjacency.toarray()
    assert dense.shape == (graph.nodes, graph.nodes)
    assert (graph.out_degree == (dense > 0).sum(1)).all()
    if not graph.directed:
        assert (dense == dense.T).all()
        assert nx.is_connected(as_networkx(graph))
    elif graph.levels is None:
        assert nx.is_strongly_connected(as_networkx(graph))
    else:
        assert (graph.levels[graph.targets] == graph.levels[graph.sources] + 1).all()


@pytest.mark.parametrize("spec", EXAMPLES)
def test_every_family_is_the_same_everywhere(spec):
    assert build(spec).digest[:16] == EXAMPLES[spec]


def test_the_seed_matters():
    for spec in EXAMPLES:
        if "dag" not in spec:
            assert build(spec, 1).digest != build(spec).digest


def test_tree_and_extra_edges_of_st_er():
    tree = edges(build("st_er(nodes=200, p=0)"))
    assert len(tree) == 199
    sparse, dense = (
        edges(build("st_er(nodes=200, p=0.02)")),
        edges(build("st_er(nodes=200, p=0.1)")),
    )
    assert tree < sparse < dense
    assert len(edges(build("st_er(nodes=200, p=1)"))) == 200 * 199 // 2
    # Each of the 19,701 other pairs with probability 0.1: six standard deviations.
    others = 200 * 199 // 2 - 199
    assert abs(len(dense) - 199 - 0.1 * others) < 6 * (others * 0.1 * 0.9) ** 0.5


def test_the_tree_has_the_law_of_the_paper():
    """Root, vertex to add and where to attach it, all uniform: every history of 4 nodes by hand."""
    exact: Counter = Counter()
    for order in itertools.permutations(range(4)):
        for parents in itertools.product(*(range(i) for i in range(1, 4))):
            joined = [tuple(sorted((order[i + 1], order[p]))) for i, p in enumerate(parents)]
            exact[(order[0], frozenset(joined))] += 1 / (24 * 6)
    assert sum(exact.values()) == pytest.approx(1)
    seen: Counter = Counter()
    for seed in range(2000):
        graph = build("st_er(nodes=4, p=0)", seed)
        seen[(graph.roots[0], frozenset(edges(graph)))] += 1
    assert set(seen) <= set(exact)
    keys = list(exact)
    test = chisquare([seen[k] for k in keys], [2000 * exact[k] for k in keys])
    assert test.pvalue > FALSE_ALARM


def test_remaining_pairs_are_independent_coins():
    """Of the 3 pairs outside the tree, the number that are edges is binomial(3, 0.3)."""
    sizes = Counter(len(edges(build("st_er(nodes=4, p=0.3)", seed))) - 3 for seed in range(1500))
    law = [0.7**3, 3 * 0.3 * 0.7**2, 3 * 0.3**2 * 0.7, 0.3**3]
    test = chisquare([sizes[i] for i in range(4)], [1500 * q for q in law])
    assert test.pvalue > FALSE_ALARM


def test_pairs_do_not_depend_on_how_many_rows_are_drawn_at_once():
    nodes = 3000  # several blocks of rows
    rows = [
        block_uniforms(5, Purpose.GRAPH, i, 1, nodes, PAIR)[0] for i in (0, 348, 349, 350, 2999)
    ]
    found = coins(5, PAIR, nodes, 0.01)
    for i, u in zip((0, 348, 349, 350, 2999), rows):
        assert found[found[:, 0] == i, 1].tolist() == np.flatnonzero(u < 0.01).tolist()


def test_bridges_are_nested_and_leave_the_insides_alone():
    graphs = {b: build(f"two_communities(bridges={b})", 3) for b in (1, 8, 64)}
    between = {}
    for b, graph in graphs.items():
        assert graph.nodes == 500 and np.bincount(graph.community).tolist() == [250, 250]
        between[b] = edges(graph) - edges(graph.inside())
        assert len(between[b]) == b
        assert all(a < 250 <= c for a, c in between[b])
        parts = list(nx.connected_components(as_networkx(graph.inside())))
        assert sorted(map(len, parts)) == [250, 250]
    assert between[1] < between[8] < between[64]
    assert graphs[1].inside().digest == graphs[8].inside().digest == graphs[64].inside().digest


def test_all_cross_pairs_can_be_bridges():
    graph = build("two_communities(nodes=3, p=0, bridges=9)")
    assert len(edges(graph) - edges(graph.inside())) == 9


def test_bridges_are_uniform():
    seen: Counter = Counter()
    for seed in range(900):
        graph = build("two_communities(nodes=3, p=0, bridges=2)", seed)
        seen[frozenset(edges(graph) - edges(graph.inside()))] += 1
    assert len(seen) == 36
    assert chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_chain_joins_consecutive_roots_only():
    graph = build("community_chain()")
    assert graph.nodes == 500 and len(graph.roots) == 10
    assert [graph.community[r] for r in graph.roots] == list(range(10))
    assert edges(graph) - edges(graph.inside()) == set(zip(graph.roots, graph.roots[1:]))
    # The roots are those of the trees: without extra edges r_j is the first of its order.
    bare = build("community_chain(p=0)")
    assert bare.roots == graph.roots and edges(bare) < edges(graph)


def test_hierarchy_is_a_tree_of_communities():
    graph = build("community_hierarchy(depth=2, branching=3, nodes=5, p=0.2)")
    roots = graph.roots
    links = edges(graph) - edges(graph.inside())
    assert len(roots) == 13
    assert links == {(roots[(c - 1) // 3], roots[c]) for c in range(1, 13)}


def test_tree_line_dag_is_the_definition():
    graph = build("tree_line_dag(chains=2, length=3)")
    assert edges(graph) == {(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6)}
    assert graph.levels.tolist() == [0, 1, 2, 3, 1, 2, 3]


def test_bottleneck_dag_is_the_definition():
    graph = build("bottleneck_dag(corridors=2, width=2)")
    one = {(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)}
    assert edges(graph) == one | {(5, 6)} | {(a + 6, b + 6) for a, b in one}
    assert graph.levels.tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6, 7]


def test_directed_is_a_cycle_plus_arcs():
    assert len(build("directed(nodes=40, p=0)").sources) == 40
    assert len(build("directed(nodes=12, p=1)").sources) == 12 * 11
    graph = build("directed(nodes=40, p=0.1)")
    assert any((b, a) not in edges(graph) for a, b in edges(graph))


def test_weights_are_uniform_whole_numbers():
    graph = build("weighted(nodes=150, p=0.1, heaviest=5)")
    once = graph.weights[graph.sources < graph.targets]
    assert chisquare([(once == w).sum() for w in range(1, 6)]).pvalue > FALSE_ALARM
    assert set(once.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert edges(graph) == edges(build("st_er(nodes=150, p=0.1)"))


@pytest.mark.parametrize(
    "spec, sentence",
    [
        ("st_er(nodes=1, p=0)", "nodes must be a whole number at least 2"),
        ("st_er(nodes=5, p=1.5)", "p must be between 0 and 1"),
        ("st_er(nodes=5, p=-0.1)", "p must be between 0 and 1"),
        ("weighted(nodes=5, p=0, heaviest=0)", "heaviest must be"),
        ("directed(nodes=0, p=0)", "nodes must be"),
        ("two_communities(nodes=3, bridges=10)", "bridges must be a whole number from 1 to 9"),
        ("two_communities(bridges=0)", "bridges must be"),
        ("community_chain(communities=1)", "communities must be"),
        ("community_hierarchy(depth=0)", "depth must be"),
        ("community_hierarchy(depth=20, branching=9)", "number of communities must be"),
        ("tree_line_dag(chains=0, length=2)", "chains must be"),
        ("tree_line_dag(chains=2, length=0)", "length must be"),
        ("bottleneck_dag(corridors=0, width=2)", "corridors must be"),
        ("bottleneck_dag(corridors=2, width=0)", "width must be"),
        ("st_er(nodes=5)", "needs p="),
        ("st_err(nodes=5, p=0)", "Did you mean 'st_er'"),
    ],
)
def test_bad_parameters_get_a_sentence(spec, sentence):
    with pytest.raises(MaskwalkError, match=sentence):
        build(spec)


def from_text(tmp_path, text: str, name: str = "graph.txt", **options) -> Graph:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return GRAPHS["file"](str(path), **options)


def test_edge_list(tmp_path):
    text = "# a comment\n10 2\n2 3   # another\n\n3,10\n10 2\n"
    graph = from_text(tmp_path, text)
    assert graph.names == ("2", "3", "10")  # numbers in their own order, not as text
    assert edges(graph) == {(0, 1), (0, 2), (1, 2)} and not graph.directed
    assert (graph.weights == 1).all()


def test_weighted_directed_edge_list_with_labels(tmp_path):
    graph = from_text(tmp_path, "b a 2.5\na b 1\nb c 4\nc b 1e-3\n", directed=True)
    assert graph.names == ("a", "b", "c") and graph.directed
    assert list(zip(graph.sources, graph.targets, graph.weights)) == [
        (0, 1, 1.0), (1, 0, 2.5), (1, 2, 4.0), (2, 1, 1e-3),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_graphml_says_itself_whether_it_is_directed(tmp_path, kind):
    source = kind([("x", "y"), ("y", "z"), ("z", "x")])
    source["x"]["y"]["weight"] = 3.0
    nx.write_graphml(source, tmp_path / "g.graphml")
    graph = GRAPHS.build(f"file(path={str(tmp_path / 'g.graphml')!r})", seed=0)
    assert graph.directed == source.is_directed()
    assert graph.names == ("x", "y", "z")
    assert graph.adjacency[0, 1] == 3.0 and graph.adjacency[1, 2] == 1.0
    assert len(graph.sources) == (3 if graph.directed else 6)


def test_a_loop_in_a_file_is_one_arc():
    graph = from_networkx(nx.Graph([(0, 0), (0, 1)]))
    assert list(zip(graph.sources, graph.targets)) == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "has no edges"),
        ("# nothing\n\n", "has no edges"),
        ("1 2\n3\n", "Line 2 of .* has 1 columns"),
        ("1 2 3 4\n", "has 4 columns"),
        ("1 2 heavy\n", "weight of the edge 1 - 2 .* is heavy"),
        ("1 2 -1\n", "weight .* is -1"),
        ("1 2 0\n", "weight .* is 0"),
        ("1 2 nan\n", "weight .* is nan"),
        ("1 2 inf\n", "weight .* is inf"),
        ("1 2 1\n2 1 3\n", "twice, with weights 1 and 3"),
        ("1 1\n", "one node"),
        ("1 2\n3 3\n", r"isolated.* \(3\)"),
    ],
)
def test_bad_edge_lists_get_a_sentence(tmp_path, text, sentence):
    with pytest.raises(MaskwalkError, match=sentence):
        from_text(tmp_path, text)


def test_bad_files_get_a_sentence(tmp_path):
    with pytest.raises(MaskwalkError, match="no file"):
        build(f"file(path={str(tmp_path / 'missing.txt')!r})")
    with pytest.raises(MaskwalkError, match="no file"):
        build(f"file(path={str(tmp_path)!r})")
    with pytest.raises(MaskwalkError, match=r"sinks: .*\(c\)"):
        from_text(tmp_path, "a b\nb a\nb c\n", directed=True)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x9f 1 2")
    with pytest.raises(MaskwalkError, match="Cannot read"):
        build(f"file(path={str(tmp_path / 'binary.txt')!r})")
    with pytest.raises(MaskwalkError, match="Cannot read"):
        from_text(tmp_path, "1 2\n", "notxml.graphml")
    lonely = nx.Graph([("a", "b")])
    lonely.add_node("hermit")
    nx.write_graphml(lonely, tmp_path / "lonely.graphml")
    with pytest.raises(MaskwalkError, match=r"isolated.*hermit"):
        build(f"file(path={str(tmp_path / 'lonely.graphml')!r})")
