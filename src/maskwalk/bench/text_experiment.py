"""Experiments on text: which policies, which draws, how many texts, what is judged.

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
[denoiser]                         # what differs with somebody's masked model (--denoiser hf:…)

A setting becomes a job (texts.py); `maskwalk bench` runs them, `maskwalk text judge` comes after.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from maskwalk import resources
from maskwalk.bench.experiment_shapes import check_experiment
from maskwalk.bench.plan import Job
from maskwalk.bench.records import HELD_OUT, SCHEMA
from maskwalk.bench.subject import contents, name_of, short, weights_of
from maskwalk.decoding.draw import mode_name, read_draw
from maskwalk.errors import MaskwalkError, unknown, whole
from maskwalk.resources import read_file, read_toml
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.table import expand
from maskwalk.specs import Spec, parse
from maskwalk.specs.sources import sources
from maskwalk.worlds.world import WORLDS

SAMPLES, REFERENCES = "samples", "references.npy"
AUTOREGRESSIVE = "left_to_right()"
ALL = "all"
NUMBERS = ("length", "count", "replayed", "paths", "judged", "references", "seed")
LISTS = ("samplers", "exact_only", "judge")
KNOWN = ("kind", "name", "title", "masked", "causal", "presets", *LISTS, *NUMBERS)
GROWING = {"steps", "order"}  # parameters that set a number of calls, whatever the length


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
    texts: str | None = None  # a file, of which the held-out passages of somebody's model come
    options: tuple[str, ...] = ()  # how that is loaded: key=value

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
        cls,
        path: str | Path,
        quick: bool = False,
        models: Path | None = None,
        denoiser: bool = False,
    ) -> "TextExperiment":
        """Reads an experiment file; every spec and number is checked before anything runs.

        With `models` the models are those in `models`/mdm and `models`/ar, and, unless `quick`, the
        table [models] counts; with `denoiser` likewise the table [denoiser].
        """
        given = read_toml(path)
        check_experiment(given, "text", path)
        own = (("models", models is not None and not quick), ("denoiser", denoiser and not quick))
        for table, wanted in (*own, ("quick", quick)):
            other = given.pop(table, {})
            given |= other if wanted else {}
        for key in given:
            if key not in KNOWN:
                raise unknown(f"setting in {path}:", key, KNOWN)
        if given.pop("kind", None) != "text":
            raise MaskwalkError(f'{path} describes no language experiment: kind is not "text".')
        for key in ("masked", "causal", "presets", "samplers"):
            if key not in given:
                raise MaskwalkError(f"{path} has no {key}.")
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

    def with_denoiser(
        self, name: str, options: tuple[str, ...], texts: str | None, length: int | None
    ) -> "TextExperiment":
        """The same with somebody's masked model: no autoregressive one scores, none is compared.

        At another length calls are the same share of it: numbers of steps and orders grow with it.
        """
        grown = 1.0 if length is None else length / self.length

        def left(specs: tuple[str, ...]) -> tuple[str, ...]:
            fitted = (_grown(spec, grown) for spec in specs if spec != AUTOREGRESSIVE)
            return tuple(dict.fromkeys(fitted))

        return replace(
            self,
            title=short(name),
            masked=name,
            causal=None,
            samplers=left(self.samplers),
            exact_only=left(self.exact_only),
            judge=left(self.judge),
            texts=texts,
            options=options,
            length=self.length if length is None else length,
        )

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
                "samples",
                self.says(setting),
                sources=self.sources(setting),
            )
            for number, setting in enumerate(self.settings)
        ]

    def says(self, setting: Setting) -> dict[str, Any]:
        """What a setting's record says of what was run."""
        draw, ties = read_draw(setting.mode)
        fixed = {"world": self.world, "count": self.count, "seed": self.seed}
        return {"sampler": setting.sampler, "draw": draw, "ties": ties, **fixed}

    def files(self, setting: Setting) -> dict[str, str]:
        """The user's files that define the policy or the draw."""
        return sources(setting.sampler, setting.mode)

    def sources(self, setting: Setting) -> dict[str, str]:
        """Everything of the user's that the record depends on: files, and weights by their name."""
        own = {name_of(s): digest for m in self.models for s, digest in contents(m, self.options)}
        return self.files(setting) | own | self._texts()

    def _texts(self) -> dict[str, str]:
        """The file of held-out texts and its hash."""
        if self.texts is None:
            return {}
        return {Path(self.texts).name: hashlib.sha256(read_file(Path(self.texts))).hexdigest()}

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
        weights = [weights_of(source, self.options) for source in self.models]
        about = {"schema": SCHEMA, "weights": weights, **asdict(setting)}
        # `references` decides which held-out passages are left for the rest.
        about |= {n: getattr(self, n) for n in NUMBERS if n != "judged"}
        if files := self.files(setting):
            about["sources"] = sorted(files.values())
        if self.texts is not None or self.options:
            about |= {"texts": sorted(self._texts().values()), "options": self.options}
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _canonical(text: str, judged: bool) -> list[str]:
    if text in (HELD_OUT, ALL) and judged:
        return [text]
    return [SAMPLERS.canonical(one) for one in expand(text)]


def _grown(text: str, factor: float) -> str:
    """A setting whose calls do not grow with the length by themselves, for a longer text."""
    if text in (HELD_OUT, ALL) or factor == 1.0:
        return text
    spec = parse(text)
    grown = {
        key: max(1, round(value * factor)) if key in GROWING else value
        for key, value in spec.kwargs.items()
    }
    return SAMPLERS.canonical(str(replace(spec, kwargs=grown)))
