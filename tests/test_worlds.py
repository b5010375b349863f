"""Worlds: what every registered one keeps, that the checks can fail, and how a spec names one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from maskwalk import TASKS, WORLDS, World, broken_denoiser, broken_world
from maskwalk.denoisers.resolve import resolve_world
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.exact.partition import Partition
from maskwalk.worlds.walks.world import walk_parts, walk_world
from maskwalk.worlds.world import build_world
from tests.coins import Coins, Oracle

# A small instance of every registered world; `coins` is the toy of tests/coins.py.
SMALL = {
    "walk": [
        "walk(graph=st_er(nodes=5, p=0.2), law=lazy(stay=0.2), length=5, seed=1)",
        "walk(graph=directed(nodes=5, p=0.2), law=lazy(stay=0.3, start='stationary'), length=4)",
        "walk(graph=st_er(nodes=4, p=0.3), law=markov(order=2, seed=3), length=5)",
        "walk(graph=st_er(nodes=5, p=0.2), law=distant(K=2, skip_recent=1), length=5)",
        "walk(graph=bottleneck_dag(corridors=1, width=2), law=dag(), length=4)",
        "walk(graph=st_er(nodes=5, p=0.4), law=drift(strength=0.8), length=5)",
        "walk(graph=st_er(nodes=4, p=0.3), law=schedule(laws=[lazy(stay=0.5), drift()]), length=6)",
    ],
    "text": ["text(source='zoo:books_mdm', length=8)"],
    "coins": ["coins(length=6)"],
    "latin": ["latin(n=3)", "latin(n=4)"],
    "sudoku": ["sudoku(box=2)", "sudoku(box=3)"],
    "addition": [
        "addition(digits=2, base=3)",
        "addition(digits=2, base=2, order='reversed')",
        "addition(digits=1, base=4, order='interleaved')",
    ],
    "regular": [
        "regular(length=6)",
        "regular(pattern='(ab|c)*', alphabet='abc', length=5, weights=[0.5, 1, 2])",
        "regular(alphabet='ab', dfa=[[1, 0], [-1, 0]], accepting=[0, 1], length=6)",
    ],
    "dyck": ["dyck(kinds=2, depth=2, length=6)", "dyck(kinds=1, depth=4, length=10)"],
    "hmm": ["hmm(states=4, tokens=5, length=5)", "hmm(states=3, tokens=3, length=1, seed=1)"],
    "pcfg": [
        "pcfg(nonterminals=3, words=4, branches=2, lexicon=2, length=6)",
        'pcfg(grammar=\'S -> S S [0.3] | "a" [0.5] | "b" [0.2]\', length=1)',
    ],
    "hierarchy": [
        "hierarchy(depth=2, symbols=3)",
        "hierarchy(depth=2, symbols=3, nodes='shown')",
        "hierarchy(depth=1, branching=3, symbols=4, synonyms=3, seed=2)",
    ],
    "potts": [
        "potts(height=2, width=4, beta=0.6)",
        "potts(height=2, width=3, states=3, beta=-0.8, order='columns')",
    ],
}
EXACT = [name for name in SMALL if name not in ("walk", "text", "coins")]
ALL_SMALL = [spec for specs in SMALL.values() for spec in specs]


def build(spec: str) -> World:
    if spec.startswith("text"):
        pytest.importorskip("transformers")
    return WORLDS.build(spec)


@pytest.mark.parametrize("spec", ALL_SMALL)
def test_what_every_world_keeps(spec: str) -> None:
    world = build(spec)
    assert isinstance(world, World)
    assert broken_world(world) == {}


@pytest.mark.parametrize("spec", ALL_SMALL)
def test_what_every_oracle_keeps(spec: str) -> None:
    """Above all: the same bits in any batch."""
    world = build(spec)
    oracle = world.oracle()
    if oracle is None:
        return
    tokens = world.sample(9, 0)
    hidden = torch.arange(tokens.numel()).view_as(tokens) % 5 % 2 == 0
    hidden[0] = True
    assert broken_denoiser(oracle, torch.where(hidden, oracle.mask_id, tokens)) == {}


@pytest.mark.parametrize("name", EXACT)
def test_an_oracle_of_the_usual_size_gives_the_same_bits_in_any_batch(name: str) -> None:
    """More canvases than some oracles take at once."""
    world = WORLDS.build(f"{name}()")
    canvas = TASKS.build("given(share=0.5)", world=world, prompts=40, seed=0).tokens
    assert broken_denoiser(world.oracle(), canvas) == {}


def test_a_world_of_nothing_and_one_of_no_sequence_are_refused() -> None:
    class Empty(Partition):
        length, vocab_size = 3, 2

        def log_partition(self, unary: Any) -> Any:
            return (unary.sum((1, 2)) * 0).log()

        def show(self, tokens: Any) -> str:
            return ""

    with pytest.raises(MaskwalkError, match="No sequence of this length is possible"):
        Empty().sample(1, 0)
    with pytest.raises(MaskwalkError, match="0 positions and 2 tokens"):
        build_world("coins(length=0)")


def test_every_registered_world_is_checked() -> None:
    assert set(SMALL) == set(WORLDS)


class Counting(Coins):
    """Samples that depend on how many were drawn before."""

    drawn = 0

    def sample(self, count: int, seed: int, first: int = 0) -> Any:
        Counting.drawn += count
        return super().sample(count, seed + Counting.drawn, first)


class Unlikely(Coins):
    """Probabilities that forget the parity."""

    def log_prob(self, tokens: Any) -> Any:
        return super().log_prob(tokens) - 0.7


class Lenient(Coins):
    """Everything is valid."""

    def valid(self, tokens: Any) -> Any:
        return torch.ones_like(tokens, dtype=torch.bool)


class Heads(Coins):
    """A coin that is not fair, but says it is."""

    def sample(self, count: int, seed: int, first: int = 0) -> Any:
        tokens = super().sample(count, seed, first)
        tokens[:, 0] = tokens[:, 0] | tokens[:, 1]
        tokens[:, -1] = tokens[:, :-1].sum(1) % 2
        return tokens


class Fair(Coins):
    """An oracle that never forces a coin."""

    def oracle(self) -> Any:
        class Always(Oracle):
            def __call__(self, tokens: Any, at: Any = None) -> Any:
                places = int((tokens == 2 if at is None else at).sum())
                return torch.full((places, 2), 0.5, dtype=torch.float64).log()

        return Always(self)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Counting, "samples_are_numbered"),
        (Unlikely, "probabilities_add_up"),
        (Lenient, "valid_is_the_support"),
        (Heads, "samples_follow_the_law"),
        (Fair, "oracle_is_the_truth"),
        (Fair, "any_order_gives_the_law"),
    ],
)
def test_the_checks_can_fail(broken: Callable[..., Any], check: str) -> None:
    assert check in broken_world(broken(6))


# ---- specs


def test_a_world_of_walks_by_its_parts_or_as_one_spec() -> None:
    whole = "walk(st_er(nodes=30, p=0.1), lazy(stay=0.5), length=8, seed=3)"
    spec = WORLDS.canonical(whole)
    assert spec == walk_world("st_er(nodes=30, p=0.1)", "lazy(stay=0.5)", 8, 3)
    assert walk_parts(spec) == {
        "graph": "st_er(nodes=30, p=0.1)",
        "walk": "lazy(stay=0.5, start='uniform')",
        "length": 8,
        "graph_seed": 3,
    }
    assert WORLDS.canonical(spec) == spec and walk_parts("coins(length=8)") is None
    one, two = WORLDS.build(spec), WORLDS.build(whole)
    assert torch.equal(one.sample(5, 0), two.sample(5, 0))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"world": "wlak()"}, "Did you mean 'walk'"),
        ({"world": "walk(graph=st_re())"}, "Did you mean 'st_er'"),
        ({"world": "walk(legnth=3)"}, "Did you mean 'length'"),
        ({"world": "walk(graph=3)"}, "graph of world 'walk' must be a graph as a spec, such as"),
        ({"world": "walk()", "length": 8}, "Give a world, or length of a world of walks, not both"),
        ({"length": 1}, "length must be a whole number from 2"),
        ({"graph_seed": -1}, "graph_seed must be a whole number from 0"),
    ],
)
def test_a_world_that_cannot_be_gets_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(MaskwalkError, match=says):
        resolve_world("oracle", given)


def test_a_trained_model_brings_its_world() -> None:
    known = resolve_world("zoo:st_er_p0", {})
    assert known.startswith("walk(graph=st_er(nodes=500, p=0.0)")
    assert resolve_world("zoo:st_er_p0", {"world": known}) == known
    assert resolve_world("zoo:st_er_p0", {"length": 24}) == known
    with pytest.raises(MaskwalkError, match="was trained with length 24, not 8; leave length out"):
        resolve_world("zoo:st_er_p0", {"length": 8})
    with pytest.raises(MaskwalkError, match="was trained in the world walk"):
        resolve_world("zoo:st_er_p0", {"world": "coins()"})
