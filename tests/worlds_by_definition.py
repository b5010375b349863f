"""Every exact world once more, as its definition reads: all sequences, weighed one by one.

Slow and short, and with nothing of the worlds' own sums: only their random tables are read.
"""

import re
from collections import defaultdict
from functools import lru_cache
from itertools import chain, pairwise, permutations, product
from math import exp, prod
from typing import Any

import torch
from torch import Tensor

from maskwalk import World
from maskwalk.worlds.addition import Addition
from maskwalk.worlds.dyck import Dyck
from maskwalk.worlds.hierarchy import Hierarchy
from maskwalk.worlds.hmm import Hmm
from maskwalk.worlds.latin import Latin
from maskwalk.worlds.pcfg import Pcfg
from maskwalk.worlds.potts import Potts
from maskwalk.worlds.regular import Regular
from maskwalk.worlds.sudoku import Grid

Words = dict[tuple[int, ...], float]
PALINDROMES = (
    'S -> A T [0.3] | B U [0.3] | "a" [0.3] | "b" [0.1]; T -> S A [1.0]; U -> S B [1.0]; '
    'A -> "a" [1.0]; B -> "b" [1.0]'
)


@lru_cache
def squares(side: int, box: int = 0) -> Words:
    """Rows that are permutations, whose columns (and boxes) hold every value once."""
    found: Words = {}
    for rows in product(permutations(range(side)), repeat=side):
        units = list(zip(*rows))
        for i, j in product(range(0, side, box or side), repeat=2) if box else ():
            units.append([rows[i + a][j + b] for a, b in product(range(box), repeat=2)])
        if all(len(set(unit)) == side for unit in units):
            found[sum(rows, ())] = 1.0
    return found


def sums(digits: int, base: int, order: str) -> Words:
    """All pairs of numbers and their sum, as Python adds them."""

    def written(number: int, places: int) -> list[int]:
        return [number // base**i % base for i in reversed(range(places))]

    found: Words = {}
    for a, b in product(range(base**digits), repeat=2):
        x, y, z = written(a, digits), written(b, digits), written(a + b, digits + 1)
        units_first = x[::-1], y[::-1], z[::-1]
        orders = {
            "plain": [x, y, z],
            "reversed": units_first,
            "interleaved": [*zip(*units_first), z[:1]],
        }
        found[tuple(chain(*orders[order]))] = 1.0
    return found


def letters(world: Regular, pattern: str, weights: list[float] | None = None) -> Words:
    """The words Python's own regular expressions match."""
    found: Words = {}
    for word in product(range(world.vocab_size), repeat=world.length):
        if re.fullmatch(pattern, "".join(world.alphabet[i] for i in word)):
            found[word] = prod(weights[i] for i in word) if weights else 1.0
    return {word: weight for word, weight in found.items() if weight > 0}


def runs(world: Regular, dfa: list[list[int]], accepting: list[int]) -> Words:
    """The words an automaton accepts, run letter by letter."""
    found: Words = {}
    for word in product(range(world.vocab_size), repeat=world.length):
        state = 0
        for letter in word:
            state = dfa[state][letter] if state >= 0 else -1
        if state in accepting:
            found[word] = 1.0
    return found


def brackets(kinds: int, depth: int, length: int) -> Words:
    """Words whose brackets, pushed and popped, leave nothing open."""

    def balanced(word: tuple[int, ...]) -> bool:
        stack: list[int] = []
        for token in word:
            if token % 2 == 0:
                stack.append(token // 2)
            elif not stack or stack.pop() != token // 2:
                return False
            if len(stack) > depth:
                return False
        return not stack

    return {word: 1.0 for word in product(range(2 * kinds), repeat=length) if balanced(word)}


def emissions(world: Hmm) -> Words:
    """Σ over hidden paths, path by path."""
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    kernel, shown = world.kernel.tolist(), world.emission_probs.tolist()
    start = world.start_probs.tolist()
    for path in product(range(world.states), repeat=world.length):
        weight = start[path[0]] * prod(kernel[a][b] for a, b in pairwise(path))
        for word in product(range(world.vocab_size), repeat=world.length if weight else 0):
            found[word] += weight * prod(shown[z][x] for z, x in zip(path, word))
    return {word: weight for word, weight in found.items() if weight > 0}


def sentences(world: Pcfg) -> Words:
    """The yields of the start symbol: words of the left with words of the right, rule by rule."""
    grammar = world.grammar
    rules = list(zip(*(x.tolist() for x in (grammar.parent, grammar.left, grammar.right))))

    def yields(name: int, width: int) -> Words:
        if width == 1:
            row = grammar.lexicon[name].tolist()
            return {(word,): chance for word, chance in enumerate(row) if chance > 0}
        found: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for (parent, left, right), chance in zip(rules, grammar.probs.tolist()):
            for k in range(1, width) if parent == name else ():
                for one, p in yields(left, k).items():
                    for two, q in yields(right, width - k).items():
                        found[one + two] += chance * p * q
        return found

    return yields(0, world.length)


def derivations(world: Hierarchy) -> Words:
    """Every symbol at the root, every synonym at every node, level by level."""
    found: Words = {}
    levels = [((root,),) for root in range(world.vocab_size)]
    for rules in world.rules:
        options = rules.reshape(world.vocab_size, world.synonyms, -1).tolist()
        levels = [
            (*above, tuple(chain(*choice)))
            for above in levels
            for choice in product(*(options[symbol] for symbol in above[-1]))
        ]
    for tree in levels:
        tokens = sum(tree, ()) if world.shown else tree[-1]
        assert tokens not in found  # every derivation is another sequence
        found[tokens] = 1.0
    return found


def strips(world: Potts) -> Words:
    """exp(β · how many neighbours agree), counted on the grid."""
    height, width = world.height, world.width
    found: Words = {}
    for word in product(range(world.states), repeat=height * width):
        if world.layout == "rows":
            grid = {(i, j): word[i * width + j] for i in range(height) for j in range(width)}
        else:
            grid = {(i, j): word[j * height + i] for i in range(height) for j in range(width)}
        agree = sum(
            grid[i, j] == grid.get(beside) for i, j in grid for beside in ((i + 1, j), (i, j + 1))
        )
        found[word] = exp(world.beta * agree)
    return found


def weights_of(world: World, given: dict[str, Any]) -> Words:
    """The definition of a world; `given` are its parameters, of which it keeps most."""
    match world:
        case Latin():
            return squares(world.n)
        case Grid():
            return squares(4, 2)
        case Addition():
            return sums(world.digits, world.base, world.layout)
        case Regular() if "dfa" in given:
            return runs(world, given["dfa"], given["accepting"])
        case Regular():
            return letters(world, given["pattern"], given.get("weights"))
        case Dyck():
            return brackets(world.kinds, world.depth, world.length)
        case Hmm():
            return emissions(world)
        case Pcfg():
            return sentences(world)
        case Hierarchy():
            return derivations(world)
        case Potts():
            return strips(world)
    raise AssertionError(world)


def normalised(weights: Words) -> tuple[Tensor, Tensor]:
    """The sequences in lexicographic order, and their probabilities."""
    words = sorted(weights)
    probs = torch.tensor([weights[word] for word in words], dtype=torch.float64)
    return torch.tensor(words), probs / probs.sum()
