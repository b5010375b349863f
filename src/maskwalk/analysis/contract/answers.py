"""What a denoiser answered in a run, kept for the same run once more.

A policy that is run again with its own tokens forced sees the canvases of the first run, as long as
it chooses what it chose; a network need not read them twice. What is kept is a copy, made where the
denoiser answers, before a policy sees it; and what comes out is another one.
"""

import hashlib
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import Denoiser

KEPT = 2**28  # bytes of answers


class Answers:
    """Answers by question: the whole canvas, and the places asked about."""

    def __init__(self, most: int = KEPT) -> None:
        self._kept: dict[bytes, Tensor] = {}
        self._room = most

    def of(self, denoiser: Denoiser) -> "Remembering":
        """A denoiser that answers what was answered before, and asks `denoiser` for the rest."""
        kind = type(denoiser)
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        remembering: type[Remembering] = type(kind.__name__, (Remembering,), named)
        return remembering(denoiser, self)

    def get(self, question: bytes) -> Tensor | None:
        """A copy of what was answered."""
        kept = self._kept.get(question)
        return None if kept is None else kept.clone()

    def keep(self, question: bytes, answer: Tensor) -> None:
        """Remembers a copy, while there is room."""
        size = answer.numel() * answer.element_size()
        if size <= self._room:
            self._room -= size
            self._kept[question] = answer.clone()


class Remembering:
    """The denoiser of `Answers.of`."""

    def __init__(self, denoiser: Denoiser, answers: Answers) -> None:
        self._denoiser, self._answers = denoiser, answers

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet, in a copy that is being made
            raise AttributeError(name)
        return getattr(self._denoiser, name)

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """As the denoiser."""
        question = _question(tokens, at)
        known = self._answers.get(question)
        if known is not None:
            return known
        answer = self._denoiser(tokens, at)
        if isinstance(answer, Tensor):  # anything else is somebody's mistake, and theirs to hear of
            self._answers.keep(question, answer)
        return answer


def _question(tokens: Tensor, at: Tensor | None) -> bytes:
    """A name for a canvas and the places asked about there."""
    told = hashlib.sha256(f"{tuple(tokens.shape)} {at is None}".encode())
    for part in (tokens,) if at is None else (tokens, at):
        told.update(part.cpu().contiguous().numpy().tobytes())
    return told.digest()
