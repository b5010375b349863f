"""Sums as text: a model of the addition world, or its oracle, behind a tokenizer of digits.

`31+27=` and `31 27` are the digits 3, 1, 2, 7; signs and blanks stand for nothing. So questions
about sums are asked of the world's own models and of anybody's model of text in the same words.
"""

from collections.abc import Iterator
from typing import Any

import torch

from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.resolve import build_denoiser, resolve_world
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.addition import Addition
from maskwalk.worlds.tasks import build_prompts
from maskwalk.worlds.world import build_world

TASK = "operands"


class Digits:
    """A tokenizer of decimal digits; what is no digit is left out."""

    unk_token_id = None

    def __len__(self) -> int:
        return 10

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """The digits of a text."""
        return [int(sign) for sign in text if sign in "0123456789"]

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        """Digits as text."""
        return "".join(str(token) for token in tokens if 0 <= token < 10)


def of_sums(name: str, world: str | None) -> bool:
    """Whether a denoiser's name stands for one of the addition world."""
    try:
        return isinstance(build_world(resolve_world(name, {"world": world})), Addition)
    except MaskwalkError:
        return False


def digit_model(name: str, world: str | None = None, device: str = "cpu") -> LanguageModel:
    """A denoiser of the addition world as a model of text."""
    law = _sums(resolve_world(name, {"world": world}))
    denoiser = build_denoiser(name, law, device)
    return LanguageModel(denoiser, Digits(), longest=law.length, device=device)


def _sums(spec: str) -> Addition:
    law: Any = build_world(spec)
    if not isinstance(law, Addition) or law.base != 10 or law.layout != "plain":
        raise MaskwalkError(
            f"{spec} is no world of sums in decimal digits, most significant first: "
            "addition(digits=…)."
        )
    return law


def sums(digits: int, count: int, seed: int = 0) -> Iterator[dict[str, str]]:
    """Questions of the world's task `operands`: held-out sums, as prompts and answers."""
    law = _sums(f"addition(digits={digits})")
    prompts = build_prompts(TASK, law, count, seed)
    answers = prompts.answers
    assert answers is not None
    for row in answers.to(torch.int64).tolist():
        a, b, c = ("".join(str(row[i]) for i in place) for place in (law.a, law.b, law.c))
        yield {"prompt": f"{a}+{b}=", "answer": str(int(c))}
