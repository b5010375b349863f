"""How the name of a denoiser becomes one.

oracle              exact conditionals of the walk law
zoo:st_er_deg7      a shipped model; it brings its graph, walk law, length and graph seed
runs/mine           a directory that `maskwalk train` wrote; likewise
name(key=value)     anything registered from outside with @DENOISERS.register
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.files import load_description, load_pretrained
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.resources import zoo_manifest
from maskwalk.specs import Registry, parse
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw
from maskwalk.worlds.walks.oracles import oracle_for

DENOISERS: Registry[Denoiser] = Registry("denoiser", context=("law", "device"))
ZOO = "zoo:"
# What a walk law is made of, and what is taken where nothing is said.
PLACE: dict[str, Any] = {
    "graph": "st_er(nodes=500, p=0.01)",
    "graph_seed": 0,
    "walk": "lazy(stay=0.125)",
    "length": 24,
}


@DENOISERS.register("oracle")
def oracle(law: WalkLaw) -> Denoiser:
    """Exact conditionals of the walk law: a perfect denoiser, no training."""
    return oracle_for(law)


def is_trained(name: str) -> bool:
    """Whether the name stands for a trained model rather than a registered denoiser."""
    return name.startswith(ZOO) or (name not in DENOISERS and Path(name).is_dir())


def trained_on(name: str) -> dict[str, Any]:
    """What a trained model says of itself: graph, walk, length, seeds, scores."""
    if not name.startswith(ZOO):
        return dict(load_description(Path(name))["about"])
    models = zoo_manifest()
    if name.removeprefix(ZOO) not in models:
        raise unknown("zoo model", name.removeprefix(ZOO), models)
    return models[name.removeprefix(ZOO)]


def of_text(name: str) -> bool:
    """Whether a trained model is one of text, which has no graph."""
    return is_trained(name) and "graph" not in trained_on(name)


def settle(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Graph, graph seed, walk and length: from the model, from what is given, or the defaults.

    A trained model knows only its own walks, so a setting that contradicts it is an error.
    """
    canonical = {"graph": GRAPHS.canonical, "walk": WALKS.canonical}
    settled = {}
    if not is_trained(name) or of_text(name):
        _check_name(name)
    known = trained_on(name) if is_trained(name) else {}
    for key, default in PLACE.items():
        value = given.get(key)
        value = known.get(key, default) if value is None else value
        settled[key] = canonical[key](value) if key in canonical else value
        if key in known and settled[key] != known[key]:
            raise MaskwalkError(
                f"{name} was trained with {key} {known[key]}, not {settled[key]}; leave "
                f"{key} out, or choose another denoiser."
            )
    return settled


def build_denoiser(name: str, law: WalkLaw, device: str = "cpu") -> Denoiser:
    """The denoiser a name stands for, for walks of `law`."""
    if not is_trained(name):
        _check_name(name)
        return DENOISERS.build(name, law=law, device=device)
    denoiser = load_pretrained(name).denoiser(device=device)
    if denoiser.vocab_size != law.vocab_size:
        raise MaskwalkError(
            f"{name} knows {denoiser.vocab_size} tokens; the walks have {law.vocab_size} nodes."
        )
    return denoiser


def _check_name(name: str) -> None:
    """A sentence for the likeliest mistakes: a model of text, a directory that is not there."""
    if name.startswith("hf:") or of_text(name):
        raise MaskwalkError(
            f"{name} is a model of text, and walks on a graph are not text; use "
            f"`maskwalk generate --denoiser {name} --prompt …` (docs/your_model.md)."
        )
    try:
        known = parse(name).name in DENOISERS
    except MaskwalkError:
        known = False
    if not known:
        raise MaskwalkError(
            f"There is no denoiser {name!r}: neither a directory that `maskwalk train` wrote, nor "
            f"zoo:NAME (see `maskwalk zoo`), nor one of {', '.join(DENOISERS)}."
        )


def fingerprint(name: str) -> str | None:
    """What tells two models of one name apart: the hash of a trained model's weights."""
    if name.startswith(ZOO):
        return str(trained_on(name)["sha256"])
    if is_trained(name):
        file = Path(name) / "model.safetensors"
        return _digest(file, file.stat().st_mtime_ns) if file.exists() else None
    return None


@lru_cache(maxsize=16)
def _digest(file: Path, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def denoiser_notes(denoiser: Denoiser) -> tuple[str, ...]:
    """What a reader of the record should know about the denoiser's answers."""
    return tuple(getattr(denoiser, "notes", ()))
