"""How a token is drawn from a marginal: the only place where that happens.

A token is drawn by inverse CDF from one uniform (`streams.inverse_cdf`), after temperature and
truncation, or by the race of published code in bfloat16 or float32. Commands and files name a draw
by a spec, `draw(top_p=0.9)`, or by a preset (presets.py), which also says how ties are broken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.decoding.presets import PRESETS, decoding_line
from maskwalk.decoding.scores import entropy
from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.kernels.rows import by_rows
from maskwalk.kernels.small import first_largest
from maskwalk.specs import Registry, Spec, parse
from maskwalk.streams import Purpose, Streams, inverse_cdf

PRECISIONS = ("float64", "float32", "bfloat16")
CLOSE = 1e-9  # probabilities this near to a bound of a truncation count as on it


@dataclass(frozen=True)
class Draw:
    """How a token is drawn from a marginal; part of the record.

    precision: "float64" is exact inverse CDF; "bfloat16" is the race of the public MDLM code,
    argmax p / (1e-10 - log(u + 1e-10)) with p and u in bfloat16, a hidden truncation: u is never
    nearer to 1 than 2^-8, so a token far less likely than the first can never win. "float32" is
    the same race in float32, where u comes as near to 1 as 2^-24.

    temperature: 0 is the argmax (the first of equals), as fast as a plain one.

    Truncations, off at their defaults, in the order temperature, top-p, top-k, min-p, floor,
    renormalised after each. With the tokens sorted by falling probability and F_j the sum of the
    first j:

        top_p          keeps token j if F_(j-1) < top_p: the token that crosses stays (Hugging Face)
        top_p_strict   keeps token j if F_j ≤ top_p, and always the first: the token that crosses
                       goes (the public ReMDM code, there called nucleus_p)
        top_k          keeps the k likeliest tokens, and what is as likely as the last of them
        min_p          keeps a token of at least min_p times the largest probability
        floor          keeps a token of at least floor · exp(−H), H the entropy of what is left:
                       relative to the typical probability, so a flat marginal loses nothing and a
                       sharp one only its tail. The likeliest token always stays.

    scores: what policies rank positions by. "model": the model's own marginals, whatever the
    tokens are drawn from. "shaped": the marginals after temperature and truncation, as Dream's and
    MaskGIT's code does (at temperature 0 after truncation alone).

    over: which tokens the scores count. "drawn": those that may be drawn, renormalised. "all":
    every token the model has, also those a model of text never draws (the mask, padding, columns
    of no token), as LLaDA's and Dream's code does. Without such tokens the two are the same.
    """

    precision: str = "float64"
    temperature: float = 1.0
    top_p: float = 1.0
    top_p_strict: float = 1.0
    min_p: float = 0.0
    floor: float = 0.0
    top_k: int = 0
    scores: str = "model"
    over: str = "drawn"
    added_later: ClassVar[tuple[str, ...]] = ("top_k", "scores", "over")

    def __post_init__(self) -> None:
        one_of("precision", self.precision, PRECISIONS)
        if self.temperature != 0 or isinstance(self.temperature, bool):
            real("temperature, if not 0,", self.temperature, 1e-6)
        real("top_p", self.top_p, 1e-6, 1.0)
        real("top_p_strict", self.top_p_strict, 0.0, 1.0)
        real("min_p", self.min_p, 0.0, 1.0)
        real("floor", self.floor, 0.0, 1.0)
        whole("top_k", self.top_k, 0)
        one_of("scores", self.scores, ("model", "shaped"))
        one_of("over", self.over, ("drawn", "all"))

    @property
    def exact(self) -> bool:
        """Whether tokens come from the denoiser's own marginals: nothing cut off or sharpened."""
        return self == Draw()

    def shape(self, log_probs: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
        """The marginals the tokens are really drawn from: temperature and truncation applied."""
        if self.temperature == 0:
            certain = torch.full_like(log_probs, -torch.inf)
            return certain.scatter(-1, log_probs.argmax(-1, keepdim=True), 0.0)
        if self.temperature != 1.0:
            log_probs = torch.log_softmax(log_probs.to(torch.float64) / self.temperature, -1)
        if self.top_p < 1.0:
            log_probs = _nucleus(log_probs, self.top_p, crossing=True)
        if self.top_p_strict < 1.0:
            log_probs = _nucleus(log_probs, self.top_p_strict, crossing=False)
        if 0 < self.top_k < log_probs.shape[-1]:
            least = log_probs.topk(self.top_k, -1).values[:, -1:]
            log_probs = _keep(log_probs, log_probs >= least)
        if self.min_p > 0.0:
            least = log_probs.amax(-1, keepdim=True) + log(self.min_p) - CLOSE
            log_probs = _keep(log_probs, log_probs >= least)
        if self.floor > 0.0:
            # exp(−H) ≤ max p, so with floor ≤ 1 the likeliest token is never below the bar.
            least = (log(self.floor) - entropy(log_probs) - CLOSE)[:, None]
            log_probs = _keep(log_probs, log_probs >= least)
        return log_probs

    def score_shape(self, log_probs: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
        """What scores="shaped" reads: as `shape`, but at temperature 0 without the argmax."""
        return (replace(self, temperature=1.0) if self.temperature == 0 else self).shape(log_probs)

    def likeliest(self, log_probs: Float[Tensor, "n vocab"]) -> Int[Tensor, " n"]:
        """What temperature 0 draws: no truncation removes the likeliest token."""
        return first_largest(log_probs)

    def __call__(
        self,
        log_probs: Float[Tensor, "n vocab"],
        streams: Streams,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        """One token for every place (row, position) from its log-marginal."""
        if self.temperature == 0:
            return self.likeliest(log_probs)

        def drawn(some: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
            shaped = self.shape(some)
            if self.precision != "float64":
                width = shaped.shape[1]
                noise = streams.single_at(Purpose.TOKEN, round, rows, positions, width)
                return race(shaped, noise, getattr(torch, self.precision))
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
    keep_mask = total - probs < p - CLOSE if crossing else total <= p + CLOSE
    keep_mask[:, 0] = True
    return _keep(log_probs, torch.zeros_like(keep_mask).scatter(-1, order, keep_mask))


def race(
    log_probs: Float[Tensor, "n vocab"],
    u: Float[Tensor, "n vocab"],
    dtype: torch.dtype = torch.bfloat16,
) -> Int[Tensor, " n"]:
    """The race of published code in its precision; argmax ties go to the lowest token."""
    probs = log_probs.to(torch.float32).exp().to(dtype)
    noise = u.to(dtype)
    noise = torch.where(noise == 1, torch.zeros_like(noise), noise)
    return (probs / (1e-10 - (noise + 1e-10).log())).argmax(-1)


DRAWS: Registry[Draw] = Registry("draw")
DRAWS.register("draw")(Draw)
TIES = ("uniform", "index")


def preset(name: str) -> tuple[Draw, str]:
    """(draw, ties) of a named preset (presets.py)."""
    draw, ties = read_draw(name)
    return DRAWS.build(draw), ties


def read_draw(
    text: str = "exact", draw: str | None = None, ties: str | None = None
) -> tuple[str, str]:
    """(canonical draw, ties) of a preset or a draw's spec; `draw` and `ties` change parts of it."""
    if text in PRESETS:
        spec, broken = PRESETS[text].draw, PRESETS[text].ties
    elif "(" in text:
        spec, broken = text, "uniform"
    else:
        raise MaskwalkError(
            f"Unknown preset {text!r}. Known: {', '.join(PRESETS)}; or a draw such as "
            "draw(top_p=0.9)."
        )
    spec = DRAWS.canonical(spec if draw is None else draw)
    DRAWS.build(spec)  # its numbers are checked here
    return spec, broken if ties is None else one_of("ties", ties, TIES)


def mode_name(draw: str, ties: str) -> str:
    """What to call a draw: its preset, if that is for any sampler, or its spec in short."""
    for name, one in PRESETS.items():
        if one.sampler is None and read_draw(name) == (draw, ties):
            return name
    short = short_draw(draw)
    return short if ties == "uniform" else f"{short}, ties {ties}"


@lru_cache(maxsize=4096)
def short_draw(draw: str) -> str:
    """A draw's spec with the defaults left out."""
    plain, given = parse(DRAWS.canonical("draw()")).kwargs, parse(draw)
    return str(Spec(given.name, (), {k: v for k, v in given.kwargs.items() if v != plain.get(k)}))


def decoding_of(sampler: str, draw: str, ties: str) -> str:
    """A whole decoding in one line of options, to be pasted behind a command."""
    return decoding_line(sampler, short_draw(draw), ties)


def decoding_in(record: Mapping[str, Any], with_sampler: bool = True) -> str | None:
    """The same of a record or a row of results; None where no tokens were drawn."""
    sampler, draw, ties = (record.get(key) for key in ("sampler", "draw", "ties"))
    if not sampler or not draw or not ties:
        return None
    return decoding_line(sampler if with_sampler else None, short_draw(draw), ties)


def preset_sampler(preset: str, default: str) -> str:
    """The sampler a preset brings, or the default where it is a draw for any."""
    return (PRESETS[preset].sampler or default) if preset in PRESETS else default
