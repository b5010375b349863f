"""From text to a canvas: what is given, what is masked, and how long the sequence is.

    prompt      text in front, or the messages of a chat; everything after it is masked
    template    text with gaps: 'The {3} sat on the {5}.' fixes the words and masks 3 and 5 tokens

`length` counts every token of the sequence: the ones the model wants around a text (BERT's [CLS]
and [SEP]), the prompt, and the masked ones; `new_tokens` counts those behind the prompt alone. Text
is cut into tokens piece by piece, so what is fixed stays what was written, whatever is drawn beside
it.
"""

import re
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, shown, whole
from maskwalk.worlds.sizes import check_sequences
from maskwalk.worlds.text.chat import Messages, wrapped
from maskwalk.worlds.world import LONGEST

NEW = 32  # masked tokens after a prompt where no length is given
GAP = re.compile(r"\{(\d+)\}")


def canvas(
    model: Any,
    *,
    prompt: str | Messages = "",
    template: str | None = None,
    length: int | None = None,
    new_tokens: int | None = None,
    count: int = 1,
    chat: bool = False,
    system: str | None = None,
    rendered: str | None = None,
) -> Int[Tensor, "count length"]:
    """`count` equal rows to decode, with the mask where nothing is given.

    `model` is a `LanguageModel`; `chat` wraps the prompt as the tokenizer's chat template says, and
    so are messages; `system` is the message before them. `rendered`: the prompt as the template
    has wrapped it already.
    """
    whole("count", count, 1, 10**9)
    messages = [prompt] if isinstance(prompt, str) else [str(one) for one in prompt]
    for text in (*messages, system or ""):
        _check_text("prompt", text)
    _check_text("template", template or "")
    chat = chat or not isinstance(prompt, str)
    if template is not None and (prompt or chat):
        raise MaskwalkError("Give a prompt or a template, not both.")
    if system is not None and not chat:
        raise MaskwalkError("A system message goes with a chat: say chat=True (--chat).")
    if length is not None and new_tokens is not None:
        raise MaskwalkError("Say length or new_tokens, not both: one follows from the other.")
    if new_tokens is not None:
        whole("new_tokens", new_tokens, 1, LONGEST)
        if template is not None:
            raise MaskwalkError("The gaps of a template say how many tokens are new.")
    if chat and rendered is None:
        rendered = wrapped(model.tokenizer, prompt, system)
    text = str(prompt) if rendered is None else rendered
    middle = _pieces(model, text if template is None else template, template is not None)
    begin = model.begin
    if begin and tuple(middle[: len(begin)]) == tuple(begin):
        begin = ()  # the chat template, or the text itself, has it already
    around = len(begin) + len(model.end)
    if length is None:
        length = len(middle) + around + (new_tokens or (NEW if template is None else 0))
        if new_tokens is None:
            length = min(length, model.longest or length)
    room = whole("length", length, 1, LONGEST) - around - len(middle)
    if room < 0 or (room == 0 and model.mask not in middle):
        raise MaskwalkError(
            f"What is given takes {around + len(middle)} tokens, so a length of {length} leaves "
            "nothing to fill; take a longer one."
        )
    if model.longest is not None and length > model.longest:
        raise MaskwalkError(
            f"This model reads at most {model.longest} tokens, not {length}; take a shorter length."
        )
    check_sequences(count, length)
    row = [*begin, *middle, *[model.mask] * room, *model.end]
    return torch.tensor(row).repeat(count, 1)


def _check_text(name: str, text: str) -> None:
    """A sentence for what is no text: half of a character, or bytes that were no UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise MaskwalkError(
            f"The {name} is no text: {shown(text[problem.start])} at character {problem.start} is "
            "no whole character; write it in UTF-8."
        ) from None


def _pieces(model: Any, text: str, gaps: bool) -> list[int]:
    parts = GAP.split(text) if gaps else [text]
    tokens: list[int] = []
    for i, part in enumerate(parts):
        if i % 2:
            gap = int(part) if len(part) < 10 else LONGEST + 1
            tokens += [model.mask] * whole("a gap of the template", gap, 1, LONGEST)
        else:
            tokens += model.encode(part)
    if gaps and model.mask not in tokens:
        raise MaskwalkError(
            f"The template {text!r} has no gap; write one as a number of tokens in braces: {{3}}."
        )
    return tokens
