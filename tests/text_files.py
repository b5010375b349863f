"""Texts of words that the stand-ins' tokenizers know, and a model of the user's own in a file."""

from pathlib import Path

LINES = ("the cat sat on the mat", "once upon a time there was a cat", "the door was on the mat")

OWN = """
import torch
from maskwalk import Masked

table = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))


def logits(tokens):
    return table[tokens.roll(1, 1)] + table.T[tokens.roll(-1, 1)]


def model():
    return Masked(logits, mask_id=4, vocab_size=5, rows=4)


def nothing():
    return 7


def wants(more):
    return more


def fails():
    raise RuntimeError("no weights")
"""


def texts(folder: Path, documents: int = 4, lines: int = 6) -> Path:
    """A .txt file: documents of a few lines, an empty line between them."""
    words = [" ".join(LINES[(i + j) % 3] for j in range(lines)) for i in range(documents)]
    file = folder / "texts.txt"
    file.write_text("\n\n".join(words), "utf-8")
    return file


def own_model(folder: Path) -> Path:
    file = folder / "own.py"
    file.write_text(OWN, "utf-8")
    return file
