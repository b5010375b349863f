"""The worlds' questions put to other people's libraries: the conditionals of all masked positions.

Each function builds what a library needs to know of a world, and returns what answers one canvas:
a table of probabilities, a row for each masked position. benchmarks/worlds.py times them and
tests/test_worlds_libraries.py compares them with the oracles; the extra `libraries` installs them.
"""

import itertools
import warnings
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from torch import Tensor

Answer = Callable[[Tensor], np.ndarray]


def _masked(canvas: Tensor, vocab: int) -> tuple[dict[int, int], list[int]]:
    """What a canvas reveals, by position, and where it is masked."""
    tokens = list(enumerate(canvas.tolist()))
    return {i: t for i, t in tokens if t != vocab}, [i for i, t in tokens if t == vocab]


# ---- pysdd: grids as clauses, compiled to a decision diagram whose models can be counted


def clauses(world: Any) -> list[list[int]]:
    """Every cell has one value, every unit each value once; value v of a cell is 1 + n·cell + v."""
    n = world.vocab_size
    groups = [[n * cell + v + 1 for v in range(n)] for cell in range(world.length)]
    groups += [[n * int(cell) + v + 1 for cell in unit] for unit in world.units() for v in range(n)]
    pairs = (pair for group in groups for pair in itertools.combinations(group, 2))
    return [*groups, *([-a, -b] for a, b in pairs)]


def compiled(world: Any) -> Any:
    """The decision diagram of a grid, clause after clause."""
    from pysdd.sdd import SddManager, Vtree

    variables = Vtree(var_count=world.length * world.vocab_size, vtree_type="balanced")
    manager = SddManager.from_vtree(variables)
    root = manager.true()
    for clause in sorted(clauses(world), key=lambda row: max(map(abs, row))):
        root &= reduce(or_, map(manager.literal, clause))
    return root


def with_pysdd(world: Any) -> Answer:
    """Marginals of the literals, where the revealed ones may not be false."""
    root, n = compiled(world), world.vocab_size

    def answer(canvas: Tensor) -> np.ndarray:
        shown, masked = _masked(canvas, n)
        count = root.wmc(log_mode=False)
        for cell, value in shown.items():
            count.set_literal_weight(-(n * cell + value + 1), 0.0)
        count.propagate()
        rows = [[count.literal_pr(n * cell + v + 1) for v in range(n)] for cell in masked]
        return np.array(rows).reshape(-1, n)

    return answer


# ---- pyAgrum: strips, trees and sums as graphical models


def agrum() -> Any:
    """pyAgrum; with such a warning made an error its extension module takes Python down."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type swig", DeprecationWarning)
        import pyagrum

        pyagrum.MarkovRandomField()  # imports a second module, with the same warnings
    return pyagrum


def _inferred(inference: Any, names: list[str], vocab: int) -> Answer:
    """Posteriors of the masked positions, each a variable with a name."""

    def answer(canvas: Tensor) -> np.ndarray:
        shown, masked = _masked(canvas, vocab)
        inference.setEvidence({names[i]: token for i, token in shown.items()})
        inference.setTargets({names[i] for i in masked})
        inference.makeInference()
        return np.array([inference.posterior(names[i]).tolist() for i in masked])

    return answer


def with_agrum_strip(world: Any) -> Answer:
    """A Markov random field with a factor for each pair of neighbouring cells."""
    gum = agrum()
    field = gum.MarkovRandomField()
    cells = [f"x{i}" for i in range(world.length)]
    for cell in cells:
        field.add(gum.RangeVariable(cell, "", 0, world.states - 1))
    alike = np.exp(world.beta * np.eye(world.states))
    grid = world.cells.tolist()
    down = [(a, b) for one, two in itertools.pairwise(grid) for a, b in zip(one, two)]
    across = [pair for row in grid for pair in itertools.pairwise(row)]
    for a, b in down + across:
        field.addFactor([cells[a], cells[b]]).fillWith(alike.ravel().tolist())
    return _inferred(gum.ShaferShenoyMRFInference(field), cells, world.vocab_size)


def with_agrum_tree(world: Any) -> Answer:
    """A Bayesian network: a symbol draws one of its rules, which says what the children are."""
    gum = agrum()
    net, symbols, rules = gum.BayesNet(), world.vocab_size, world.vocab_size * world.synonyms
    levels = [[f"n{d}_{i}" for i in range(size)] for d, size in enumerate(world.sizes)]
    for name in itertools.chain(*levels):
        net.add(gum.RangeVariable(name, "", 0, symbols - 1))
    net.cpt(levels[0][0]).fillWith(1 / symbols)
    draws = np.repeat(np.eye(symbols), world.synonyms, 1) / world.synonyms
    for table, parents, children in zip(world.rules, levels, levels[1:]):
        families = np.array(children).reshape(len(parents), -1).tolist()
        for parent, family in zip(parents, families):
            rule = f"rule_{parent}"
            net.add(gum.RangeVariable(rule, "", 0, rules - 1))
            net.addArc(parent, rule)
            net.cpt(rule).fillWith(draws.ravel().tolist())
            for which, child in enumerate(family):
                net.addArc(rule, child)
                net.cpt(child).fillWith(np.eye(symbols)[table[:, which]].ravel().tolist())
    names = list(itertools.chain(*levels)) if world.shown else levels[-1]
    return _inferred(gum.LazyPropagation(net), names, symbols)


def with_agrum_sum(world: Any) -> Answer:
    """A Bayesian network of digits and carries, least significant column first."""
    gum, base = agrum(), world.base
    net, names = gum.BayesNet(), [f"d{i}" for i in range(world.length)]
    for name in names:
        net.add(gum.RangeVariable(name, "", 0, base - 1))
    for i in (*world.a, *world.b):
        net.cpt(names[i]).fillWith(1 / base)
    a, b, carry = np.indices((base, base, 2))
    before = None
    for column, places in enumerate(reversed(list(zip(world.a, world.b, world.c[1:])))):
        x, y, z = (names[i] for i in places)
        net.add(gum.RangeVariable(f"carry{column}", "", 0, 1))
        total = a + b + carry if before else (a + b)[..., :1]
        for name, value, kinds in ((z, total % base, base), (f"carry{column}", total // base, 2)):
            for parent in (x, y, *([before] if before else [])):
                net.addArc(parent, name)
            # pyAgrum counts the first parent fastest, numpy the last.
            table = np.eye(kinds)[np.moveaxis(value, (0, 1, 2), (2, 1, 0))]
            net.cpt(name).fillWith(table.ravel().tolist())
        before = f"carry{column}"
    net.addArc(before, names[world.c[0]])
    net.cpt(names[world.c[0]]).fillWith(np.eye(2, base).ravel().tolist())
    return _inferred(gum.LazyPropagation(net), names, base)


# ---- hmmlearn: the hidden chain, with the mask as one more thing that every state may show


def with_hmmlearn(world: Any) -> Answer:
    """Posteriors of the hidden states, and what these show."""
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(n_components=world.states, implementation="scaling")
    model.startprob_, model.transmat_ = world.start_probs, world.kernel
    masks = np.ones((world.states, 1))
    model.emissionprob_ = np.concatenate([world.emission_probs, masks], 1) / 2
    model.n_features = world.vocab_size + 1

    def answer(canvas: Tensor) -> np.ndarray:
        states = model.predict_proba(canvas[:, None].numpy())
        return states[canvas.numpy() == world.vocab_size] @ world.emission_probs

    return answer


# ---- automata-lib: count the words of a language that agree with a canvas


def from_pattern(pattern: str, alphabet: str) -> Any:
    """The automaton of a regular expression."""
    from automata.fa.dfa import DFA
    from automata.fa.nfa import NFA

    return DFA.from_nfa(NFA.from_regex(pattern, input_symbols=set(alphabet)))


def from_stacks(brackets: str, depth: int) -> Any:
    """An automaton of brackets (each kind open, close) whose states are what is open, as text."""
    from automata.fa.dfa import DFA

    opens, closes = brackets[::2], brackets[1::2]
    stacks = ["".join(s) for d in range(depth + 1) for s in itertools.product(opens, repeat=d)]
    moves: dict[str, dict[str, str]] = {}
    for stack in stacks:
        moves[stack] = {sign: stack + sign for sign in opens if len(stack) < depth}
        moves[stack] |= {closes[opens.index(sign)]: stack[:-1] for sign in stack[-1:]}
    return DFA(
        states=set(stacks),
        input_symbols=set(brackets),
        transitions=moves,
        initial_state="",
        final_states={""},
        allow_partial=True,
    )


def with_automata(world: Any, language: Any, alphabet: str) -> Answer:
    """Words that agree, counted once for every token at every masked position."""
    from automata.fa.dfa import DFA

    length = world.length

    def count(tokens: list[int]) -> int:
        letters = [alphabet if t == world.vocab_size else alphabet[t] for t in tokens]
        moves = {i: dict.fromkeys(signs, i + 1) for i, signs in enumerate(letters)}
        agree = DFA(
            states=set(range(length + 1)),
            input_symbols=set(alphabet),
            transitions={**moves, length: {}},
            initial_state=0,
            final_states={length},
            allow_partial=True,
        )
        both = language.intersection(agree, minify=False)
        return int(both.count_words_of_length(length))

    def answer(canvas: Tensor) -> np.ndarray:
        _, masked = _masked(canvas, world.vocab_size)
        tokens = canvas.tolist()
        rows = [
            [count([*tokens[:i], v, *tokens[i + 1 :]]) for v in range(world.vocab_size)]
            for i in masked
        ]
        counts = np.array(rows, dtype=np.float64).reshape(-1, world.vocab_size)
        return counts / counts.sum(1, keepdims=True)

    return answer


# ---- nltk: the sum over all parses


def with_nltk(world: Any) -> Answer:
    """Parses counted once for every word at every masked position; `?` is any word.

    All rules are halved to make room for `?` (and `!`, which never occurs), so that a tree of n
    words, which has 2n − 1 rules, has a weight of 2^(1 − 2n) of its own: a factor that cancels.
    """
    from nltk import InsideChartParser, Nonterminal, ProbabilisticProduction
    from nltk.grammar import PCFG

    grammar = world.grammar
    names, words = [Nonterminal(name) for name in grammar.names], list(grammar.words)
    rules = [
        (names[parent], (names[left], names[right]), chance)
        for parent, left, right, chance in zip(
            grammar.parent, grammar.left, grammar.right, grammar.probs
        )
    ]
    for name, row in zip(names, grammar.lexicon):
        chances = [*row, row.sum(), 1 - row.sum()]
        rules += [(name, (w,), p) for w, p in zip([*words, "?", "!"], chances) if p > 0]
    halved = [ProbabilisticProduction(a, b, prob=float(p) / 2) for a, b, p in rules]
    parser = InsideChartParser(PCFG(names[0], halved))

    def answer(canvas: Tensor) -> np.ndarray:
        _, masked = _masked(canvas, world.vocab_size)
        text = [words[t] if t < world.vocab_size else "?" for t in canvas.tolist()]
        table = np.zeros((len(masked), world.vocab_size))
        for row, i in enumerate(masked):
            for v in grammar.lexicon.any(0).nonzero()[0]:
                trees = parser.parse([*text[:i], words[v], *text[i + 1 :]])
                table[row, v] = sum(tree.prob() for tree in trees)
        return table / table.sum(1, keepdims=True)

    return answer


# ---- Python's integers: sums by trying all of them (no library is needed, none is simpler)


def with_integers(world: Any) -> Answer:
    """All pairs of numbers whose digits, and whose sum's, agree."""

    def digits(number: int, places: int) -> list[int]:
        return [number // world.base**i % world.base for i in reversed(range(places))]

    sequences = []
    for a, b in itertools.product(range(world.base**world.digits), repeat=2):
        row = np.zeros(world.length, dtype=np.int64)
        row[[*world.a, *world.b]] = digits(a, world.digits) + digits(b, world.digits)
        row[world.c] = digits(a + b, world.digits + 1)
        sequences.append(row)
    table = np.array(sequences)

    def answer(canvas: Tensor) -> np.ndarray:
        shown, masked = _masked(canvas, world.vocab_size)
        fits = table[(table[:, list(shown)] == list(shown.values())).all(1)]
        rows = [np.bincount(fits[:, i], minlength=world.base) / len(fits) for i in masked]
        return np.array(rows).reshape(-1, world.base)

    return answer
