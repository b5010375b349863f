"""A model that is never wrong: a torch module with a Hugging Face face and a world behind it.

`OracleModel` answers with the exact conditionals of a world, in the form that the code of a public
model expects, so a decoder written for that model can be pointed at it unchanged:

    llada   model(input_ids, attention_mask=…).logits, the answer for position i at i
    dream   the same, with the answer for position i at i − 1 (the shift of a causal model)
    mdlm    model(x, sigma): log-probabilities, a revealed token certain to stay

Tokens 0..V−1 are the world's; mask, pad, bos and eos come after. A sequence may begin with bos. One
shorter than the world is the beginning of a longer one. What attention_mask hides is not there; a
pad it does not hide is noise: every answer of that row is one token off. Impossible tokens have
log-probability `FLOOR`, not −inf, as no network says never. The model counts and keeps what it is
asked.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, shown
from maskwalk.testing.laws import WORLD, Independent, Law, denoiser_of
from maskwalk.worlds.world import build_world

LIKE = ("llada", "dream", "mdlm", "function")
FLOOR = -1e4  # exp of it is 0 in every precision, and 0 · FLOOR is 0
STATES = 20_000  # partly masked sequences whose answers are kept in a table


@dataclass
class OracleConfig:
    """What code reads from a model's config."""

    vocab_size: int
    mask_token_id: int
    pad_token_id: int
    bos_token_id: int
    eos_token_id: int
    max_position_embeddings: int
    model_type: str = "oracle"
    is_encoder_decoder: bool = False
    use_cache: bool = False

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)

    def get_text_config(self, decoder: bool = False) -> "OracleConfig":
        """The part about text: all of it."""
        return self


@dataclass(frozen=True)
class Asked:
    """One forward pass: what the model was shown, and how many visible pads were in it."""

    tokens: Int[Tensor, "rows width"]
    pads: int


class Output(dict[str, Any]):
    """What a Hugging Face model gives back: .logits, ["logits"] and [0] are the same."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __getitem__(self, name: Any) -> Any:
        return list(self.values())[name] if isinstance(name, int | slice) else self.get(name)


class OracleModel(torch.nn.Module):
    """The exact conditionals of a world, asked as a network is."""

    answer_dtype: Tensor
    forward_passes: int
    rows: int
    asked: list[Asked]

    def __init__(
        self, world: str | Law = WORLD, like: str = "llada", dtype: torch.dtype = torch.float32
    ) -> None:
        torch.nn.Module.__init__(self)
        self.like = one_of("like", like, LIKE)
        self.law: Law = build_world(world) if isinstance(world, str) else world
        self._denoiser = denoiser_of(self.law)
        self.length, self.clean = self.law.length, self._denoiser.vocab_size
        self.mask_id, self.pad_id, self.bos_id, self.eos_id = range(self.clean, self.clean + 4)
        self.config = OracleConfig(
            self.clean + 4, self.mask_id, self.pad_id, self.bos_id, self.eos_id, self.length + 1
        )
        self.mask_index = self.mask_id
        self.register_buffer("answer_dtype", torch.empty(0, dtype=dtype), persistent=False)
        self._known: Tensor | None = None
        self.reset()
        torch.nn.Module.eval(self)

    @property
    def vocab_size(self) -> int:
        """The world's tokens, and mask, pad, bos, eos."""
        return self.config.vocab_size

    @property
    def device(self) -> torch.device:
        """Where the answers are."""
        return self.answer_dtype.device

    @property
    def dtype(self) -> torch.dtype:
        """In which precision they are."""
        return self.answer_dtype.dtype

    def reset(self) -> None:
        """Forgets what it was asked."""
        self.forward_passes, self.rows, self.asked = 0, 0, []

    def forward(self, *args: Any, **named: Any) -> Any:
        """The answers to partly masked sequences, in the form of `like`."""
        args, ids = (args[1:], args[0]) if args else ((), _named(named))
        named.pop("sigma", None)
        second = args[0] if args and self.like != "mdlm" else None
        attention = named.pop("attention_mask", second)
        if named.get("past_key_values") is not None or named.get("use_cache"):
            raise MaskwalkError(
                "OracleModel keeps no key-value cache; call the decoder without one."
            )
        ids = self._checked(ids)
        visible = _visible(attention, ids)
        log_probs = self._answers(ids, visible)
        pads = int(((ids == self.pad_id) & visible).sum())
        self.forward_passes, self.rows = self.forward_passes + 1, self.rows + len(ids)
        self.asked.append(Asked(ids.detach().cpu().clone(), pads))
        if self.like == "dream":
            log_probs = torch.cat([log_probs[:, 1:], log_probs[:, :1]], 1)
        log_probs = log_probs.to(self.dtype)
        return log_probs if self.like in ("mdlm", "function") else Output(logits=log_probs)

    def conditionals(
        self, tokens: Int[Tensor, "batch length"]
    ) -> Float64[Tensor, "batch length vocab"]:
        """Log-probabilities of the world's tokens; a revealed one is certain."""
        if self._known is None and (self.clean + 1) ** self.length <= STATES:
            index = torch.arange((self.clean + 1) ** self.length)
            powers = [(self.clean + 1) ** d for d in reversed(range(self.length))]
            every = torch.stack([index // power % (self.clean + 1) for power in powers], 1)
            self._known = self._ask(every)
        if self._known is None:
            return self._ask(tokens)
        place = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device)
        for column in tokens.unbind(1):
            place = place * (self.clean + 1) + column
        return self._known.to(tokens.device)[place]

    def _ask(self, tokens: Tensor) -> Tensor:
        masked = tokens == self.mask_id
        own = tokens.masked_fill(masked, 0)[..., None]
        result = torch.full((*tokens.shape, self.clean), FLOOR, dtype=torch.float64)
        result = result.to(tokens.device).scatter(-1, own, 0.0)
        if bool(masked.any()):
            result[masked] = self._denoiser(tokens, masked).to(torch.float64).clamp(min=FLOOR)
        return result

    def _answers(self, ids: Tensor, visible: Tensor) -> Tensor:
        """(rows, width, vocab): the world's answers at the places where its tokens stand."""
        there = visible & (ids != self.pad_id)
        there &= ~((there.cumsum(1) == 1) & (ids == self.bos_id))
        if bool((there.sum(1) > self.length).any()):
            most = int(there.sum(1).max())
            raise MaskwalkError(
                f"OracleModel was shown {most} tokens; its world has {self.length}."
            )
        place = (there.cumsum(1) - 1).clamp(min=0)
        rows, columns = there.nonzero(as_tuple=True)
        canvas = torch.full((len(ids), self.length), self.mask_id, device=ids.device)
        token = ids[there]
        canvas[rows, place[there]] = torch.where(token > self.mask_id, self.mask_id, token)
        known = self.conditionals(canvas)[rows, place[there]]
        leaked = ((ids == self.pad_id) & visible).any(1)[rows]
        known = torch.where(leaked[:, None], known.roll(1, 1), known)
        result = torch.full((*ids.shape, self.vocab_size), FLOOR, dtype=torch.float64)
        result = result.to(ids.device).scatter(-1, ids[..., None], 0.0)
        result[rows, columns] = FLOOR
        result[rows, columns, : self.clean] = known
        return result

    def _checked(self, ids: Any) -> Tensor:
        if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
            told = f"{ids.dtype} {tuple(ids.shape)}" if isinstance(ids, Tensor) else shown(ids)
            raise MaskwalkError(f"A model takes token ids as a table (rows, width), not {told}.")
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.vocab_size:
            raise MaskwalkError(
                f"The model was shown token {int(ids.max())}; its vocabulary is "
                f"0..{self.vocab_size - 1}, its mask {self.mask_id}."
            )
        return ids.to(torch.int64)


def _named(named: dict[str, Any]) -> Any:
    """The token ids, where they come by name."""
    for name in ("input_ids", "x", "xt", "tokens", "indices"):
        if name in named:
            return named.pop(name)
    raise MaskwalkError("The model was called without token ids.")


def _visible(attention: Any, ids: Tensor) -> Bool[Tensor, "rows width"]:
    """Which places are there, from a mask (rows, width) or (rows, 1, width, width)."""
    if not isinstance(attention, Tensor):
        return torch.ones_like(ids, dtype=torch.bool)
    if attention.ndim == 4:
        attention = attention[:, 0].diagonal(dim1=-2, dim2=-1).expand(ids.shape)
    if attention.shape != ids.shape:
        raise MaskwalkError(
            f"attention_mask has shape {tuple(attention.shape)}, the tokens {tuple(ids.shape)}."
        )
    additive = attention.is_floating_point() and bool((attention < 0).any())
    seen: Tensor = attention == 0 if additive else attention != 0
    return seen


__all__ = ["LIKE", "Asked", "Independent", "OracleConfig", "OracleModel"]
