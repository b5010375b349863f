"""Walk laws against brute force: formulas written out again, enumeration, and chi-square tests."""

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chisquare

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.metrics import Sample, coherence
from maskwalk.worlds.walks.graphs import GRAPHS, Graph, from_networkx
from maskwalk.worlds.walks.laws import (
    WALKS,
    ChainLaw,
    DistantLaw,
    MarkovLaw,
    ScheduleLaw,
    WalkLaw,
    lifted,
    net_flow,
)
from maskwalk.worlds.walks.laws.alias import Alias

FALSE_ALARM = 1e-6  # of each chi-square test; seeds are fixed, so a pass stays a pass

# (graph, walk, length): small enough for enumeration, every law and kind of graph among them
SMALL = [
    ("st_er(nodes=5, p=0.2)", "lazy()", 4),
    ("st_er(nodes=5, p=0.2)", "lazy(stay=0.125, start='stationary')", 4),
    ("weighted(nodes=5, p=0.3)", "lazy()", 4),
    ("weighted(nodes=5, p=0.3)", "lazy(stay=0, start='stationary')", 4),
    ("directed(nodes=5, p=0.2)", "lazy(stay=0.3, start='stationary')", 4),
    ("tree_line_dag(chains=3, length=4)", "dag()", 5),
    ("bottleneck_dag(corridors=2, width=2)", "dag()", 8),
    ("st_er(nodes=4, p=0.2)", "distant()", 6),
    ("weighted(nodes=4, p=0.2)", "distant(K=2, skip_recent=0)", 5),
    ("directed(nodes=4, p=0.2)", "distant(K=1, skip_recent=0)", 5),
    ("st_er(nodes=4, p=0.2)", "markov()", 5),
    ("st_er(nodes=4, p=0.2)", "markov(order=2, seed=3)", 5),
    ("directed(nodes=4, p=0.2)", "markov(order=3)", 5),
    ("st_er(nodes=5, p=0.4)", "drift(strength=0.6, stay=0.2)", 4),
    ("weighted(nodes=5, p=0.4)", "drift(strength=0.9, stay=0, start='stationary', seed=1)", 4),
    ("st_er(nodes=4, p=0.2)", "schedule(laws=[lazy(stay=0.5), lazy(stay=0)])", 6),
    ("st_er(nodes=4, p=0.2)", "schedule(laws=[markov(seed=1), lazy(), drift()], turn=1)", 5),
    ("bottleneck_dag(corridors=1, width=3)", "schedule(laws=[dag(), dag()], turn=2)", 4),
]


def law_of(graph: str, walk: str, length: int, seed: int = 2) -> WalkLaw:
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=seed), length=length)


@pytest.fixture(params=SMALL, ids=lambda case: f"{case[1]} on {case[0]}")
def law(request) -> WalkLaw:
    return law_of(*request.param)


def everything(law: WalkLaw) -> torch.Tensor:
    """All V^L sequences, or 4,000 of them and the support if that is too many."""
    size = law.vocab_size**law.length
    if size <= 5000:
        return torch.tensor(list(itertools.product(range(law.vocab_size), repeat=law.length)))
    noise = np.random.Generator(np.random.PCG64(0)).integers(0, law.vocab_size, (4000, law.length))
    return torch.unique(torch.cat([torch.from_numpy(noise), law.support()[0]]), dim=0)


def test_every_law_is_tested():
    assert {walk.split("(")[0] for _, walk, _ in SMALL} == set(WALKS)


def test_support_is_exactly_what_has_probability(law):
    walks, logs = law.support()
    assert logs.exp().sum() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(law.log_prob(walks), logs, atol=1e-12, rtol=0)
    listed = {tuple(walk) for walk in walks.tolist()}
    assert len(listed) == len(walks)
    candidates = everything(law)
    positive = law.log_prob(candidates) > -torch.inf
    assert {tuple(walk) for walk in candidates[positive].tolist()} == listed
    assert (law.valid(candidates).all(1) == positive).all()
    assert walks.tolist() == sorted(walks.tolist())


def test_step_log_probs_are_those_of_next_probs(law):
    walks = everything(law)[::7]
    steps = law.step_log_probs(walks)
    for t in range(law.length):
        probs = law.step_probs(t, walks[:, max(0, t - law.order) : t])
        assert probs.shape == (len(walks), law.vocab_size) and probs.dtype == torch.float64
        expected = probs.gather(1, walks[:, t : t + 1])[:, 0].log()
        assert torch.allclose(steps[:, t], expected, atol=1e-12, rtol=0)
        assert ((probs.sum(1) - 1).abs().lt(1e-12) | (probs == 0).all(1)).all()


def test_entropy_is_that_of_the_enumeration(law):
    _, logs = law.support()
    exact = float(-(logs.exp() * logs).sum())
    assert law.entropy() == pytest.approx(exact, abs=1e-12)
    general = lifted.entropy(law.step_probs, law.order, law.length)
    assert general == pytest.approx(exact, abs=1e-12)


def test_reach_is_that_of_the_enumeration(law):
    walks, _ = law.support()
    for start in range(law.vocab_size):
        ends = sorted(set(walks[walks[:, 0] == start][:, -1].tolist()))
        assert law.reach(start).nonzero()[:, 0].tolist() == ends
        general = lifted.reach(law.step_probs, law.order, law.length, start)
        assert general.nonzero()[:, 0].tolist() == ends


def test_samples_have_the_law(law):
    walks, logs = law.support()
    count = 20_000
    number = {tuple(walk): i for i, walk in enumerate(walks.tolist())}
    drawn = [number[tuple(walk)] for walk in law.sample(count, seed=5).tolist()]
    seen, expected = np.bincount(drawn, minlength=len(walks)), count * logs.exp().numpy()
    # The chi-square approximation wants five in every cell: rare walks share one.
    rare = expected < 5
    rare[expected.argmin()] = True
    f_obs, f_exp = [[*x[~rare], x[rare].sum()] for x in (seen, expected)]
    assert f_exp[-1] < count / 2
    assert chisquare(f_obs, f_exp).pvalue > FALSE_ALARM


def test_a_walk_depends_on_its_number_only(law):
    whole = law.sample(40, seed=9, first=100)
    assert whole.dtype == torch.int64 and whole.shape == (40, law.length)
    assert torch.equal(torch.cat([law.sample(7, 9, 100), law.sample(33, 9, 107)]), whole)
    assert torch.equal(law.sample(1, 9, 139), whole[-1:])
    assert len(law.sample(0, 9)) == 0
    if len(law.support()[0]) > 20:
        assert not torch.equal(law.sample(40, seed=10, first=100), whole)


def test_batches_do_not_show_where_the_cache_is_split():
    law = law_of("st_er(nodes=6, p=0.2)", "lazy()", 3)
    edge = 1 << 14
    assert torch.equal(law.sample(edge + 5, 1)[edge - 5 :], law.sample(10, 1, edge - 5))


def neighbours(graph: Graph, node: int) -> list[int]:
    return graph.targets[graph.sources == node].tolist()


@pytest.mark.parametrize("stay", [None, 0.0, 0.125, 0.5])
def test_lazy_is_the_formula(stay):
    graph = GRAPHS.build("st_er(nodes=12, p=0.2)", seed=4)
    law = WALKS["lazy"](graph=graph, length=6, stay=stay)
    assert isinstance(law, ChainLaw) and law.order == 1
    assert torch.allclose(law.initial, torch.full((12,), 1 / 12, dtype=torch.float64))
    for u in range(12):
        near = neighbours(graph, u)
        s = 1 / (len(near) + 1) if stay is None else stay
        for v in range(12):
            p = s if u == v else (1 - s) / len(near) if v in near else 0.0
            assert law.transition[u, v].item() == pytest.approx(p, abs=1e-15)


def test_lazy_on_weights_is_a_loop_of_the_mean_weight():
    graph = GRAPHS.build("weighted(nodes=8, p=0.3)", seed=1)
    law = WALKS["lazy"](graph=graph, length=3)
    for u in range(8):
        weights = graph.weights[graph.sources == u]
        total = weights.sum() + weights.mean()
        assert law.transition[u, u].item() == pytest.approx(weights.mean() / total)
        for v, w in zip(neighbours(graph, u), weights):
            assert law.transition[u, v].item() == pytest.approx(w / total)


@pytest.mark.parametrize("stay", [None, 0.25])
@pytest.mark.parametrize(
    "graph",
    ["st_er(nodes=30, p=0.1)", "weighted(nodes=30, p=0.1)", "directed(nodes=30, p=0.1)",
     "directed(nodes=2, p=0)"],
)  # fmt: skip
def test_stationary_starts_stay(graph, stay):
    law = WALKS["lazy"](graph=GRAPHS.build(graph, seed=3), length=9, stay=stay, start="stationary")
    marginals = law.marginals()
    assert torch.allclose(marginals, law.initial.expand(9, -1), atol=1e-14, rtol=0)
    assert (law.initial > 0).all() and law.initial.sum().item() == pytest.approx(1)


def test_stationary_forgets_the_nodes_left_behind():
    graph = from_networkx(nx.DiGraph([(0, 1), (1, 2), (2, 1)]))
    law = WALKS["lazy"](graph=graph, length=3, stay=0.5, start="stationary")
    assert law.initial.tolist() == [0.0, 0.5, 0.5]
    split = from_networkx(nx.DiGraph([(0, 1), (1, 2), (2, 1), (0, 3), (3, 4), (4, 3)]))
    with pytest.raises(MaskwalkError, match="2 parts that a walk cannot leave"):
        WALKS["lazy"](graph=split, length=3, start="stationary")


def literal_distant(graph: Graph, x: list[int], K: int, skip_recent: int) -> np.ndarray:
    """The paper's formula, with its 1-based positions: the law of X_{l+1} given X_1 … X_l."""
    X = {i + 1: node for i, node in enumerate(x)}
    ell = len(x)
    A = [j for j in range(1, 100) if skip_recent + 1 <= j <= K and j <= ell - 1]
    law = np.zeros(graph.nodes)
    for v in range(graph.nodes):
        if A:
            law[v] = sum(
                (v in neighbours(graph, X[ell - j])) / len(neighbours(graph, X[ell - j])) for j in A
            ) / len(A)
        else:
            law[v] = (v in neighbours(graph, X[ell])) / len(neighbours(graph, X[ell]))
    return law


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(0, 50))
def test_distant_is_the_formula(data, K, seed):
    skip_recent = data.draw(st.integers(0, K - 1))
    graph = GRAPHS.build("st_er(nodes=7, p=0.2)", seed=seed)
    law = DistantLaw(graph, 9, K, skip_recent)
    assert law.order == K + 1
    x = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
    got = law.next_probs(torch.tensor([x[-law.order :]]))[0].numpy()
    np.testing.assert_allclose(got, literal_distant(graph, x, K, skip_recent), atol=1e-15)


def test_distant_validity_is_the_rule_of_the_paper():
    graph = GRAPHS.build("st_er(nodes=6, p=0.1)", seed=0)
    law = DistantLaw(graph, 9)
    noise = np.random.Generator(np.random.PCG64(1))
    walks = law.sample(200, 0).numpy()
    spoil = noise.integers(0, 9, 200)
    walks[np.arange(200), spoil] = noise.integers(0, 6, 200)
    valid = law.valid(torch.from_numpy(walks)).numpy()
    for walk, ok in zip(walks.tolist(), valid):
        X = [None, *walk]
        for ell in range(1, 9):
            A = [j for j in (3, 4) if j <= ell - 1]
            if A:
                phi = any(X[ell + 1] in neighbours(graph, X[ell - j]) for j in A)
            else:
                phi = X[ell + 1] in neighbours(graph, X[ell])
            assert ok[ell] == phi
        assert ok[0]
    assert 20 < valid.all(1).sum() < 180


def test_order_five_separates_distant_walks_and_order_four_does_not():
    """Lags 4 and 5 (fact 6): X_{l+1} still depends on X_{l-4} given the four tokens between."""
    law = law_of("st_er(nodes=6, p=0)", "distant()", 12)
    probs = [law.next_probs(torch.tensor([[oldest, 0, 1, 2, 3]])) for oldest in range(6)]
    assert any(not torch.allclose(probs[0], p) for p in probs[1:])


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["st_er", "weighted", "directed"]),
    st.integers(2, 5),
    st.floats(0, 1),
    st.integers(0, 1000),
    st.sampled_from(
        ["lazy()", "lazy(stay=0.3, start='stationary')", "distant(K=2, skip_recent=1)",
         "markov()", "markov(order=2)"]
    ),
)  # fmt: skip
def test_random_small_laws(family, nodes, p, seed, walk):
    graph = GRAPHS[family](nodes=nodes, p=p, seed=seed)
    law = WALKS.build(walk, graph=graph, length=4)
    walks, logs = law.support()
    assert logs.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(law.log_prob(walks), logs, atol=1e-12, rtol=0)
    assert law.entropy() == pytest.approx(float(-(logs.exp() * logs).sum()), abs=1e-12)
    assert law.valid(law.sample(50, seed)).all()
    start = int(walks[0, 0])
    assert set(law.reach(start).nonzero()[:, 0].tolist()) == set(
        walks[walks[:, 0] == start][:, -1].tolist()
    )


def alias_law(alias: Alias, rows: int, columns: int) -> np.ndarray:
    """The probabilities an alias table really draws with, added up slot by slot."""
    law = np.zeros((rows, columns))
    for u in range(rows):
        degree = alias.degree[u]
        for slot in range(alias.starts[u], alias.starts[u + 1]):
            law[u, alias.targets[slot]] += alias.threshold[slot] / degree
            law[u, alias.other[slot]] += (1 - alias.threshold[slot]) / degree
    return law


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), min_size=1, max_size=5))
def test_alias_tables_are_exact(rows):
    raw = np.array(rows)
    raw[raw < 1e-9] = 0
    raw[:, 0] += 1e-6
    kernel = raw / raw.sum(1, keepdims=True)
    alias = Alias(csr_array(kernel))
    law = alias_law(alias, len(rows), 6)
    np.testing.assert_allclose(law, kernel, atol=1e-15)
    assert (law[kernel == 0] == 0).all()
    assert (alias.threshold >= 0).all() and (alias.threshold <= 1).all()


@pytest.mark.parametrize("walk", ["lazy(stay=0.125)", "distant(K=4, skip_recent=2)"])
def test_threads_draw_the_same_walks(walk):
    law = WALKS.build(walk, graph=GRAPHS.build("st_er(nodes=50, p=0.1)", seed=0), length=6)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = law.sample(40_000, 3, first=5)
        torch.set_num_threads(3)
        assert torch.equal(law.sample(40_000, 3, first=5), alone)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(alone[20_000:20_010], law.sample(10, 3, first=20_005))


def test_a_walk_is_its_steps():
    kernel = GRAPHS.build("st_er(nodes=50, p=0.1)", seed=0).adjacency
    alias, u = Alias(kernel), np.random.Generator(np.random.PCG64(0)).random((20, 9))
    at, steps = np.arange(20), []
    for column in u.T:
        at = alias.draw(at, column)
        steps.append(at)
    assert (alias.walk(np.arange(20), u) == np.stack(steps, 1)).all()


@pytest.mark.parametrize("u", [0.0, 1 - 2.0**-53, 0.5])
def test_no_uniform_leaves_the_row(u):
    degrees = np.arange(1, 3000)
    starts = np.concatenate([[0], degrees.cumsum()])
    targets = np.repeat(degrees, degrees)  # row i holds only i + 1: any other row would show
    table = csr_array((np.ones(len(targets)), targets, starts), shape=(2999, 3000))
    drawn = Alias(table).draw(np.arange(2999), np.full(2999, u))
    assert (drawn == degrees).all()


def random_markov(size: int, order: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    noise = np.random.Generator(np.random.PCG64(seed))
    kernel = noise.random((size,) * (order + 1)) * (noise.random((size,) * (order + 1)) < 0.7)
    kernel[..., 0] += 0.1
    initial = noise.random((size,) * order) * (noise.random((size,) * order) < 0.5)
    initial.flat[0] += 0.1
    return (
        torch.from_numpy(kernel / kernel.sum(-1, keepdims=True)),
        torch.from_numpy(initial / initial.sum()),
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_any_kernel_and_initial_law(order):
    kernel, initial = random_markov(3, order, order)
    law = MarkovLaw(kernel, initial, 5)
    assert law.order == order and law.graph is None
    for walk in itertools.product(range(3), repeat=5):
        p = initial[walk[:order]].item()
        for t in range(order, 5):
            p *= kernel[walk[t - order : t + 1]].item()
        got = law.log_prob(torch.tensor([walk])).exp().item()
        assert got == pytest.approx(p, abs=1e-14)
    assert law.valid(law.sample(300, 0)).all()
    for past in range(order):
        rest = tuple(range(past + 1, order))
        joint = initial.sum(rest) if rest else initial
        for h in itertools.product(range(3), repeat=past):
            row = joint[h] if past else joint
            want = row / row.sum() if row.sum() > 0 else torch.zeros(3, dtype=torch.float64)
            got = law.next_probs(torch.tensor([h], dtype=torch.int64).reshape(1, past))[0]
            assert torch.allclose(got, want, atol=1e-14, rtol=0)


def test_a_walk_that_cannot_begin_so_is_not_valid() -> None:
    """The start law counts: of two nodes only the first begins a walk, both steps are possible."""
    law = ChainLaw(torch.tensor([1.0, 0.0], dtype=torch.float64), [[0.5, 0.5], [0.5, 0.5]], 3)
    valid = law.valid(torch.tensor([[0, 1, 0], [1, 1, 0]]))
    assert valid.tolist() == [[True, True, True], [False, True, True]]
    assert law.log_prob(torch.tensor([[0, 1, 0], [1, 1, 0]])).tolist() == [
        pytest.approx(2 * np.log(0.5)),
        -np.inf,
    ]
    sample = Sample(law, law.sample(4, 0), None, torch.arange(4), torch.full((4,), 3))
    assert coherence(sample).value == 1.0
    wrong = torch.tensor([[1, 1, 0]]).repeat(4, 1)
    assert coherence(replace(sample, tokens=wrong)).value == 0.0


def test_markov_on_a_graph_is_not_reversible_and_keeps_to_the_edges():
    graph = GRAPHS.build("st_er(nodes=4, p=1)", seed=0)
    first = WALKS.build("markov()", graph=graph, length=4)
    assert isinstance(first, ChainLaw)
    P = first.transition
    # Kolmogorov's criterion: a cycle has the same probability both ways round iff reversible.
    assert abs(P[0, 1] * P[1, 2] * P[2, 0] - P[0, 2] * P[2, 1] * P[1, 0]) > 1e-3
    path = GRAPHS.build("st_er(nodes=6, p=0)", seed=0)
    law = WALKS.build("markov(order=2, seed=1)", graph=path, length=4)
    for walk in law.support()[0].tolist():
        for a, b in itertools.pairwise(walk):
            assert a == b or b in neighbours(path, a)
    other = WALKS.build("markov(order=2, seed=2)", graph=path, length=4)
    assert law.entropy() != other.entropy()


def test_dag_walks_are_the_definitions():
    line = law_of("tree_line_dag(chains=5, length=3)", "dag()", 4)
    walks, logs = line.support()
    assert len(walks) == 5 and line.entropy() == pytest.approx(math.log(5))
    assert torch.allclose(logs.exp(), torch.full((5,), 0.2, dtype=torch.float64))
    corridors = law_of("bottleneck_dag(corridors=3, width=4)", "dag()", 12)
    walks, logs = corridors.support()
    assert len(walks) == 4**3 and corridors.entropy() == pytest.approx(3 * math.log(4))
    assert (corridors.graph.levels[walks.numpy()] == np.arange(12)).all()


def test_large_graphs_need_no_dense_table():
    graph = GRAPHS.build("directed(nodes=5000, p=0.0002)", seed=0)
    law = WALKS.build("lazy()", graph=graph, length=5)
    walks = law.sample(100, 0)
    assert law.valid(walks).all()
    assert torch.allclose(law.next_probs(walks[:4, :1]).sum(1), torch.ones(4, dtype=torch.float64))
    assert law.entropy() == pytest.approx(
        float(-law.log_prob(law.sample(4000, 1)).mean()), rel=0.01
    )
    assert "transition" not in vars(law)


def test_files_can_be_walked():
    names = from_networkx(nx.Graph([("a", "b"), ("b", "c"), ("b", "b")]))
    law = WALKS.build("lazy(stay=0)", graph=names, length=3)
    assert torch.allclose(law.transition[1], torch.full((3,), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "graph, walk, length, sentence",
    [
        ("st_er(nodes=5, p=0)", "lazy(stay=1.5)", 4, "stay must be between 0 and 1"),
        ("st_er(nodes=5, p=0)", "lazy(stay=1)", 4, "stay must be below 1"),
        ("st_er(nodes=5, p=0)", "lazy(start='middle')", 4, "Known: stationary, uniform"),
        ("st_er(nodes=5, p=0)", "lazy()", 1, "length must be a whole number from 2 to 65535"),
        ("tree_line_dag(chains=2, length=3)", "lazy()", 4, "level DAG. Use dag"),
        ("tree_line_dag(chains=2, length=3)", "distant()", 6, "level DAG"),
        ("tree_line_dag(chains=2, length=3)", "markov()", 4, "level DAG"),
        ("tree_line_dag(chains=2, length=3)", "dag()", 5, "its length is 4, not 5"),
        ("st_er(nodes=5, p=0)", "dag()", 4, "need a level DAG"),
        ("st_er(nodes=5, p=0)", "distant(K=0)", 9, "K must be"),
        ("st_er(nodes=5, p=0)", "distant(K=2, skip_recent=2)", 9, "skip_recent must be"),
        ("st_er(nodes=5, p=0)", "distant()", 4, "length at least 5"),
        ("st_er(nodes=5, p=0)", "markov(order=0)", 4, "order must be"),
        ("st_er(nodes=5, p=0)", "markov(order=5)", 4, "at least 5 tokens"),
        ("st_er(nodes=500, p=0)", "markov(order=2)", 4, "Take fewer nodes"),
    ],
)
def test_bad_parameters_get_a_sentence(graph, walk, length, sentence):
    with pytest.raises(MaskwalkError, match=sentence):
        law_of(graph, walk, length)


def test_bad_kernels_get_a_sentence():
    kernel, initial = random_markov(3, 2, 0)
    bad = kernel.clone()
    bad[0, 0, 0] += 0.1
    for k, i, length, sentence in (
        (bad, initial, 4, "sum to 1 over the next token"),
        (kernel, initial / 2, 4, "initial law must sum to 1"),
        (-kernel, initial, 4, "at least 0"),
        (kernel * math.nan, initial, 4, "finite"),
        (kernel[:2], initial, 4, "shape"),
        (kernel, initial[0], 4, "shape"),
        (kernel, initial, 1, "length must be"),
    ):
        with pytest.raises(MaskwalkError, match=sentence):
            MarkovLaw(k, i, length)
    start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for k, sentence in (
        (np.array([[0.5, 0.4], [0, 1]]), "row of the kernel must sum to 1"),
        (np.array([[0.5, 0.5], [0, 0]]), "stuck: no arc leaves node 1"),
        (np.eye(3), "shape"),
    ):
        with pytest.raises(MaskwalkError, match=sentence):
            ChainLaw(start, k, 3)


def test_walks_that_do_not_fit_get_a_sentence():
    law = law_of("st_er(nodes=5, p=0)", "lazy()", 4)
    with pytest.raises(MaskwalkError, match="have 3 tokens"):
        law.valid(torch.zeros((2, 3), dtype=torch.int64))
    with pytest.raises(MaskwalkError, match="5 is the mask token"):
        law.log_prob(torch.full((2, 4), 5))


def test_what_is_too_large_is_refused():
    law = law_of("st_er(nodes=500, p=0.01)", "distant()", 24)
    with pytest.raises(MaskwalkError, match="histories of 4 tokens"):
        law.entropy()
    with pytest.raises(MaskwalkError, match="more than 1,000 walks"):
        law.support(limit=1000)
    small = law_of("st_er(nodes=5, p=0)", "lazy()", 4)
    count = len(small.support()[0])
    assert len(small.support(limit=count)[0]) == count
    with pytest.raises(MaskwalkError, match="raise the limit"):
        small.support(limit=count - 1)


def flow_of(law: ChainLaw) -> np.ndarray:
    """The net flow of the chain in its stationary law, found by walking on, not by the formula."""
    far = law.kernel.toarray()
    for _ in range(24):  # 2^24 steps
        far = far @ far
        far /= far.sum(1, keepdims=True)
    at = far[0]
    assert np.abs(law.kernel.T @ at - at).max() < 1e-12
    return net_flow(law.kernel, at)


def test_drift_is_nonreversible_at_500_nodes_and_the_lazy_walk_is_not():
    graph = "st_er(nodes=500, p=0.01)"
    lazy, weak, strong = (
        law_of(graph, f"drift(strength={strength})", 24) for strength in (0, 0.5, 0.9)
    )
    assert np.abs(flow_of(lazy)).max() < 1e-12
    flows = [0.5 * np.abs(flow_of(law)).sum() for law in (weak, strong)]
    assert 0.1 < flows[0] < flows[1]  # a share of all steps, net, go round and round
    directed = law_of("directed(nodes=500, p=0.01)", "lazy(stay=0.125)", 24)
    assert 0.5 * np.abs(flow_of(directed)).sum() > 0.5
    # Without cycles nothing can go round.
    assert np.abs(flow_of(law_of("st_er(nodes=30, p=0)", "drift(strength=0.9)", 24))).max() < 1e-12


@pytest.mark.parametrize("graph", ["st_er(nodes=30, p=0.1)", "weighted(nodes=30, p=0.1)"])
def test_drift_keeps_the_steps_of_the_lazy_walk_and_tilts_each_edge(graph):
    lazy, drift, back = (
        law_of(graph, walk, 6).transition
        for walk in ("lazy(stay=0.2)", "drift(strength=0.6, stay=0.2)", "drift(-0.6, stay=0.2)")
    )
    assert torch.equal(law_of(graph, "drift(strength=0, stay=0.2)", 6).transition, lazy)
    assert torch.equal(drift > 0, lazy > 0)
    assert torch.allclose(drift.diagonal(), torch.tensor(0.2).double())
    tilt = drift / lazy  # up to a factor a row: (1 ± 0.6)
    for u in range(30):
        values = tilt[u][(lazy[u] > 0) & (torch.arange(30) != u)]
        assert {round(float(v / values.max()), 9) for v in values} <= {1.0, round(0.4 / 1.6, 9)}
    # One direction of an edge is preferred, in the other drift the other one.
    cycle = [0, 1, 2, 3]
    loop = from_networkx(nx.cycle_graph(4))
    for strength in (0.6, -0.6):
        law = WALKS.build(f"drift({strength}, stay=0.2, seed=1)", graph=loop, length=4)
        there = math.prod(float(law.transition[u, (u + 1) % 4]) for u in cycle)
        away = math.prod(float(law.transition[(u + 1) % 4, u]) for u in cycle)
        assert there != pytest.approx(away)
    assert not torch.equal(drift, back)


def test_schedules_take_turns():
    graph = GRAPHS.build("st_er(nodes=6, p=0.2)", seed=2)
    slow, fast = (WALKS.build(f"lazy(stay={s})", graph=graph, length=8) for s in (0.75, 0))
    text = "schedule(laws=[lazy(stay=0.75), lazy(stay=0)]"
    spread, turns, long = (
        WALKS.build(text + rest, graph=graph, length=8) for rest in (")", ", turn=1)", ", turn=3)")
    )
    assert isinstance(spread, ScheduleLaw) and not spread.homogeneous and spread.order == 1
    assert spread.turns == (0, 0, 0, 0, 1, 1, 1)
    assert turns.turns == (0, 1, 0, 1, 0, 1, 0) and long.turns == (0, 0, 0, 1, 1, 1, 0)
    three = WALKS.build("schedule([lazy, drift, markov], turn=2)", graph=graph, length=8)
    assert three.turns == (0, 0, 1, 1, 2, 2, 0)
    every = torch.arange(6)[:, None]
    assert torch.equal(turns.step_probs(1, every), slow.transition)
    assert torch.equal(turns.step_probs(2, every), fast.transition)
    walks = turns.sample(500, 0)
    stays = (walks[:, 1:] == walks[:, :-1]).double().mean(0)
    assert (stays[1::2] == 0).all() and ((stays[::2] - 0.75).abs() < 0.1).all()
    nested = WALKS.canonical("schedule([lazy(stay=0.5), markov()], turn=2)")
    assert WALKS.canonical(nested) == nested and "markov(order=1, seed=0)], turn=2" in nested


@pytest.mark.parametrize(
    ("walk", "what"),
    [
        ("schedule(laws=[])", "must be a list of walks as specs"),
        ("schedule(laws=lazy())", "must be a list of walks as specs"),
        ("schedule(laws=[1, 2])", "must be a list of walks as specs"),
        ("schedule(laws=[lazy(), 2])", "must be a list of walks as specs"),
        ("schedule(laws=[distant(K=1, skip_recent=0)])", "takes first-order laws"),
        ("schedule(laws=[markov(order=2), lazy()])", "takes first-order laws"),
        ("schedule(laws=[schedule(laws=[lazy()])])", "takes first-order laws"),
        ("schedule(laws=[lazy(), lazy(), lazy(), lazy()])", "too few for 4 laws"),
        ("schedule(laws=[lazy()], turn=0)", "turn must be a whole number from 1"),
        ("schedule(laws=[lazzy()])", "Did you mean 'lazy'"),
        ("lazy(stay=[lazy()])", "takes no list of specs"),
        ("drift(strength=1)", "strength must be below 1"),
        ("drift(strength=-1)", "strength must be below 1"),
        ("drift(stay=1)", "stay must be below 1"),
        ("drift(strength=1.5)", "between -1 and 1"),
        ("drift(start='centre')", "Unknown start"),
    ],
)
def test_laws_that_cannot_be_are_refused_with_a_sentence(walk, what):
    with pytest.raises(MaskwalkError, match=what):
        law_of("st_er(nodes=5, p=0.2)", walk, 4)


def test_a_kernel_per_step_must_not_get_stuck_and_knows_its_time():
    start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    swap, trap = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    law = ScheduleLaw([ChainLaw(start, k, 2) for k in (swap, swap, trap)], range(3))
    assert law.support()[0].tolist() == [[0, 1, 0, 0]]
    with pytest.raises(
        MaskwalkError, match="stuck at node 1: the kernel of the step to position 2"
    ):
        ScheduleLaw([ChainLaw(start, k, 2) for k in (swap, trap)], range(2))
    with pytest.raises(MaskwalkError, match=r"ask step_probs\(t, history\)"):
        law.next_probs(torch.zeros((1, 1), dtype=torch.int64))
    with pytest.raises(MaskwalkError, match="same nodes"):
        ScheduleLaw(
            [ChainLaw(start, swap, 2), ChainLaw(torch.eye(3).double()[0], np.eye(3), 2)], [0]
        )
