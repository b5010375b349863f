"""How the name of a denoiser becomes one, and which world it knows.

oracle              exact conditionals of the world
zoo:st_er_deg7      a shipped model; it brings its world (zoo:books_mdm: text)
runs/mine           a directory that `maskwalk train` or `maskwalk text train` wrote; likewise
zoo:NAME@bfloat16   the same with another arithmetic (`PRECISIONS`), on an accelerator
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
from maskwalk.specs import Registry, Spec, parse
from maskwalk.worlds.walks.world import walk_parts, walk_world
from maskwalk.worlds.world import WORLDS, World

DENOISERS: Registry[Denoiser] = Registry("denoiser", context=("world", "device"), makes=Denoiser)
ZOO = "zoo:"
MODEL_FILES = ("model.safetensors", "model.json")
WALK = ("graph", "walk", "length", "graph_seed")  # what a world of walks is made of
# What may stand behind the @ of a trained model, and how its network then computes.
PRECISIONS = {
    "float32": {"precision": "float32"},
    "float16": {"precision": "float16"},
    "bfloat16": {"precision": "bfloat16"},
    "autocast": {"precision": "bfloat16", "logits": "bfloat16"},  # as public code runs it
}


@DENOISERS.register("oracle")
def oracle(world: World) -> Denoiser:
    """Exact conditionals of the world: a perfect denoiser, no training."""
    denoiser = world.oracle()
    if denoiser is None:
        raise MaskwalkError(
            "This world has no oracle: nobody can compute its conditionals. Name another denoiser."
        )
    return denoiser


def split_precision(name: str) -> tuple[str, str | None]:
    """(the model, what stands behind its @): `zoo:two_b8@bfloat16` is two of them."""
    model, at, precision = name.rpartition("@")
    if not at or not (model.startswith(ZOO) or Path(model).is_dir()) or Path(name).is_dir():
        return name, None
    if precision not in PRECISIONS:
        raise unknown(f"precision of {model}:", precision, PRECISIONS)
    return model, precision


def is_trained(name: str) -> bool:
    """Whether the name stands for a trained model rather than a registered denoiser."""
    name, _ = split_precision(name)
    return name.startswith(ZOO) or (name not in DENOISERS and Path(name).is_dir())


def trained_on(name: str) -> dict[str, Any]:
    """What a trained model says of itself: graph, walk, length, seeds, scores."""
    name, _ = split_precision(name)
    if not name.startswith(ZOO):
        return dict(load_description(Path(name))["about"])
    models = zoo_manifest()
    if name.removeprefix(ZOO) not in models:
        raise unknown("zoo model", name.removeprefix(ZOO), models)
    return models[name.removeprefix(ZOO)]


def of_text(name: str) -> bool:
    """Whether a trained model is one of text."""
    return is_trained(name) and not {"graph", "world"} & set(trained_on(name))


def world_of(name: str) -> str | None:
    """The canonical spec of the world a trained model knows; None if it is not trained."""
    if not is_trained(name):
        check_name(name)
        return None
    about = trained_on(name)
    if of_text(name):
        return _text_world(name)
    if "world" in about:
        return WORLDS.canonical(about["world"])
    return walk_world(**{key: about.get(key) for key in WALK})


def resolve_world(denoiser: str, given: dict[str, Any]) -> str:
    """The world to work in: the model's own, the one given, or the default walks.

    `given` may name a `world`, or parts of one of walks. A trained model knows only its own world,
    so a setting that contradicts it is an error.
    """
    parts = {key: given[key] for key in WALK if given.get(key) is not None}
    known, world = world_of(denoiser), given.get("world")
    if world is not None and parts:
        raise MaskwalkError(
            f"Give a world, or {' and '.join(parts)} of a world of walks, not both."
        )
    if known is None:
        return walk_world(**parts) if world is None else WORLDS.canonical(world)
    if of_text(denoiser):  # as many tokens of its passages as one likes
        length = parts.pop("length", None)
        if world is not None and parse(WORLDS.canonical(world)).name == "text":
            length = parse(WORLDS.canonical(world)).kwargs.get("length")
        known = _text_world(denoiser, length)
    if world is not None and WORLDS.canonical(world) != known:
        raise MaskwalkError(
            f"{denoiser} was trained in the world {known}, not in {WORLDS.canonical(world)}; leave "
            "world out, or choose another denoiser."
        )
    if not parts:
        return known
    own = walk_parts(known)
    if own is None:
        raise MaskwalkError(
            f"{denoiser} was trained in the world {known}, which has no {' and no '.join(parts)}."
        )
    wanted = walk_parts(walk_world(**{**own, **parts})) or {}
    for key in parts:
        if wanted[key] != own[key]:
            raise MaskwalkError(
                f"{denoiser} was trained with {key} {own[key]}, not {parts[key]}; leave {key} out, "
                "or choose another denoiser."
            )
    return known


def build_denoiser(name: str, world: World, device: str = "cpu") -> Denoiser:
    """The denoiser a name stands for, for sequences of `world`."""
    if not is_trained(name):
        check_name(name)
        return DENOISERS.build(name, world=world, device=device)
    denoiser = trained_denoiser(name, device)
    if denoiser.vocab_size != world.vocab_size:
        raise MaskwalkError(
            f"{name} knows {denoiser.vocab_size} tokens; the world has {world.vocab_size}."
        )
    return denoiser


def trained_denoiser(name: str, device: str = "cpu") -> Denoiser:
    """The denoiser of a trained model's name."""
    model, precision = split_precision(name)
    _check_precision(name, precision, device)
    trained_on(name)  # or a sentence that lists the zoo
    if of_text(name):
        from maskwalk.denoisers.language.books import load_books  # needs the extra `language`

        denoiser: Denoiser = load_books(model, device=device, precision=precision).denoiser
        return denoiser
    options = PRECISIONS[precision] if precision else {}
    return load_pretrained(model).denoiser(device=device, **options)


def _check_precision(name: str, precision: str | None, device: str) -> None:
    """Narrow products are for accelerators: on some processors they end the program (SIGILL)."""
    if precision not in (None, "float32") and device == "cpu":
        raise MaskwalkError(
            f"{name} needs an accelerator: on a CPU the network computes in float32. Add "
            f"--device cuda, or leave out @{precision}."
        )
    if precision == "autocast" and of_text(name):
        raise MaskwalkError(f"{name} is a model of text, which has no autocast; use @bfloat16.")


def _text_world(source: str, length: int | None = None) -> str:
    model, _ = split_precision(source)
    return WORLDS.canonical(str(Spec("text", (), {"source": model, "length": length})))


def check_name(name: str) -> None:
    """A sentence for the likeliest mistakes: somebody's model, a directory that is not there."""
    if name.startswith("hf:"):
        raise MaskwalkError(
            f"{name} is a model of text whose passages are not here; use "
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
    """What tells two models of one name apart: the hash of a trained model's weights, and of what
    stands beside them in its directory."""
    name, _ = split_precision(name)
    if name.startswith(ZOO):
        return str(trained_on(name)["sha256"])
    if is_trained(name):
        files = [Path(name) / part for part in MODEL_FILES]
        if files[0].exists():
            return _digest(*((f, f.stat().st_mtime_ns) for f in files if f.exists()))
    return None


def own_weights(name: str) -> dict[str, str]:
    """A trained directory and its fingerprint; nothing where none of the user's is used."""
    digest = None if name.startswith(ZOO) else fingerprint(name)
    return {} if digest is None else {name: digest}


@lru_cache(maxsize=16)
def _digest(*files: tuple[Path, int]) -> str:
    """The hash of files, with the times at which they changed."""
    digest = hashlib.sha256()
    for file, _ in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def impossible_evidence(denoiser: Denoiser) -> int | None:
    """How often it was shown tokens that no sequence agrees with; None: it does not count."""
    count: int | None = getattr(denoiser, "impossible", None)
    return count


def denoiser_notes(denoiser: Denoiser) -> tuple[str, ...]:
    """What a reader of the record should know about the denoiser's answers."""
    return tuple(getattr(denoiser, "notes", ()))
