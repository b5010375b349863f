"""Denoisers: what every one keeps (oracles, trained networks, models of text), and its checks."""

from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk import STAND_INS, WORLDS, broken_denoiser, from_pretrained, load, load_books
from tests.coins import Coins, Oracle

WORLD = WORLDS.build("walk(graph=st_er(nodes=30, p=0.1), law=lazy(stay=0.2), length=9)")
ORDER_2 = WORLDS.build("walk(graph=st_er(nodes=6, p=0.3), law=markov(order=2, seed=3), length=6)")


def canvases(world: Any, mask: int, count: int = 6) -> torch.Tensor:
    tokens = world.sample(count, 0)
    hidden = torch.arange(tokens.numel()).view_as(tokens) % 3 != 1
    hidden[0] = True
    return torch.where(hidden, mask, tokens)


def test_oracles() -> None:
    for world in (WORLD, ORDER_2, Coins(6)):
        oracle = world.oracle()
        assert broken_denoiser(oracle, canvases(world, oracle.mask_id)) == {}


def test_a_trained_network() -> None:
    network = from_pretrained("zoo:st_er_p0")
    world = WORLDS.build("walk(graph=st_er(nodes=500, p=0.0), law=lazy(stay=0.5))")
    assert broken_denoiser(network, canvases(world, network.mask_id)) == {}


@pytest.mark.parametrize("name", ["zoo:books_mdm", "zoo:books_ar"])
def test_our_models_of_books(name: str) -> None:
    pytest.importorskip("transformers")
    model = load_books(name, rows=2)
    assert model.held_out is not None
    tokens = model.held_out[:3, :10].clone()
    tokens[:, 4:] = model.mask
    assert broken_denoiser(model.denoiser, tokens) == {}


@pytest.mark.parametrize("name", list(STAND_INS))
def test_other_peoples_models(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = load(STAND_INS[name](tmp_path / name), cache=False)
    mask = model.mask
    tokens = torch.arange(5, 35).view(3, 10) % (model.denoiser.vocab_size - 6) + 5
    tokens = torch.where(tokens == mask, 5, tokens)
    tokens[:, 3:] = mask
    if not model.causal:
        tokens[1, 8] = 6
    assert broken_denoiser(model.denoiser, tokens) == {}


class Mutant(Oracle):
    """The coins' oracle, with a mistake of each kind."""

    def __init__(self, mistake: str) -> None:
        super().__init__(Coins(6))
        self.mistake = mistake
        if mistake == "never_the_mask":
            self.vocab_size, self.mask_id = 3, 2

    def __call__(self, tokens: Any, at: Any = None) -> Any:
        answer = super().__call__(tokens, at)
        if self.mistake == "normalised":
            return answer + 0.01
        if self.mistake == "packed" and at is not None and not bool(at[:, 1::2].any()):
            return answer.flip(0)
        if self.mistake == "same_in_any_batch":
            return torch.log_softmax(answer + 0.1 * len(tokens) * torch.tensor([1.0, 0.0]), 1)
        if self.mistake == "never_the_mask":
            return torch.full((len(answer), 3), 1 / 3, dtype=torch.float64).log()
        return answer


@pytest.mark.parametrize("check", ["normalised", "packed", "never_the_mask", "same_in_any_batch"])
def test_the_checks_can_fail(check: str) -> None:
    tokens = torch.tensor([[2, 1, 0, 1, 0, 1], [0, 2, 2, 0, 1, 1], [2, 1, 2, 0, 1, 2]])
    assert check in broken_denoiser(Mutant(check), tokens)
    assert broken_denoiser(Mutant(""), tokens) == {}
