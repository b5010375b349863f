"""Running the language experiment: sample texts, score them, replay held-out text.

A setting's record is written as soon as it is there, and a run goes on where one stopped. The judge
comes afterwards (`judging`), possibly on another machine, and reads what is kept for it:

    DIR/records.jsonl                     the records
    DIR/samples/KEY.npy                   the first texts of a setting, as tokens
    DIR/samples/references.npy            held-out passages that MAUVE compares with
    DIR/samples/tokenizer.json            what turns tokens into text
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk import __version__, resources
from maskwalk.analysis.paths import along_paths
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.records import Record, RecordFile, read_records
from maskwalk.bench.text_experiment import HELD_OUT, SCHEMA, Setting, TextExperiment, draw_of
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.denoisers.language.books import ZOO, BookModel, load_books
from maskwalk.errors import MaskwalkError
from maskwalk.resources import write_file
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.fit_text import total_nats
from maskwalk.worlds.text.mauve import FEWEST
from maskwalk.worlds.text.metrics import (
    bits_per_byte,
    estimate,
    perplexity,
    repetition,
    token_entropy,
)
from maskwalk.worlds.text.passages import TOKENIZER, token_bytes

SAMPLES, REFERENCES = "samples", "references.npy"
SHOWN = 3  # texts a record carries
BATCH, ACCELERATOR_BATCH = 32, 1024  # texts decoded at once; results do not depend on it


@dataclass
class TextRun:
    """An experiment being written to a directory; iterate over it to do the work."""

    experiment: TextExperiment
    out: Path
    device: str = "cpu"
    done: int = field(init=False, default=0)

    @property
    def total(self) -> int:
        """How many settings there are."""
        return len(self.experiment.settings)

    @cached_property
    def models(self) -> dict[str, BookModel]:
        """The models, loaded when they are first needed."""
        e = self.experiment
        found = {source: load_books(source, device=self.device) for source in e.models}
        for source, causal in ((e.masked, False), (e.causal, True)):
            if source is not None and found[source].causal != causal:
                kind = "autoregressive" if causal else "masked"
                raise MaskwalkError(f"{source} is not the {kind} model it should be.")
        vocabularies = [model.tokenizer.get_vocab() for model in found.values()]
        if any(one != vocabularies[0] for one in vocabularies):
            raise MaskwalkError("The models have different tokenizers: they cannot be compared.")
        return found

    @property
    def any_model(self) -> BookModel:
        """One of the models, for what they share: tokenizer and held-out passages."""
        return self.models[self.experiment.models[0]]

    def __iter__(self) -> Iterator[Record]:
        with RecordFile(self.out / "records.jsonl") as file:
            found = {record["key"] for record in read_records(file.path)}
            for number, setting in enumerate(self.experiment.settings):
                key = self.experiment.key(setting)
                lost = self.experiment.reads(setting) and not self._samples(key).exists()
                if key not in found or lost:
                    record = {"key": key, "cell": number, **self._record(setting)}
                    file.append(record)
                    yield record
                self.done = number + 1

    def _record(self, setting: Setting) -> Record:
        e = self.experiment
        draw, began = draw_of(setting.preset), time.perf_counter()
        tokens, metrics = self._texts(setting, draw)
        seconds = time.perf_counter() - began
        metrics |= self._scores(tokens)
        metrics |= self._replayed(setting, draw)
        if setting.sampler == HELD_OUT:
            metrics |= self._tested()
        self._keep(setting, tokens)
        model = self.models[e.model(setting)]
        return {
            "schema": SCHEMA,
            "kind": "text",
            "version": __version__,
            "commit": resources.commit(),
            "experiment": e.name,
            "title": e.title,
            "model": e.title if setting.sampler == HELD_OUT else _label(e.model(setting), model),
            **asdict(setting),
            "draw": asdict(draw),
            "ties": "uniform",
            **{name: getattr(e, name) for name in ("length", "count", "seed")},
            "metrics": metrics,
            "texts": [model.decode(row) for row in tokens[:SHOWN].tolist()],
            "seconds": round(seconds, 3),
            "notes": [*getattr(model.denoiser, "notes", ())],
        }

    def _texts(self, setting: Setting, draw: Draw) -> tuple[Tensor, dict[str, Any]]:
        """The setting's texts, and what they cost."""
        e = self.experiment
        if setting.sampler == HELD_OUT:
            return self.held_out[e.references :], {}
        model = self.models[e.model(setting)]
        sampler, batch = SAMPLERS.build(setting.sampler), batch_on(self.device)
        tokens, calls = [], []
        for first in range(0, e.count, batch):
            some = torch.arange(first, min(first + batch, e.count), device=self.device)
            blank = torch.full((len(some), e.length), model.mask, device=self.device)
            found = decode(sampler, model.denoiser, blank, streams=Streams(e.seed, some), draw=draw)
            tokens.append(found.tokens.cpu())
            calls.append(found.calls.cpu().double())
        each = torch.cat(calls)
        return torch.cat(tokens), {
            "calls": estimate(each),
            "tokens_per_call": estimate(e.length / each),
        }

    @cached_property
    def held_out(self) -> Int[Tensor, "passages length"]:
        """The held-out passages; the first `references` are kept for MAUVE alone."""
        e = self.experiment
        every = self.any_model.held_out
        assert every is not None
        every = every[:, : e.length]
        others = FEWEST if e.judge else 1
        if every.shape[1] < e.length or len(every) < e.references + others:
            raise MaskwalkError(
                f"{e.models[0]} has {len(every)} held-out passages of {every.shape[1]} tokens: too "
                f"few for {e.references} references and {others} more of {e.length} tokens. Lower "
                "references or length in the experiment file, or take a model with more (`maskwalk "
                "text train` keeps up to 4,096)."
            )
        return every

    def _scores(self, tokens: Tensor) -> dict[str, Any]:
        found = {"entropy": estimate(token_entropy(tokens))}
        found |= {f"rep{n}": estimate(repetition(tokens, n)) for n in (1, 2, 3)}
        if self.experiment.causal is None:
            return found
        scorer = self.models[self.experiment.causal]
        nats = total_nats(scorer, tokens)
        sizes = token_bytes(scorer.tokenizer)[tokens].sum(1)
        own = perplexity(nats, torch.full_like(sizes, tokens.shape[1]))
        return {"own_bpb": bits_per_byte(nats, sizes), "own_ppl": own, **found}

    def _tested(self) -> dict[str, Any]:
        """What the scorer itself was tested with: the whole split, where its file has that."""
        if self.experiment.causal is None:
            return {}
        about = self.models[self.experiment.causal].about
        if about.get("text", {}).get("length") != self.experiment.length:
            return {}  # passages of another length are not as likely, token by token
        held = {"own_bpb": about.get("test_bpb"), "own_ppl": about.get("test_ppl")}
        return {name: value for name, value in held.items() if value is not None}

    def _replayed(self, setting: Setting, draw: Draw) -> dict[str, Any]:
        """Bits a byte of held-out text under the policy, where it can be forced through it."""
        e = self.experiment
        if setting.sampler == HELD_OUT or draw != Draw() or not e.replayed:
            return {}  # a truncated draw gives most text probability zero
        sampler, model = SAMPLERS.build(setting.sampler), self.models[e.model(setting)]
        try:
            check_replayable(sampler, draw)
        except MaskwalkError:
            return {}
        passages = self.held_out[e.references :][: e.replayed]
        found = along_paths(
            sampler, model, passages, e.paths, seed=e.seed, batch=batch_on(self.device)
        )
        sizes = token_bytes(model.tokenizer)[passages].sum(1)
        nats = found.over()
        more = {
            "bound": found.random,
            "paths": len(found.nats),
            "one_path": bits_per_byte(found.over(1), sizes)["value"],
            # The same passages for every policy: with each one's nats, policies compare in pairs.
            "nats": [round(x, 3) for x in nats.tolist()],
            "bytes": sizes.tolist(),
        }
        return {"replay_bpb": {**bits_per_byte(nats, sizes), **more}}

    def _keep(self, setting: Setting, tokens: Tensor) -> None:
        """What the judge will need: the texts, references and a tokenizer to write them with."""
        if not self.experiment.reads(setting):
            return
        folder = self.out / SAMPLES
        folder.mkdir(parents=True, exist_ok=True)
        references = self.held_out[: self.experiment.references]
        np.save(folder / REFERENCES, references.numpy().astype(np.uint16))
        write_file(folder / TOKENIZER, self.any_model.tokenizer.backend_tokenizer.to_str().encode())
        some = tokens[: self.experiment.judged].numpy().astype(np.uint16)
        np.save(self._samples(self.experiment.key(setting)), some)

    def _samples(self, key: str) -> Path:
        return self.out / SAMPLES / f"{key}.npy"


def batch_on(device: str) -> int:
    """How many texts go together on a device."""
    return BATCH if device == "cpu" else ACCELERATOR_BATCH


def _label(source: str, model: BookModel) -> str:
    """A model's name in records; a directory's without the path, which means nothing elsewhere."""
    size = model.about.get("parameters", 0) / 1e6
    return f"{source if source.startswith(ZOO) else Path(source).name} ({size:.1f} M parameters)"
