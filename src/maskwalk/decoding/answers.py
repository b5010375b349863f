"""From tokens back to text: where it ends, what of it is new, and what nobody could read."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.stopping import ends, stop_in
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError, shown

# What chat templates write behind a message; one that stands in a prompt also ends an answer.
TURN_ENDS = ("<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<|role_end|>")


@dataclass(frozen=True)
class Answer:
    """A text, what of it stands behind the prompt, and how many tokens of it were drawn."""

    text: str
    answer: str
    new: int


def answer_of(
    model: LanguageModel,
    tokens: Int[Tensor, " length"],
    given: Bool[Tensor, " length"],
    end_tokens: tuple[int, ...],
    stop_strings: tuple[str, ...] = (),
) -> Answer:
    """The text of a row up to its first drawn end token, or before its first stop string."""
    keep = _kept(tokens, given, end_tokens, int(model.wrapped))
    prompt = int(given.to(torch.int64).cumprod(0).sum())
    text = model.decode(tokens[keep].tolist())
    front = model.decode(tokens[:prompt].tolist())
    rest = tokens[prompt:][keep[prompt:]].tolist()
    answer = text[len(front) :] if text.startswith(front) else model.decode(rest)
    new = int((keep & ~given).sum())
    cut = stop_in(answer, stop_strings)
    if cut is None:
        return Answer(text, answer, new)
    whole = next(
        n for n in range(1, len(rest) + 1) if n == len(rest) or _has(model, rest[:n], stop_strings)
    )
    new = int((~given[prompt:][keep[prompt:]])[:whole].sum())
    return Answer(text[: len(text) - len(answer) + cut], answer[:cut], new)


def _has(model: LanguageModel, tokens: list[int], stop_strings: tuple[str, ...]) -> bool:
    return stop_in(model.decode(tokens), stop_strings) is not None


def _kept(
    tokens: Int[Tensor, " length"],
    given: Bool[Tensor, " length"],
    end_tokens: tuple[int, ...],
    first: int,
) -> Bool[Tensor, " length"]:
    """The positions of the text: up to the first drawn end token, and that one."""
    if not end_tokens:
        return torch.ones_like(given)
    ended = ends(tokens[None], given[None], end_tokens, first)[0]
    over = ended.cumsum(0)
    return (over == 0) | ((over == 1) & ended)


def turn_ends(model: LanguageModel, row: Int[Tensor, " length"]) -> tuple[int, ...]:
    """The tokens that end a turn in a chat, as its prompt shows them."""
    known = model.tokenizer.get_vocab()
    given = set(row.tolist())
    return tuple(known[name] for name in TURN_ENDS if known.get(name) in given)


def unknown_tokens(model: LanguageModel, row: list[int]) -> tuple[str, ...]:
    """A note on what the tokenizer does not know of a text; refuses one of which it knows nothing.

    One without an unknown token leaves out what it does not know: `lost_characters` sees that.
    """
    unknown = _unknown(model)
    inside = row[len(model.begin) : len(row) - len(model.end)]
    given = [token for token in inside if token != model.mask]
    lost = 0 if unknown is None else given.count(unknown)
    if not lost:
        return ()
    if lost == len(given):
        raise MaskwalkError(
            "The tokenizer knows nothing of what is given: it reads it as "
            f"{lost} unknown token{'s' if lost > 1 else ''}. Write it as the model was trained "
            "(many models of proteins want spaces between residues: 'E V Q L'), or give the "
            "model's own tokenizer."
        )
    return (f"{lost} of the {len(given)} given tokens are unknown to the tokenizer",)


def lost_characters(model: LanguageModel, texts: Sequence[str]) -> tuple[str, ...]:
    """A note on the characters of what is given that the tokenizer leaves out without a token in
    their place; refuses a text of which it keeps none. Spaces, cases and accents' forms aside."""
    if _unknown(model) is not None:
        return ()
    lost, given = 0, 0
    for text in texts:
        wanted = _characters(text)
        back = model.tokenizer.decode(model.encode(text), skip_special_tokens=False)
        missing = (wanted - _characters(str(back))).total()
        if missing and missing == wanted.total():
            raise MaskwalkError(
                f"The tokenizer knows nothing of what is given: it leaves out {shown(text)}. Write "
                "it as the model was trained, or give the model's own tokenizer."
            )
        lost, given = lost + missing, given + wanted.total()
    if not lost:
        return ()
    return (f"{lost} of the {given} given characters are left out: the tokenizer lacks them",)


def _unknown(model: LanguageModel) -> int | None:
    """The token of what the tokenizer does not know; byte-level ones know every text, and name
    the end-of-text for form's sake."""
    unknown: Any = getattr(model.tokenizer, "unk_token_id", None)
    return None if unknown == model.end_of_text else unknown


def _characters(text: str) -> Counter[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return Counter(sign for sign in plain if not sign.isspace())
