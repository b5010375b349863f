"""Every oracle equals enumeration, possible evidence or not; enumeration equals the definition."""

import itertools
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwalk.worlds.walks.oracles
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, ChainLaw, ScheduleLaw, WalkLaw
from maskwalk.worlds.walks.oracles import (
    ChainOracle,
    EnumerationOracle,
    LiftedOracle,
    ScheduleOracle,
    SparseOracle,
    oracle_for,
)
from maskwalk.worlds.walks.oracles.base import LEAK, Oracle

seeds = st.integers(0, 2**32 - 1)


class TableLaw(WalkLaw):
    """A random order-k law with many zeros; some histories may have no way on."""

    def __init__(self, vocab: int, length: int, order: int, dead: float, seed: int) -> None:
        super().__init__(vocab, length, order, None)
        rng = np.random.default_rng(seed)
        self.tables = []
        for past in range(order + 1):
            probs = rng.random((vocab**past, vocab)) ** 3
            probs *= rng.random(probs.shape) < 0.5
            empty = probs.sum(1) == 0
            probs[empty, rng.integers(0, vocab, empty.sum())] = 1.0
            probs /= probs.sum(1, keepdims=True)
            if past:
                probs[rng.random(len(probs)) < dead] = 0.0
            self.tables.append(torch.from_numpy(probs))

    def next_probs(self, history: torch.Tensor) -> torch.Tensor:
        powers = self.vocab_size ** torch.arange(history.shape[1]).flip(0)
        return self.tables[history.shape[1]][(history * powers).sum(1)]


def random_table(vocab: int, length: int, order: int, dead: float, seed: int) -> TableLaw:
    """A TableLaw that has at least three walks."""
    laws = (TableLaw(vocab, length, order, dead, seed + i) for i in itertools.count())
    return next(law for law in laws if len(law.support()[0]) >= 3)


def random_chain(vocab: int, length: int, seed: int, density: float = 0.4) -> ChainLaw:
    rng = np.random.default_rng(seed)
    kernel = rng.random((vocab, vocab)) ** 3 * (rng.random((vocab, vocab)) < density)
    empty = kernel.sum(1) == 0
    kernel[empty, rng.integers(0, vocab, empty.sum())] = 1.0
    start = rng.random(vocab) * (rng.random(vocab) < 0.5)
    start[rng.integers(vocab)] += 0.1
    kernel /= kernel.sum(1, keepdims=True)
    return ChainLaw(torch.from_numpy(start / start.sum()), kernel, length)


def random_dag(width: int, length: int, seed: int) -> ChainLaw:
    """Levels of `width` nodes, some arcs between neighbours; rows of the last level are zero."""
    rng = np.random.default_rng(seed)
    kernel = np.zeros((width * length, width * length))
    for node in range(width * (length - 1)):
        first = (node // width + 1) * width
        arcs = first + rng.choice(width, rng.integers(1, width + 1), replace=False)
        kernel[node, arcs] = rng.dirichlet(np.ones(len(arcs)))
    start = np.zeros(width * length)
    start[:width] = 1 / width
    return ChainLaw(torch.from_numpy(start), kernel, length)


def random_schedule(vocab: int, length: int, seed: int) -> ScheduleLaw:
    """Another sparse kernel at every step; from half of where no walk gets, no way on."""
    rng = np.random.default_rng(seed)
    laws: list[ChainLaw] = []
    at = random_chain(vocab, 2, seed).initial.numpy()
    for t in range(length - 1):
        alive = (at > 0) | (rng.random(vocab) < 0.5)
        step = random_chain(vocab, 2, seed + t, density=0.3).transition.numpy() * alive[:, None]
        laws.append(ChainLaw(torch.from_numpy(at / at.sum()), step, 2))
        at = at @ step
    return ScheduleLaw(laws, range(length - 1))


def marginals_of(law: ScheduleLaw) -> np.ndarray:
    """The law of the token at each position, by dense products."""
    rows = [law.initial.numpy()]
    for _, step in law.steps():
        rows.append(rows[-1] @ step.transition.numpy())
    return np.stack(rows)


def canvases(law: WalkLaw, count: int, seed: int) -> torch.Tensor:
    """Half of them parts of walks, half of them arbitrary tokens, mostly impossible."""
    rng = np.random.default_rng(seed)
    walks = law.support()[0]
    tokens = walks[torch.from_numpy(rng.integers(0, len(walks), count))]
    noise = torch.from_numpy(rng.integers(0, law.vocab_size, tokens.shape))
    tokens[count // 2 :] = noise[count // 2 :]
    hidden = rng.random(tokens.shape) < rng.random((count, 1))
    return tokens.masked_fill(torch.from_numpy(hidden), law.vocab_size)


def assert_same(got: torch.Tensor, want: torch.Tensor) -> None:
    """Equal to 1e-12 in every logarithm, and zero in exactly the same places."""
    assert got.shape == want.shape and got.dtype == torch.float64
    assert torch.equal(got == -torch.inf, want == -torch.inf)
    finite = want > -torch.inf
    assert not got.isnan().any()
    torch.testing.assert_close(got[finite], want[finite], rtol=0, atol=1e-12)
    torch.testing.assert_close(got.exp().sum(1), torch.ones(len(got)).double(), rtol=0, atol=1e-12)


def possible(law: WalkLaw, tokens: torch.Tensor) -> torch.Tensor:
    walks = law.support()[0]
    agree = (tokens[:, None] == law.vocab_size) | (tokens[:, None] == walks)
    return agree.all(2).any(1)


def by_definition(law: WalkLaw, tokens: torch.Tensor, leak: float) -> torch.Tensor:
    """Σ ∏ (p + leak) over all sequences, one by one, with none of the oracles' shortcuts."""
    rows = []
    for canvas in tokens.tolist():
        free = [[t] if t < law.vocab_size else range(law.vocab_size) for t in canvas]
        sequences = torch.tensor(list(itertools.product(*free)))
        weight = torch.ones(len(sequences), dtype=torch.float64)
        for t in range(law.length):
            past = sequences[:, max(0, t - law.order) : t]
            weight *= law.step_probs(t, past).gather(1, sequences[:, t, None])[:, 0] + leak
        for i, token in enumerate(canvas):
            if token == law.vocab_size:
                row = torch.zeros(law.vocab_size, dtype=torch.float64)
                rows.append(row.index_add(0, sequences[:, i], weight) / weight.sum())
    return torch.stack(rows) if rows else torch.zeros((0, law.vocab_size), dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), seeds)
def test_chain_oracle_is_exact(vocab: int, length: int, seed: int) -> None:
    law = random_chain(vocab, length, seed)
    tokens = canvases(law, 16, seed)
    truth = EnumerationOracle(law)(tokens)
    assert_same(ChainOracle(law)(tokens), truth)
    assert_same(LiftedOracle(law)(tokens), truth)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 2), st.integers(2, 4), seeds)
def test_dag_oracles_are_exact(width: int, length: int, seed: int) -> None:
    law = random_dag(width, length, seed)
    tokens = canvases(law, 16, seed)
    truth = EnumerationOracle(law)(tokens)
    assert_same(ChainOracle(law)(tokens), truth)
    assert_same(LiftedOracle(law)(tokens), truth)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), seeds)
def test_schedule_oracles_are_exact(vocab: int, length: int, seed: int) -> None:
    """A kernel per step, rows without a way on among them; possible evidence or not."""
    law = random_schedule(vocab, length, seed)
    np.testing.assert_allclose(law.marginals().numpy(), marginals_of(law), rtol=0, atol=1e-14)
    tokens = canvases(law, 16, seed)
    truth = EnumerationOracle(law)(tokens)
    assert_same(ScheduleOracle(law)(tokens), truth)
    assert_same(LiftedOracle(law)(tokens), truth)


def test_a_schedule_of_one_law_is_that_law() -> None:
    chain = random_chain(6, 8, 3)
    law = ScheduleLaw([chain], [0] * 7)
    tokens = canvases(chain, 64, 3)
    assert 0 < int(possible(chain, tokens).sum()) < 64
    assert_same(ScheduleOracle(law)(tokens), ChainOracle(chain)(tokens))
    assert torch.equal(law.sample(50, 1), chain.sample(50, 1))
    assert law.entropy() == pytest.approx(chain.entropy(), abs=1e-12)


def test_schedules_of_dags_that_take_several_leaks() -> None:
    """No way on from the last level and none to the first: one leak is not enough."""
    one, two = random_dag(2, 5, 1), random_dag(2, 5, 2)
    law = ScheduleLaw([one, two], [0, 1, 1, 0])
    rows = ["6...0", "8...1", "9.9.9", "4....", "..0.1", ".9.0.", "6..0.", "77..0"]
    tokens = torch.tensor([[10 if c == "." else int(c) for c in row] for row in rows])
    truth = EnumerationOracle(law)(tokens)
    assert not possible(law, tokens).any()
    assert_same(ScheduleOracle(law)(tokens), truth)
    assert_same(LiftedOracle(law)(tokens), truth)


def test_the_order_of_the_turns_matters() -> None:
    """Two kernels that do not commute: their powers and the other order are both wrong."""
    laws = [random_chain(4, 6, seed, density=0.9) for seed in (1, 2)]
    here, there = ScheduleLaw(laws, [0, 0, 0, 1, 1]), ScheduleLaw(laws, [1, 1, 0, 0, 0])
    tokens = torch.tensor([[0, 4, 4, 4, 4, 1]])
    assert (
        ScheduleOracle(here)(tokens).exp() - ScheduleOracle(there)(tokens).exp()
    ).abs().max() > 0.05
    assert (
        ScheduleOracle(here)(tokens).exp() - ChainOracle(laws[0])(tokens).exp()
    ).abs().max() > 0.05


def test_turns_in_another_order_back_as_forth() -> None:
    """A fixed schedule that is no palindrome, by tables and by messages, as enumerated."""
    laws = [random_chain(4, 5, seed, density=0.9) for seed in (1, 2)]
    law = ScheduleLaw(laws, [0, 0, 1, 0])
    tokens = canvases(law, 24, 3)
    truth = EnumerationOracle(law)(tokens)
    assert_same(ScheduleOracle(law)(tokens), truth)
    assert_same(SparseOracle(law)(tokens), truth)


def test_words_of_turns_are_tabled_once() -> None:
    laws = [random_chain(4, 10, seed) for seed in (1, 2)]
    assert len(ScheduleOracle(ScheduleLaw(laws, [0, 1] * 4 + [0])).words) == 2 * 9 - 1
    assert len(ScheduleOracle(ScheduleLaw(laws, [0] * 5 + [1] * 4)).words) == 5 + 4 + 5 * 4


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 3, 4]), st.integers(2, 4), st.integers(2, 6), seeds)
def test_lifted_oracle_is_exact(order: int, vocab: int, length: int, seed: int) -> None:
    law = random_table(vocab, length, order, dead=0.1 * (seed % 2), seed=seed)
    tokens = canvases(law, 16, seed)
    assert_same(LiftedOracle(law)(tokens), EnumerationOracle(law)(tokens))


def test_distant_walks_of_order_five() -> None:
    graph = GRAPHS.build("st_er(nodes=6, p=0.1)", seed=3)
    law = WALKS.build("distant(K=4, skip_recent=2)", graph=graph, length=7)
    tokens = canvases(law, 24, 0)
    assert law.order == 5 and 0 < int(possible(law, tokens).sum()) < 24
    assert_same(oracle_for(law)(tokens), EnumerationOracle(law)(tokens))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_enumeration_is_the_definition(order: int) -> None:
    law = random_table(3, 5, order, dead=0.0, seed=order)
    tokens = canvases(law, 24, order)
    tokens = tokens[possible(law, tokens)]
    assert len(tokens) >= 12
    want = by_definition(law, tokens, leak=0.0).log()
    assert_same(EnumerationOracle(law)(tokens), want)


@pytest.mark.parametrize("kind", ["chain", "dag", "schedule", "order 2", "order 3"])
def test_impossible_evidence_is_the_limit_of_a_leak(kind: str) -> None:
    law: WalkLaw = {
        "chain": random_chain(4, 5, 1, density=0.3),
        "dag": random_dag(2, 4, 1),
        "schedule": random_schedule(4, 5, 1),
        "order 2": random_table(3, 5, 2, dead=0.1, seed=4),
        "order 3": random_table(3, 6, 3, dead=0.1, seed=4),
    }[kind]
    tokens = canvases(law, 40, 7)
    tokens = tokens[~possible(law, tokens)]
    assert len(tokens) >= 8
    # m(ε) = m + c ε + O(ε²): two leaks cancel the first-order term.
    near, far = (by_definition(law, tokens, leak) for leak in (1e-9, 2e-9))
    limit = 2 * near - far
    for oracle in (EnumerationOracle(law), oracle_for(law), LiftedOracle(law)):
        torch.testing.assert_close(oracle(tokens).exp(), limit, rtol=0, atol=1e-7)


def test_impossible_evidence_in_a_stochastic_chain_has_the_closed_form() -> None:
    law = ChainLaw(
        torch.full((6,), 1 / 6, dtype=torch.float64), np.roll(np.eye(6), 1, 1), 9
    )  # a cycle
    tokens = torch.full((1, 9), 6)
    tokens[0, 1], tokens[0, 6] = 2, 3  # five steps on from 2 lies 1
    kernel = law.transition
    powers = [torch.linalg.matrix_power(kernel, n) for n in range(9)]

    def leak(n: int) -> torch.Tensor:
        return torch.stack([powers[r].sum(0) for r in range(n)]).sum(0)

    answer = ChainOracle(law)(tokens).exp()
    for i, row in zip(range(2, 6), answer[1:]):
        g, h = i - 1, 6 - i
        weight = leak(g) * powers[h][:, 3] + powers[g][2] * leak(h)[3]
        torch.testing.assert_close(row, weight / weight.sum(), rtol=0, atol=1e-14)


def test_impossible_gaps_leave_possible_ones_exact() -> None:
    law = random_chain(5, 8, 3, density=0.2)
    walk = law.support()[0][0]
    tokens = walk.clone()
    tokens[[1, 2, 5, 6]] = law.vocab_size
    broken = tokens.clone()
    oracle = ChainOracle(law)
    spoiled = False
    for token in range(law.vocab_size):
        broken[7] = token
        answer = oracle(broken[None])
        assert torch.equal(answer[:2], oracle(tokens[None])[:2])
        spoiled |= not bool(possible(law, broken[None])[0])
    assert spoiled


LAWS = {
    "chain": lambda: random_chain(7, 9, 5),
    "dag": lambda: random_dag(2, 4, 5),
    "schedule": lambda: random_schedule(6, 6, 5),
    "lifted": lambda: random_table(3, 8, 3, dead=0.05, seed=2),
}


PAIRS = [
    pytest.param(name, kind, id=f"{name}-{kind.__name__}")
    for name in LAWS
    for kind in (oracle_for, LiftedOracle, EnumerationOracle)
    if (name, kind) != ("chain", EnumerationOracle)  # 7^9 sequences
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_an_answer_belongs_to_its_row(name: str, kind: Callable[[WalkLaw], Oracle]) -> None:
    law = LAWS[name]()
    oracle = kind(law)
    assert isinstance(oracle, Denoiser) and oracle.mask_id == law.vocab_size
    assert oracle.score_grid == 1e-9 and LEAK in oracle.notes
    tokens = canvases(law, 64, 1)
    masked = tokens == law.vocab_size
    answer = oracle(tokens)
    assert answer.shape == (int(masked.sum()), law.vocab_size)
    rng = torch.Generator().manual_seed(0)
    # a subset of the places
    at = masked & (torch.rand(masked.shape, generator=rng) < 0.5)
    assert torch.equal(oracle(tokens, at), answer[at[masked]])
    # a permuted batch, and every row on its own
    order = torch.randperm(64, generator=rng)
    table = torch.zeros((*tokens.shape, law.vocab_size), dtype=torch.float64)
    table[masked] = answer
    assert torch.equal(oracle(tokens[order]), table[order][masked[order]])
    for row in range(0, 64, 9):
        assert torch.equal(oracle(tokens[row : row + 1]), table[row][masked[row]])


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_nothing_to_answer(name: str, kind: Callable[[WalkLaw], Oracle]) -> None:
    law = LAWS[name]()
    oracle = kind(law)
    walks = law.support()[0][:3]
    for tokens in (walks, walks[:0], torch.zeros_like(walks)):
        assert oracle(tokens).shape == (0, law.vocab_size)
    mixed = walks.clone()
    mixed[1, 1] = law.vocab_size
    assert oracle(mixed).shape == (1, law.vocab_size)
    assert oracle(mixed, torch.zeros_like(mixed, dtype=torch.bool)).shape == (0, law.vocab_size)


def test_walks_of_two_tokens_and_walks_shorter_than_the_order() -> None:
    for order in (1, 3):
        law = random_table(4, 2, order, dead=0.0, seed=0)
        tokens = torch.cartesian_prod(torch.arange(5), torch.arange(5))
        assert_same(LiftedOracle(law)(tokens), EnumerationOracle(law)(tokens))


def test_long_walks_do_not_underflow() -> None:
    """0.125 ** 400 is below float64; the powers of the kernel are not."""
    law = WALKS.build(
        "lazy(stay=0.125)", graph=GRAPHS.build("st_er(nodes=8, p=0.2)", seed=0), length=400
    )
    tokens = law.sample(4, 0)
    tokens[torch.rand(tokens.shape, generator=torch.Generator().manual_seed(0)) < 0.9] = 8
    assert_same(ChainOracle(law)(tokens), LiftedOracle(law)(tokens))


def test_probabilities_too_small_for_float64_are_refused() -> None:
    kernel = np.diag(np.full(6, 1 - 1e-100)) + np.diag(np.full(5, 1e-100), 1)
    kernel[5, 5] = 1.0
    law = ChainLaw(torch.full((6,), 1 / 6, dtype=torch.float64), kernel / kernel.sum(1)[:, None], 6)
    tokens = torch.tensor([[0, 6, 6, 6, 6, 5]])
    timed = ScheduleLaw([law, law], [0, 1, 0, 1, 0])
    for oracle in (ChainOracle(law), LiftedOracle(law), ScheduleOracle(timed)):
        with pytest.raises(MaskwalkError, match="too small for float64"):
            oracle(tokens)
    # Two such steps are fine.
    tokens = torch.tensor([[0, 6, 6, 2, 6, 6]])
    assert torch.isfinite(LiftedOracle(law)(tokens)[0, :2]).all()


def test_a_schedule_too_large_for_tables_has_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    law = random_schedule(4, 5, 0)
    assert isinstance(oracle_for(law), ScheduleOracle)
    monkeypatch.setattr(maskwalk.worlds.walks.oracles, "SCHEDULE_LIMIT", 100)
    assert isinstance(oracle_for(law), SparseOracle)
    with pytest.raises(MaskwalkError, match="tables of this schedule, 4 nodes and length 5"):
        ScheduleOracle(law, limit=100)


def test_what_is_too_large_is_refused_with_its_size() -> None:
    graph = GRAPHS.build("st_er(nodes=500, p=0.01)", seed=0)
    distant = WALKS.build("distant(K=4, skip_recent=2)", graph=graph, length=24)
    with pytest.raises(MaskwalkError, match=r"500\^5 = 31,250,000,000,000 states"):
        oracle_for(distant)
    lazy = WALKS.build("lazy(stay=0.125)", graph=graph, length=24)
    with pytest.raises(MaskwalkError, match=r"500 nodes and length 24 take 0\.1 GB.*SparseOracle"):
        ChainOracle(lazy, limit=10**7)
    with pytest.raises(MaskwalkError, match="all 500"):
        EnumerationOracle(random_chain(500, 3, 0, density=0.003))(torch.tensor([[0, 0, 500]] * 500))


def test_too_many_transitions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwalk.worlds.walks.oracles.lattice.TRANSITIONS", 100)
    with pytest.raises(MaskwalkError, match="125 states and more than 100 transitions"):
        law = random_table(5, 4, 3, dead=0.0, seed=0)
        LiftedOracle(law)(torch.full((1, 4), 5))


def test_a_chain_too_large_for_tables_has_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    law = random_chain(5, 5, 0)
    assert isinstance(oracle_for(law), ChainOracle)
    monkeypatch.setattr(maskwalk.worlds.walks.oracles, "LIMIT", 100)
    assert isinstance(oracle_for(law), SparseOracle)


def test_senseless_questions_are_refused() -> None:
    law = random_chain(5, 5, 0)
    for oracle in (
        ChainOracle(law),
        ScheduleOracle(ScheduleLaw([law], [0] * 4)),
        LiftedOracle(law),
        EnumerationOracle(law),
    ):
        with pytest.raises(MaskwalkError, match="has 4 positions but the world's sequences have 5"):
            oracle(torch.full((1, 4), 5))
        with pytest.raises(MaskwalkError, match="tokens from 5 to 6; they are 0 to 4"):
            oracle(torch.tensor([[5, 5, 6, 5, 5]]))
        with pytest.raises(MaskwalkError, match="revealed position"):
            oracle(torch.tensor([[5, 5, 0, 5, 5]]), torch.ones((1, 5), dtype=torch.bool))


def test_memory_stays_bounded_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of one row give the same answers as one chunk."""
    chain, lifted = random_chain(6, 7, 1), random_table(3, 6, 2, dead=0.1, seed=1)
    limits = ("gaps.CACHE", "lifted.WORKING", "leaks.WORKING", "enumeration.WORKING")
    for law, name in zip((chain, lifted, lifted, lifted), limits):
        tokens = canvases(law, 32, 0)
        make = EnumerationOracle if name.startswith("enumeration") else oracle_for
        want = make(law)(tokens)
        with monkeypatch.context() as patch:
            patch.setattr(f"maskwalk.worlds.walks.oracles.{name}", 1)
            assert_same(make(law)(tokens), want)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_five_hundred_nodes_take_less_than_a_gigabyte() -> None:
    program = """
import torch
from pathlib import Path
from maskwalk import GRAPHS, WALKS, oracle_for
graph = GRAPHS.build("st_er(nodes=500, p=0.01)", seed=0)
law = WALKS.build("lazy(stay=0.125)", graph=graph, length=24)
answer = oracle_for(law)(torch.full((512, 24), 500))
assert answer.shape == (512 * 24, 500)
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    # Not getrusage: its peak survives exec, so it would be that of the process running the tests.
    assert int(done.stdout) < 10**6


def test_thirty_nodes_of_order_three() -> None:
    graph = GRAPHS.build("st_er(nodes=30, p=0.05)", seed=0)
    law = WALKS.build("markov(order=3, seed=0)", graph=graph, length=24)
    tokens = law.sample(8, 0)
    hidden = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(0)) < 0.7
    answer = oracle_for(law)(tokens.masked_fill(hidden, 30))
    truth = answer.gather(1, tokens[hidden][:, None])
    assert torch.isfinite(truth).all()
    # The last token hidden alone is the kernel itself.
    tokens[:, -1] = 30
    assert_same(oracle_for(law)(tokens), law.next_probs(tokens[:, -4:-1]).log())
