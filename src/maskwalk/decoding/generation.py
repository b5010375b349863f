"""Text from any model with any sampler: one call from a prompt to texts and what they cost.

The decoding is `decode`'s own, so a text depends on (seed, number of the text) alone, and every
sampler, trace and draw option of the project applies.
"""

import time
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.shared import decode_rows
from maskwalk.decoding.stopping import StopAt, ends
from maskwalk.decoding.trace import Trace
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError, real, seed_number
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
    notes: tuple[str, ...] = ()  # what is odd about what was given

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
    score_grid: float | None = None,
    stop: bool | None = None,
    chat: bool = False,
    trace: bool = False,
) -> Generated:
    """`count` texts. The default sampler is confidence(), or left_to_right for a causal model.

    `draw` may be a spec, or a preset such as "llada", whose sampler is `PRESETS["llada"].sampler`.

    `stop`: nothing is asked for behind a drawn end-of-text, where the model has one; by default so
    unless the sampler takes tokens back. The text ends there in any case.

    `score_grid`: the spacing to which scores are rounded before they are ranked, the denoiser's by
    default; 1e-12 ranks as code does that does not round.
    """
    seed_number("seed", seed)
    if score_grid is not None:
        real("score_grid", score_grid, 1e-15, 1.0)
    if sampler is None:
        sampler = "left_to_right" if model.causal else "confidence"
    rule = SAMPLERS.build(sampler) if isinstance(sampler, str) else sampler
    if model.end_of_text is not None and (not rule.remasks if stop is None else stop):
        rule = StopAt(rule, model.end_of_text, int(model.wrapped))
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
    notes = unknown_tokens(model, start[0].tolist())
    denoiser = _reader(model, start, score_grid)
    began = time.perf_counter()
    result = decode_rows(rule, denoiser, start, seed=seed, draw=draw, ties=ties, trace=trace)
    tokens = result.tokens
    seconds = time.perf_counter() - began
    keep_mask = _kept(tokens, given.cpu(), model.end_of_text, int(model.wrapped))
    texts = [model.decode(row[keep].tolist()) for row, keep in zip(tokens, keep_mask)]
    new = (keep_mask & ~given.cpu()).sum(1)
    return Generated(
        texts,
        tokens,
        given.cpu(),
        new,
        result.calls,
        result.rounds,
        seconds,
        result.trace,
        notes,
    )


def _reader(model: LanguageModel, start: Tensor, score_grid: float | None) -> Denoiser:
    """The denoiser for this canvas: with another grid, and reading no second beginning."""
    denoiser = model.denoiser
    if isinstance(denoiser, Causal) and denoiser.begin is not None:
        first = int(start[0, 0])
        if first == denoiser.begin or (first != model.mask and not denoiser.adds):
            denoiser = denoiser.plain()
    if score_grid is not None:
        denoiser = copy(denoiser)
        denoiser.score_grid = float(score_grid)
    return denoiser


def unknown_tokens(model: LanguageModel, row: list[int]) -> tuple[str, ...]:
    """A note on what the tokenizer does not know of a text; refuses one of which it knows nothing.

    Byte-level tokenizers know every text, and name an unknown token only for form's sake.
    """
    unknown: Any = getattr(model.tokenizer, "unk_token_id", None)
    inside = row[len(model.begin) : len(row) - len(model.end)]
    given = [token for token in inside if token != model.mask]
    lost = given.count(unknown)
    if unknown is None or unknown == model.end_of_text or not lost:
        return ()
    if lost == len(given):
        raise MaskwalkError(
            "The tokenizer knows nothing of what is given: it reads it as "
            f"{lost} unknown token{'s' if lost > 1 else ''}. Write it as the model was trained "
            "(many models of proteins want spaces between residues: 'E V Q L'), or give the "
            "model's own tokenizer."
        )
    return (f"{lost} of the {len(given)} given tokens are unknown to the tokenizer",)


def check_reading(model: LanguageModel, shape: tuple[int, ...]) -> None:
    """Refuses rows whose answers no memory here holds: a table for every masked token."""
    (count, length), rows = shape, getattr(model.denoiser, "rows", 1)
    width = model.denoiser.vocab_size
    what = f"Reading {rows:,} of {count:,} texts of {length:,} tokens together"
    fits(what, 4.0 * width * length * (rows + count), "Use fewer --rows, a smaller --count, …")


def _kept(
    tokens: Tensor, given: Tensor, end_of_text: int | None, first: int
) -> Bool[Tensor, "count length"]:
    """The positions of the text: up to the first drawn end-of-text, and that one."""
    if end_of_text is None:
        return torch.ones_like(given)
    ended = ends(tokens, given, end_of_text, first)
    over = ended.cumsum(1)
    return (over == 0) | ((over == 1) & ended)
