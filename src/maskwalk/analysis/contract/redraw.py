"""Does a policy only say where? Its tokens, drawn again without it, and its choices without them.

Random numbers are addressed by (seed, sequence, position, round), so the tokens of a policy that
chooses before it draws follow from its choices alone: at the positions revealed in a round, draw
from the denoiser's own marginals of the canvas before it. A policy that sharpens, cuts or replaces
the marginals on the way gets other tokens.

Its choices must not follow from tokens that are still to be drawn. So it is run again with its own
tokens forced, as on a replay, and with other random numbers for tokens: in every round it has to
choose what it chose before. It may compute the numbers itself from the seed that it is shown; that
seed is another one, too.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams

ANOTHER = 0x5A5A  # another seed; in a position's bits, another token's numbers


def redrawn_share(
    sampler: Sampler, denoiser: Denoiser, tokens: Int[Tensor, "batch length"], seed: int
) -> float:
    """The share of a policy's tokens that come out again when drawn without it."""
    streams = Streams(seed, torch.arange(len(tokens)))
    start = tokens.clone()
    decoded = decode(sampler, denoiser, tokens, streams=streams, draw=Draw(), trace=True)
    return redrawn(decoded, denoiser, start, seed)


def redrawn(
    decoded: Decoded,
    denoiser: Denoiser,
    start: Int[Tensor, "batch length"],
    seed: int,
    some: Int[Tensor, " rows"] | None = None,
) -> float:
    """The share of the tokens of a traced run (of all its rows, or of some) that come out again.

    A token whose uniform lies at the edge of its share of [0, 1), nearer than the denoiser's grid,
    has come out: a network's answer in another batch differs by rounding.
    """
    assert decoded.trace is not None
    some = torch.arange(len(start)) if some is None else some
    streams, same, total = Streams(seed, some), 0, 0
    canvases = [canvas[some] for canvas in decoded.trace.replay()]
    if not torch.equal(canvases[0], start[some]):
        return 0.0  # what was given is not what the run began with
    for round, (before, after) in enumerate(pairwise(canvases)):
        chosen = before != after
        rows, positions = chosen.nonzero(as_tuple=True)
        if len(rows):
            log_probs = denoiser(before, chosen)
            again = Draw()(log_probs, streams, round, rows, positions)
            u = streams.uniform_at(Purpose.TOKEN, round, rows, positions)
            near = _near(log_probs, u, after[chosen], denoiser.score_grid)
            same += int(((again == after[chosen]) | near).sum())
            total += len(rows)
    if not torch.equal(canvases[-1], decoded.tokens[some]):
        return 0.0  # the tokens that are scored are not those that were drawn
    return same / total if total else 1.0


def _near(
    log_probs: Float[Tensor, "n vocab"],
    u: Float[Tensor, " n"],
    tokens: Int[Tensor, " n"],
    grid: float,
) -> Bool[Tensor, " n"]:
    """Whether each uniform lies in its token's share of [0, 1), or nearer to it than the grid."""
    real = (tokens >= 0) & (tokens < log_probs.shape[1])  # a remasked place holds no token
    at = torch.where(real, tokens, 0)[:, None]
    probs = log_probs.to(torch.float64).exp()
    high = probs.cumsum(-1).gather(1, at)[:, 0]
    low = high - probs.gather(1, at)[:, 0]
    return real & (u >= low - grid) & (u <= high + grid)


def chooses_blindly(
    sampler: Sampler,
    denoiser: Denoiser,
    tokens: Int[Tensor, "batch length"],
    seed: int,
    decoded: Decoded | None = None,
    ties: str = "uniform",
) -> bool:
    """Whether its choices are the same in every round when only tokens' random numbers change.

    `decoded` is the traced run of these rows with this seed; without, they are decoded here.
    """
    ids = torch.arange(len(tokens))
    if decoded is None:
        own = Streams(seed, ids)
        decoded = decode(sampler, denoiser, tokens, streams=own, ties=ties, trace=True)
    assert decoded.trace is not None
    forced, streams = Follows(sequences=decoded.tokens), OtherTokens(seed, ids)
    again = decode(
        sampler, denoiser, tokens, streams=streams, draw=forced, ties=ties, trace=True
    ).trace
    assert again is not None
    return torch.equal(again.reveal_rounds(), decoded.trace.reveal_rounds())


@dataclass(frozen=True, eq=False, kw_only=True)
class Follows(Draw):
    """A draw that gives the tokens of a run."""

    sequences: Int[Tensor, "batch length"]

    def __call__(
        self,
        log_probs: Float[Tensor, "n vocab"],
        streams: Streams,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        """The run's tokens at these places."""
        return self.sequences[streams.ids[rows], positions]


class OtherTokens(Streams):
    """The same streams for every purpose but tokens, under the name of another seed."""

    def __init__(self, seed: int, ids: Int[Tensor, " batch"]) -> None:
        super().__init__(seed, ids)
        self._true, self.seed = seed, seed ^ ANOTHER

    def select(self, rows: Tensor) -> "OtherTokens":
        """The streams of some of the rows."""
        return OtherTokens(self._true, self.ids[rows])

    def _words(
        self,
        rows: Tensor,
        positions: Tensor,
        purpose: int,
        round: Tensor | int,
        block: Tensor | int,
    ) -> list[Tensor]:
        moved = positions if purpose != Purpose.TOKEN else (positions ^ ANOTHER)
        return super()._words(rows, moved, purpose, round, block)
