"""The language experiment as a file: which policies, which draws, how many texts, what is judged.

(A TOML file; docs/language.md.)

kind = "text"
masked = "zoo:books_mdm"           # the model of every policy but left_to_right
causal = "zoo:books_ar"            # that one, and the model by which texts are scored
presets = ["exact", "top_p=0.9"]   # how tokens are drawn
samplers = ["bisection(order=4)", …]
exact_only = ["random(block=1)"]   # more samplers, slow ones: only with the first of the presets
judge = ["bisection(order=4)"]     # of these, which the judge reads (slow on a CPU); or ["all"]
[quick]                            # what differs in a quick run
[models]                           # what differs with models of your own (--models DIR)
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from maskwalk.bench.experiment import read_toml
from maskwalk.decoding.draw import Draw
from maskwalk.denoisers.resolve import fingerprint
from maskwalk.errors import MaskwalkError, unknown, whole
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.table import expand

SCHEMA = 1
HELD_OUT = "held_out"  # stands where a sampler would: the text every policy should be like
AUTOREGRESSIVE = "left_to_right()"
ALL = "all"
NUMBERS = ("length", "count", "replayed", "paths", "judged", "references", "seed")
LISTS = ("samplers", "exact_only", "judge")
KNOWN = ("kind", "name", "title", "masked", "causal", "presets", *LISTS, *NUMBERS)


@dataclass(frozen=True)
class Setting:
    """A policy (or held-out text) and how tokens are drawn."""

    sampler: str
    preset: str


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
    paths: int = 4  # how often each, through a policy that throws dice
    judged: int = 256  # texts of a setting that the judge reads
    references: int = 512  # held-out passages that MAUVE compares with
    seed: int = 0

    def __post_init__(self) -> None:
        for name in NUMBERS:
            whole(name, getattr(self, name), 0 if name in ("seed", "replayed", "judged") else 1)
        if not self.presets:
            raise MaskwalkError("presets is empty: name at least one draw, such as exact.")
        for preset in self.presets:
            draw_of(preset)
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
        found = cls(
            name=name,
            title=given.pop("title", name),
            presets=tuple(given.pop("presets")),
            **given,
        )
        return found if models is None else found.with_models(models)

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
        found = self.causal if setting.sampler == AUTOREGRESSIVE else self.masked
        if found is None:
            raise MaskwalkError(f"There is no model for {setting.sampler}.")
        return found

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


def draw_of(preset: str) -> Draw:
    """exact, or one or more of top_p=…, min_p=…, temperature=… joined by commas."""
    if preset == "exact":
        return Draw()
    known = ("top_p", "min_p", "temperature")
    options: dict[str, Any] = {}
    for part in preset.split(","):
        name, _, value = part.strip().partition("=")
        if name not in known:
            raise unknown("draw (exact, or top_p=0.9):", name, known)
        try:
            options[name] = float(value)
        except ValueError:
            raise MaskwalkError(f"{name} must be a number, not {value!r}.") from None
    return Draw(**options)
