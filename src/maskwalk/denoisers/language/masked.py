"""Any model from tokens to logits as a denoiser, with what differs between them as parameters.

    BERT, RoBERTa, ModernBERT   Masked(model, mask_id=tokenizer.mask_token_id)
    LLaDA and its kind          Masked(model, mask_id=126336)            logits at i speak of i
    Dream and its kind          Masked(model, mask_id=151666, shifted=True)   … at i − 1 of i
    your own function           Masked(function, mask_id=…, vocab_size=…)

A model is called with int64 tokens (rows, length) and answers with logits (rows, length, vocab), or
with an object that has them as `.logits`. A shifted model's first position has no place before it;
as in the public Dream code it reads its own.

Logits of all positions would be the largest tensor by far. If the model is a Hugging Face one, its
last linear map is taken off (a hook hands it one position only) and applied to the places asked
for. Whether that gives the model's own logits is tried once, on three tokens; if not (something
follows the map), the whole model is asked, `rows` sequences at a time.
"""

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from maskwalk.denoisers.language.base import LogMarginals, TextDenoiser, few_at_a_time
from maskwalk.errors import MaskwalkError

Model = Callable[..., Any]


class Masked(TextDenoiser):
    """A model that reads masked text and answers for every position.

    `skip`: a token whose run at the beginning of a sequence is padding, which the model does not
    look at.
    """

    skip: int | None = None

    def __init__(
        self,
        model: Model,
        *,
        mask_id: int,
        vocab_size: int | None = None,
        shifted: bool = False,
        rows: int = 1,
        forbidden: Iterable[int] = (),
    ) -> None:
        if isinstance(model, nn.Module):
            model.eval()  # dropout would make the answers random
            _check_mask(model, mask_id)
        self.model, self.shifted = model, shifted
        self._map = last_map(model, mask_id)
        super().__init__(vocab_size or width_of(model, self._map), mask_id, rows, forbidden)

    def __repr__(self) -> str:
        name = getattr(self.model, "__name__", type(self.model).__name__)
        return f"Masked({name}, mask_id={self.mask_id}, shifted={self.shifted}, rows={self.rows})"

    @property
    def can_skip(self) -> bool:
        """Whether the model can be told what not to look at."""
        if not isinstance(self.model, nn.Module):
            return False
        return {"attention_mask", "position_ids"} <= set(signature(self.model.forward).parameters)

    def _reading(self, tokens: Int[Tensor, "rows length"]) -> dict[str, Tensor]:
        """What the model is told beside the tokens: which are padding, and where the rest is."""
        if self.skip is None:
            return {}
        read = (tokens == self.skip).to(torch.int64).cumprod(1) == 0
        if bool(read.all()):
            return {}
        place = (read.to(torch.int64).cumsum(1) - 1).clamp(min=0)
        return {"attention_mask": read.to(torch.int64), "position_ids": place}

    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """The last map at the places asked for, or whole answers where it cannot be taken off."""
        check_device(self.model, tokens)
        states = []
        for given, group in few_at_a_time(tokens, at, self.rows):
            row, position = at[group].nonzero(as_tuple=True)
            source = (position - 1).clamp(min=0) if self.shifted else position
            if self._map is not None:
                told = self._reading(given)
                before = states_before(self.model, self._map, given, **told).to(tokens.device)
                states.append(before[row, source])
            else:
                logits = logits_of(
                    self.model(given, **self._reading(given)), given, self.vocab_size
                )
                answer.append(logits.to(tokens.device)[row, source])
        if self._map is not None:
            answer.append_mapped(torch.cat(states), self._map)


def logits_of(
    answer: Any, tokens: Int[Tensor, "rows length"], vocab: int
) -> Float[Tensor, "rows length width"]:
    """The logits in a model's answer, or a sentence about their shape."""
    logits = getattr(answer, "logits", answer)
    if not isinstance(logits, Tensor) or logits.shape[:2] != tokens.shape or logits.dim() != 3:
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise MaskwalkError(
            f"The model answers {tuple(tokens.shape)} tokens with {shape}; it must give logits "
            "(rows, length, vocabulary), as a tensor or as `.logits`."
        )
    if logits.shape[2] < vocab:
        raise MaskwalkError(
            f"The model has logits for {logits.shape[2]} tokens, and {vocab} were promised: model "
            "and vocabulary do not belong together."
        )
    return logits


def states_before(
    model: Model, last: nn.Module, tokens: Tensor, **options: Any
) -> Float[Tensor, "rows length hidden"]:
    """What the last map reads at every position; the model itself maps only one of them."""
    caught: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        caught.append(given[0])
        return (given[0][:, -1:], *given[1:])

    hook = last.register_forward_pre_hook(keep)
    try:
        model(tokens, **options)
    finally:
        hook.remove()
    return caught[-1]


@torch.no_grad()
def last_map(model: Model, mask_id: int = 0) -> nn.Module | None:
    """The model's last linear map, if the model's logits are that map of what it reads."""
    if not (isinstance(model, nn.Module) and hasattr(model, "get_output_embeddings")):
        return None
    last = cast(Any, model).get_output_embeddings()
    if not isinstance(last, nn.Module):
        return None
    tokens = torch.tensor([[0, min(mask_id, _readable(model) - 1), 1]], device=place_of(model))
    try:
        whole = model(tokens).logits
        logits = last(states_before(model, last, tokens)).to(whole.device)  # of several
    except (RuntimeError, ValueError, IndexError, AttributeError, TypeError):
        return None  # it is only a saving: the whole model is asked instead
    same = logits.shape == whole.shape and torch.allclose(logits, whole, rtol=1e-3, atol=1e-4)
    return last if same else None


def width_of(model: Model, last: nn.Module | None) -> int:
    """How many tokens the model has logits for."""
    weight = getattr(last, "weight", None)
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if isinstance(weight, Tensor):
        return len(weight)
    if isinstance(size, int):
        return size
    raise MaskwalkError("Say how many tokens the model has logits for: vocab_size=….")


def place_of(model: nn.Module) -> torch.device:
    """Where a model reads tokens: where its embeddings are looked up, or its first weight is."""
    embeddings = _embeddings(model)
    hook = getattr(embeddings, "_hf_hook", None)  # of a model that lies on several devices
    where = getattr(hook, "execution_device", None)
    if where is not None:
        return torch.device(where)
    table = getattr(embeddings, "weight", None)
    return (table if isinstance(table, Tensor) else next(model.parameters())).device


def _embeddings(model: nn.Module) -> Any:
    getter = getattr(model, "get_input_embeddings", None)
    return getter() if getter else None


def _readable(model: nn.Module) -> int:
    """How many tokens the model can read."""
    table = getattr(_embeddings(model), "weight", None)
    return len(table) if isinstance(table, Tensor) else 1 << 62


def _check_mask(model: nn.Module, mask_id: int) -> None:
    if not 0 <= mask_id < _readable(model):
        raise MaskwalkError(
            f"The mask {mask_id} is not a token of this model, which reads 0.."
            f"{_readable(model) - 1}; give the mask id its authors state."
        )


def check_device(model: Model, tokens: Tensor) -> None:
    """A sentence where model and tokens are in different places."""
    if getattr(model, "hf_device_map", None) is not None:
        return  # on several devices, and it moves what it is given
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    if weight is not None and weight.device.type != tokens.device.type:
        raise MaskwalkError(
            f"The tokens are on {tokens.device} and the model on {weight.device}; move one of them."
        )
