"""What comes with a model of books: its byte-level tokenizer, and passages it has not seen.

A directory holds both beside the model; in the zoo they are packed with xz and shared by the models
of one corpus.
"""

import hashlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.reading import unpacked
from maskwalk.resources import need, quiet, read_file, zoo_directory, zoo_manifest

PREFIX = "zoo:"
END = "<|endoftext|>"  # between books
TOKENIZER, HELD_OUT = "tokenizer.json", "held_out.npy"
MOST = 2**28  # bytes of either, unpacked


def read_beside(source: str | Path) -> tuple[Any, Tensor]:
    """The tokenizer and the held-out passages that belong to a model."""
    name = str(source)
    if name.startswith(PREFIX):
        entry = zoo_manifest()[name.removeprefix(PREFIX)]
        files = [zoo_directory() / _packed(entry, key, name) for key in ("tokenizer", "held_out")]
        hashes = [entry[key]["sha256"] for key in ("tokenizer", "held_out")]
        data = [_unpacked(file, known) for file, known in zip(files, hashes)]
    else:
        files = [Path(name) / file for file in (TOKENIZER, HELD_OUT)]
        data = [read_file(file) for file in files]
    tokenizer = read_tokenizer_bytes(data[0], files[0])
    passages = read_tokens(data[1], files[1], 2, len(tokenizer))
    return tokenizer, torch.from_numpy(passages.astype(np.int64))


def _packed(entry: dict[str, Any], key: str, name: str) -> str:
    if key not in entry:
        raise MaskwalkError(f"{name} is no model of text: its entry in the zoo has no {key}.")
    return str(entry[key]["file"])


def _unpacked(file: Path, sha256: str) -> bytes:
    """A packed file of the zoo, after checking its hash."""
    packed = read_file(file)
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise MaskwalkError(f"{file} is not the file its manifest describes; fetch it again.")
    return unpacked(packed, MOST, file)


def read_tokens(data: bytes, source: object, axes: int, vocab: int = 2**31) -> np.ndarray:
    """Token ids in a NumPy file with so many axes; nothing is unpickled, nothing taken on trust."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        shape, turned, kind = read(file)
    except Exception as problem:  # NumPy has no list of what a damaged header may raise
        raise MaskwalkError(
            f"{source} is not a file of tokens ({str(problem)[:80]}); write it again."
        ) from None
    content = data[file.tell() :]
    if kind.kind not in "iu" or len(shape) != axes or turned or 0 in shape:
        raise MaskwalkError(
            f"{source} must hold whole numbers with {axes} axes, not {kind} of shape {shape}."
        )
    if len(content) != math.prod(shape) * kind.itemsize:
        raise MaskwalkError(
            f"{source} is cut or damaged: {len(content):,} bytes are not {shape} tokens."
        )
    tokens = np.frombuffer(content, kind).reshape(shape)
    if int(tokens.min()) < 0 or int(tokens.max()) >= vocab:
        raise MaskwalkError(
            f"{source} has tokens that are not in 0..{vocab - 1:,}, its vocabulary."
        )
    return tokens


def read_tokenizer_bytes(data: bytes, source: object = TOKENIZER) -> Any:
    """A tokenizer file as `transformers` has it."""
    tokenizers = need("tokenizers")
    try:
        inner = tokenizers.Tokenizer.from_str(data.decode())
    except Exception as problem:  # the package raises a plain Exception
        why = " ".join(str(problem).split())[:100]
        raise MaskwalkError(f"{source} is not a tokenizer ({why}); write it again.") from None
    with quiet() as transformers:
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=inner, eos_token=END, clean_up_tokenization_spaces=False
        )


def token_bytes(tokenizer: Any) -> Int[Tensor, " vocab"]:
    """How many bytes of text each token is: a byte-level token has a character for each."""
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return torch.tensor([0 if name == END else len(name) for name in names])
