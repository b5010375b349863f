"""A corpus of books as token ids: a byte-pair tokenizer of its own, and passages of equal length.

The source is a folder with train, valid and test as .txt or .txt.xz: one paragraph a line, an empty
line between books, whole books held out. The tokenizer is byte-level (no text is lost, and every
token is a whole number of bytes) and trained on the training split alone.

    DATA/tokenizer.json                    the tokenizer
    DATA/train.npy, valid.npy, test.npy    all tokens of a split, uint16, an end-of-text after each
                                           book
    DATA/corpus.json                       how many tokens, bytes and books
"""

import json
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.reading import table
from maskwalk.reading import whole as whole_number
from maskwalk.resources import need, read_file, read_json, write_file
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.text.passages import END, TOKENIZER, read_tokens

FORMAT = "maskwalk-corpus/1"
SPLITS = ("train", "valid", "test")
SHAPE = table(
    {"splits": table({}, needs=SPLITS, others=table({}, others=whole_number(0)))},
    needs=("splits",),
)
BATCH = 4_096  # paragraphs the tokenizer is given at a time

Told = Callable[[str, int, int], None]  # (what, done, of how many)


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus on disk."""

    path: Path
    splits: dict[str, dict[str, int]]

    @classmethod
    def load(cls, path: str | Path) -> "Corpus":
        """What `prepare` wrote there."""
        path = Path(path)
        if not (path / "corpus.json").exists():
            raise MaskwalkError(
                f"{path} holds no prepared corpus (there is no corpus.json); make one with "
                "`maskwalk text prepare FOLDER --out DIR`."
            )
        description = read_json(path / "corpus.json", FORMAT, "a prepared corpus", SHAPE)
        for name in (TOKENIZER, *(f"{split}.npy" for split in SPLITS)):
            if not (path / name).exists():
                raise MaskwalkError(
                    f"{path} is not a whole corpus: {name} is missing; prepare it again."
                )
        return cls(path, description["splits"])

    def passages(self, split: str, length: int) -> Int[Tensor, "count length"]:
        """The split cut into passages of `length` tokens, in order; what is left over is dropped.

        int32: they are looked up, not computed with, and there are many.
        """
        file = self.path / f"{split}.npy"
        tokens = read_tokens(read_file(file), file, 1)
        count = len(tokens) // length
        if count == 0:
            raise MaskwalkError(
                f"The {split} split has {len(tokens)} tokens: not one passage of {length}."
            )
        shaped = tokens[: count * length].astype(np.int32).reshape(count, length)
        return torch.from_numpy(shaped)

    def chosen(self, split: str, length: int, count: int, seed: int = 0) -> Tensor:
        """`count` different passages of a split at random (all of them if there are no more).

        In random order: any part of them is from all books.
        """
        every = self.passages(split, length)
        rank = block_uniforms(seed, Purpose.PROMPT, 0, 1, len(every))[0]
        return every[torch.from_numpy(np.argsort(rank)[:count])].to(torch.int64)


def prepare(source: Path, out: Path, vocab: int = 8192, told: Told = lambda *_: None) -> Corpus:
    """Trains the tokenizer on the training split and writes all splits as tokens."""
    whole("vocab", vocab, 512, 65_536)
    texts = {split: _read(source, split) for split in SPLITS}
    out.mkdir(parents=True, exist_ok=True)
    told("tokenizer", 0, 1)
    tokenizer = train_tokenizer(texts["train"].splitlines(keepends=True), vocab)
    told("tokenizer", 1, 1)
    write_file(out / TOKENIZER, tokenizer.to_str().encode())
    counts = {}
    for split, text in texts.items():
        books = [book.strip("\n") + "\n" for book in re.split(r"\r?\n\r?\n", text) if book.strip()]
        tokens = np.concatenate(list(_encoded(tokenizer, books, split, told)))
        if len(tokens) == 0:
            raise MaskwalkError(f"The {split} split of {source} is empty.")
        np.save(out / f"{split}.npy", tokens)
        size = sum(len(book.encode()) for book in books)
        counts[split] = {"books": len(books), "bytes": size, "tokens": len(tokens)}
    about = {"format": FORMAT, "vocab": tokenizer.get_vocab_size(), "splits": counts}
    write_file(out / "corpus.json", (json.dumps(about, indent=1) + "\n").encode())
    return Corpus(out, counts)


def train_tokenizer(lines: list[str], vocab: int) -> Any:
    """A byte-level byte-pair tokenizer of `vocab` tokens, the end-of-text first."""
    tk = need("tokenizers")
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END],
        initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _encoded(tokenizer: Any, books: list[str], split: str, told: Told) -> Iterator[np.ndarray]:
    end = np.array([tokenizer.token_to_id(END)], dtype=np.uint16)
    tokenizer.encode_special_tokens = True  # where a book says so itself, it is text
    yield end[:0]
    for number, book in enumerate(books):
        told(split, number, len(books))
        lines = book.splitlines(keepends=True)
        for start in range(0, len(lines), BATCH):
            for line in tokenizer.encode_batch_fast(lines[start : start + BATCH]):
                yield np.array(line.ids, dtype=np.uint16)
        yield end
    told(split, len(books), len(books))


def _read(source: Path, split: str) -> str:
    for name, opened in ((f"{split}.txt", open), (f"{split}.txt.xz", lzma.open)):
        if (source / name).exists():
            try:
                with opened(source / name, "rb") as file:
                    return bytes(file.read()).decode()
            except (lzma.LZMAError, EOFError, UnicodeDecodeError) as problem:
                raise MaskwalkError(f"{source / name} cannot be read: {problem}.") from None
    raise MaskwalkError(
        f"{source} has no {split}.txt (nor {split}.txt.xz); a corpus is a folder with train, valid "
        "and test: one paragraph a line, an empty line between books."
    )
