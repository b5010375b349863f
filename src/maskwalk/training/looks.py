"""Tables of contexts made by the model of the moment: what `along` and others learn from.

A table lives at one address: a captured step reads it, and `refresh` writes over it between steps.
Everything random in it comes from streams of (the run's seed, the number of the look, the entry).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams, inverse_cdf
from maskwalk.training.maskings import ENTRY, EXTRA, Along, Coarse, Distil, Looking, Mistakes


class Context(NamedTuple):
    """What a step shows the network, and how its answers count."""

    walks: Int[Tensor, "*models batch length"]  # the right answers
    tokens: Int[Tensor, "*models batch length"]  # what is shown
    counted: Bool[Tensor, "*models batch length"]  # positions whose answers count
    times: Float[Tensor, "*models batch"]  # the share of positions (expected to be) masked
    share: Float[Tensor, "*models batch"]  # what a walk's sum is divided by


class Looks:
    """The table of one model."""

    def __init__(self, masking: Looking, length: int, device: torch.device | str) -> None:
        self.masking = masking
        shape = (masking.sequences, length)
        numbers = torch.zeros(shape, dtype=torch.int32, device=device)
        self.table = Context(
            numbers,
            numbers.clone(),
            torch.zeros(shape, dtype=torch.bool, device=device),
            torch.ones(masking.sequences, device=device),
            torch.ones(masking.sequences, device=device),
        )

    def tensors(self) -> dict[str, Tensor]:
        """By name, for checkpoints."""
        return self.table._asdict()

    def refresh(
        self, denoiser: Denoiser, walks: Int[Tensor, "count length"], seed: int, look: int
    ) -> None:
        """Looks at the model again; `look` numbers the looks of a run."""
        count = self.masking.sequences
        streams = Streams(seed, look * count + torch.arange(count, device=walks.device))
        u = streams.uniform(Purpose.TRAIN, 0, 1 + EXTRA)
        walks = walks[(u[:, 0] * len(walks)).long()].to(torch.int64)
        for mine, new in zip(
            self.table, contexts(self.masking, denoiser, walks, streams, u[:, 1:])
        ):
            mine.copy_(new)

    def gather(self, extra: Float[Tensor, "batch extra"]) -> Context:
        """Entries of the table, at random."""
        entry = (extra[:, ENTRY] * len(self.table.share)).long()
        walks, tokens, *rest = (part[entry] for part in self.table)
        return Context(walks.to(torch.int64), tokens.to(torch.int64), *rest)


def contexts(
    masking: Looking,
    denoiser: Denoiser,
    walks: Int[Tensor, "batch length"],
    streams: Streams,
    u: Float[Tensor, "batch extra"],
) -> Context:
    """One context of every walk under this model."""
    if isinstance(masking, Along):
        sampler = SAMPLERS.build(masking.sampler)
        round = replay(sampler, denoiser, walks, streams=streams).round
        rounds = round.amax(1) + 1
        now = (u[:, 0] * rounds).long()[:, None]
        masked = round >= now
        times = masked.float().mean(1)
        tokens = walks.masked_fill(masked, denoiser.mask_id)
        if masking.counted == "all":
            return Context(walks, tokens, masked, times, times)
        return Context(walks, tokens, round == now, times, 1 / rounds)
    if isinstance(masking, Distil):
        masked = Coarse().masked(u, walks.shape[1])
        tokens = walks.masked_fill(masked, denoiser.mask_id)
        made = decode(SAMPLERS.build(masking.sampler), denoiser, tokens, streams=streams).tokens
        times = masked.float().mean(1).clamp(min=1 / walks.shape[1])
        return Context(made, tokens, masked, times, times)
    if isinstance(masking, Mistakes):
        own = streams.uniform(Purpose.CHOICE, 0, walks.shape[1]) < masking.rate * u[:, :1]
        rows, places = own.nonzero(as_tuple=True)
        answers = denoiser(walks.masked_fill(own, denoiser.mask_id), own)
        drawn = inverse_cdf(answers, streams.uniform_at(Purpose.TOKEN, 0, rows, places))
        tokens = walks.masked_scatter(own, drawn)
        one = torch.ones(len(walks), device=walks.device)
        return Context(walks, tokens, torch.ones_like(own), torch.zeros_like(one), one)
    raise NotImplementedError(f"{masking!r} has no table.")
