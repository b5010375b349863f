"""Texts of words that the stand-ins' tokenizers know, and a model of the user's own in a file."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

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


def with_head(source: Path, target: Path, head: Any) -> Path:
    """A copy of a stand-in of LLaDA whose last map has other weights."""
    target.mkdir(exist_ok=True)
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    tensors = load_file(target / "model.safetensors")
    (name,) = (name for name in tensors if name.endswith("transformer.ff_out.weight"))
    tensors[name] = head.to(tensors[name].dtype).contiguous()
    save_file(tensors, target / "model.safetensors")
    return target


def eager(source: Path, target: Path) -> Path:
    """A stand-in of LLaDA that likes to write its end and a token that is never drawn otherwise:
    what a preset says around the draw decides what it writes."""
    from maskwalk.decoding.generation import generate
    from maskwalk.denoisers.language import load

    model: Any = load(source)
    made = generate(model, preset="llada", prompt=LINES[0], new_tokens=32)
    counts = made.tokens[~made.given].bincount()
    one, two = counts.argsort(descending=True)[:2].tolist()
    head = model.denoiser.model.lm_head.weight.data.clone()
    never = model.tokenizer.convert_tokens_to_ids("<|startoftext|>")
    head[model.end_of_text], head[never] = 1.05 * head[one], 1.05 * head[two]
    return with_head(source, target, head)
