"""Training our own models of text: a masked diffusion model or an autoregressive one of one shape.

Both read the same passages in the same order with the same settings, by the trainer of the walks.
The weights kept are those with the lowest bound on the validation split, and the test split is
looked at once, at the end: the evidence bound of a masked model, the exact likelihood of a causal
one.
"""

import io
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk import resources
from maskwalk.denoisers.files import load_pretrained, save_pretrained
from maskwalk.denoisers.language.books import BookModel, load_books
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.resources import write_file
from maskwalk.training.checkpoints import name_in
from maskwalk.training.loop import train
from maskwalk.training.maskings import MASKINGS
from maskwalk.training.objective import bound
from maskwalk.training.settings import PLAIN, Job, Settings
from maskwalk.training.step import arithmetic
from maskwalk.worlds.text.corpus import Corpus
from maskwalk.worlds.text.metrics import bits_per_byte, perplexity
from maskwalk.worlds.text.passages import HELD_OUT, TOKENIZER, read_tokenizer_bytes, token_bytes

KINDS = ("masked", "causal")
SIZES: dict[str, dict[str, int]] = {
    "base": {"hidden": 512, "cond": 64, "blocks": 6, "heads": 8},  # 24 million parameters
    "small": {"hidden": 128, "cond": 16, "blocks": 4, "heads": 4},  # 1.9 million: for a CPU
}
RATES = {"base": 1e-3, "small": 3e-3}
VALID, HELD = 128, 4096  # passages of the bound while training; kept beside the model, at most


@dataclass(frozen=True)
class Plan:
    """What to train on which corpus."""

    kind: str = "masked"
    size: str = "base"
    length: int = 256
    steps: int = 3_500
    batch: int = 256
    dropout: float = 0.1
    seed: int = 0
    tested: int = 512  # passages of the test split; a causal model is cheap: all of them
    masking: str = PLAIN  # in which contexts a masked model learns (maskings.py)

    def __post_init__(self) -> None:
        object.__setattr__(self, "masking", MASKINGS.canonical(self.masking))
        MASKINGS.build(self.masking)  # its numbers are checked
        if self.kind == "causal" and self.masking != PLAIN:
            raise MaskwalkError(
                f"A causal model has no masks to place: --masking {self.masking} is for "
                "--kind masked."
            )
        one_of("kind", self.kind, KINDS)
        one_of("size", self.size, tuple(SIZES))
        whole("length", self.length, 2)
        whole("tested", self.tested, 1)

    def config(self, vocab: int) -> DDiTConfig:
        """The network."""
        shape: dict[str, Any] = {**SIZES[self.size], "causal": self.kind == "causal", "tied": True}
        return DDiTConfig(vocab, self.length, **shape)

    @property
    def settings(self) -> Settings:
        """The same for both kinds."""
        return Settings(
            steps=self.steps,
            batch=self.batch,
            lr=RATES[self.size],
            warmup=0.05,
            beta2=0.98,
            weight_decay=0.1,
            ema=0.999,
            every=max(1, -(-self.steps // 3)),
        )


def fit_text(
    corpus: Corpus, plan: Plan, out: Path, *, device: str = "cpu", resume: bool = False
) -> BookModel:
    """Trains into `out`: model, tokenizer, held-out passages, and the numbers of the test split."""
    tokenizer, packed = (corpus.path / TOKENIZER).read_bytes(), io.BytesIO()
    np.save(packed, corpus.chosen("test", plan.length, HELD).numpy().astype(np.uint16))
    config = plan.config(len(read_tokenizer_bytes(tokenizer)))
    job = Job(
        name_in(out, resume) or "text",
        corpus.passages("train", plan.length),
        plan.seed,
        plan.dropout,
        corpus.chosen("valid", plan.length, VALID),
        masking=plan.masking,
    )
    about = {
        "text": asdict(plan),
        "corpus": corpus.splits,
        "parameters": config.parameters,
        "commit": resources.commit(),
        "device": "CPU" if device == "cpu" else torch.cuda.get_device_name(),
        "trained": datetime.now(UTC).date().isoformat(),
    }
    last = train(config, [job], plan.settings, out, device=device, resume=resume, about=[about])
    # Only now: a directory that holds another run was refused, and keeps its own.
    write_file(out / TOKENIZER, tokenizer)
    write_file(out / HELD_OUT, packed.getvalue())
    done = last[0].about
    rate = plan.steps * plan.batch * plan.length / max(done["seconds"], 1e-9)
    flops = arithmetic(config, plan.batch, plan.length) / (plan.batch * plan.length)
    best = load_pretrained(out / "best")  # the last weights may have learnt the books by heart
    numbers = {
        **{key: value for key, value in done.items() if key != "walks"},
        **best.about,
        "passages": len(job.walks),
        "tokens_per_second": round(rate),
        "flops_per_second": round(rate * flops),
    }
    save_pretrained(replace(best, about=numbers), out)
    numbers |= tested(load_books(out, device=device), corpus)
    save_pretrained(replace(best, about=numbers), out)
    return load_books(out, device=device)


def tested(model: BookModel, corpus: Corpus) -> dict[str, Any]:
    """The test split: perplexity and bits per byte (bounds on them, of a masked model)."""
    plan = Plan(**model.about["text"])
    if model.causal:
        some = corpus.passages("test", plan.length).to(torch.int64)
    else:
        some = corpus.chosen("test", plan.length, plan.tested)
    nats = total_nats(model, some)
    sizes = token_bytes(model.tokenizer)[some].sum(1)
    return {
        "test_passages": len(some),
        "test_ppl": perplexity(nats, torch.full_like(sizes, plan.length)).as_dict(),
        "test_bpb": bits_per_byte(nats, sizes).as_dict(),
    }


def total_nats(model: BookModel, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
    """-log p of every text under a causal model; under a masked one the bound on it."""
    own: Any = model.denoiser
    given = tokens.to(own.device)[None]
    angles = own.config.angles(tokens.shape[1], own.device)
    return bound(own.config, own.weights, given, angles)[0].cpu() * tokens.shape[1]
