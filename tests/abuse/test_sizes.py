"""Work that would not fit or not end: a sentence before it begins, within seconds."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from maskwalk import resources
from maskwalk.bench.workers import check_workers
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.decoding.shared import decode_rows, filling_told
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.sizes import check_messages, fits
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, ChainLaw
from maskwalk.worlds.walks.oracles import ChainOracle, LiftedOracle, SparseOracle, oracle_for
from maskwalk.worlds.walks.oracles.chain_leaks import ChainLeaks
from maskwalk.worlds.walks.oracles.leaks import Leaks
from tests.abuse.case import Case, refused

MEMORY, TIME = "of memory; this machine has", "hours or more"
GRAPHS_ = {
    "st_er(nodes=111900, p=0.0091)": MEMORY,
    "st_er(nodes=1000000, p=0.001)": MEMORY,
    "st_er(nodes=1000000000, p=0)": "at most 5,000,000",
    "st_er(nodes=60000, p=1.0)": MEMORY,
    "weighted(nodes=200000, p=0.1)": MEMORY,
    "directed(nodes=5000000, p=0.00001)": MEMORY,
    "two_communities(nodes=2500001, p=0)": "at most 5,000,000",
    "two_communities(nodes=100000, p=0, bridges=2000000000)": MEMORY,
    "community_chain(communities=1000000)": "from 2 to 100000, not 1000000",
    "community_chain(communities=100000, nodes=1000)": "at most 5,000,000",
    "community_hierarchy(depth=1000, branching=2)": "the number of communities",
    "community_hierarchy(depth=16, branching=2, nodes=1000)": "the number of communities",
    "tree_line_dag(chains=100000, length=100000)": "at most 5,000,000",
    "bottleneck_dag(corridors=1000000, width=1000000)": "at most 5,000,000",
}
WORDS = {
    "count": (("--count", "1000000000"), MEMORY),
    "count and samples": (("--count", "1000000", "--per-prompt", "1000"), MEMORY),
    "more samples than are numbered": (
        ("--count", "1000000", "--per-prompt", "1001"),
        "1000000000",
    ),
    "length": (("--length", "65535"), TIME),
    "length and count": (("--length", "65535", "--count", "100000000"), MEMORY),
    "length, a call for each": (
        ("--length", "65535", "--count", "1", "--sampler", "entropy(block=1)"),
        "65,535 times, would take",
    ),
    "order": (("--walk", "markov(order=20)"), "entries"),
    "distance": (("--walk", "distant(K=20)"), "No exact oracle is possible"),
    "endpoints": (("--count", "1000000000", "--task", "endpoints"), MEMORY),
    "bottleneck": (
        ("--graph", "two_communities()", "--task", "bottleneck", "--count", "999999999"),
        MEMORY,
    ),
}
OTHERS = {
    "train: walks": ("train --out m --walks 999999999", MEMORY),
    "train: batch": ("train --out m --batch 100000000", MEMORY),
    "train: hidden": ("train --out m --hidden 16384 --blocks 256", MEMORY),
    "diagnose: count": ("diagnose --count 999999999 --samplers bisection", MEMORY),
    "latin: count": ("sample --world latin() --count 1000000000", MEMORY),
    "hmm: count": ("sample --world hmm() --count 999999999", MEMORY),
    "workers": ("bench quickstart --out o --workers 1000000", "workers is 1,000,000; this"),
    "workers of tune": ("tune --denoiser oracle --workers 1000000", "workers is 1,000,000; this"),
    "workers of diagnose": ("diagnose --timeout 9 --workers 99999", "workers is 99,999; this"),
    "potts: too long": ("sample --world potts(height=4,width=60000)", "height × width"),
}


def cases() -> list[Case]:
    rows = [Case(graph, ("sample", "--graph", graph), says) for graph, says in GRAPHS_.items()]
    rows += [Case(name, ("sample", *words), says) for name, (words, says) in WORDS.items()]
    rows += [Case(name, tuple(words.split()), says) for name, (words, says) in OTHERS.items()]
    argv = ("sample", "--graph", "st_er(nodes=200000, p=0.02)")
    return [*rows, Case("process", argv, MEMORY, process=True)]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same machine everywhere: 16 GB."""
    monkeypatch.setenv("MASKWALK_MEMORY", "16")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_too_large_is_a_sentence_at_once(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.process_time()
    refused(case, tmp_path, capsys, monkeypatch)
    assert time.process_time() - began < 10


def test_a_file_of_ten_million_edges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "edges.txt").write_bytes(b"123456 654321\n" * 10_000_000)
    case = Case("edges", ("sample", "--graph", "file(path='edges.txt')"), "10,000,000 lines")
    refused(case, tmp_path, capsys, monkeypatch)


def test_a_process_for_each_core_is_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert check_workers(32) == 32
    for memory, most in (("16", 32), ("4", 10), ("0.5", 4)):
        monkeypatch.setenv("MASKWALK_MEMORY", memory)
        with pytest.raises(MaskwalkError, match=f"Give at most {most}"):
            check_workers(33)


def test_filling_is_told_while_it_lasts() -> None:
    blank, told = torch.full((5, 8), 12), []
    with filling_told(lambda done, total: told.append((done, total))):
        decode_rows(
            SAMPLERS.build("random(block=4)"), oracle_for(law_of(12, 8)), blank, seed=1, batch=2
        )
    assert told == [(n, 40) for n in (0, 8, 16, 16, 24, 32, 32, 36, 40)]


def test_memory_is_what_is_free_shared_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resources.available_memory() == 16 * 10**9
    monkeypatch.setenv("MASKWALK_PROCESSES", "4")
    assert resources.available_memory() == 4 * 10**9
    with pytest.raises(MaskwalkError, match=r"5\.0 GB .* 4\.0 GB free for each of 4 processes\."):
        fits("This", 5e9, "Use less.")
    monkeypatch.delenv("MASKWALK_MEMORY")
    monkeypatch.delenv("MASKWALK_PROCESSES")
    assert 10**8 < resources.available_memory() < 2**50


def test_memory_of_a_control_group(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert list(resources._left(tmp_path, "memory.max", "memory.current")) == [2000]
    (tmp_path / "memory.max").write_text("max\n")
    assert list(resources._left(tmp_path, "memory.max", "memory.current")) == []
    assert list(resources._left(tmp_path / "none", "memory.max", "memory.current")) == []


def test_long_sequences_are_answered_for_if_they_are_few() -> None:
    check_messages(2, 65_535, 500, 2000)
    with pytest.raises(MaskwalkError, match="Use a smaller count"):
        check_messages(512, 65_535, 500, 2000)


def law_of(nodes: int, length: int = 24) -> ChainLaw:
    graph = GRAPHS.build(f"st_er(nodes={nodes}, p=0)", seed=1)
    law = WALKS.build("lazy(stay=0.1)", graph=graph, length=length)
    assert isinstance(law, ChainLaw)
    return law


def test_tables_are_dense_only_where_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    small, middle, large = law_of(500), law_of(2400), law_of(3000)
    assert isinstance(oracle_for(small), ChainOracle)
    assert isinstance(oracle_for(middle), ChainOracle)
    assert isinstance(oracle_for(large), SparseOracle)
    monkeypatch.setenv("MASKWALK_PROCESSES", "8")
    assert isinstance(oracle_for(middle), SparseOracle)
    assert isinstance(oracle_for(small), ChainOracle)


@pytest.mark.parametrize(
    ("graph", "walk", "length"),
    [
        ("st_er(nodes=9, p=0.05)", "lazy(stay=0.1)", 7),
        ("directed(nodes=7, p=0.05)", "lazy(stay=0.2)", 6),
        ("tree_line_dag(chains=3, length=4)", "dag()", 5),
        ("bottleneck_dag(corridors=2, width=2)", "dag()", 8),
    ],
)
def test_impossible_evidence_without_a_dense_kernel(graph: str, walk: str, length: int) -> None:
    """The sparse limit of a vanishing leak is the dense one."""
    law = WALKS.build(walk, graph=GRAPHS.build(graph, seed=1), length=length)
    assert isinstance(law, ChainLaw)
    generator = np.random.Generator(np.random.Philox(7))
    tokens = torch.from_numpy(generator.integers(0, law.vocab_size, (200, length)))
    tokens[torch.from_numpy(generator.random(tokens.shape) < 0.5)] = law.vocab_size
    device = torch.device("cpu")
    masked = tokens == law.vocab_size
    sparse, dense = (kind(law, device).marginals(tokens)[masked] for kind in (ChainLeaks, Leaks))
    totals = dense.sum(1, keepdim=True)
    torch.testing.assert_close(
        sparse / sparse.sum(1, keepdim=True), dense / totals, rtol=1e-12, atol=0
    )
    oracle, tables = LiftedOracle(law), ChainOracle(law)
    torch.testing.assert_close(oracle(tokens).exp(), tables(tokens).exp(), rtol=1e-9, atol=1e-15)
    assert tables.impossible > 10


def test_impossible_evidence_among_8000_nodes_is_answered_at_once() -> None:
    law = law_of(8000)
    oracle = oracle_for(law)
    tokens = torch.full((4, 24), 8000)
    tokens[:, 0], tokens[:, 2] = 0, torch.arange(4) + 100
    began = time.process_time()
    answer = oracle(tokens, (tokens == 8000) & (torch.arange(24) == 1))
    assert time.process_time() - began < 10
    assert bool((answer.exp().sum(1) - 1).abs().max() < 1e-12)
    assert getattr(oracle, "impossible", 0) > 0


def test_a_radius_beyond_the_canvas_is_the_whole_canvas() -> None:
    from maskwalk.decoding.decode import decode
    from maskwalk.streams import Streams

    oracle = oracle_for(law_of(12, 8))
    blank = torch.full((16, 8), oracle.mask_id)
    wide, whole = (
        decode(f"local_leap(0.5, 0.2, {radius})", oracle, blank, streams=Streams(1, 16))
        for radius in (8, 2**31 - 1)
    )
    assert torch.equal(wide.tokens, whole.tokens) and torch.equal(wide.calls, whole.calls)
