"""Small laws a decoder is tried on: one whose truth can be listed, and some made to tell one thing.

`Independent` has positions that know nothing of each other, so a table of marginals says all:

    certain   one sequence, another token at every position: shows which position was read
    ladder    confidence, entropy and margin rank its positions differently: shows the ranking
    fans      position i is uniform over k_i tokens, so what is drawn cannot change a score
    flat      every position alike: shows how ties are broken
    rare      one position, tokens down to 2^-13: shows where a draw's precision ends
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import Denoiser, masked_positions
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.exact.listing import support_of
from maskwalk.worlds.world import World, build_world

WORLD = "walk(graph=st_er(nodes=4, p=0.3), law=markov(order=2, seed=3), length=5)"
RARE = (2.0**-11, 2.0**-12, 2.0**-13)  # what a draw of 8 bits cannot reach
LARGEST = 5000  # sequences of a law to audit with


class Independent:
    """Positions that know nothing of each other: (length, vocab) marginals, as a denoiser."""

    score_grid = 1e-9

    def __init__(self, probs: Sequence[Sequence[float]]) -> None:
        table = torch.tensor(probs, dtype=torch.float64)
        self.log_probs = (table / table.sum(1, keepdim=True)).log()
        self.length, self.vocab_size = table.shape
        self.mask_id = self.vocab_size

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """The marginals of the places in `at` (all masked if None)."""
        places = masked_positions(tokens, self.mask_id, at).nonzero(as_tuple=True)[1]
        return self.log_probs.to(tokens.device)[places]


def certain(length: int = 5, vocab: int = 6) -> Independent:
    """One sequence: 1, 2, 3, …"""
    return Independent([[float(t == (i + 1) % vocab) for t in range(vocab)] for i in range(length)])


def ladder() -> Independent:
    """Best first by confidence: 2 0 1 4 3; by entropy: 2 1 4 0 3; by margin: 0 4 3 2 1."""
    return Independent(
        [
            [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
            [0.48, 0.47, 0.0125, 0.0125, 0.0125, 0.0125],
            [0.6, 0.39, 0.0025, 0.0025, 0.0025, 0.0025],
            [0.4, 0.12, 0.12, 0.12, 0.12, 0.12],
            [0.44, 0.14, 0.14, 0.14, 0.14, 0.0],
        ]
    )


def fans() -> Independent:
    """Position i is uniform over 5, 3, 6, 2 or 4 tokens: best first 3 1 4 0 2."""
    return Independent([[1.0] * k + [0.0] * (6 - k) for k in (5, 3, 6, 2, 4)])


def flat(length: int = 5, vocab: int = 4) -> Independent:
    """Every position uniform."""
    return Independent([[1.0] * vocab] * length)


def rare() -> Independent:
    """One position: two common tokens and `RARE` ones."""
    rest = 1.0 - sum(RARE)
    return Independent([[0.75 * rest, 0.25 * rest, *RARE]])


Law = World | Independent


def law_of(world: str | World) -> World:
    """A world that is small enough to audit with, or a sentence."""
    built = build_world(world) if isinstance(world, str) else world
    try:
        known = support_of(built)
    except MaskwalkError:  # too many to list
        known = None
    if known is None or len(known[0]) > LARGEST or built.oracle() is None:
        raise MaskwalkError(
            f"An audit lists every sequence of its world, at most {LARGEST:,}; "
            f"{world} has more, or no oracle. The default is {WORLD}."
        )
    if built.length < 4:
        raise MaskwalkError(f"An audit needs a world of at least 4 positions, not {built.length}.")
    return built


def denoiser_of(law: Law) -> Denoiser:
    """What answers exactly for a law."""
    if isinstance(law, Independent):
        return law
    oracle = law.oracle()
    if oracle is None:
        raise MaskwalkError(f"{law!r} has no oracle, so there is nothing to answer with.")
    return oracle
