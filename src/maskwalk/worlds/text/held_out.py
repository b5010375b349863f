"""Passages to measure a model of text with: its own held-out ones, or those of a user's file.

FILE.txt      documents, an empty line between them
FILE.jsonl    a document a line: {"text": "…"}
FILE.npy      tokens, (passages, length): nothing is cut, and nothing is read by a tokenizer

A document is cut into passages of `length` tokens that follow each other, what the model wants
around a text ([CLS], [SEP]) included and given; what is left over is dropped. MDLM was trained on
documents joined by end-of-text and cut to length − 2, with end-of-text at both ends: its passages
are made that way, and the ends are scored like all else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.reading import Wrong, json_value
from maskwalk.resources import quiet, read_file
from maskwalk.worlds.text.passages import read_tokens, token_bytes
from maskwalk.worlds.world import LONGEST

DEFAULT = 256  # tokens of a passage where nobody says
MOST = 2**30  # bytes of a file of texts


@dataclass(frozen=True, eq=False)
class Passages:
    """Texts of one length, which of their tokens are given, and how large each is."""

    tokens: Int[Tensor, "passages length"]
    given: Bool[Tensor, "passages length"]
    sizes: Int[Tensor, " passages"]  # in bytes, or in tokens where there is no tokenizer
    unit: str = "byte"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, skip: int, count: int) -> "Passages":
        """`count` of them, after the first `skip`."""
        whole("skip", skip, 0), whole("count", count, 1)
        if skip + count > len(self):
            raise MaskwalkError(
                f"There are {len(self)} held-out passages of {self.tokens.shape[1]} tokens: "
                "--count is 1 to that, less what --skip says."
            )
        some = slice(skip, skip + count)
        return Passages(
            self.tokens[some], self.given[some], self.sizes[some], self.unit, self.notes
        )


def passages_for(model: Any, texts: str | Path | None, length: int | None = None) -> Passages:
    """Passages for a `LanguageModel`: of the file `texts`, or those that the model brings."""
    if texts is None:
        return _brought(model, length)
    file = Path(texts)
    if file.suffix == ".npy":
        ids = read_tokens(_content(file), file, 2, model.denoiser.vocab_size)
        tokens = torch.from_numpy(ids.astype(np.int64))
        length = whole("length", tokens.shape[1] if length is None else length, 1, tokens.shape[1])
        return _checked(model, tokens[:, :length], torch.zeros_like(tokens[:, :length]).bool())
    if model.tokenizer is None:
        raise MaskwalkError(
            f"This model has no tokenizer, so {file} cannot be read for it: give tokens, a .npy "
            "file of whole numbers (passages, length), or a maskwalk.LanguageModel."
        )
    return _cut(model, documents(file), length, file)


def _brought(model: Any, length: int | None) -> Passages:
    """The passages that come with a model of books."""
    held_out: Tensor | None = getattr(model, "held_out", None)
    if held_out is None:
        raise MaskwalkError(
            "This model brings no held-out passages: name a file of texts it has not seen, "
            "--texts FILE (.txt with an empty line between documents, .jsonl with one text per "
            "line, or .npy with tokens)."
        )
    longest = held_out.shape[1]
    if length is not None and not 1 <= length <= longest:
        raise MaskwalkError(f"--length is 1 to {longest}, the length of its passages.")
    tokens = held_out[:, :length]
    sizes = token_bytes(model.tokenizer)[tokens].sum(1)
    return Passages(tokens, torch.zeros_like(tokens).bool(), sizes)


def documents(file: Path) -> list[str]:
    """The documents of a .txt or .jsonl file."""
    try:
        text = _content(file).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise MaskwalkError(f"{file} is no text in UTF-8 (byte {problem.start}).") from None
    if file.suffix == ".jsonl":
        lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
        every = [_text(line, file, number) for number, line in lines]
    elif file.suffix == ".txt":
        every = ["\n".join(part).strip() for part in _parts(text)]
    else:
        raise MaskwalkError(f"Texts are read from .txt, .jsonl or .npy files, not from {file}.")
    if not any(every):
        raise MaskwalkError(f"{file} holds no text.")
    return [one for one in every if one]


def _content(file: Path) -> bytes:
    if file.is_file() and file.stat().st_size > MOST:
        raise MaskwalkError(f"{file} has more than {MOST >> 30} GB; cut it into parts.")
    return read_file(file)


def _parts(text: str) -> list[list[str]]:
    """The lines of each part between empty lines."""
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return parts


def _text(line: str, file: Path, number: int) -> str:
    try:
        row = json_value(line.encode())
    except Wrong as wrong:
        raise MaskwalkError(f"{file}, line {number}: {wrong.told()}.") from None
    text = row.get("text") if isinstance(row, dict) else None
    if not isinstance(text, str):
        raise MaskwalkError(f'{file}, line {number}: a document is a table {{"text": "…"}}.')
    return text.strip()


def _cut(model: Any, texts: list[str], length: int | None, file: Path) -> Passages:
    """The passages of documents, in order."""
    with quiet():
        rows = [model.encode(text) for text in texts]
    begin, end = list(model.begin), list(model.end)
    if model.wrapped:
        stop = int(model.end_of_text)
        rows = [[token for row in rows for token in (*row, stop)][:-1]]
        begin, end = [stop], [stop]
    around = len(begin) + len(end)
    longest = max(len(row) for row in rows) + around
    limit = min(longest, model.longest or longest)
    length = min(limit, DEFAULT) if length is None else whole("length", length, 1, LONGEST)
    if model.longest is not None and length > model.longest:
        raise MaskwalkError(f"This model reads at most {model.longest} tokens, not {length}.")
    inside = length - around
    if inside < 1 or length > longest:
        raise MaskwalkError(
            f"--length is {around + 1} to {longest} here: a passage has what the model wants "
            f"around it ({around} tokens) and at least one more, and the longest document of "
            f"{file} has {longest - around}."
        )
    pieces = [
        [*begin, *row[at : at + inside], *end]
        for row in rows
        for at in range(0, len(row) - inside + 1, inside)
    ]
    tokens = torch.tensor(pieces)
    given = torch.zeros_like(tokens).bool()
    if not model.wrapped:
        given[:, : len(begin)] = True
        given[:, length - len(end) :] = True
    return _checked(model, tokens, given)


def _checked(model: Any, tokens: Tensor, given: Tensor) -> Passages:
    """The passages without those the model never writes, and their sizes."""
    never = torch.zeros(model.denoiser.vocab_size + 1, dtype=torch.bool)
    never[[*getattr(model.denoiser, "forbidden", ()), min(model.mask, len(never) - 1)]] = True
    bad = (never[tokens] & ~given).any(1)
    notes: tuple[str, ...] = ()
    if bool(bad.any()):
        if bool(bad.all()):
            raise MaskwalkError(
                "Every passage holds tokens that the model never draws (words its tokenizer does "
                "not know, most likely); is it the model's own tokenizer, and its kind of text?"
            )
        notes = (
            f"{int(bad.sum())} of {len(bad)} passages hold tokens that the model never draws and "
            "are left out",
        )
    tokens, given = tokens[~bad], given[~bad]
    if model.tokenizer is None:
        return Passages(tokens, given, (~given).sum(1), "token", notes)
    texts = [model.decode(row[~known].tolist()) for row, known in zip(tokens, given)]
    sizes = torch.tensor([max(1, len(text.encode())) for text in texts])
    return Passages(tokens, given, sizes, "byte", notes)
