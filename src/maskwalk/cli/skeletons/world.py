"""A world: a law of sequences, by the sum over all of them."""

NEXT = "maskwalk sample --world '<NAME>(length=12)' --task 'given(share=0.3)' --include <PATH>"

FILE = '''"""<TITLE>: beads on a string, neighbours of different colours, all equally likely.

The sum over all strings, Z(w), of the products of weights w_i(colour), is the whole definition:
w dlogZ/dw is the probability of a colour given what is revealed. Change this text with the world.
"""

import torch

from maskwalk import WORLDS, MaskwalkError, Partition


@WORLDS.register("<NAME>")  # the name in specs: <NAME>(length=12, colours=3)
class <CLASS>(Partition):
    """Beads on a string, no two neighbours of one colour, all strings equally likely."""

    def __init__(self, length: int = 12, colours: int = 3) -> None:
        if not 2 <= colours <= 26:
            raise MaskwalkError(f"colours of <NAME> must lie between 2 and 26, not {colours}.")
        self.length, self.vocab_size = length, colours

    def log_partition(self, unary):
        """log of the sum over all strings, of weights (batch, length, colours)."""
        # Change these lines: elementwise products and sums, so that no row depends on another.
        step = 1.0 - torch.eye(self.vocab_size).to(unary)  # from a colour to any other
        message = unary[:, 0]
        for t in range(1, self.length):
            message = (message[:, :, None] * step).sum(1) * unary[:, t]
        return message.sum(1).log()

    def show(self, tokens):
        """Letters; a dot for the mask."""
        letters = "abcdefghijklmnopqrstuvwxyz"[: self.vocab_size] + "·"
        return "".join(letters[token] for token in tokens.tolist())
'''

TEST = '''"""<NAME> is a world: its oracle, samples and likelihoods agree: pytest test_<NAME>.py"""

import pytest
import torch
from <NAME> import <CLASS>

import maskwalk


def test_it_keeps_what_every_world_keeps():
    assert maskwalk.broken_world(<CLASS>(length=5)) == {}


def test_the_law_by_hand():
    world = <CLASS>(length=4, colours=3)  # 3 * 2 * 2 * 2 strings
    log_probs = world.log_prob(torch.tensor([[0, 1, 0, 2], [0, 0, 1, 2]]))
    assert log_probs[0].exp() == pytest.approx(1 / 24) and log_probs[1] == -torch.inf


def test_bisection_is_exact_here():
    assert maskwalk.run("bisection", world="<NAME>(length=7)", count=64).coherence == 1.0
'''
