"""What comes with a model of books: its byte-level tokenizer, and passages it has not seen.

A directory holds both beside the model; in the zoo they are packed with xz and shared by the models
of one corpus.
"""

import hashlib
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.resources import need, quiet, read_file, zoo_directory, zoo_manifest

PREFIX = "zoo:"
END = "<|endoftext|>"  # between books
TOKENIZER, HELD_OUT = "tokenizer.json", "held_out.npy"


def read_beside(source: str | Path) -> tuple[Any, Tensor]:
    """The tokenizer and the held-out passages that belong to a model."""
    name = str(source)
    if name.startswith(PREFIX):
        entry = zoo_manifest()[name.removeprefix(PREFIX)]
        data = [_unpacked(entry[key]) for key in ("tokenizer", "held_out")]
    else:
        data = [read_file(Path(name) / file) for file in (TOKENIZER, HELD_OUT)]
    passages = np.load(io.BytesIO(data[1]), allow_pickle=False)
    return read_tokenizer_bytes(data[0]), torch.from_numpy(passages.astype(np.int64))


def _unpacked(entry: dict[str, str]) -> bytes:
    """A packed file of the zoo, after checking its hash."""
    file = zoo_directory() / entry["file"]
    packed = read_file(file)
    if hashlib.sha256(packed).hexdigest() != entry["sha256"]:
        raise MaskwalkError(f"{file} is not the file its manifest describes; fetch it again.")
    return lzma.decompress(packed)


def read_tokenizer_bytes(data: bytes) -> Any:
    """A tokenizer file as `transformers` has it."""
    inner = need("tokenizers").Tokenizer.from_str(data.decode())
    with quiet() as transformers:
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=inner, eos_token=END, clean_up_tokenization_spaces=False
        )


def token_bytes(tokenizer: Any) -> Int[Tensor, " vocab"]:
    """How many bytes of text each token is: a byte-level token has a character for each."""
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return torch.tensor([0 if name == END else len(name) for name in names])
