"""Does a policy only say where? Its tokens, drawn again without it, and its choices without them.

Random numbers are addressed by (seed, sequence, position, round), so the tokens of a policy that
chooses before it draws follow from its choices alone: at the positions revealed in a round, draw
from the denoiser's own marginals of the canvas before it. A policy that sharpens, cuts or replaces
the marginals on the way gets other tokens. And with other random numbers for the tokens alone, its
first choices stay what they were, unless it looked at what would be drawn.
"""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Purpose, Streams


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
    sampler: Sampler, denoiser: Denoiser, tokens: Int[Tensor, "batch length"], seed: int
) -> bool:
    """Whether its first choices are the same when only the tokens' random numbers change."""
    ids = torch.arange(len(tokens))
    one, other = (
        _first_choice(sampler, denoiser, tokens, streams(seed, ids))
        for streams in (Streams, OtherTokens)
    )
    return torch.equal(one, other)


def _first_choice(
    sampler: Sampler, denoiser: Denoiser, tokens: Int[Tensor, "batch length"], streams: Streams
) -> Bool[Tensor, "batch length"]:
    """What it reveals in the first round; the rest is not run."""
    seen: list[Tensor] = []

    def told(rows: Tensor, now: Tensor) -> None:
        if seen:
            chosen = torch.zeros_like(tokens, dtype=torch.bool)
            chosen[rows] = seen[0][rows] != now  # rows that were complete are not among them
            raise _Enough(chosen)
        seen.append(now.clone())

    try:
        decode(sampler, denoiser, tokens, streams=streams, on_round=told)
    except _Enough as enough:
        return enough.chosen
    return torch.zeros_like(tokens, dtype=torch.bool)


class _Enough(Exception):
    """The first round is over."""

    def __init__(self, chosen: Tensor) -> None:
        super().__init__()
        self.chosen = chosen


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
