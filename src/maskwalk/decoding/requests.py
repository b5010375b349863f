"""What is asked for: prompts to rows, and which rows are decoded together.

Rows of one length and with the same end tokens are decoded together. With several prompts of
different lengths and a network that reads several sequences at once (`rows` above 1), shorter ones
are filled up in front with padding that the network does not look at. With `rows=1` nothing is
padded, so the text of a prompt has the same bits beside any others; with more, rounding differs.
Randomness goes by the position behind the padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.answers import lost_characters, turn_ends
from maskwalk.decoding.policy import Sampler
from maskwalk.denoisers.language.masked import Masked
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.text.chat import Messages, wrapped_all
from maskwalk.worlds.text.prompts import GAP, canvas

TOGETHER = 16  # rows of several prompts in one decoding, or `rows` where that is more
Prompt = str | Messages


@dataclass(frozen=True, eq=False)
class Request:
    """Rows to decode: of one prompt `count` of them, of several as many of each."""

    rows: list[Tensor]  # of different lengths
    numbers: list[int]  # of each row among those of its prompt: what its randomness goes by
    ends: list[tuple[int, ...]]  # the tokens that end each row
    back: list[int]  # how much padding is in front of each row
    notes: tuple[str, ...] = ()  # on what was given


def is_several(prompt: Prompt | Sequence[Prompt]) -> bool:
    """Whether there are several prompts: neither a text nor the messages of one chat."""
    return not isinstance(prompt, str) and not (prompt and isinstance(prompt[0], dict))


def request(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    numbers: Sequence[int] | None = None,
    **options: Any,
) -> Request:
    """The canvases of one prompt or of several; options as for `canvas`."""
    first = _numbers(numbers, len(prompt) if is_several(prompt) else 1)
    if not is_several(prompt):
        canvases = [canvas(model, prompt=prompt, **options)]  # type: ignore[arg-type]
        lost = _lost(model, [prompt], options)  # type: ignore[list-item]
        return _joined(model, canvases, [_is_chat(prompt, options)], first, lost)
    if not prompt:
        raise MaskwalkError("There is no prompt among the prompts.")
    if options.get("template") is not None:
        raise MaskwalkError("Give prompts or a template, not both.")
    kinds = [_is_chat(one, options) for one in prompt]
    chats = [one for one, chat in zip(prompt, kinds) if chat]
    texts: list[str] = []
    if chats:  # one process for all of them
        texts = wrapped_all(model.tokenizer, chats, options.get("system"))  # type: ignore[arg-type]
    canvases, left = [], iter(texts)
    for one, chat in zip(prompt, kinds):
        text = next(left) if chat else None
        canvases.append(canvas(model, prompt=one, rendered=text, **options))  # type: ignore[arg-type]
    lost = _lost(model, prompt, options)  # type: ignore[arg-type]
    return _joined(model, canvases, kinds, first, lost)


def _lost(
    model: LanguageModel, prompts: Sequence[Prompt], options: dict[str, Any]
) -> tuple[str, ...]:
    """What the tokenizer leaves out of what was given, text by text."""
    template = options.get("template")
    texts = [] if template is None else ["".join(GAP.split(template)[::2])]
    texts += [] if options.get("system") is None else [options["system"]]
    for one in prompts:
        texts += [one] if isinstance(one, str) else [message["content"] for message in one]
    return lost_characters(model, [text for text in dict.fromkeys(texts) if text])


def _is_chat(prompt: Any, options: dict[str, Any]) -> bool:
    """Whether a prompt is wrapped in the chat template: asked for, or messages."""
    return bool(options.get("chat")) or not isinstance(prompt, str)


def _numbers(numbers: Sequence[int] | None, prompts: int) -> list[int]:
    if numbers is None:
        return [0] * prompts
    if len(numbers) != prompts:
        raise MaskwalkError(f"{prompts} prompts need as many numbers, not {len(numbers)}.")
    return [whole("a number of a text", number, 0) for number in numbers]


def _joined(
    model: LanguageModel,
    canvases: list[Tensor],
    chats: list[bool],
    first: list[int],
    notes: tuple[str, ...],
) -> Request:
    """The rows of all canvases; the end of a turn also ends a row that is a chat."""
    more = [turn_ends(model, rows[0]) if chat else () for rows, chat in zip(canvases, chats)]
    return Request(
        [row for rows in canvases for row in rows],
        [start + number for rows, start in zip(canvases, first) for number in range(len(rows))],
        [(*model.ends, *own) for rows, own in zip(canvases, more) for _ in rows],
        [0] * sum(map(len, canvases)),
        notes,
    )


def together(
    asked: Request, most: int, mask: int | None = None
) -> Iterator[tuple[list[int], Int[Tensor, "some length"]]]:
    """(which rows, their canvas): rows of one length and of the same ends, `most` at a time; with
    `mask`, rows whose given tokens stand at the same places."""
    groups: dict[object, list[int]] = {}
    for number, (row, ends) in enumerate(zip(asked.rows, asked.ends)):
        alike = len(row) if mask is None else tuple((row != mask).tolist())
        groups.setdefault((alike, ends), []).append(number)
    for group in groups.values():
        for start in range(0, len(group), most):
            part = group[start : start + most]
            yield part, torch.stack([asked.rows[number] for number in part])


def padded(asked: Request) -> tuple[Request, int]:
    """The same rows at one length, the shorter ones filled up in front; with which token: one that
    no row begins with."""
    longest = max(len(row) for row in asked.rows)
    first = {int(row[0]) for row in asked.rows}
    filler = next(token for token in range(len(first) + 1) if token not in first)
    back = [longest - len(row) for row in asked.rows]
    rows = [torch.cat([row.new_full((n,), filler), row]) for n, row in zip(back, asked.rows)]
    return replace(asked, rows=rows, back=back), filler


def can_pad(model: LanguageModel, asked: Request, rule: Sampler) -> bool:
    """Whether to fill rows up: the network reads several at once, and can be told what to skip.
    A row that begins with a mask might be filled with padding, so it is not filled up, nor is one
    whose sampler asks where a position is."""
    denoiser = model.denoiser
    if rule.by_place:
        return False
    different = len({len(row) for row in asked.rows}) > 1
    different = different and all(int(row[0]) != model.mask for row in asked.rows)
    return different and isinstance(denoiser, Masked) and denoiser.rows > 1 and denoiser.can_skip
