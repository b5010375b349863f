"""Experiments on text: which policies, which draws, how many texts, what is judged; and their jobs.

(A TOML file; docs/language.md.)

kind = "text"
masked = "zoo:books_mdm"           # the model of every policy but left_to_right
causal = "zoo:books_ar"            # that one, and the model by which texts are scored
presets = ["exact", "draw(top_p=0.9)"]   # how tokens are drawn
samplers = ["bisection(order=4)", …]
exact_only = ["random(block=1)"]   # more samplers, slow ones: only with the first of the presets
judge = ["bisection(order=4)"]     # of these, which the judge reads (slow on a CPU); or ["all"]
[quick]                            # what differs in a quick run
[models]                           # what differs with models of your own (--models DIR)

A setting's job samples texts, scores them and replays held-out text. The judge comes afterwards
(judging.py), possibly on another machine, and reads what is kept for it:

    DIR/records.jsonl                     the records
    DIR/samples/KEY.npy                   the first texts of a setting, as tokens
    DIR/samples/references.npy            held-out passages that MAUVE compares with
    DIR/samples/tokenizer.json            what turns tokens into text
"""

import hashlib
import io
import json
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk import __version__, resources
from maskwalk.analysis.paths import along_paths
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.records import HELD_OUT, SCHEMA, Record
from maskwalk.bench.run import Job
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import DRAWS, Draw, mode_name, read_draw
from maskwalk.denoisers.language.books import BookModel, load_books
from maskwalk.denoisers.resolve import ZOO, fingerprint
from maskwalk.errors import MaskwalkError, unknown, whole
from maskwalk.resources import read_toml, write_file
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.table import expand
from maskwalk.specs import Spec
from maskwalk.streams import Streams
from maskwalk.training.fit_text import total_nats
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.text.mauve import FEWEST
from maskwalk.worlds.text.metrics import Reading, Replay
from maskwalk.worlds.text.passages import TOKENIZER, token_bytes
from maskwalk.worlds.text.world import Text
from maskwalk.worlds.world import WORLDS

SAMPLES, REFERENCES = "samples", "references.npy"
SHOWN = 3  # texts a record carries
BATCH, ACCELERATOR_BATCH = 32, 1024  # texts decoded at once; results do not depend on it
AUTOREGRESSIVE = "left_to_right()"
ALL = "all"
NUMBERS = ("length", "count", "replayed", "paths", "judged", "references", "seed")
LISTS = ("samplers", "exact_only", "judge")
KNOWN = ("kind", "name", "title", "masked", "causal", "presets", *LISTS, *NUMBERS)


@dataclass(frozen=True)
class Setting:
    """A policy (or held-out text) and how tokens are drawn."""

    sampler: str
    mode: str  # a preset, or a draw's spec


@dataclass(frozen=True)
class TextExperiment:
    """Everything the records depend on."""

    name: str
    title: str
    masked: str | None
    causal: str | None  # without it texts are not scored by a model of our own
    presets: tuple[str, ...]
    samplers: tuple[str, ...]
    exact_only: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    length: int = 256
    count: int = 1024  # texts of every setting
    replayed: int = 256  # held-out passages forced through every policy
    paths: int = 4  # how often each, through a stochastic policy
    judged: int = 256  # texts of a setting that the judge reads
    references: int = 512  # held-out passages that MAUVE compares with
    seed: int = 0

    def __post_init__(self) -> None:
        for name in NUMBERS:
            whole(name, getattr(self, name), 0 if name in ("seed", "replayed", "judged") else 1)
        if not self.presets:
            raise MaskwalkError("presets is empty: name at least one draw, such as exact.")
        for preset in self.presets:
            read_draw(preset)
        listed = (*self.samplers, *self.exact_only)
        for spec in self.judge:
            if spec not in (*listed, HELD_OUT, ALL):
                raise unknown("judged sampler, none of those listed:", spec, listed)

    @classmethod
    def load(
        cls, path: str | Path, quick: bool = False, models: Path | None = None
    ) -> "TextExperiment":
        """Reads an experiment file; every spec and number is checked before anything runs.

        With `models` the models are those in `models`/mdm and `models`/ar, and, unless `quick`, the
        table [models] counts.
        """
        given = read_toml(path)
        for table, wanted in (("models", models is not None and not quick), ("quick", quick)):
            other = given.pop(table, {})
            if not isinstance(other, dict):
                raise MaskwalkError(f"{table} in {path} must be a table, [{table}], not {other!r}.")
            given |= other if wanted else {}
        for key in given:
            if key not in KNOWN:
                raise unknown(f"setting in {path}:", key, KNOWN)
        if given.pop("kind", None) != "text":
            raise MaskwalkError(f'{path} describes no language experiment: kind is not "text".')
        for key in ("masked", "causal", "presets", "samplers"):
            if key not in given:
                raise MaskwalkError(f"{path} has no {key}.")
        for key in ("name", "title", "masked", "causal"):
            if not isinstance(given.get(key, ""), str):
                raise MaskwalkError(f"{key} in {path} must be a text, not {given[key]!r}.")
        for key in ("presets", *LISTS):
            every = given.get(key, [])
            if not isinstance(every, list) or not all(isinstance(text, str) for text in every):
                raise MaskwalkError(f"{key} in {path} must be a list of texts, not {every!r}.")
        for key in LISTS:
            every = [s for text in given.get(key, []) for s in _canonical(text, key == "judge")]
            given[key] = tuple(dict.fromkeys(every))
        name = given.pop("name", Path(path).stem)
        experiment = cls(
            name=name,
            title=given.pop("title", name),
            presets=tuple(mode_name(*read_draw(text)) for text in given.pop("presets")),
            **given,
        )
        return experiment if models is None else experiment.with_models(models)

    def with_models(self, folder: Path) -> "TextExperiment":
        """The same with the models in `folder`/mdm and `folder`/ar."""
        return replace(self, masked=str(folder / "mdm"), causal=str(folder / "ar"))

    @property
    def settings(self) -> list[Setting]:
        """Held-out text first, then every policy under every draw, then the slow ones."""
        both = [Setting(s, p) for s in (HELD_OUT, *self.samplers) for p in self.presets]
        both += [Setting(s, self.presets[0]) for s in self.exact_only]
        return list(dict.fromkeys(both))

    def reads(self, setting: Setting) -> bool:
        """Whether the judge reads this setting's texts."""
        read = setting.sampler in self.judge or ALL in self.judge
        return read or (setting.sampler == HELD_OUT and bool(self.judge))

    @property
    def models(self) -> list[str]:
        """The models in use."""
        return [source for source in (self.masked, self.causal) if source is not None]

    def model(self, setting: Setting) -> str:
        """The model behind a setting; held-out text comes with either."""
        if setting.sampler == HELD_OUT:
            return self.models[0]
        source = self.causal if setting.sampler == AUTOREGRESSIVE else self.masked
        if source is None:
            raise MaskwalkError(f"There is no model for {setting.sampler}.")
        return source

    @property
    def world(self) -> str:
        """The world of all settings; a directory goes by its name: paths mean nothing elsewhere."""
        source = name_of(self.models[0])
        return WORLDS.canonical(str(Spec("text", (), {"source": source, "length": self.length})))

    def jobs(self, out: Path) -> list[Job]:
        """A job for every setting."""
        commit = resources.commit()
        return [
            Job(
                self.key(setting),
                "text",
                {
                    "experiment": asdict(self),
                    "setting": asdict(setting),
                    "samples": str(out / SAMPLES) if self.reads(setting) else None,
                },
                {
                    "experiment": self.name,
                    "title": self.title,
                    "cell": number,
                    "commit": commit,
                },
                (self.samples(out, setting),) if self.reads(setting) else (),
            )
            for number, setting in enumerate(self.settings)
        ]

    def samples(self, out: Path, setting: Setting) -> Path:
        """Where the texts of a setting are kept for a judge."""
        return out / SAMPLES / f"{self.key(setting)}.npy"

    @classmethod
    def from_json(cls, about: dict[str, Any]) -> "TextExperiment":
        """What `asdict` wrote, after a journey through JSON."""
        lists = {key: tuple(value) for key, value in about.items() if isinstance(value, list)}
        return cls(**{**about, **lists})

    def key(self, setting: Setting) -> str:
        """A name for the setting with all its numbers, the same wherever it is computed."""
        weights = [fingerprint(source) for source in self.models]
        about = {"schema": SCHEMA, "weights": weights, **asdict(setting)}
        # `references` decides which held-out passages are left for the rest.
        about |= {n: getattr(self, n) for n in NUMBERS if n != "judged"}
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _canonical(text: str, judged: bool) -> list[str]:
    if text in (HELD_OUT, ALL) and judged:
        return [text]
    return [SAMPLERS.canonical(one) for one in expand(text)]


def name_of(source: str) -> str:
    """A model's name in records."""
    return source if source.startswith(ZOO) else Path(source).name


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
        return {
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
            "seconds": round(seconds, 3),
            "notes": [*getattr(self.model.denoiser, "notes", ())],
        }

    def _texts(self, draw: Draw) -> tuple[Tensor, Tensor | None]:
        """The setting's texts, and the calls of each."""
        e = self.experiment
        if self.reference:
            return self._held_out()[e.references :], None
        sampler, batch = SAMPLERS.build(self.setting.sampler), batch_on(self.device)
        tokens, calls = [], []
        for first in range(0, e.count, batch):
            some = torch.arange(first, min(first + batch, e.count), device=self.device)
            blank = torch.full((len(some), e.length), self.model.mask, device=self.device)
            streams = Streams(e.seed, some)
            decoded = decode(sampler, self.model.denoiser, blank, streams=streams, draw=draw)
            tokens.append(decoded.tokens.cpu())
            calls.append(decoded.calls.cpu())
        return torch.cat(tokens), torch.cat(calls)

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
