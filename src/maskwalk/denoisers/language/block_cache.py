"""Keys and values kept while a block is filled: Fast-dLLM's prefix and dual cache.

A network that looks both ways has no exact cache: a new token changes every key and value. Within a
block the change is taken to be small outside it. The first question of a block reads the whole
sequence and keeps keys and values; the following ones read

    prefix   the block and all that comes after it, beside kept keys and values of what lies before
    dual     the block alone, beside kept ones of what lies before and after

so their answers are not the model's, but those of a model whose other positions have not seen the
tokens of this block yet. The first answer of every block is exact, and so is any while nothing has
changed. Calls are counted as without it: what falls is the price of one.

A shifted model (Dream) reads the answer for a block's first position off the position before; that
one is read again too. Fast-dLLM's Dream instead reveals the first position of a block at once.

Source: Fast-dLLM [arXiv 2505.22618], generate_with_prefix_cache and generate_with_dual_cache of
NVlabs/Fast-dLLM 24cc59e.
"""

from functools import cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from maskwalk.denoisers.language.base import LogMarginals, TextDenoiser
from maskwalk.denoisers.language.masked import Masked, place_of, states_before
from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.resources import need

CACHES = ("prefix", "dual")
Layers = dict[int, tuple[Tensor, Tensor]]  # keys and values (1, heads, positions, width)


class BlockCache(TextDenoiser):
    """A masked model that reads one sequence, block by block behind a prompt, with a cache."""

    def __init__(self, model: Masked, kind: str, size: int, prompt: int) -> None:
        super().__init__(model.vocab_size, model.mask_id, 1, model.forbidden)
        self.inner, self.kind = model, one_of("cache", kind, CACHES)
        self.size, self.prompt = whole("size", size, 1), whole("prompt", prompt, 0)
        self.score_grid = model.score_grid
        self._block: int | None = None
        self._outside: Layers = {}
        if model.skip is not None or not keeps(model):
            raise MaskwalkError(
                "cache is for networks of transformers that can keep keys and values, such as "
                "LLaDA and Dream; leave it out."
            )

    @property
    def changes(self) -> tuple[str, ...]:
        """What makes the answers others than the model's."""
        return (f"{self.kind} cache: answers within a block are approximate",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record should say of the answers."""
        return (*super().notes, *self.changes)

    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """The open block from kept keys and values; anything else from the whole sequence."""
        if len(tokens) != 1:
            raise MaskwalkError(f"A cache holds one sequence, not {len(tokens)}.")
        length, asked = tokens.shape[1], at[0].nonzero()[:, 0]
        block = (int(asked[0]) - self.prompt) // self.size
        start = self.prompt + block * self.size
        end = min(start + self.size, length)
        if start < self.prompt or int(asked[-1]) >= end:
            self.inner.fill(answer, tokens, at)  # about more than a block
            return
        shifted = self.inner.shifted
        first = max(0, start - 1) if shifted else start
        last = length if self.kind == "prefix" else end
        source = (asked - 1).clamp(min=0) if shifted else asked
        if block != self._block:
            states = self._read(tokens, None, {})
            self._keep(block, first, last)
        else:
            places = torch.arange(first, last, device=tokens.device)
            states, source = (
                self._read(tokens[:, first:last], places, self._outside),
                source - first,
            )
        assert self.inner._map is not None
        answer.append_mapped(states[0, source], self.inner._map)

    def _read(
        self, tokens: Int[Tensor, "one some"], places: Tensor | None, outside: Layers
    ) -> Float[Tensor, "one some hidden"]:
        """What the last map reads, with kept keys and values beside those of these tokens."""
        assert self.inner._map is not None
        self._kept = _kept_class()(outside)
        told: dict[str, Any] = {"past_key_values": self._kept, "use_cache": True}
        if places is not None:
            told["position_ids"] = places[None]
        states = states_before(self.inner.model, self.inner._map, tokens, **told)
        return states.to(tokens.device)

    def _keep(self, block: int, first: int, last: int) -> None:
        """Keeps what was computed outside of the positions that will be read again."""
        self._block = block
        self._outside = {
            layer: tuple(torch.cat([x[:, :, :first], x[:, :, last:]], 2) for x in both)  # type: ignore[misc]
            for layer, both in self._kept.seen.items()
        }


@torch.no_grad()
def keeps(denoiser: Masked) -> bool:
    """Whether a model's keys and values can be kept: tried on three tokens."""
    model, last = denoiser.model, denoiser._map
    if last is None or not isinstance(model, nn.Module):
        return False
    device = place_of(model)
    tokens = torch.tensor([[0, denoiser.mask_id, 1]], device=device)
    whole_answer = states_before(model, last, tokens)
    try:
        kept = _kept_class()({})
        states_before(model, last, tokens, past_key_values=kept, use_cache=True)
        outside = {i: (k[:, :, ::2], v[:, :, ::2]) for i, (k, v) in kept.seen.items()}
        middle = torch.tensor([[1]], device=device)
        told = {"past_key_values": _kept_class()(outside), "position_ids": middle}
        part = states_before(model, last, tokens[:, 1:2], use_cache=True, **told)
    except (RuntimeError, ValueError, IndexError, AttributeError, TypeError):
        return False
    close = 0.1 if part.dtype != torch.float32 else 1e-3
    return bool(outside) and torch.allclose(part, whole_answer[:, 1:2], rtol=close, atol=close)


@cache
def _kept_class() -> Any:
    """A cache of `transformers` that shows each layer its kept keys and values, and notes new
    ones without taking them in."""

    class Kept(need().DynamicCache):  # type: ignore[misc]
        def __init__(self, outside: Layers) -> None:
            super().__init__()
            self.outside = outside
            self.seen: Layers = {}

        def update(
            self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
        ) -> tuple[Tensor, Tensor]:
            self.seen[layer] = (keys, values)
            if layer not in self.outside:
                return keys, values
            old_keys, old_values = self.outside[layer]
            return torch.cat([old_keys, keys], 2), torch.cat([old_values, values], 2)

    return Kept
