"""What worlds say of their structure: where a sequence breaks, partition functions, separators."""

from collections import defaultdict
from itertools import product
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor

from maskwalk import TASKS, WORLDS
from maskwalk.worlds.exact.partition import Partition
from maskwalk.worlds.separators import Separator, halved
from tests.worlds_by_definition import PALINDROMES, Words, normalised, weights_of

# ---- where a sequence breaks


def first_break(law: Words, word: tuple[int, ...]) -> list[int]:
    """The first position after which no sequence goes on as this one began."""
    lengths = range(1, len(word) + 1)
    return [n - 1 for n in lengths if all(other[:n] != word[:n] for other in law)][:1]


def repeats(units: list[list[int]], word: tuple[int, ...]) -> list[int]:
    """Where a value repeats an earlier one of its unit."""
    return [
        i
        for i, value in enumerate(word)
        if any(word[j] == value for unit in units if i in unit for j in unit if j < i)
    ]


@pytest.mark.parametrize(
    "spec",
    [
        "latin(n=3)",
        "sudoku(box=2)",
        "dyck(kinds=1, depth=2, length=6)",
        "hmm(states=3, tokens=3, length=4, successors=1, emissions=1)",
        f"pcfg(grammar={PALINDROMES!r}, length=7)",
        "hierarchy(depth=2, symbols=3)",
        "hierarchy(depth=2, symbols=3, nodes='shown')",
    ],
)
def test_valid_says_where_a_sequence_breaks(spec: str) -> None:
    world = WORLDS.build(spec)
    law = weights_of(world, {})
    tokens = world.sample(60, 0)
    noise = world.sample(60, 1).roll(1, 1)
    mixed = torch.where(torch.arange(tokens.numel()).view_as(tokens) % 4 == 0, noise, tokens)
    assert not bool(world.valid(mixed).all(1).all())
    for word, fine in zip(map(tuple, mixed.tolist()), world.valid(mixed).tolist()):
        units = getattr(world, "units", None)
        wrong = repeats(units().tolist(), word) if units else first_break(law, word)
        assert [i for i, right in enumerate(fine) if not right] == wrong


def test_valid_says_which_digits_of_a_sum_are_wrong() -> None:
    world = WORLDS.build("addition(digits=3, base=10, order='interleaved')")
    tokens = torch.tensor([[7, 5, 2, 0, 9, 0, 1, 2, 4, 0], [7, 5, 2, 0, 9, 1, 1, 2, 3, 1]])
    # 107 + 295 = 402, units first; then 312 with a carry in front: tens, hundreds and that.
    assert (~world.valid(tokens)).nonzero().tolist() == [[1, 5], [1, 8], [1, 9]]


# ---- the general oracle beside the direct ones


class Summed(Partition):
    """The law of another world, by a partition function alone."""

    def __init__(self, world: Any) -> None:
        self.world, self.vocab_size, self.length = world, world.vocab_size, world.length

    def _sample(self, u: Any) -> Any:
        raise NotImplementedError


class HiddenChain(Summed):
    def log_partition(self, unary: Tensor) -> Tensor:
        tables = (self.world.start_probs, self.world.kernel, self.world.emission_probs)
        message, kernel, shown = map(torch.from_numpy, tables)
        for t in range(self.length):
            message = (message @ kernel if t else message) * (unary[:, t] @ shown.T)
        return message.sum(1).log()


class Trees(Summed):
    def log_partition(self, unary: Tensor) -> Tensor:
        grammar, length = self.world.grammar, self.length
        rules = torch.zeros((len(grammar.names),) * 3, dtype=torch.float64)
        rules[grammar.parent, grammar.left, grammar.right] = torch.from_numpy(grammar.probs)
        words = torch.from_numpy(grammar.lexicon)
        chart = {(i, 1): unary[:, i] @ words.T for i in range(length)}
        for width in range(2, length + 1):
            for i in range(length - width + 1):
                lefts = torch.stack([chart[i, k] for k in range(1, width)])
                rights = torch.stack([chart[i + k, width - k] for k in range(1, width)])
                chart[i, width] = torch.einsum("abc,knb,knc->na", rules, lefts, rights)
        return chart[0, length][:, 0].log()


class Strip(Summed):
    def log_partition(self, unary: Tensor) -> Tensor:
        world = self.world
        cells = torch.tensor(list(product(range(world.states), repeat=world.height)))
        down = ((cells[:, 1:] == cells[:, :-1]).sum(1).double() * world.beta).exp()
        across = ((cells[:, None] == cells).sum(2).double() * world.beta).exp()
        message = None
        for column in world.cells.T.tolist():
            own = prod(
                (unary[:, at][:, cells[:, row]] for row, at in enumerate(column)), start=down
            )
            message = own if message is None else (message @ across) * own
        assert message is not None
        return message.sum(1).log()


@pytest.mark.parametrize(
    ("spec", "general"),
    [
        ("hmm(states=8, tokens=12, emissions=3, length=12, seed=4)", HiddenChain),
        (f"pcfg(grammar={PALINDROMES!r}, length=9)", Trees),
        ("pcfg(length=12, nonterminals=10, words=20, branches=3, lexicon=3, seed=2)", Trees),
        ("potts(height=3, width=5, states=2, beta=0.8)", Strip),
        ("potts(height=2, width=4, states=3, beta=-1.1, order='columns')", Strip),
    ],
)
def test_the_general_oracle_agrees_with_the_direct_one(spec: str, general: Any) -> None:
    world = WORLDS.build(spec)
    slow = general(world)
    tokens = world.sample(24, 3)
    noise = world.sample(24, 4).flip(1)
    mixed = torch.where(torch.arange(tokens.numel()).view_as(tokens) % 5 == 0, noise, tokens)
    canvas = TASKS.build("given(share=0.4)", world=world, prompts=24, seed=1).tokens
    hard = torch.where(canvas == world.vocab_size, canvas, mixed)  # some of it impossible
    for asked in (canvas, hard, torch.full_like(canvas[:1], world.vocab_size)):
        found, direct = slow.oracle()(asked), world.oracle()(asked)
        assert torch.equal(found == -torch.inf, direct == -torch.inf)
        torch.testing.assert_close(found.exp(), direct.exp(), rtol=0, atol=1e-12)
        shown = asked != world.vocab_size
        for weights in (slow.marginals(asked), world.marginals(asked)):  # zero off what is revealed
            assert not weights.scatter(2, asked.where(shown, 0)[..., None], 0.0)[shown].any()
    assert slow.oracle().impossible == world.oracle().impossible
    assert world.oracle().impossible or not spec.startswith(("hmm", "pcfg(grammar"))
    for some in (tokens, mixed):
        torch.testing.assert_close(slow.log_prob(some), world.log_prob(some), rtol=0, atol=1e-11)
    assert torch.equal(slow.valid(mixed).all(1), world.valid(mixed).all(1))


# ---- separators


def positions(separator: Separator) -> list[int]:
    return [*separator.positions, *(i for part in separator.parts for i in positions(part))]


def law_of(world: Any) -> Words:
    tokens, probs = normalised(weights_of(world, {}))
    return dict(zip(map(tuple, tokens.tolist()), probs.tolist()))


def marginal(law: Words, at: list[int]) -> Words:
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for word, weight in law.items():
        found[tuple(word[i] for i in at)] += weight
    return found


def separates(law: Words, separator: Separator, above: tuple[int, ...] = ()) -> bool:
    """Given every value of it and of all above, the joint of its parts is a product."""
    given = [*above, *separator.positions]
    parts = [positions(part) for part in separator.parts]
    for value, total in marginal(law, given).items():
        fits = {w: p / total for w, p in law.items() if tuple(w[i] for i in given) == value}
        joint = marginal(fits, [i for part in parts for i in part])
        each = [marginal(fits, part).items() for part in parts]
        for some in product(*each):
            word = sum((values for values, _ in some), ())
            if abs(joint.get(word, 0.0) - prod(p for _, p in some)) > 1e-12:
                return False
    return all(separates(law, part, tuple(given)) for part in separator.parts)


@pytest.mark.parametrize(
    "spec",
    [
        *(f"addition(digits=3, base=2, order='{order}')" for order in ("plain", "reversed")),
        *(f"addition(digits={n}, base=3, order='interleaved')" for n in (1, 2)),
        *(f"potts(height=2, width=4, order='{order}')" for order in ("rows", "columns")),
        "potts(height=1, width=5, states=3, beta=-0.5)",
        "hierarchy(depth=2, symbols=3, nodes='shown')",
        "hierarchy(depth=3, symbols=2, nodes='shown')",
        "hierarchy(depth=2, branching=3, symbols=2, synonyms=2, nodes='shown', seed=1)",
    ],
)
def test_separators_leave_their_parts_independent(spec: str) -> None:
    world = WORLDS.build(spec)
    separators = world.separators()
    assert sorted(positions(separators)) == list(range(world.length))
    assert separates(law_of(world), separators)


@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        ("addition(digits=8)", 3 * 4),  # nine columns: four of them on the longest way down
        ("potts(height=4, width=6)", 4 * 3),
        ("potts(height=4, width=15)", 4 * 4),
        ("hierarchy(depth=4, symbols=8, nodes='shown')", 7),
        ("hierarchy(depth=5, symbols=8, nodes='shown')", 8),
    ],
)
def test_separators_leave_small_parts(spec: str, calls: int) -> None:
    def longest(separator: Separator) -> int:
        return len(separator.positions) + max(map(longest, separator.parts), default=0)

    assert longest(WORLDS.build(spec).separators()) <= calls


def test_what_does_not_separate_is_seen() -> None:
    """Single cells of a strip, and digits of a sum, do not separate the line of tokens."""
    for spec in ("potts(height=2, width=3)", "addition(digits=2, base=2)"):
        world = WORLDS.build(spec)
        assert separates(law_of(world), world.separators())
        assert not separates(law_of(world), halved([[i] for i in range(world.length)]))


def test_hidden_nodes_separate_nothing() -> None:
    assert WORLDS.build("hierarchy(nodes='hidden')").separators() is None
