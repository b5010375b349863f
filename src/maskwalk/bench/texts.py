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
from maskwalk.analysis.paths import along_paths, batch_for
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.records import HELD_OUT, SCHEMA, Record
from maskwalk.bench.subject import is_foreign, name_of, weights_of
from maskwalk.bench.text_experiment import REFERENCES, Setting, TextExperiment
from maskwalk.decoding.draw import DRAWS, Draw, mode_name, read_draw
from maskwalk.decoding.shared import decode_rows
from maskwalk.denoisers.language.books import BookModel
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.source import read_options, text_model
from maskwalk.errors import MaskwalkError
from maskwalk.resources import write_file
from maskwalk.samplers import SAMPLERS
from maskwalk.training.fit_text import total_nats
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.text.held_out import Passages, passages_for
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


def check_texts(experiment: TextExperiment, device: str) -> None:
    """Refuses an experiment whose model does not load or has too few passages, before it runs."""
    _Setting(experiment, experiment.settings[0], device)._held_out()


@lru_cache(maxsize=2)
def _models(
    masked: str | None,
    causal: str | None,
    device: str,
    weights: tuple[str | None, ...],
    options: tuple[str, ...] = (),
) -> dict[str, LanguageModel]:
    """The models of an experiment by their sources, checked against each other."""
    sources = [source for source in (masked, causal) if source is not None]
    told = read_options(options)
    models = {source: text_model(source, device=device, options=told) for source in sources}
    for source, kind in ((masked, False), (causal, True)):
        if source is not None and models[source].causal != kind:
            name = "autoregressive" if kind else "masked"
            raise MaskwalkError(f"{source} is not the {name} model it should be.")
    if any(model.tokenizer is None for model in models.values()):
        raise MaskwalkError("An experiment on text needs a tokenizer: give a LanguageModel.")
    vocabularies = [model.tokenizer.get_vocab() for model in models.values()]
    if any(one != vocabularies[0] for one in vocabularies):
        raise MaskwalkError("The models have different tokenizers: they cannot be compared.")
    return models


@lru_cache(maxsize=2)
def _world(source: str) -> Text | None:
    return None if is_foreign(source) else Text(source)


@lru_cache(maxsize=1)
def _read(model: LanguageModel, file: str, length: int) -> Passages:
    """The passages of a user's file, for somebody's model."""
    return passages_for(model, file, length)


@dataclass(frozen=True)
class _Setting:
    """One setting of an experiment at work on a device."""

    experiment: TextExperiment
    setting: Setting
    device: str

    @property
    def models(self) -> dict[str, LanguageModel]:
        """The experiment's models."""
        e = self.experiment
        weights = tuple(weights_of(source, e.options) for source in e.models)  # may be retrained
        return _models(e.masked, e.causal, self.device, weights, e.options)

    @property
    def model(self) -> LanguageModel:
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
            masked=(~self._passages().given[0]).sum().expand(len(tokens)),
            seed=e.seed,
            readings=self._readings(tokens, DRAWS.build(draw)),
        )
        world = e.world
        metrics = measure(sample, METRICS.default(world))
        if samples is not None:
            self._keep(tokens, samples)
        name = name_of(e.model(self.setting))
        if isinstance(self.model, BookModel):
            name += f" ({self.model.about.get('parameters', 0) / 1e6:.1f} M parameters)"
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
        sampler = SAMPLERS.build(self.setting.sampler)
        batch = batch_for(self.model, e.length, batch_on(self.device))
        around = self._passages()
        first_row = torch.where(around.given[:1], around.tokens[:1], self.model.mask)
        blank = first_row.to(self.device).expand(e.count, -1)
        model = self.model.denoiser
        decoded = decode_rows(sampler, model, blank, seed=e.seed, batch=batch, draw=draw)
        return decoded.tokens, decoded.calls

    def _passages(self) -> Passages:
        """Every held-out passage: those the model brings, or those of the user's file."""
        e = self.experiment
        model = self.models[e.models[0]]
        held_out = getattr(model, "held_out", None)
        if e.texts is None and held_out is not None:
            tokens = held_out[:, : e.length]
            sizes = token_bytes(model.tokenizer)[tokens].sum(1)
            return Passages(tokens, torch.zeros_like(tokens).bool(), sizes)
        if e.texts is None:
            return passages_for(model, None)  # says what to give
        return _read(model, e.texts, e.length)

    def _held_out(self) -> Int[Tensor, "passages length"]:
        """The held-out passages; the first `references` are kept for MAUVE alone."""
        e = self.experiment
        every = self._passages().tokens
        others = FEWEST if e.judge else 1
        if every.shape[1] < e.length or len(every) < e.references + others:
            raise MaskwalkError(
                f"{e.models[0]} has {len(every)} held-out passages of {every.shape[1]} tokens: too "
                f"few for {e.references} references and {others} more of {e.length} tokens. Lower "
                "references or length in the experiment file, or take a model with more (`maskwalk "
                "text train` keeps up to 4,096) or a longer file of texts."
            )
        return every

    def _readings(self, tokens: Tensor, draw: Draw) -> dict[str, Any]:
        """What our own models say of the texts, and of held-out text along the policy."""
        readings: dict[str, Any] = {}
        if self.experiment.causal is not None:
            scorer = self.models[self.experiment.causal]
            assert isinstance(scorer, BookModel)
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
        self._held_out()
        every = self._passages()
        some = slice(e.references, e.references + e.replayed)
        batch = batch_for(self.model, e.length, batch_on(self.device))
        paths = along_paths(
            sampler,
            self.model,
            every.tokens[some],
            e.paths,
            seed=e.seed,
            batch=batch,
            known=every.given[some],
        )
        sizes = every.sizes[some]
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
    wide = int(tokens.max()) > np.iinfo(np.uint16).max
    np.save(file, tokens.numpy().astype(np.uint32 if wide else np.uint16))
    write_file(path, file.getvalue())


def batch_on(device: str) -> int:
    """How many texts go together on a device."""
    return BATCH if device == "cpu" else ACCELERATOR_BATCH
