"""Text from any model with any sampler: one call from a prompt to texts and what they cost.

The decoding is `decode`'s own, so a text depends on (seed, number of the text) alone, and every
sampler, trace and draw option of the project applies.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from maskwalk.decoding.answers import Answer, answer_of, unknown_tokens
from maskwalk.decoding.arguments import as_sampler
from maskwalk.decoding.decode import Decoded
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.presets import PRESETS
from maskwalk.decoding.reader import reader
from maskwalk.decoding.requests import (
    TOGETHER,
    Prompt,
    Request,
    can_pad,
    is_several,
    padded,
    request,
    together,
)
from maskwalk.decoding.shared import decode_rows
from maskwalk.decoding.stopping import StopAt, StopText
from maskwalk.decoding.trace import Trace
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.source import as_language_model
from maskwalk.errors import MaskwalkError, one_of, real, seed_number
from maskwalk.worlds.sizes import fits


@dataclass(frozen=True, eq=False)
class Generated:
    """Texts, and what each cost. Rows shorter than others are filled up with the mask, as given."""

    texts: list[str]
    answers: list[str]  # what stands behind the prompt
    tokens: Int[Tensor, "count length"]
    given: Bool[Tensor, "count length"]
    new: Int[Tensor, " count"]  # tokens of the text that were drawn, an end-of-text included
    calls: Int[Tensor, " count"]
    rounds: Int[Tensor, " count"]
    seconds: float
    trace: Trace | None = None
    notes: tuple[str, ...] = ()  # what is odd about what was given; what changed the answers

    def __repr__(self) -> str:
        per_call = self.tokens_per_call
        return f"<Generated: {len(self.texts)} texts, {per_call:.3g} tokens per call>"

    @property
    def tokens_per_call(self) -> float:
        """Drawn tokens of the texts per call of the denoiser."""
        return float(self.new.sum()) / max(1, int(self.calls.sum()))


def generate(
    model: LanguageModel | str,
    sampler: Sampler | str | None = None,
    *,
    prompt: Prompt | Sequence[Prompt] = "",
    template: str | None = None,
    length: int | None = None,
    new_tokens: int | None = None,
    count: int = 1,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    preset: str | None = None,
    draw: Draw | str | None = None,
    ties: str | None = None,
    score_grid: float | None = None,
    stop: bool | None = None,
    stop_strings: Sequence[str] = (),
    special: bool | None = None,
    chat: bool = False,
    system: str | None = None,
    guidance: float = 0.0,
    cache: str | None = None,
    trace: bool = False,
    on_round: Callable[[Tensor, Tensor], None] | None = None,
) -> Generated:
    """`count` texts of a model, or of the name of one ("zoo:books_mdm", "hf:NAME").

    The default sampler is confidence(), or left_to_right for a causal model.

    `prompt`: a text, the messages of a chat ({"role", "content"}), or a list of either: `count`
    texts of each, in that order. A prompt's texts do not depend on what else is in the list.

    `numbers`: of every prompt the number of its first text, 0 by default. A text depends on the
    seed and its number, so prompts with numbers of their own are drawn apart.

    `preset`: a decoding by name (`PRESETS`); what is said beside it goes before it. `draw` may be a
    preset too: its draw and its ties alone.

    `stop`: nothing is asked for behind a drawn end token, where the model has one; by default so
    unless the sampler takes tokens back or the preset goes on. The text ends there in any case, and
    before the first of `stop_strings`.

    `special`: whether special tokens but the mask may be drawn, as public code does.

    `score_grid`: the spacing to which scores are rounded before they are ranked, the denoiser's by
    default; 1e-12 ranks as code does that does not round.

    `guidance`: the scale of classifier-free guidance. `cache`: "prefix" or "dual", keys and values
    kept while a block is filled: another result (block_cache.py).

    `on_round` is told at first and after every round which texts are open, and their tokens.
    """
    seed_number("seed", seed)
    model = as_language_model(model)
    if model.tokenizer is None:
        raise MaskwalkError(
            "This model has no tokenizer to read and write text with: give a maskwalk.LanguageModel"
            "(denoiser, tokenizer), or decode tokens, maskwalk.decode(sampler, denoiser, tokens)."
        )
    named = PRESETS[one_of("preset", preset, tuple(PRESETS)) if preset else "exact"]
    if preset and draw is None:
        draw, ties = preset, named.ties if ties is None else ties
    score_grid = named.score_grid if score_grid is None else score_grid
    if score_grid is not None:
        real("score_grid", score_grid, 1e-15, 1.0)
    plain = "left_to_right" if model.causal else "confidence"
    sampler = sampler or named.sampler or plain
    rule = as_sampler(sampler)
    sizes = {"template": template, "length": length, "new_tokens": new_tokens}
    asked = request(model, prompt, numbers, **sizes, count=count, chat=chat, system=system)
    strings = _strings(stop_strings, template)
    stop = named.stop if stop is None else stop
    notes = _check(model, asked)
    reading: dict[str, Any] = {
        "score_grid": score_grid,
        "special": named.special if special is None else special,
        "guidance": real("guidance", guidance, 0.0),
        "cache": cache,
        "block_size": rule.block_size,
    }
    if can_pad(model, asked, rule) and not guidance and cache is None:
        asked, reading["skip"] = padded(asked)
    most = 1 if cache is not None else len(asked.rows)
    if is_several(prompt):
        most = min(most, max(TOGETHER, getattr(model.denoiser, "rows", 1)))
    if trace and (is_several(prompt) or most < len(asked.rows)):
        raise MaskwalkError("A trace goes with one prompt, and with a cache with one text.")
    check_reading(model, (most, max(map(len, asked.rows))), rule.block_size)
    parts: list[tuple[list[int], Decoded]] = []
    began = time.perf_counter()
    for part, start in together(asked, most, model.mask if guidance else None):
        start = start.to(model.device)
        asking = reader(model, start, **reading)
        notes = tuple(dict.fromkeys((*notes, *getattr(asking, "changes", ()))))
        result = decode_rows(
            _stopping(rule, model, stop, asked.ends[part[0]], strings),
            asking,
            start,
            seed=seed,
            ids=torch.tensor([asked.numbers[i] for i in part]),
            back=torch.tensor([asked.back[i] for i in part]) if "skip" in reading else None,
            draw=draw,
            ties=ties,
            trace=trace,
            on_round=_told(on_round, part),
        )
        parts.append((part, result))
    seconds = time.perf_counter() - began
    return _collected(model, asked, parts, strings, seconds, notes)


def _check(model: LanguageModel, asked: Request) -> tuple[str, ...]:
    """Notes on what was given; refuses what a model cannot fill."""
    notes = dict.fromkeys(asked.notes)
    for row in {tuple(row.tolist()): row for row in asked.rows}.values():
        given = row != model.mask
        if model.causal and bool((given & ((~given).cumsum(0) > 0)).any()):
            raise MaskwalkError(
                "An autoregressive model does not see what comes after a gap: give it a prompt "
                "only, or use a masked model."
            )
        notes |= dict.fromkeys(unknown_tokens(model, row.tolist()))
    return tuple(notes)


def _strings(stop_strings: Sequence[str], template: str | None) -> tuple[str, ...]:
    strings = (stop_strings,) if isinstance(stop_strings, str) else tuple(stop_strings)
    if any(not isinstance(string, str) or not string for string in strings):
        raise MaskwalkError("A stop string is a text that is not empty.")
    if strings and template is not None:
        raise MaskwalkError("Stop strings go with a prompt, not with a template.")
    return strings


def _stopping(
    rule: Sampler,
    model: LanguageModel,
    stop: bool | None,
    ends: tuple[int, ...],
    strings: tuple[str, ...],
) -> Sampler:
    """The sampler, ended where the text does: if it was said, or if it can be."""
    if not (not rule.remasks if stop is None else stop):
        return rule
    if ends:
        rule = StopAt(rule, ends, int(model.wrapped))
    if strings:
        rule = StopText(rule, strings, model.decode, ends[0] if ends else int(model.mask == 0))
    return rule


def _told(
    on_round: Callable[[Tensor, Tensor], None] | None, part: list[int]
) -> Callable[[Tensor, Tensor], None] | None:
    """`on_round` for the rows of a part, told of their numbers among all."""
    if on_round is None:
        return None
    numbers = torch.tensor(part)
    return lambda rows, tokens: on_round(numbers[rows.cpu()], tokens.cpu())


def _collected(
    model: LanguageModel,
    asked: Request,
    parts: list[tuple[list[int], Decoded]],
    strings: tuple[str, ...],
    seconds: float,
    notes: tuple[str, ...],
) -> Generated:
    """The rows of all parts in their order, without padding in front."""
    count = len(asked.rows)
    rows: list[Tensor] = [torch.empty(0)] * count
    calls, rounds = torch.zeros((2, count), dtype=torch.int64)
    given = [row != model.mask for row in asked.rows]
    for part, result in parts:
        where = torch.tensor(part)
        calls[where], rounds[where] = result.calls.cpu(), result.rounds.cpu()
        for number, row in zip(part, result.tokens.cpu()):
            begin = asked.back[number]
            rows[number], given[number] = row[begin:], given[number][begin:]
    answers: list[Answer] = [
        answer_of(model, row, known, ends, strings)
        for row, known, ends in zip(rows, given, asked.ends)
    ]
    longest = max(map(len, rows))
    filled = [F.pad(row, (0, longest - len(row)), value=model.mask) for row in rows]
    known = [F.pad(row, (0, longest - len(row)), value=True) for row in given]
    return Generated(
        texts=[one.text for one in answers],
        answers=[one.answer for one in answers],
        tokens=torch.stack(filled),
        given=torch.stack(known),
        new=torch.tensor([one.new for one in answers]),
        calls=calls,
        rounds=rounds,
        seconds=seconds,
        trace=parts[0][1].trace,
        notes=notes,
    )


def check_reading(model: LanguageModel, shape: tuple[int, int], block: int | None = None) -> None:
    """Refuses rows whose answers no memory here holds: a table for every token that is asked for at
    once, all masked ones or those of a block."""
    (count, length), rows = shape, getattr(model.denoiser, "rows", 1)
    width, asked = model.denoiser.vocab_size, min(length, block or length)
    what = f"Reading {rows:,} of {count:,} texts of {length:,} tokens together"
    size = 4.0 * width * (length * rows + asked * count)
    fits(what, size, "Use fewer --rows, a smaller --count, …")
