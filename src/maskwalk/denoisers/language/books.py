"""The project's own models of text, as `maskwalk text train` writes them and the zoo ships them.

A directory holds the model (`denoisers.files`), its byte-level tokenizer, and passages of
books it has not seen; in the zoo the last two are packed with xz and shared by the models of one
corpus. Everything needed to generate, replay and compare is in there: no corpus, no network.

    model = load_books("zoo:books_mdm")
    model.held_out[:4]          # token ids of held-out passages
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.denoisers.files import Pretrained, load_pretrained
from maskwalk.denoisers.language.base import LogMarginals
from maskwalk.denoisers.language.causal import only_next
from maskwalk.denoisers.language.mdlm import MDLM
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.tokenizer import check_vocabulary
from maskwalk.denoisers.network.outputs import PLAIN
from maskwalk.errors import MaskwalkError
from maskwalk.resources import zoo_manifest
from maskwalk.worlds.text.passages import END, TOKENIZER, read_beside

ZOO = "zoo:"
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
class BookModel(LanguageModel):
    """A model of text with its weights at rest and passages of books that it has not seen."""

    pretrained: Pretrained | None = None
    held_out: Tensor | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What its file says of it."""
        return {} if self.pretrained is None else self.pretrained.about


def is_books(source: str | Path) -> bool:
    """Whether this names one of our own models of text: in the zoo, or a directory of one."""
    name = str(source)
    if name.startswith(ZOO):
        return "tokenizer" in zoo_manifest().get(name.removeprefix(ZOO), {})
    return (Path(name) / "model.json").exists() and (Path(name) / TOKENIZER).exists()


def load_books(
    source: str | Path,
    *,
    rows: int | None = None,
    device: str = "cpu",
    precision: str | None = None,
) -> BookModel:
    """The model in a directory or of a zoo name; float16 on an accelerator unless said."""
    if not is_books(source):
        raise MaskwalkError(
            f"{source} is no model of text: neither zoo:NAME of one (see `maskwalk zoo`) nor a "
            "directory that `maskwalk text train` wrote."
        )
    accelerated = not device.startswith("cpu")
    if not accelerated and precision not in (None, "float32"):
        raise MaskwalkError(f"On a CPU the network runs in float32, not {precision}.")
    network = load_pretrained(source)
    if network.config.output != PLAIN:
        raise MaskwalkError(
            f"{source} has output={network.config.output}; a model of text needs output=softmax."
        )
    tokenizer, held_out = read_beside(source)
    check_vocabulary(tokenizer, network.config.vocab_size, source)
    kind = NextToken if network.config.causal else MDLM
    denoiser = kind(
        network.config,
        network.weights,
        rows=(ACCELERATOR_ROWS if accelerated else ROWS) if rows is None else rows,
        device=device,
        precision=precision or ("float16" if accelerated else "float32"),
    )
    return BookModel(
        denoiser,
        tokenizer,
        end_of_text=tokenizer.convert_tokens_to_ids(END),
        longest=network.config.length,
        device=device,
        pretrained=network,
        held_out=held_out,
    )
