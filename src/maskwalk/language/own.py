"""The project's own models of text, as `maskwalk text train` writes them and the zoo ships them.

A directory holds the model (`denoisers.pretrained`), its byte-level tokenizer, and passages of
books it has not seen; in the zoo the last two are packed with xz and shared by the models of one
corpus. Everything needed to generate, replay and compare is in there: no corpus, no network.

    model = load_own("zoo:books_mdm")
    model.held_out[:4]          # token ids of held-out passages
"""

import hashlib
import io
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.denoisers.pretrained import Pretrained, load_pretrained, zoo_directory, zoo_manifest
from maskwalk.errors import MaskwalkError
from maskwalk.language.answers import LogMarginals
from maskwalk.language.causal import only_next
from maskwalk.language.extra import need, quiet
from maskwalk.language.generation import LanguageModel
from maskwalk.language.mdlm import MDLM

ZOO = "zoo:"
END = "<|endoftext|>"  # between books
TOKENIZER, HELD_OUT = "tokenizer.json", "held_out.npy"
ROWS, ACCELERATOR_ROWS = 8, 256  # sequences read together


class NextToken(MDLM):
    """A causal network of our own: knows the next token, reads no further than it must."""

    causal = True

    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """The next token's logits of every sequence that asks."""
        only_next(tokens, at, self.mask_id)
        end = 1 + int(at.any(0).nonzero().amax())
        super().fill(answer, tokens[:, :end], at[:, :end])


@dataclass(frozen=True, eq=False)
class OwnModel(LanguageModel):
    """A model of text with its weights at rest and passages of books that it has not seen."""

    pretrained: Pretrained | None = None
    held_out: Tensor | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What its file says of it."""
        return {} if self.pretrained is None else self.pretrained.about


def is_own(source: str | Path) -> bool:
    """Whether this names one of our own models of text: in the zoo, or a directory of one."""
    name = str(source)
    if name.startswith(ZOO):
        return "tokenizer" in zoo_manifest().get(name.removeprefix(ZOO), {})
    return (Path(name) / "model.json").exists() and (Path(name) / TOKENIZER).exists()


def load_own(
    source: str | Path,
    *,
    rows: int | None = None,
    device: str = "cpu",
    precision: str | None = None,
) -> OwnModel:
    """The model in a directory or of a zoo name; float16 on an accelerator unless said."""
    if not is_own(source):
        raise MaskwalkError(
            f"{source} is no model of text: neither zoo:NAME of one (see `maskwalk zoo`) nor a "
            "directory that `maskwalk text train` wrote."
        )
    accelerated = not device.startswith("cpu")
    if not accelerated and precision not in (None, "float32"):
        raise MaskwalkError(f"On a CPU the network runs in float32, not {precision}.")
    found = load_pretrained(source)
    tokenizer, held_out = _beside(source)
    kind = NextToken if found.config.causal else MDLM
    denoiser = kind(
        found.config,
        found.weights,
        rows=(ACCELERATOR_ROWS if accelerated else ROWS) if rows is None else rows,
        device=device,
        precision=precision or ("float16" if accelerated else "float32"),
    )
    return OwnModel(
        denoiser,
        tokenizer,
        end_of_text=tokenizer.convert_tokens_to_ids(END),
        longest=found.config.length,
        device=device,
        pretrained=found,
        held_out=held_out,
    )


def _beside(source: str | Path) -> tuple[Any, Tensor]:
    """The tokenizer and the held-out passages that belong to a model."""
    name = str(source)
    if name.startswith(ZOO):
        entry = zoo_manifest()[name.removeprefix(ZOO)]
        data = [_unpacked(entry[key]) for key in ("tokenizer", "held_out")]
    else:
        data = [_bytes(Path(name) / file) for file in (TOKENIZER, HELD_OUT)]
    passages = np.load(io.BytesIO(data[1]), allow_pickle=False)
    return read_tokenizer_bytes(data[0]), torch.from_numpy(passages.astype(np.int64))


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {file}: {problem.strerror}.") from None


def _unpacked(entry: dict[str, str]) -> bytes:
    """A packed file of the zoo, after checking its hash."""
    file = zoo_directory() / entry["file"]
    packed = _bytes(file)
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
