"""The name of a model of text to the model, for everything that measures one.

zoo:books_mdm, DIR      one of ours, which brings held-out passages (books.py)
hf:PATH, hf:NAME        somebody's checkpoint (loading.py)
FILE.py:function        what a function of yours gives: a `LanguageModel`, or a denoiser such as
                        `Masked(logits, mask_id=…)`; it is called without arguments, or with
                        `device=…` where it has a parameter of that name
"""

import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.language.books import is_books, load_books
from maskwalk.denoisers.language.loading import (
    FILES,
    HF,
    READERS,
    content_hash,
    find,
    load,
    read_of,
)
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.resolve import fingerprint
from maskwalk.errors import MaskwalkError, lacking, shown, unknown, user_code, whole
from maskwalk.specs import load_plugin
from maskwalk.specs.sources import code_of

TEXTS = ("tokenizer", "kind", "mask", "end_of_text", "precision", "device_map")
FLAGS = ("shifted", "check", "trust_remote_code")
OPTIONS = (*TEXTS, *FLAGS, "rows")
OURS = ("rows", "precision")  # what a model of ours can be told
Options = Mapping[str, Any]


def is_text_model(name: str) -> bool:
    """Whether a name stands for a model of text: ours, `hf:…`, or FILE.py:function."""
    return name.startswith(HF) or _function(name) is not None or is_books(name)


def as_language_model(given: Any) -> LanguageModel:
    """A language model as it is, or the model of text that a name stands for; or a sentence."""
    if isinstance(given, LanguageModel):
        return given
    if isinstance(given, str) and is_text_model(given):
        return text_model(given)
    raise MaskwalkError(
        "A model of text: a LanguageModel (maskwalk.load, maskwalk.load_books), or a name such as "
        f"'zoo:books_mdm', 'hf:NAME' or 'FILE.py:function', not {shown(given)}."
    )


def text_model(name: str, *, device: str = "cpu", options: Options | None = None) -> LanguageModel:
    """The model a name stands for; `options` are those of `load`, for `hf:` models."""
    told = dict(options or {})
    for key in told:
        if key not in OPTIONS:
            raise unknown("option of a model of text:", key, OPTIONS)
    if name.startswith(HF):
        return load(name, device=device, **told)
    function = _function(name)
    if function is not None:
        if told:
            raise MaskwalkError(
                f"{name} makes the model itself: leave out {', '.join(told)}, and set it there."
            )
        return _made(name, *function, device)
    if other := [key for key in told if key not in OURS]:
        raise MaskwalkError(
            f"{name} knows its tokenizer, kind and mask: leave out {', '.join(other)}."
        )
    return load_books(name, device=device, **told)


def read_options(given: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as options of `load`."""
    options: dict[str, Any] = {}
    for word in given:
        key, sign, value = (part.strip() for part in word.partition("="))
        if not sign or key not in OPTIONS:
            raise unknown("option of a model, key=value:", word, OPTIONS)
        if key in FLAGS:
            if value.lower() not in ("true", "false"):
                raise MaskwalkError(f"{key} is true or false, not {value!r}.")
            options[key] = value.lower() == "true"
        elif key == "rows":
            number = int(value) if value.isdecimal() and len(value) < 10 else 0
            options[key] = whole("rows", number, 1, 65_536)
        else:
            options[key] = value
    return options


def read_pairs(text: str) -> dict[str, str]:
    """`a=b,c=f(x=1, y=2)`, the harness's --model_args, as a table: commas inside brackets belong to
    a spec."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign in ",;" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    found: dict[str, str] = {}
    for part in filter(str.strip, parts):
        key, equals, value = part.partition("=")
        if not equals:
            raise MaskwalkError(f"--model_args is key=value,key=value: not {part.strip()!r}.")
        found[key.strip()] = value.strip()
    return found


def text_weights(name: str, options: Options | None = None) -> dict[str, str]:
    """What tells two models of one name apart: name -> hash of the user's file, or of weights,
    settings and tokenizer."""
    function = _function(name)
    if function is not None:
        return code_of(_named(name, *function))
    if not name.startswith(HF):
        return {name: str(fingerprint(name))}
    told = (options or {}).get("tokenizer")
    places = [(find(name), FILES)] + ([] if told is None else [(find(told), READERS)])
    files = tuple(file for place, kinds in places for file in read_of(place, kinds))
    return {name: _content(files, tuple(file.stat().st_mtime_ns for file in files))}


@lru_cache(maxsize=8)
def _content(files: tuple[Path, ...], changed: tuple[int, ...]) -> str:
    return content_hash(files)


def _function(name: str) -> tuple[str, str] | None:
    """(file, function) of FILE.py:function."""
    path, sign, function = name.rpartition(":")
    return (path, function) if sign and path.endswith(".py") else None


def _named(name: str, path: str, function: str) -> Any:
    """What a file calls so."""
    module = _module(path, Path(path).stat().st_mtime_ns if Path(path).is_file() else 0)
    if not function or not hasattr(module, function):
        own = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise unknown(f"function in {path}:", function, own)
    return getattr(module, function)


@lru_cache(maxsize=8)
def _module(path: str, changed: int) -> Any:
    return load_plugin(path)


def _made(name: str, path: str, function: str, device: str) -> LanguageModel:
    """What the user's function gives, as a language model."""
    maker = _named(name, path, function)
    if isinstance(maker, LanguageModel) or _answers(maker):
        return _as_model(name, maker, device)
    if not callable(maker):
        raise MaskwalkError(f"{name} is {shown(maker)}, no function that gives a model.")
    try:
        takes = inspect.signature(maker).parameters
        told = {"device": device} if "device" in takes else {}
        inspect.signature(maker).bind(**told)
    except (TypeError, ValueError):
        raise MaskwalkError(
            f"{name} is called without arguments (or with device=…) and gives the model: a "
            "maskwalk.LanguageModel, or a denoiser such as maskwalk.Masked(logits, mask_id=…)."
        ) from None
    with user_code(f"in {name}"):
        return _as_model(name, maker(**told), device)


def _answers(made: Any) -> bool:
    return not inspect.isclass(made) and not lacking(made, Denoiser)


def _as_model(name: str, made: Any, device: str) -> LanguageModel:
    if isinstance(made, LanguageModel):
        return made
    if _answers(made):
        return LanguageModel(made, None, device=device)
    raise MaskwalkError(
        f"{name} gives {shown(made)}; it must give a maskwalk.LanguageModel, or a denoiser such "
        "as maskwalk.Masked(logits, mask_id=…, vocab_size=…)."
    )
