"""The denoiser that reads one canvas: a model's own, under what was asked for."""

from copy import copy

import torch
from torch import Tensor

from maskwalk.decoding.guidance import Guided
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.language.base import TextDenoiser
from maskwalk.denoisers.language.block_cache import BlockCache
from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.masked import Masked
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError


def reader(
    model: LanguageModel,
    start: Tensor,
    *,
    score_grid: float | None = None,
    special: bool = False,
    skip: int | None = None,
    guidance: float = 0.0,
    cache: str | None = None,
    block_size: int | None = None,
) -> Denoiser:
    """The denoiser for a canvas: reading no second beginning, with another grid, all tokens,
    padding, guidance or a cache."""
    denoiser = model.denoiser
    if isinstance(denoiser, Causal) and denoiser.begin is not None:
        first = int(start[0, 0])
        if first == denoiser.begin or (first != model.mask and not denoiser.adds):
            denoiser = denoiser.plain()
    denoiser = answering(denoiser, score_grid, special)
    if skip is not None:
        assert isinstance(denoiser, Masked)
        denoiser.skip = skip
    given = start[0] != model.mask
    if cache is not None:
        denoiser = _cached(denoiser, cache, block_size, int(given.to(torch.int64).cumprod(0).sum()))
    if guidance:
        if not isinstance(denoiser, TextDenoiser) or model.causal or cache is not None:
            raise MaskwalkError("guidance is for masked models, without a cache.")
        return Guided(denoiser, guidance, given)
    return denoiser


def answering(denoiser: Denoiser, score_grid: float | None, special: bool) -> Denoiser:
    """A copy whose scores are ranked on another grid, and that may answer with any token but the
    mask."""
    denoiser = copy(denoiser)
    if score_grid is not None:
        denoiser.score_grid = float(score_grid)
    if special and isinstance(denoiser, TextDenoiser):
        mask = denoiser.mask_id
        denoiser.forbidden = (mask,) if mask < denoiser.vocab_size else ()
    return denoiser


def _cached(denoiser: Denoiser, cache: str, size: int | None, prompt: int) -> BlockCache:
    if size is None:
        raise MaskwalkError(
            "cache goes with a sampler that fills one block after another: "
            "'blocks(size=32, inner=…)', or --preset llada, fast_dllm or dinfer."
        )
    if not isinstance(denoiser, Masked):
        raise MaskwalkError(
            "cache is for networks of transformers that can keep keys and values, such as "
            "LLaDA and Dream; leave it out."
        )
    return BlockCache(denoiser, cache, size, prompt)
