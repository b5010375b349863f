"""The job of a setting of a text experiment: texts, what they cost and are worth, their record.

It samples texts, scores them and replays held-out text. The judge comes afterwards (judging.py),
possibly on another machine, and reads what is kept for it:

    DIR/records.jsonl                     the records
    DIR/samples/KEY.npy                   the first texts of a setting, as tokens
    DIR/samples/references.npy            held-out passages that MAUVE compares with
    DIR/samples/tokenizer.json            what turns tokens into text
"""

import io
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk import __version__
from maskwalk.analysis.paths import along_paths
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.records import HELD_OUT, SCHEMA, Record
from maskwalk.bench.text_experiment import REFERENCES, Setting, TextExperiment, name_of
from maskwalk.decoding.draw import DRAWS, Draw, mode_name, read_draw
from maskwalk.decoding.shared import decode_rows
from maskwalk.denoisers.language.books import BookModel, load_books
from maskwalk.denoisers.resolve import fingerprint
from maskwalk.errors import MaskwalkError
from maskwalk.resources import write_file
from maskwalk.samplers import SAMPLERS
from maskwalk.training.fit_text import total_nats
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.text.mauve import FEWEST
from maskwalk.worlds.text.metrics import Reading, Replay
from maskwalk.worlds.text.passages import TOKENIZER, token_bytes
from maskwalk.worlds.text.world import Text

SHOWN = 3  # texts a record carries
BATCH, ACCELERATOR_BATCH = 32, 1024  # texts decoded at once; results do not depend on it


def text_record(
    experiment: dict[str, Any], setting: dict[str, Any], samples: str | None, device: str
) -> Record:
    """The job of a setting: texts, what they cost and are worth, and what is kept of them."""
    work = _Setting(TextExperiment.from_json(experiment), Setting(**setting), device)
    return work.record(None if samples is None else Path(samples))


@lru_cache(maxsize=2)
def _models(
    masked: str | None, causal: str | None, device: str, weights: tuple[str | None, ...]
) -> dict[str, BookModel]:
    """The models of an experiment by their sources, checked against each other."""
    sources = [source for source in (masked, causal) if source is not None]
    models = {source: load_books(source, device=device) for source in sources}
    for source, kind in ((masked, False), (causal, True)):
        if source is not None and models[source].causal != kind:
            name = "autoregressive" if kind else "masked"
            raise MaskwalkError(f"{source} is not the {name} model it should be.")
    vocabularies = [model.tokenizer.get_vocab() for model in models.values()]
    if any(one != vocabularies[0] for one in vocabularies):
        raise MaskwalkError("The models have different tokenizers: they cannot be compared.")
    return models


@lru_cache(maxsize=2)
def _world(source: str) -> Text:
    return Text(source)


@dataclass(frozen=True)
class _Setting:
    """One setting of an experiment at work on a device."""

    experiment: TextExperiment
    setting: Setting
    device: str

    @property
    def models(self) -> dict[str, BookModel]:
        """The experiment's models."""
        e = self.experiment
        weights = tuple(fingerprint(source) for source in e.models)  # a directory may be retrained
        return _models(e.masked, e.causal, self.device, weights)

    @property
    def model(self) -> BookModel:
        """The one behind this setting."""
        return self.models[self.experiment.model(self.setting)]

    @property
    def reference(self) -> bool:
        """Whether this is held-out text, which nobody decodes."""
        return self.setting.sampler == HELD_OUT

    def record(self, samples: Path | None) -> Record:
        """The record; the first texts are left in `samples` for a judge."""
        e = self.experiment
        draw, ties = read_draw(self.setting.mode)
        began = time.perf_counter()
        tokens, calls = self._texts(DRAWS.build(draw))
        seconds = time.perf_counter() - began
        sample = Sample(
            world=_world(e.models[0]),
            tokens=tokens,
            calls=calls,
            prompts=torch.arange(len(tokens)),
            masked=torch.full((len(tokens),), e.length),
            seed=e.seed,
            readings=self._readings(tokens, DRAWS.build(draw)),
        )
        world = e.world
        metrics = measure(sample, METRICS.default(world))
        if samples is not None:
            self._keep(tokens, samples)
        size = self.model.about.get("parameters", 0) / 1e6
        name = f"{name_of(e.model(self.setting))} ({size:.1f} M parameters)"
        files = e.sources(self.setting)
        about: Record = {
            "schema": SCHEMA,
            "version": __version__,
            "world": world,
            "task": "unconditional()",
            "sampler": self.setting.sampler,
            "denoiser": "" if self.reference else name,
            "mode": mode_name(draw, ties),
            "draw": draw,
            "ties": ties,
            "count": e.count,
            "per_prompt": 1,
            "seed": e.seed,
            "metrics": {key: value for key, value in metrics.items() if value is not None},
            "texts": [self.model.decode(row) for row in tokens[:SHOWN].tolist()],
            "seconds": round(max(seconds, 0.0), 3),
            "notes": [*getattr(self.model.denoiser, "notes", ())],
        }
        if files:
            about["sources"] = files
        return about

    def _texts(self, draw: Draw) -> tuple[Tensor, Tensor | None]:
        """The setting's texts, and the calls of each."""
        e = self.experiment
        if self.reference:
            return self._held_out()[e.references :], None
        sampler, batch = SAMPLERS.build(self.setting.sampler), batch_on(self.device)
        blank = torch.full((e.count, e.length), self.model.mask, device=self.device)
        model = self.model.denoiser
        decoded = decode_rows(sampler, model, blank, seed=e.seed, batch=batch, draw=draw)
        return decoded.tokens, decoded.calls

    def _held_out(self) -> Int[Tensor, "passages length"]:
        """The held-out passages; the first `references` are kept for MAUVE alone."""
        e = self.experiment
        every = self.models[e.models[0]].held_out
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

    def _readings(self, tokens: Tensor, draw: Draw) -> dict[str, Any]:
        """What our own models say of the texts, and of held-out text along the policy."""
        readings: dict[str, Any] = {}
        if self.experiment.causal is not None:
            scorer = self.models[self.experiment.causal]
            sizes = token_bytes(scorer.tokenizer)[tokens].sum(1)
            lengths = torch.full_like(sizes, tokens.shape[1])
            readings["own"] = Reading(total_nats(scorer, tokens), lengths, sizes)
            if self.reference:
                readings["tested"] = self._tested(scorer)
        replay = self._replayed(draw)
        return readings if replay is None else readings | {"replay": replay}

    def _tested(self, scorer: BookModel) -> dict[str, Any]:
        """What the scorer itself was tested with: the whole split, where its file has that."""
        about = scorer.about
        if about.get("text", {}).get("length") != self.experiment.length:
            return {}  # passages of another length are not as likely, token by token
        return {kind: about.get(f"test_{kind}") for kind in ("bpb", "ppl")}

    def _replayed(self, draw: Draw) -> Replay | None:
        """Held-out text under the policy, where it can be forced through it."""
        e = self.experiment
        if self.reference or draw != Draw() or not e.replayed:
            return None  # a truncated draw gives most text probability zero
        sampler = SAMPLERS.build(self.setting.sampler)
        try:
            check_replayable(sampler, draw)
        except MaskwalkError:
            return None
        passages = self._held_out()[e.references :][: e.replayed]
        batch = batch_on(self.device)
        paths = along_paths(sampler, self.model, passages, e.paths, seed=e.seed, batch=batch)
        sizes = token_bytes(self.model.tokenizer)[passages].sum(1)
        return Replay(paths.over(), paths.over(1), sizes, len(paths.nats), paths.random)

    def _keep(self, tokens: Tensor, folder: Path) -> None:
        """What the judge will need: the texts, references and a tokenizer to write them with."""
        e = self.experiment
        folder.mkdir(parents=True, exist_ok=True)
        _save(folder / REFERENCES, self._held_out()[: e.references])
        tokenizer = self.models[e.models[0]].tokenizer.backend_tokenizer
        write_file(folder / TOKENIZER, tokenizer.to_str().encode())
        _save(folder / f"{e.key(self.setting)}.npy", tokens[: e.judged])


def _save(path: Path, tokens: Tensor) -> None:
    file = io.BytesIO()
    np.save(file, tokens.numpy().astype(np.uint16))
    write_file(path, file.getvalue())


def batch_on(device: str) -> int:
    """How many texts go together on a device."""
    return BATCH if device == "cpu" else ACCELERATOR_BATCH
