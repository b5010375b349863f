"""Does a policy only say where? Its tokens, drawn again without it, and its choices without them.

Random numbers are addressed by (seed, sequence, position, round), so the tokens of a policy that
chooses before it draws follow from its choices alone: at the positions revealed in a round, draw
from the denoiser's own marginals of the canvas before it. A policy that sharpens, cuts or replaces
the marginals on the way gets other tokens. And with other random numbers for the tokens alone, its
first choices stay what they were, unless it looked at what would be drawn.
"""

from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams


def redrawn_share(
    sampler: Sampler, denoiser: Denoiser, tokens: Int[Tensor, "batch length"], seed: int
) -> float:
    """The share of a policy's tokens that come out again when drawn without it."""
    streams, draw = Streams(seed, torch.arange(len(tokens))), Draw()
    decoded = decode(sampler, denoiser, tokens, streams=streams, draw=draw, trace=True)
    assert decoded.trace is not None
    same = total = 0
    for round, (before, after) in enumerate(pairwise(decoded.trace.replay())):
        chosen = before != after
        rows, positions = chosen.nonzero(as_tuple=True)
        if len(rows):
            again = draw(denoiser(before, chosen), streams, round, rows, positions)
            same += int((again == after[chosen]).sum())
            total += len(rows)
    return same / total if total else 1.0


def chooses_blindly(
    sampler: Sampler, denoiser: Denoiser, tokens: Int[Tensor, "batch length"], seed: int
) -> bool:
    """Whether its first choices are the same when only the tokens' random numbers change."""
    ids = torch.arange(len(tokens))
    first = []
    for streams in (Streams(seed, ids), OtherTokens(seed, ids)):
        trace = decode(sampler, denoiser, tokens, streams=streams, trace=True).trace
        assert trace is not None
        rounds = trace.events["round"] == 0
        first.append([trace.events[name][rounds] for name in ("sequence", "position")])
    return all(torch.equal(one, other) for one, other in zip(*first))


class OtherTokens(Streams):
    """The same streams for every purpose but tokens."""

    def select(self, rows: Tensor) -> "OtherTokens":
        """The streams of some of the rows."""
        return OtherTokens(self.seed, self.ids[rows])

    def _words(
        self,
        rows: Tensor,
        positions: Tensor,
        purpose: int,
        round: Tensor | int,
        block: Tensor | int,
    ) -> list[Tensor]:
        shifted = rows if purpose != Purpose.TOKEN else (rows + 1) % len(self.ids)
        return super()._words(shifted, positions, purpose, round, block)
