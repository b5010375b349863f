"""Text from any model with any sampler: one call from a prompt to texts and what they cost.

The decoding is `decode`'s own, so a text depends on (seed, number of the text) alone, and every
sampler, trace and draw option of the project applies.
"""

import time
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.stopping import StopAt, ends
from maskwalk.decoding.trace import Trace
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError, seed_number
from maskwalk.streams import Streams
from maskwalk.worlds.sizes import fits
from maskwalk.worlds.text.prompts import canvas


@dataclass(frozen=True, eq=False)
class Generated:
    """Texts, and what each cost."""

    texts: list[str]
    tokens: Int[Tensor, "count length"]
    given: Bool[Tensor, "count length"]
    new: Int[Tensor, " count"]  # tokens of the text that were drawn, an end-of-text included
    calls: Int[Tensor, " count"]
    rounds: Int[Tensor, " count"]
    seconds: float
    trace: Trace | None = None

    @property
    def tokens_per_call(self) -> float:
        """Drawn tokens of the texts per call of the denoiser."""
        return float(self.new.sum()) / max(1, int(self.calls.sum()))


def generate(
    model: LanguageModel,
    sampler: Sampler | str | None = None,
    *,
    prompt: str = "",
    template: str | None = None,
    length: int | None = None,
    count: int = 1,
    seed: int = 0,
    draw: Draw | str | None = None,
    ties: str | None = None,
    stop: bool | None = None,
    chat: bool = False,
    trace: bool = False,
) -> Generated:
    """`count` texts. The default sampler is confidence(), or left_to_right for a causal model.

    `draw` may be a spec, or a preset such as "llada", whose sampler is `PRESETS["llada"].sampler`.

    `stop`: nothing is asked for behind a drawn end-of-text, where the model has one; by default so
    unless the sampler takes tokens back. The text ends there in any case.
    """
    seed_number("seed", seed)
    if sampler is None:
        sampler = "left_to_right" if model.causal else "confidence"
    rule = SAMPLERS.build(sampler) if isinstance(sampler, str) else sampler
    if model.end_of_text is not None and (not rule.remasks if stop is None else stop):
        rule = StopAt(rule, model.end_of_text)
    start = canvas(
        model, prompt=prompt, template=template, length=length, count=count, chat=chat
    ).to(model.device)
    check_reading(model, start.shape)
    given = start != model.mask
    if model.causal and bool((given & ((~given).cumsum(1) > 0)).any()):
        raise MaskwalkError(
            "An autoregressive model does not see what comes after a gap: give it a prompt only, "
            "or use a masked model."
        )
    streams = Streams(seed, torch.arange(count, device=start.device))
    began = time.perf_counter()
    result = decode(rule, model.denoiser, start, streams=streams, draw=draw, ties=ties, trace=trace)
    tokens = result.tokens.cpu()  # waits for the device
    seconds = time.perf_counter() - began
    keep_mask = _kept(tokens, given.cpu(), model.end_of_text)
    texts = [model.decode(row[keep].tolist()) for row, keep in zip(tokens, keep_mask)]
    new = (keep_mask & ~given.cpu()).sum(1)
    return Generated(
        texts,
        tokens,
        given.cpu(),
        new,
        result.calls.cpu(),
        result.rounds.cpu(),
        seconds,
        result.trace,
    )


def check_reading(model: LanguageModel, shape: tuple[int, ...]) -> None:
    """Refuses rows whose answers no memory here holds: a table for every masked token."""
    (count, length), rows = shape, getattr(model.denoiser, "rows", 1)
    width = model.denoiser.vocab_size
    what = f"Reading {rows:,} of {count:,} texts of {length:,} tokens together"
    fits(what, 4.0 * width * length * (rows + count), "Use fewer --rows, a smaller --count, …")


def _kept(tokens: Tensor, given: Tensor, end_of_text: int | None) -> Bool[Tensor, "count length"]:
    """The positions of the text: up to the first drawn end-of-text, and that one."""
    if end_of_text is None:
        return torch.ones_like(given)
    over = ends(tokens, given, end_of_text).cumsum(1)
    return (over == 0) | ((over == 1) & ends(tokens, given, end_of_text))
