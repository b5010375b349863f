"""What is measured on text: a model and the passages it has not seen, as JSON a job can carry."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from maskwalk.denoisers.language.books import is_books
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.source import (
    is_text_model,
    read_options,
    text_model,
    text_weights,
)
from maskwalk.denoisers.resolve import ZOO, fingerprint, own_weights
from maskwalk.specs import Spec
from maskwalk.worlds.text.held_out import Passages, passages_for
from maskwalk.worlds.world import WORLDS


@dataclass(frozen=True)
class Subject:
    """A model of text by its name, how it is loaded, and `count` passages after `skip`."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    texts: str | None = None  # a file; None: the passages the model brings
    length: int | None = None
    skip: int = 0
    count: int = 32

    def load(self, device: str = "cpu") -> tuple[LanguageModel, Passages]:
        """The model and its passages; read once in a process."""
        told, version = tuple(sorted(self.options.items())), tuple(sorted(self.sources.items()))
        model, passages = _load(self.model, told, self.texts, self.length, device, version)
        return model, passages.part(self.skip, self.count)

    @property
    def sources(self) -> dict[str, str]:
        """What its numbers depend on beside the package: weights and files, by their hashes."""
        known = dict(text_weights(self.model, self.options))
        known = {short(name): digest for name, digest in known.items()}
        if self.texts is not None and Path(self.texts).is_file():
            file = Path(self.texts)
            known[file.name] = _digest(file, file.stat().st_mtime_ns)
        return known

    @property
    def about(self) -> dict[str, Any]:
        """What a key is made of: everything but names of folders."""
        told = {"options": dict(self.options), "length": self.length, "skip": self.skip}
        return told | {"count": self.count, "sources": sorted(self.sources.values())}

    @property
    def name(self) -> str:
        """The model in records: a path goes by its last part."""
        return short(self.model)

    def world(self, length: int) -> str:
        """The world of its records."""
        return WORLDS.canonical(str(Spec("text", (), {"source": None, "length": length})))


def short(name: str) -> str:
    """A model's name without the folders it lies in, which mean nothing elsewhere."""
    if name.startswith("zoo:"):
        return name
    prefix, name = ("hf:", name.removeprefix("hf:")) if name.startswith("hf:") else ("", name)
    path, sign, function = name.rpartition(":")
    if sign and path.endswith(".py"):
        return f"{Path(path).name}:{function}"
    return prefix + (Path(name).name if Path(name).exists() else name)


def name_of(source: str) -> str:
    """A model's name in records."""
    if is_foreign(source):
        return short(source)
    return source if source.startswith(ZOO) else Path(source).name


def is_foreign(source: str) -> bool:
    """Whether this is a model of somebody else's: hf:…, or FILE.py:function."""
    return is_text_model(source) and not is_books(source)


def weights_of(source: str, options: Iterable[str] = ()) -> str | None:
    """What tells two models of one name apart; `options` say how a foreign one is loaded."""
    if is_foreign(source):
        return next((digest for _, digest in contents(source, options)), None)
    return fingerprint(source)


def contents(source: str, options: Iterable[str] = ()) -> Iterable[tuple[str, str]]:
    """The same with the name of each."""
    told = read_options(options) if is_foreign(source) else None
    return (own_weights(source) if told is None else text_weights(source, told)).items()


@lru_cache(maxsize=1)
def _load(
    model: str,
    options: tuple[tuple[str, Any], ...],
    texts: str | None,
    length: int | None,
    device: str,
    version: tuple[Any, ...],
) -> tuple[LanguageModel, Passages]:
    loaded = _loaded(model, options, device, version)
    return loaded, passages_for(loaded, texts, length)


@lru_cache(maxsize=1)
def _loaded(
    model: str, options: tuple[tuple[str, Any], ...], device: str, version: tuple[Any, ...]
) -> LanguageModel:
    return text_model(model, device=device, options=dict(options))


@lru_cache(maxsize=16)
def _digest(file: Path, changed: int) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
