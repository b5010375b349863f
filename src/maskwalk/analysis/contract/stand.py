"""What a sampler is tried on, and what it must not do."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams
from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams


class BrokenContract(AssertionError):
    """What a sampler does that it must not do."""


@dataclass(frozen=True)
class Stand:
    """What a sampler is tried on: a small denoiser, and one whose marginals are all alike."""

    denoiser: Denoiser
    flat: Denoiser
    length: int
    samples: int = 4000

    def canvas(self, batch: int, seed: int = 7) -> Int[Tensor, "batch length"]:
        """Fully masked rows, half-masked ones, rows with given ends, and one that is complete.

        The tokens revealed are ones the denoiser itself produces, so they can occur together.
        """
        full = torch.full((batch, self.length), self.denoiser.mask_id)
        ids = torch.arange(batch)
        whole = decode(Sequential(), self.denoiser, full, streams=Streams(seed, ids)).tokens
        keep = Streams(seed + 1, ids).uniform(Purpose.CHOICE, 0, self.length) < 0.3
        ends = torch.zeros_like(keep)
        ends[:, [0, -1]] = True
        kind = (ids % 8)[:, None]
        reveal_mask = torch.where(kind < 3, keep, torch.where(kind < 5, ends, False)) | (kind == 7)
        return torch.where(reveal_mask, whole, full)

    def starts(self, batch: int, seed: int = 9) -> Int[Tensor, "batch length"]:
        """Rows with nothing given, with a prompt, and with tokens given in the middle, in turn."""
        full = torch.full((batch, self.length), self.denoiser.mask_id)
        ids, place = torch.arange(batch), torch.arange(self.length)
        whole = decode(Sequential(), self.denoiser, full, streams=Streams(seed, ids)).tokens
        prompt = place < 1 + ids[:, None] % 2
        middle = (place - self.length // 2).abs() <= ids[:, None] % 2
        kind = (ids // 2 % 3)[:, None]
        given = torch.where(kind == 0, False, torch.where(kind == 1, prompt, middle))
        return torch.where(given, whole, full)


class Sequential(UnmaskingPolicy):
    """Left to right: the plainest correct sampler, to make canvases with."""

    def choose(
        self, view: View, state: dict[str, Tensor], rng: RoundStreams
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The first masked position."""
        return view.masked & (view.masked.cumsum(1) == 1), state


def run(
    sampler: Sampler,
    denoiser: Denoiser,
    tokens: Tensor,
    ids: Tensor | None = None,
    ties: str = "uniform",
) -> Decoded:
    """The sampler's sequences and their trace, always by the same numbers."""
    ids = torch.arange(len(tokens)) if ids is None else ids
    return decode(sampler, denoiser, tokens, streams=Streams(11, ids), ties=ties, trace=True)


def same(one: Decoded, two: Decoded, rows: Tensor, others: Tensor, where: str) -> None:
    """The rows of two runs are the same, or a sentence says what differs."""
    assert one.trace is not None and two.trace is not None
    if not torch.equal(one.calls[rows], two.calls[others]):
        raise BrokenContract(f"A sequence takes another number of calls {where}.")
    if not torch.equal(one.trace.reveal_rounds()[rows], two.trace.reveal_rounds()[others]):
        raise BrokenContract(f"A sequence is revealed in another order {where}.")
    if not torch.equal(one.tokens[rows], two.tokens[others]):
        raise BrokenContract(f"A sequence gets other tokens {where}.")
