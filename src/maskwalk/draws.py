"""Counter-based random streams, and the only place where a token is drawn.

There is no generator state anywhere. A number is a pure function of (seed, sequence id, position,
round, purpose), computed by Philox-4x32-10 [Salmon et al., SC 2011] on integer tensors, so the same
on every device; a sequence's result therefore does not depend on the batch it was in, on the other
sequences, on how many workers ran, or on a resume.

A token is drawn by inverse CDF from one uniform u in [0, 1): the first token with positive
probability whose cumulative probability exceeds u. A token of probability zero is never returned.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import log

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, real
from maskwalk.slices import by_rows

WORD = 0xFFFFFFFF
CLOSE = 1e-9  # probabilities this near to a bound of a truncation count as on it
LIMIT = 1 << 16  # positions, rounds' purposes and blocks of four tokens each fit 16 bits


class Purpose(IntEnum):
    """What a random number is for; different purposes never share numbers."""

    GRAPH = 0
    WALK = 1
    PROMPT = 2
    CHOICE = 3
    TIE = 4
    TOKEN = 5
    ACCEPT = 6
    TRAIN = 7
    METRIC = 8
    NOISE = 9
    REDRAW = 10


def philox(counter: list[Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Philox-4x32-10: four int64 tensors holding 32-bit words in, four out."""
    if counter[0].is_cuda and not torch.compiler.is_compiling():  # compiled code fuses this itself
        from maskwalk.kernels.streams import philox as fused

        return fused(counter, key)
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        # A 32x32-bit product may wrap int64; its 64 bits are right all the same.
        high = c0 * 0xD2511F53
        low = c2 * 0xCD9E8D57
        c0 = ((low >> 32) & WORD) ^ c1 ^ k0
        c2 = ((high >> 32) & WORD) ^ c3 ^ k1
        c1, c3 = low & WORD, high & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return [c0, c1, c2, c3]


def _double(high: Tensor, low: Tensor) -> Tensor:
    """Two 32-bit words to a float64 in [0, 1) on the 2^-53 grid."""
    return ((high >> 5) * (1 << 26) + (low >> 6)).to(torch.float64) * 2.0**-53


class Streams:
    """The random numbers of a batch of sequences, addressed, never consumed."""

    def __init__(self, seed: int, ids: Int[Tensor, " batch"] | int, device: str = "cpu") -> None:
        if isinstance(ids, int):
            ids = torch.arange(ids, device=device)
        self.seed, self.ids = int(seed), ids.to(torch.int64)
        self.key = (self.seed & WORD, (self.seed >> 32) & WORD)

    def select(self, rows: Tensor) -> "Streams":
        """The streams of some of the rows (an index or a boolean mask)."""
        return Streams(self.seed, self.ids[rows])

    def _asking(self) -> None:
        """Somebody asks for numbers; `replay` listens here."""

    def _words(
        self, rows: Tensor, positions: Tensor, purpose: int, round: int, block: Tensor | int
    ) -> list[Tensor]:
        ids = self.ids[rows]
        c1 = (ids >> 32) & 0xFFFF | (int(purpose) << 16)
        c2 = positions | (block << 16)
        c0, c1, c2 = torch.broadcast_tensors(ids & WORD, c1, c2)
        return philox([c0, c1, c2, torch.full_like(c0, round)], self.key)

    def uniform(self, purpose: Purpose, round: int, length: int) -> Float64[Tensor, "batch length"]:
        """One uniform for every position of every sequence."""
        self._asking()
        if self.ids.is_cuda:
            from maskwalk.kernels.streams import uniform

            return uniform(self.ids, self.key, int(purpose), round, length)
        rows = torch.arange(len(self.ids), device=self.ids.device)[:, None]
        positions = torch.arange(length, device=self.ids.device)[None, :]
        words = self._words(rows, positions, purpose, round, 0)
        return _double(words[0], words[1])

    def uniform_at(
        self, purpose: Purpose, round: int, rows: Int[Tensor, " n"], positions: Int[Tensor, " n"]
    ) -> Float64[Tensor, " n"]:
        """The same numbers as `uniform`, only at the places named."""
        self._asking()
        if self.ids.is_cuda:
            from maskwalk.kernels.streams import uniform

            return uniform(self.ids, self.key, int(purpose), round, 0, (rows, positions))
        words = self._words(rows, positions, purpose, round, 0)
        return _double(words[0], words[1])

    def single_at(
        self,
        purpose: Purpose,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
        width: int,
    ) -> Float[Tensor, "n width"]:
        """`width` float32 uniforms (24 bits) at every place named, one per token."""
        self._asking()
        blocks = torch.arange(-(-width // 4), device=self.ids.device)
        words = self._words(rows[:, None], positions[:, None], purpose, round, blocks[None, :])
        lanes = torch.stack([w >> 8 for w in words], dim=-1).flatten(1)[:, :width]
        return lanes.to(torch.float32) * 2.0**-24


def block_uniforms(
    seed: int, purpose: Purpose, first: int, count: int, width: int, stream: int = 0
) -> np.ndarray:
    """Rows first..first+count-1 of an endless table of uniforms, `width` a row, by numpy's Philox.

    The bulk source (graphs, walks): each row is a pure function of (seed, purpose, stream, row).
    """
    padded = -(-width // 4) * 4  # one Philox-4x64 counter yields four words
    key = np.array([seed & (2**64 - 1), (int(purpose) << 32) | stream], dtype=np.uint64)
    bits = np.random.Philox(key=key, counter=first * (padded // 4))
    raw = bits.random_raw(count * padded).reshape(count, padded)[:, :width]
    return (raw >> np.uint64(11)) * 2.0**-53


@dataclass(frozen=True)
class Draw:
    """How a token is drawn from a marginal; part of the record.

    precision: "float64" is exact inverse CDF; "bfloat16" is the race of the public MDLM code,
    argmax p / (1e-10 - log(u + 1e-10)) with p and u in bfloat16, a hidden truncation: u is never
    nearer to 1 than 2^-8, so a token far less likely than the first can never win.

    Truncations, off at their defaults, in the order temperature, top-p, min-p, renormalised after
    each. With the tokens sorted by falling probability and F_j the sum of the first j:

        top_p          keeps token j if F_(j-1) < top_p: the token that crosses stays (Hugging Face)
        top_p_strict   keeps token j if F_j ≤ top_p, and always the first: the token that crosses
                       goes (the public ReMDM code, there called nucleus_p)
        min_p          keeps a token of at least min_p times the largest probability
    """

    precision: str = "float64"
    temperature: float = 1.0
    top_p: float = 1.0
    top_p_strict: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        one_of("precision", self.precision, ("float64", "bfloat16"))
        real("temperature", self.temperature, 1e-6)
        real("top_p", self.top_p, 1e-6, 1.0)
        real("top_p_strict", self.top_p_strict, 0.0, 1.0)
        real("min_p", self.min_p, 0.0, 1.0)

    def shape(self, log_probs: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
        """The marginals the tokens are really drawn from: temperature and truncation applied."""
        if self.temperature != 1.0:
            log_probs = torch.log_softmax(log_probs.to(torch.float64) / self.temperature, -1)
        if self.top_p < 1.0:
            log_probs = _nucleus(log_probs, self.top_p, crossing=True)
        if self.top_p_strict < 1.0:
            log_probs = _nucleus(log_probs, self.top_p_strict, crossing=False)
        if self.min_p > 0.0:
            least = log_probs.amax(-1, keepdim=True) + log(self.min_p) - CLOSE
            log_probs = _keep(log_probs, log_probs >= least)
        return log_probs

    def __call__(
        self,
        log_probs: Float[Tensor, "n vocab"],
        streams: Streams,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        """One token for every place (row, position) from its log-marginal."""

        def drawn(some: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
            shaped = self.shape(some)
            if self.precision == "bfloat16":
                width = shaped.shape[1]
                return race(shaped, streams.single_at(Purpose.TOKEN, round, rows, positions, width))
            return inverse_cdf(shaped, streams.uniform_at(Purpose.TOKEN, round, rows, positions))

        return by_rows(drawn, log_probs, rows, positions)


def _keep(
    log_probs: Float[Tensor, "rows vocab"], kept: Bool[Tensor, "rows vocab"]
) -> Float[Tensor, "rows vocab"]:
    """The same marginals on the kept tokens only."""
    return torch.log_softmax(log_probs.masked_fill(~kept, -torch.inf), -1)


def _nucleus(
    log_probs: Float[Tensor, "rows vocab"], p: float, crossing: bool
) -> Float[Tensor, "rows vocab"]:
    """The likeliest tokens of total probability p, with or without the one that crosses p."""
    ordered, order = log_probs.sort(dim=-1, descending=True, stable=True)
    probs = ordered.to(torch.float64).exp()
    total = probs.cumsum(-1)
    kept = total - probs < p - CLOSE if crossing else total <= p + CLOSE
    kept[:, 0] = True
    return _keep(log_probs, torch.zeros_like(kept).scatter(-1, order, kept))


def inverse_cdf(log_probs: Float[Tensor, "n vocab"], u: Float64[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The first token of positive probability whose cumulative probability exceeds u."""
    return by_rows(_inverse_cdf, log_probs, u)


def _inverse_cdf(
    log_probs: Float[Tensor, "n vocab"], u: Float64[Tensor, " n"]
) -> Int[Tensor, " n"]:
    probs = log_probs.to(torch.float64).exp()
    cdf = probs.cumsum(-1)
    # `probs > 0` guards against parallel scans whose rounding is not monotone (CUDA).
    beyond = (cdf > u[:, None] * cdf[:, -1:]) & (probs > 0)
    first = beyond.to(torch.uint8).argmax(-1)
    last = probs.shape[1] - 1 - (probs > 0).flip(-1).to(torch.uint8).argmax(-1)
    return torch.where(beyond.any(-1), first, last)


def race(log_probs: Float[Tensor, "n vocab"], u: Float[Tensor, "n vocab"]) -> Int[Tensor, " n"]:
    """The bfloat16 race of published code; argmax ties go to the lowest token."""
    probs = log_probs.to(torch.float32).exp().to(torch.bfloat16)
    noise = u.to(torch.bfloat16)
    noise = torch.where(noise == 1, torch.zeros_like(noise), noise)
    return (probs / (1e-10 - (noise + 1e-10).log())).argmax(-1)


PRESETS: dict[str, tuple[Draw, str]] = {
    "exact": (Draw(), "uniform"),
    "as_published": (Draw(precision="bfloat16"), "index"),
}


def preset(name: str) -> tuple[Draw, str]:
    """(draw, ties) of a named preset: `exact`, or `as_published` (bfloat16 race, lowest index)."""
    if name not in PRESETS:
        raise MaskwalkError(f"Unknown preset {name!r}. Known: {', '.join(PRESETS)}.")
    return PRESETS[name]
