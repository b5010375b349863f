"""The contexts that a policy visits under a model: what `along` trains on.

Training sequences are forced through the policy (analysis/replay.py), which tells the round of
every position. A sequence is kept as it stands before one of its rounds, drawn at random. The table
lives at one address: a captured graph reads it, and `refresh` writes over it between steps.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.analysis.replay import replay
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams
from maskwalk.training.maskings import ENTRY, Along

Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Visits:
    """A table of contexts of one model and its policy."""

    def __init__(self, masking: Along, length: int, device: torch.device | str) -> None:
        self.masking, self.sampler = masking, SAMPLERS.build(masking.sampler)
        shape = (masking.sequences, length)
        self.walks = torch.zeros(shape, dtype=torch.int32, device=device)
        self.masked = torch.zeros(shape, dtype=torch.bool, device=device)
        self.counted = torch.zeros(shape, dtype=torch.bool, device=device)
        self.share = torch.ones(masking.sequences, device=device)

    def tensors(self) -> dict[str, Tensor]:
        """By name, for checkpoints."""
        names = ("walks", "masked", "counted", "share")
        return {name: getattr(self, name) for name in names}

    def refresh(
        self, denoiser: Denoiser, walks: Int[Tensor, "count length"], seed: int, look: int
    ) -> None:
        """Looks at the policy again: `look` numbers the looks of a run."""
        count = self.masking.sequences
        ids = look * count + torch.arange(count, device=walks.device)
        streams = Streams(seed, ids)
        u = streams.uniform(Purpose.TRAIN, 0, 2)
        walks = walks[(u[:, 0] * len(walks)).long()]
        round = replay(self.sampler, denoiser, walks, streams=streams).round
        rounds = round.amax(1) + 1
        now = (u[:, 1] * rounds).long()[:, None]
        masked = round >= now
        counted = round == now if self.masking.counted == "next" else masked
        share = 1 / rounds if self.masking.counted == "next" else masked.float().mean(1)
        for name, value in (("walks", walks), ("masked", masked), ("counted", counted)):
            getattr(self, name).copy_(value)
        self.share.copy_(share)

    def gather(self, extra: Float[Tensor, "batch extra"], mask_id: int) -> Parts:
        """Contexts drawn from the table: walks, tokens, counted, times, share."""
        entry = (extra[:, ENTRY] * len(self.share)).long()
        walks, masked = self.walks[entry].to(torch.int64), self.masked[entry]
        tokens = walks.masked_fill(masked, mask_id)
        times = masked.float().mean(1)
        return walks, tokens, self.counted[entry], times, self.share[entry]
