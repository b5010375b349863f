"""The exact worlds against their definitions, whatever the parameters and the evidence."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor

from maskwalk import SAMPLERS, TASKS, WORLDS, Streams, decode
from maskwalk.analysis.law import sampler_law, total_variation
from maskwalk.analysis.replay import bridges
from maskwalk.stats import goodness_of_fit
from maskwalk.worlds.exact.listing import listing, support_of
from tests.worlds_by_definition import PALINDROMES, normalised, weights_of

FALSE_ALARM = 1e-6  # of each chi-square test; seeds are fixed, so a pass stays a pass
PATTERNS = ["(a|b)*", "((a|b)c*(a|b))*", "a?[bc]{1,3}.+", "(ab|c)*", "a*|[a-c]b*", "(a.)*b?"]
seeds = st.integers(0, 1000)


def params(name: str, **values: Any) -> Any:
    return st.tuples(st.just(name), st.fixed_dictionaries(values))


@st.composite
def automata(draw: Any) -> tuple[str, dict[str, Any]]:
    """An automaton that accepts all words through its first letter, and others by chance."""
    states = draw(st.integers(1, 4))
    rows = draw(st.lists(st.integers(-1, states - 1), min_size=states, max_size=states))
    loops = [[i, row] for i, row in enumerate(rows)]
    accepting = sorted({0, draw(st.integers(0, states - 1))})
    length = draw(st.integers(1, 6))
    return "regular", {"dfa": loops, "accepting": accepting, "length": length, "alphabet": "ab"}


@st.composite
def trees(draw: Any) -> tuple[str, dict[str, Any]]:
    branching, symbols = draw(st.sampled_from([(2, 2), (2, 3), (3, 2)]))
    depth = draw(st.integers(1, 2 if branching == 3 else 3))
    synonyms = draw(st.integers(1, 2 if depth > 1 else symbols))
    nodes, seed = draw(st.sampled_from(["hidden", "shown"])), draw(seeds)
    shape = {"depth": depth, "branching": branching, "symbols": symbols, "synonyms": synonyms}
    return "hierarchy", {**shape, "nodes": nodes, "seed": seed}


@st.composite
def strips(draw: Any) -> tuple[str, dict[str, Any]]:
    shapes = [(1, 1, 3), (1, 5, 3), (2, 3, 2), (3, 2, 2), (2, 2, 3), (3, 3, 2), (2, 4, 2)]
    height, width, states = draw(st.sampled_from(shapes))
    beta, order = draw(st.floats(-2, 2)), draw(st.sampled_from(["rows", "columns"]))
    shape = {"height": height, "width": width, "states": states}
    return "potts", {**shape, "beta": beta, "order": order}


WORLDS_OF = {
    "latin": params("latin", n=st.integers(2, 4)),
    "sudoku": params("sudoku", box=st.just(2)),
    "addition": params(
        "addition",
        digits=st.integers(1, 2),
        base=st.integers(2, 4),
        order=st.sampled_from(["plain", "reversed", "interleaved"]),
    ),
    "regular": params(
        "regular",
        pattern=st.sampled_from(PATTERNS),
        alphabet=st.just("abc"),
        length=st.sampled_from([2, 4, 6]),
        weights=st.none() | st.tuples(*[st.floats(0.1, 2)] * 3).map(list),
    ),
    "automaton": automata(),
    "dyck": params(
        "dyck", kinds=st.integers(1, 2), depth=st.integers(1, 3), length=st.sampled_from([2, 4, 6])
    ),
    "hmm": params(
        "hmm",
        states=st.just(3),
        tokens=st.integers(2, 3),
        length=st.integers(1, 4),
        successors=st.integers(1, 3),
        emissions=st.integers(1, 2),
        seed=seeds,
    ),
    "pcfg": params(
        "pcfg",
        nonterminals=st.integers(2, 3),
        words=st.integers(2, 4),
        length=st.integers(1, 5),
        branches=st.integers(1, 3),
        lexicon=st.integers(1, 2),
        seed=seeds,
    ),
    "grammar": params("pcfg", grammar=st.just(PALINDROMES), length=st.sampled_from([1, 3, 5, 7])),
    "hierarchy": trees(),
    "potts": strips(),
}
each_world = pytest.mark.parametrize("name", WORLDS_OF)


def known(case: tuple[str, dict[str, Any]]) -> tuple[Any, Tensor, Tensor]:
    """A world with all its sequences and their probabilities, by its definition."""
    name, values = case
    world = WORLDS[name](**values)
    return world, *normalised(weights_of(world, values))


def conditionals(tokens: Tensor, probs: Tensor, canvas: Tensor, vocab: int) -> Tensor:
    """By enumeration, a row for each masked position; uniform where nothing agrees."""
    rows = []
    for line in canvas:
        weights = torch.where(((tokens == line) | (line == vocab)).all(1), probs, 0.0)
        for i in (line == vocab).nonzero()[:, 0].tolist():
            row = torch.zeros(vocab, dtype=torch.float64).index_add_(0, tokens[:, i], weights)
            rows.append(row / row.sum() if row.sum() > 0 else torch.full_like(row, 1 / vocab))
    return torch.stack(rows) if rows else torch.zeros((0, vocab), dtype=torch.float64)


def assert_same(log_probs: Tensor, truth: Tensor) -> None:
    """Equal to 1e-12 in every logarithm, and zero in exactly the same places."""
    assert log_probs.shape == truth.shape and log_probs.dtype == torch.float64
    assert torch.equal(log_probs == -torch.inf, truth == 0)
    possible = truth > 0
    torch.testing.assert_close(log_probs[possible], truth[possible].log(), rtol=0, atol=1e-12)


def canvases(data: Any, world: Any, tokens: Tensor, noise: bool = False) -> Tensor:
    """Some positions of some sequences revealed; with noise, any token at one of them."""
    some = st.lists(st.integers(0, len(tokens) - 1), min_size=1, max_size=6)
    shown = st.lists(st.booleans(), min_size=world.length, max_size=world.length)
    rows = []
    for number in data.draw(some):
        row = torch.where(torch.tensor(data.draw(shown)), tokens[number], world.vocab_size)
        if noise:
            at = data.draw(st.integers(0, world.length - 1))
            row[at] = data.draw(st.integers(0, world.vocab_size - 1))
        rows.append(row)
    return torch.stack(rows)


@each_world
@settings(max_examples=30)
@given(st.data())
def test_a_law_is_its_definition(name: str, data: Any) -> None:
    world, tokens, probs = known(data.draw(WORLDS_OF[name]))
    torch.testing.assert_close(world.log_prob(tokens), probs.log(), rtol=0, atol=1e-12)
    assert bool(world.valid(tokens).all())
    nats = float(torch.special.entr(probs).sum())
    if world.entropy() is not None:
        assert world.entropy() == pytest.approx(nats, rel=1e-12, abs=1e-12)
    everything = listing(world)
    if everything is not None:
        sequences, listed = everything
        possible = listed > 0
        assert torch.equal(sequences[possible], tokens)
        assert torch.equal(world.valid(sequences).all(1), possible)
        assert float(listed.sum()) == pytest.approx(1, abs=1e-12)
        assert world.entropy() is not None


@each_world
@settings(max_examples=50)
@given(st.data())
def test_the_oracle_is_enumeration(name: str, data: Any) -> None:
    world, tokens, probs = known(data.draw(WORLDS_OF[name]))
    canvas = canvases(data, world, tokens)
    oracle = world.oracle()
    assert_same(oracle(canvas), conditionals(tokens, probs, canvas, world.vocab_size))
    assert oracle.impossible == 0


@each_world
@settings(max_examples=50)
@given(st.data())
def test_impossible_evidence_is_uniform_and_counted(name: str, data: Any) -> None:
    world, tokens, probs = known(data.draw(WORLDS_OF[name]))
    canvas = canvases(data, world, tokens, noise=True)
    masked = canvas == world.vocab_size
    agree = ((canvas[:, None] == tokens) | masked[:, None]).all(2).any(1)
    oracle = world.oracle()
    assert_same(oracle(canvas), conditionals(tokens, probs, canvas, world.vocab_size))
    assert oracle.impossible == int((~agree & masked.any(1)).sum())
    asked = masked & (torch.arange(len(canvas)) % 2 == 0)[:, None]
    before = oracle.impossible
    oracle(canvas, asked)  # only what is asked about counts
    assert oracle.impossible - before == int((~agree & asked.any(1)).sum())


ONE_AT_A_TIME = [
    "latin(n=3)",
    "latin(n=4)",
    "sudoku(box=2)",
    "addition(digits=2, base=2, order='plain')",
    "addition(digits=1, base=5, order='interleaved')",
    "regular(length=6)",
    "regular(pattern='(ab|c)*', alphabet='abc', length=5, weights=[0.3, 2, 1])",
    "dyck(kinds=2, depth=2, length=6)",
    "hmm(states=4, tokens=4, emissions=2, length=5, seed=2)",
    "pcfg(nonterminals=3, words=4, branches=2, lexicon=2, length=5, seed=1)",
    "hierarchy(depth=2, symbols=3)",
    "hierarchy(depth=2, symbols=3, nodes='shown')",
    "potts(height=2, width=3, beta=0.7)",
]


@pytest.mark.parametrize("spec", ONE_AT_A_TIME)
def test_one_position_at_a_time_is_exact(spec: str) -> None:
    """The oracle through `decode`: by chi-square, and by enumeration where that is quick."""
    world, policy = WORLDS.build(spec), SAMPLERS.build("random(block=1)")
    truth = support_of(world)
    assert truth is not None
    blank = torch.full((4000, world.length), world.vocab_size)
    drawn = decode(policy, world.oracle(), blank, streams=Streams(5, torch.arange(4000))).tokens
    statistic, freedom = goodness_of_fit(drawn, *truth)
    assert chi2.sf(statistic, freedom) > FALSE_ALARM
    assert world.oracle().impossible == 0
    if world.length < 10:
        law = sampler_law(policy, world.oracle(), blank[0])
        assert total_variation(law, truth) < 1e-12


@pytest.mark.parametrize("spec", ONE_AT_A_TIME)
def test_bridges_are_sequences_that_agree(spec: str) -> None:
    world = WORLDS.build(spec)
    prompts = TASKS.build("given(share=0.4)", world=world, prompts=20, seed=1).tokens
    tokens = bridges(world, prompts, seed=3)
    assert bool(world.valid(tokens).all())
    assert bool(((tokens == prompts) | (prompts == world.vocab_size)).all())


@pytest.mark.parametrize(
    ("spec", "count"), [("latin(n=4)", 576), ("latin(n=5)", 161_280), ("sudoku(box=2)", 288)]
)
def test_as_many_solutions_as_are_known(spec: str, count: int) -> None:
    world = WORLDS.build(spec)
    tokens, _ = world.support()
    assert len(tokens.unique(dim=0)) == len(tokens) == count
    assert bool(world.valid(tokens).all())
    assert world.entropy() == pytest.approx(np.log(count), abs=1e-12)


def test_sudoku_of_nine_is_checked_and_not_exact() -> None:
    world = WORLDS.build("sudoku(box=3)")
    grids = world.sample(300, 0)
    cells = grids.view(-1, 3, 3, 3, 3)  # band, row, stack, column
    boxes = cells.transpose(2, 3).reshape(-1, 9, 9)
    lines = grids.view(-1, 9, 9)
    for units in (lines, lines.transpose(1, 2), boxes):
        assert torch.equal(units.sort(2).values, torch.arange(9).expand_as(units))
    assert bool(world.valid(grids).all()) and len(grids.unique(dim=0)) == 300
    wrong = grids.clone()
    wrong[:, [0, 80]] = grids[:, [1, 79]]
    assert bool((~world.valid(wrong)).any(1).all())
    assert world.log_prob(grids) is None and world.entropy() is None and world.oracle() is None
    assert support_of(world) is None
    prompts = TASKS.build("clues(count=30)", world=world, prompts=5, seed=0)
    assert ((prompts.tokens != 9).sum(1) == 30).all()


def test_nothing_asked_is_nothing_answered() -> None:
    for spec in ONE_AT_A_TIME:
        world = WORLDS.build(spec)
        full = world.sample(2, 0)
        assert world.oracle()(full).shape == (0, world.vocab_size)
        assert world.log_prob(full[:0]).shape == (0,) and world.valid(full[:0]).numel() == 0


def test_what_is_very_unlikely_is_still_possible() -> None:
    """Weights below the smallest float64: one word of 2^1200, sentences of 4,096 words."""
    long = WORLDS.build("regular(pattern='a*|(b|c)*', alphabet='abc', length=1200)")
    word = torch.zeros((1, 1200), dtype=torch.int64)
    assert float(long.log_prob(word)) == pytest.approx(-1200 * np.log(2), abs=1e-9)
    assert bool(long.valid(word).all())
    wordy = WORLDS.build("pcfg(words=4096, lexicon=4096, length=90)")
    assert bool(wordy.log_prob(wordy.sample(2, 0)).isfinite().all())


def test_a_rule_written_twice_is_one_rule() -> None:
    one, two = (
        WORLDS.build(f'pcfg(grammar=\'S -> {rules} | "a" [0.3] | "b" [0.3]\', length=4)')
        for rules in ("S S [0.4]", "S S [0.1] | S S [0.3]")
    )
    assert len(two.grammar.probs) == 1
    tokens = one.sample(9, 0)
    torch.testing.assert_close(one.log_prob(tokens), two.log_prob(tokens), rtol=0, atol=1e-12)
