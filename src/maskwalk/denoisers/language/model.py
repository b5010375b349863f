"""A language model: a denoiser, its tokenizer, and what belongs around a text."""

from dataclasses import dataclass
from typing import Any

from maskwalk.denoiser import Denoiser


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A denoiser over text, its tokenizer, and what belongs around a text."""

    denoiser: Denoiser
    tokenizer: Any
    begin: tuple[int, ...] = ()  # on the canvas before the prompt, and after the last position
    end: tuple[int, ...] = ()
    end_of_text: int | None = None
    longest: int | None = None  # tokens the model can read
    notes: tuple[str, ...] = ()
    device: str = "cpu"
    wrapped: bool = False  # whether its passages begin with end-of-text, as MDLM's do
    more_ends: tuple[int, ...] = ()  # tokens besides `end_of_text` that end a text

    @property
    def ends(self) -> tuple[int, ...]:
        """Every token that ends a text, the end-of-text first."""
        first = () if self.end_of_text is None else (self.end_of_text,)
        return first + tuple(token for token in self.more_ends if token not in first)

    @property
    def mask(self) -> int:
        """The token of a masked position."""
        return self.denoiser.mask_id

    @property
    def causal(self) -> bool:
        """Whether it only knows the next token."""
        return bool(getattr(self.denoiser, "causal", False))

    def encode(self, text: str) -> list[int]:
        """The tokens of a piece of text, nothing around them."""
        if not text:
            return []
        return [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False)]

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens; special tokens and masks are left out."""
        clean = [token for token in tokens if token != self.mask]
        return str(self.tokenizer.decode(clean, skip_special_tokens=True))
