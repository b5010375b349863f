"""What `decode` is given, in the forms people have it in: specs, arrays, lists; or a sentence."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskwalk.decoding.draw import DRAWS, TIES, Draw, read_draw
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, one_of, shown
from maskwalk.kernels.small import small
from maskwalk.streams import Streams

IDS = 2**48  # stream ids are below


def as_sampler(given: Any) -> Sampler:
    """A sampler as it is, or the sampler of a spec; anything else is a sentence."""
    if isinstance(given, str):
        return SAMPLERS.build(given)
    if isinstance(given, Sampler):
        return given
    if isinstance(given, type) and issubclass(given, Sampler):
        raise MaskwalkError(
            f"{given.__name__} is a class; give an instance of it, {given.__name__}()."
        )
    raise MaskwalkError(f"A sampler, or a spec such as 'bisection(order=1)', not {shown(given)}.")


def as_draw(given: Any, ties: str | None) -> tuple[Draw, str]:
    """A draw and how ties are broken; a preset or a spec says both."""
    if isinstance(given, str):
        spec, broken = read_draw(given, ties=ties)
        return DRAWS.build(spec), broken
    if given is not None and not isinstance(given, Draw):
        raise MaskwalkError(
            f"draw is a Draw, a preset such as 'exact', or a spec such as 'draw(top_p=0.9)', not "
            f"{shown(given)}."
        )
    return given or Draw(), one_of("ties", TIES[0] if ties is None else ties, TIES)


def as_tokens(given: Any) -> Tensor:
    """Tokens as an int64 tensor (batch, length), from a tensor, an array or nested lists."""
    tokens = given
    if isinstance(given, np.ndarray | list | tuple):
        try:
            tokens = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError) as problem:
            raise MaskwalkError(f"The tokens are no table of whole numbers: {problem}.") from None
    if not isinstance(tokens, Tensor):
        raise MaskwalkError(f"The tokens are a tensor (batch, length), not {shown(given)}.")
    if tokens.layout is not torch.strided or tokens.is_meta:
        what = "on no device (meta)" if tokens.is_meta else f"sparse ({tokens.layout})"
        raise MaskwalkError(
            f"The tokens are {what}; give a dense tensor with values, such as tokens.to_dense()."
        )
    if tokens.ndim != 2:
        more = "; one sequence is tokens[None]" if tokens.ndim == 1 else ""
        raise MaskwalkError(
            f"The tokens have the shape (batch, length), not {tuple(tokens.shape)}{more}."
        )
    if tokens.numel() == 0:
        raise MaskwalkError(
            f"There is nothing to decode in a batch of shape {tuple(tokens.shape)}."
        )
    if tokens.dtype.is_floating_point or tokens.dtype in (torch.bool, torch.complex64):
        raise MaskwalkError(f"Tokens are whole numbers (torch.int64), not {tokens.dtype}.")
    return tokens.to(torch.int64)


def as_streams(given: Any, seed: Any, tokens: Tensor) -> Any:
    """The streams as given, or stream i of the seed for row i."""
    if seed is None:
        return given
    if given is not None:
        raise MaskwalkError("Give streams, which carry a seed, or seed, not both.")
    return Streams(seed, torch.arange(len(tokens), device=tokens.device))


def check_question(
    tokens: Tensor, denoiser: Denoiser, streams: Any, trace: Any, on_round: Any = None
) -> None:
    """What `decode` is asked makes sense, or a sentence."""
    if on_round is not None and not callable(on_round):
        raise MaskwalkError(
            f"on_round is a function (rows, tokens), or None, not {shown(on_round)}."
        )
    if not isinstance(streams, Streams):
        raise MaskwalkError(
            f"streams is Streams(seed, ids) with one id for every sequence, not {shown(streams)}; "
            "or give a seed."
        )
    if len(streams.ids) != len(tokens):
        raise MaskwalkError(
            f"{len(tokens)} sequences need as many stream ids, not {len(streams.ids)}."
        )
    ids = small(streams.ids)
    if not 0 <= int(ids.min()) <= int(ids.max()) < IDS:
        raise MaskwalkError("Stream ids are whole numbers from 0 to 2^48 - 1.")
    if not isinstance(trace, int) or trace < 0:
        raise MaskwalkError(
            f"trace is True, False, or how many sequences to follow, not {shown(trace)}."
        )
    few = small(tokens)
    bad = few[(few != denoiser.mask_id) & ((few < 0) | (few >= denoiser.vocab_size))]
    if len(bad):
        raise MaskwalkError(
            f"Token {int(bad[0])} is not in the vocabulary 0..{denoiser.vocab_size - 1} "
            f"(the mask is {denoiser.mask_id})."
        )
