"""Every exact world beside a library of somebody else's (the extra `libraries`).

benchmarks/libraries.py puts the questions; here the answers are compared with the oracles.
"""

from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import libraries

from maskwalk import TASKS, WORLDS
from maskwalk.worlds.dyck import BRACKETS
from maskwalk.worlds.exact.listing import listing

PATTERN = "((a|b)c*(a|b)d*)*"
PATTERNS = [PATTERN, "(a|b)*cd?", "a?[bc]{1,3}.+", "(ab|c)*d*", "(a.){2,}b*", "a*|(b|c)*|d{3}"]
# nltk's notation is ours, too.
GRAMMAR = """
    S -> A B [0.4] | S S [0.1] | "x" [0.3] | "y" [0.2]
    A -> S A [0.3] | "x" [0.7]
    B -> B A [0.25] | "y" [0.25] | "z" [0.5]
"""


def needs(package: str) -> None:
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def regular(world: Any) -> libraries.Answer:
    return libraries.with_automata(world, libraries.from_pattern(PATTERN, "abcd"), "abcd")


def dyck(world: Any) -> libraries.Answer:
    signs = BRACKETS[: 2 * world.kinds]
    return libraries.with_automata(world, libraries.from_stacks(signs, world.depth), signs)


BESIDE: list[tuple[str, str, Callable[[Any], libraries.Answer]]] = [
    ("latin(n=3)", "pysdd", libraries.with_pysdd),
    ("latin(n=4)", "pysdd", libraries.with_pysdd),
    ("sudoku(box=2)", "pysdd", libraries.with_pysdd),
    # No library adds: Python's own integers, by trying all of them, and digits with carries as a
    # Bayesian network.
    ("addition(digits=2, base=10)", "", libraries.with_integers),
    ("addition(digits=2, base=7, order='interleaved')", "", libraries.with_integers),
    ("addition(digits=8, base=10)", "pyagrum", libraries.with_agrum_sum),
    ("addition(digits=5, base=4, order='reversed')", "pyagrum", libraries.with_agrum_sum),
    ("regular(length=9)", "automata", regular),
    ("dyck(kinds=2, depth=3, length=10)", "automata", dyck),
    ("dyck(kinds=1, depth=2, length=12)", "automata", dyck),
    ("hmm(states=16, tokens=16, emissions=2, length=24)", "hmmlearn", libraries.with_hmmlearn),
    (
        "hmm(states=5, tokens=4, emissions=3, length=30, seed=7)",
        "hmmlearn",
        libraries.with_hmmlearn,
    ),
    (f"pcfg(grammar={GRAMMAR!r}, length=4)", "nltk", libraries.with_nltk),
    ("pcfg(nonterminals=4, words=5, branches=1, length=5, seed=3)", "nltk", libraries.with_nltk),
    ("hierarchy(depth=4, symbols=8)", "pyagrum", libraries.with_agrum_tree),
    ("hierarchy(depth=3, symbols=5, nodes='shown')", "pyagrum", libraries.with_agrum_tree),
    (
        "hierarchy(depth=2, branching=3, symbols=4, synonyms=5, seed=3)",
        "pyagrum",
        libraries.with_agrum_tree,
    ),
    ("potts(height=4, width=6, states=2)", "pyagrum", libraries.with_agrum_strip),
    ("potts(height=2, width=5, states=4, beta=-0.7)", "pyagrum", libraries.with_agrum_strip),
    ("potts(height=3, width=4, order='columns')", "pyagrum", libraries.with_agrum_strip),
]


@pytest.mark.parametrize(("spec", "package", "beside"), BESIDE)
def test_the_same_conditionals(
    spec: str, package: str, beside: Callable[[Any], libraries.Answer]
) -> None:
    needs(package)
    world = WORLDS.build(spec)
    answer, oracle = beside(world), world.oracle()
    tasks = ("unconditional", "given(share=0.25)", "given(share=0.6)")
    counts = (1, 2, 2) if package == "nltk" else (1, 6, 6)
    prompts = [TASKS.build(t, world=world, prompts=n, seed=4).tokens for t, n in zip(tasks, counts)]
    canvas = torch.cat(prompts[1:] if package == "nltk" else prompts)
    theirs = np.concatenate([answer(row) for row in canvas])
    ours = oracle(canvas).exp().numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    # A factor that a library's rounding leaves of an impossible token is not zero, but nothing.
    assert (theirs[ours == 0] < 1e-15).all() and (ours[theirs == 0] == 0).all()


@pytest.mark.parametrize(("spec", "models"), [("sudoku(box=2)", 288), ("latin(n=4)", 576)])
def test_as_many_grids_as_models(spec: str, models: int) -> None:
    pytest.importorskip("pysdd")
    world = WORLDS.build(spec)
    root = libraries.compiled(world)
    assert root.global_model_count() == models
    assert world.entropy() == pytest.approx(log(models), abs=1e-12)
    for row in TASKS.build("clues(count=3)", world=world, prompts=8, seed=0).tokens:
        counter = root.wmc(log_mode=False)
        for cell, value in enumerate(row.tolist()):
            if value < 4:
                counter.set_literal_weight(-(4 * cell + value + 1), 0.0)
        agree = world.marginals(row[None])[0].sum(1)  # at every cell: the grids that agree
        assert set(agree.tolist()) == {counter.propagate()}


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_sentences_are_as_likely_as_all_their_parses(length: int) -> None:
    nltk = pytest.importorskip("nltk")
    parser = nltk.InsideChartParser(nltk.PCFG.fromstring(GRAMMAR))
    world = WORLDS["pcfg"](grammar=GRAMMAR, length=length)
    words = world.grammar.words
    inside = [
        sum(tree.prob() for tree in parser.parse([words[i] for i in sentence]))
        for sentence in product(range(len(words)), repeat=length)
    ]
    known = listing(world)
    assert known is not None
    np.testing.assert_allclose(known[1].numpy(), np.array(inside) / sum(inside), rtol=1e-12)


def test_emissions_are_as_likely_as_their_score() -> None:
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    world = WORLDS.build("hmm(states=6, tokens=5, emissions=3, length=15, seed=2)")
    model = hmmlearn.CategoricalHMM(n_components=world.states)
    model.startprob_, model.transmat_ = world.start_probs, world.kernel
    model.emissionprob_, model.n_features = world.emission_probs, world.vocab_size
    for row in world.sample(20, 0):
        found = float(world.log_prob(row[None]))
        assert found == pytest.approx(model.score(row[:, None].numpy()), abs=1e-11)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_words_of_every_length(pattern: str) -> None:
    pytest.importorskip("automata")
    language = libraries.from_pattern(pattern, "abcd")
    for length in range(1, 7):
        words = set(language.words_of_length(length))
        if words:
            world = WORLDS["regular"](pattern=pattern, alphabet="abcd", length=length)
            known = listing(world)
            assert known is not None
            possible = known[0][known[1] > 0].tolist()
            assert {"".join("abcd"[i] for i in word) for word in possible} == words
    world = WORLDS["regular"](pattern=pattern, alphabet="abcd", length=30)
    assert exp(world.entropy()) == pytest.approx(language.count_words_of_length(30), rel=1e-12)


@pytest.mark.parametrize(("kinds", "depth"), [(1, 1), (1, 3), (2, 2), (3, 2)])
def test_as_many_dyck_words_as_an_automaton_of_stacks_accepts(kinds: int, depth: int) -> None:
    pytest.importorskip("automata")
    language = libraries.from_stacks(BRACKETS[: 2 * kinds], depth)
    for length in (2, 8, 20):
        world = WORLDS["dyck"](kinds=kinds, depth=depth, length=length)
        words = language.count_words_of_length(length)
        assert exp(world.entropy()) == pytest.approx(words, rel=1e-12)
        for row in world.sample(20, 0).tolist():
            assert language.accepts_input("".join(BRACKETS[i] for i in row))
