"""The sparse oracle is the dense one: over laws, families and evidence, in either form of a vector.

And what it is for: memory that does not grow with the gap, walks of 1,536 tokens, 100,000 nodes.
"""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.streams import Streams
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, ChainLaw, ScheduleLaw, WalkLaw
from maskwalk.worlds.walks.oracles import (
    ChainOracle,
    EnumerationOracle,
    ScheduleOracle,
    SparseOracle,
    messages,
    oracle_for,
    steps,
)
from tests.test_oracles import (
    assert_same,
    canvases,
    random_chain,
    random_dag,
    random_schedule,
)

seeds = st.integers(0, 2**32 - 1)
quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["wide", "thin", "both"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Vectors held dense, held sparse, or sparse until they are half full."""
    if request.param != "wide":
        monkeypatch.setattr(steps, "LARGE", 1)
        monkeypatch.setattr(messages, "LARGE", 1)
        monkeypatch.setattr(steps, "THIN", 1 if request.param == "thin" else 2)
    yield request.param


@quick
@given(st.integers(2, 5), st.integers(2, 5), seeds)
def test_chains(form: str, vocab: int, length: int, seed: int) -> None:
    law = random_chain(vocab, length, seed)
    tokens = canvases(law, 16, seed)
    assert_same(SparseOracle(law)(tokens), EnumerationOracle(law)(tokens))


@quick
@given(st.integers(1, 2), st.integers(2, 4), seeds)
def test_dags(form: str, width: int, length: int, seed: int) -> None:
    """Walks that end, so that the end says something; one leak is not always enough."""
    law = random_dag(width, length, seed)
    tokens = canvases(law, 16, seed)
    assert_same(SparseOracle(law)(tokens), EnumerationOracle(law)(tokens))


@quick
@given(st.integers(2, 5), st.integers(2, 5), seeds)
def test_schedules(form: str, vocab: int, length: int, seed: int) -> None:
    law = random_schedule(vocab, length, seed)
    tokens = canvases(law, 16, seed)
    assert_same(SparseOracle(law)(tokens), EnumerationOracle(law)(tokens))


WORLDS = [
    ("st_er(nodes=60, p=0.05)", "lazy(stay=0.125)", 24),
    ("st_er(nodes=60, p=0)", "lazy(start='stationary')", 24),
    ("st_er(nodes=60, p=0.05)", "drift(strength=0.7)", 24),
    ("st_er(nodes=60, p=0.05)", "markov(order=1)", 16),
    ("weighted(nodes=40, p=0.05)", "lazy()", 16),
    ("directed(nodes=40, p=0.03)", "lazy(stay=0)", 16),
    ("two_communities(nodes=30, p=0.1, bridges=1)", "lazy(stay=0.5)", 24),
    ("community_chain(communities=4, nodes=12, p=0.1)", "drift()", 20),
    ("community_hierarchy(depth=2, branching=2, nodes=6, p=0.2)", "lazy(stay=0.3)", 20),
    ("tree_line_dag(chains=3, length=6)", "dag()", 7),
    ("bottleneck_dag(corridors=3, width=3)", "dag()", 12),
    ("st_er(nodes=40, p=0.05)", "schedule(laws=[lazy(stay=0.5), drift()], turn=3)", 16),
    ("st_er(nodes=40, p=0.05)", "schedule(laws=[lazy(stay=0), lazy(stay=0.9)])", 16),
]


def questions(law: WalkLaw) -> torch.Tensor:
    """Nothing revealed; prefixes, suffixes, ends, every other token; any part; any tokens."""
    rng = np.random.default_rng(5)
    walks, mask, length = law.sample(48, 3), law.vocab_size, law.length
    place = torch.arange(length)
    shown = torch.from_numpy(rng.random((48, length)) < rng.random((48, 1)))
    shown[0] = False
    shown[1:5], shown[5:9] = place < length // 3, place >= length - 2
    shown[9:17], shown[17:21] = (place == 0) | (place == length - 1), place % 2 == 0
    walks[36:] = torch.from_numpy(rng.integers(0, mask, (12, length)))
    return torch.where(shown, walks, mask)


@pytest.mark.parametrize(("graph", "walk", "length"), WORLDS)
def test_every_family_and_law_as_the_dense_oracle(
    form: str, graph: str, walk: str, length: int
) -> None:
    law = WALKS.build(walk, graph=GRAPHS.build(graph, seed=1), length=length)
    tokens = questions(law)
    dense, sparse = oracle_for(law), SparseOracle(law)  # type: ignore[arg-type]
    assert isinstance(dense, ChainOracle | ScheduleOracle)
    here, there = sparse(tokens), dense(tokens)
    assert torch.equal(here == -torch.inf, there == -torch.inf)
    torch.testing.assert_close(here.exp(), there.exp(), rtol=1e-12, atol=1e-15)
    assert sparse.impossible == dense.impossible > 0
    masked = tokens == law.vocab_size
    some = masked & (torch.arange(length) % 3 == 1)
    assert torch.equal(sparse(tokens, some), here[some[masked]])


@pytest.mark.parametrize("law", [random_chain(7, 9, 5), random_dag(2, 4, 5)])
def test_an_answer_belongs_to_its_row(
    form: str, law: ChainLaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle, tokens = SparseOracle(law), canvases(law, 32, 1)
    masked = tokens == law.vocab_size
    table = torch.zeros((*tokens.shape, law.vocab_size), dtype=torch.float64)
    table[masked] = oracle(tokens)
    for row in range(32):
        assert torch.equal(oracle(tokens[row : row + 1]), table[row][masked[row]])
    for module in (messages, steps):
        monkeypatch.setattr(module, "WORKING", 2 * law.vocab_size)  # two vectors at a time
    assert torch.equal(oracle(tokens), table[masked])


def test_senseless_and_empty_questions() -> None:
    law = random_chain(4, 5, 0)
    oracle = SparseOracle(law)
    assert oracle(law.sample(3, 0)).shape == (0, 4) and oracle(law.sample(0, 0)).shape == (0, 4)
    with pytest.raises(MaskwalkError):
        oracle(torch.full((1, 4), 4))


def test_long_walks() -> None:
    """1,536 tokens: 0.1 ** 1535 is below float64, what is asked about is not."""
    graph = GRAPHS.build("st_er(nodes=20, p=0.1)", seed=0)
    law = WALKS.build("lazy(stay=0.125)", graph=graph, length=1536)
    oracle, dense = SparseOracle(law), ChainOracle(law)  # type: ignore[arg-type]
    tokens = law.sample(3, 0)
    tokens[:, 1:-1] = 20
    tokens[1, 700] = 3
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[:, [1, 2, 400, 768, 1100, 1533, 1534]] = True
    torch.testing.assert_close(
        oracle(tokens, at).exp(), dense(tokens, at).exp(), rtol=1e-11, atol=0
    )
    blank = torch.full((1, 1536), 20)
    walked = decode("bisection", oracle, blank, streams=Streams(0, 1))
    assert bool(law.valid(walked.tokens).all()) and int(walked.calls[0]) == 11


def test_a_long_way_without_a_walk_is_told_from_one_too_unlikely() -> None:
    """Up a ladder: 400 steps of 0.1 end at 1e-400, which float64 does not hold; 401 rungs do not
    fit into 400 steps at all, and the limit of a leak answers."""
    rungs = 402
    kernel = 0.9 * np.eye(rungs) + 0.1 * np.eye(rungs, k=1)
    kernel[-1, -1] = 1.0
    start = torch.zeros(rungs, dtype=torch.float64)
    start[0] = 1.0
    law = ChainLaw(start, kernel, 401)
    oracle = SparseOracle(law)
    tokens = torch.full((1, 401), rungs)
    tokens[0, 0], tokens[0, -1] = 0, 400
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[0, 200] = True
    answer = oracle(tokens, at).exp()  # 1e-400 itself is held: 2^500 times 2^500 times
    assert answer[0, 200] == pytest.approx(1.0, abs=1e-12) and oracle.impossible == 0
    tokens[0, -1] = 401
    answer = oracle(tokens, at).exp()
    assert oracle.impossible == 1 and answer.sum() == pytest.approx(1.0)
    steep = ChainLaw(
        start, np.where(kernel == 0.1, 1e-3, np.where(kernel == 0.9, 0.999, kernel)), 401
    )
    tokens[0, -1] = 400
    with pytest.raises(MaskwalkError, match="too small for float64"):
        SparseOracle(steep)(tokens, at)


def test_a_table_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS.build("st_er(nodes=200000, p=0)", seed=0)
    law = WALKS.build("lazy(stay=0.1)", graph=graph, length=1536)
    oracle = oracle_for(law)
    assert isinstance(oracle, SparseOracle)
    monkeypatch.setenv("MASKWALK_MEMORY", "2")
    with pytest.raises(MaskwalkError, match=r"1,536 places over 200,000 nodes .* bisection"):
        oracle(torch.full((1, 1536), 200_000))


MEMORY = """
import resource, torch
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS
from maskwalk.worlds.walks.oracles import SparseOracle
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
graph = GRAPHS.build("community_chain(communities=60, nodes=500, p=0.01)", seed=0)
law = WALKS.build("lazy(stay=0.125)", graph=graph, length=1536)
tokens = law.sample(2, 0)
tokens[:, 1:-1] = 30000
at = torch.zeros_like(tokens, dtype=torch.bool)
at[:, 768] = True
oracle = SparseOracle(law)
oracle(tokens[:, :], at & (torch.arange(1536) == 0))
before = peak()
answer = oracle(tokens, at)
assert answer.exp().sum(1).sub(1).abs().max() < 1e-9
print(peak() - before)
"""


def test_memory_of_a_question_does_not_grow_with_its_gap() -> None:
    """Two gaps of 1,535 steps among 30,000 nodes: a vector for each step would be 740 MB."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 60


def test_a_hundred_thousand_nodes_by_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS.build("community_chain(communities=200, nodes=500, p=0.01)", seed=2)
    law = WALKS.build("lazy(stay=0.125)", graph=graph, length=24)
    oracle = oracle_for(law)
    assert isinstance(oracle, SparseOracle) and law.vocab_size == 100_000
    tokens = law.sample(2, 1)
    truth = tokens.clone()
    tokens[0, 4:9] = tokens[1, 12:] = 100_000
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[0, 4:9:2] = at[1, 23] = True
    thin = oracle(tokens, at)
    monkeypatch.setattr(steps, "LARGE", 10**9)
    torch.testing.assert_close(thin.exp(), oracle(tokens, at).exp(), rtol=1e-12, atol=0)
    assert bool((thin.gather(1, truth[at][:, None]) > -torch.inf).all())
    blank = torch.full((2, 24), 100_000)
    walked = decode("bisection", oracle, blank, streams=Streams(3, 2))
    assert bool(law.valid(walked.tokens).all())


def test_schedules_share_a_kernel_between_turns() -> None:
    laws = [random_chain(5, 9, seed) for seed in (1, 2)]
    law = ScheduleLaw(laws, [0, 1] * 4)
    oracle = SparseOracle(law)
    oracle(canvases(law, 8, 0))
    assert len(oracle.steps(torch.device("cpu"))._kernels) == 2
