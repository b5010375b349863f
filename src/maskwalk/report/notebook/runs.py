"""`maskwalk.run`: what `maskwalk sample` does, for one sampler or several, as objects.

The command line calls this function, so a mistake is the same sentence in both places.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, overload

import torch
from rich.console import Console
from torch import Tensor

from maskwalk.bench.bars import filling_shown
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.decoding.arguments import as_sampler
from maskwalk.decoding.draw import preset_sampler
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser, denoiser_name, source_of
from maskwalk.denoisers.resolve import WALK, resolve_world
from maskwalk.errors import MaskwalkError, shown, unknown
from maskwalk.report.notebook.result import Result
from maskwalk.report.notebook.results import Results
from maskwalk.specs import Spec, load_installed_plugins, load_plugin, parse
from maskwalk.worlds.metrics import METRICS
from maskwalk.worlds.walks.graphs.files import kept_graph
from maskwalk.worlds.world import World, build_world, world_spec

SAMPLER = "bisection(order=1)"
TRACED = 64  # sequences whose unmasking is followed
VARIES = ("sampler", "denoiser", "preset", "draw", "ties")  # may differ between runs of one list
TEXTS = ("task", "walk", "preset", "draw", "ties")
Setting = str | Sampler | dict[str, Any]
Answering = str | Denoiser | Callable[[Tensor, Tensor], Tensor]


@overload
def run(  # type: ignore[overload-overlap]  # a str is a sequence too: the first form
    sampler: str | Sampler | None = None,
    *,
    world: str | World | None = None,
    graph: Any = None,
    walk: str | None = None,
    length: int | None = None,
    graph_seed: int | None = None,
    denoiser: Answering = "oracle",
    task: str = "unconditional",
    preset: str = "exact",
    draw: str | None = None,
    ties: str | None = None,
    count: int = 512,
    per_prompt: int = 1,
    seed: int = 0,
    metrics: Sequence[str] = (),
    device: str = "cpu",
    trace: bool | int = TRACED,
    include: str | Sequence[str] = (),
    progress: bool = False,
) -> Result: ...
@overload
def run(
    sampler: Sequence[Setting],
    *,
    world: str | World | None = None,
    graph: Any = None,
    walk: str | None = None,
    length: int | None = None,
    graph_seed: int | None = None,
    denoiser: Answering = "oracle",
    task: str = "unconditional",
    preset: str = "exact",
    draw: str | None = None,
    ties: str | None = None,
    count: int = 512,
    per_prompt: int = 1,
    seed: int = 0,
    metrics: Sequence[str] = (),
    device: str = "cpu",
    trace: bool | int = TRACED,
    include: str | Sequence[str] = (),
    progress: bool = False,
) -> Results: ...
def run(
    sampler: str | Sampler | Sequence[Setting] | None = None,
    *,
    world: str | World | None = None,
    graph: Any = None,
    walk: str | None = None,
    length: int | None = None,
    graph_seed: int | None = None,
    denoiser: Answering = "oracle",
    task: str = "unconditional",
    preset: str = "exact",
    draw: str | None = None,
    ties: str | None = None,
    count: int = 512,
    per_prompt: int = 1,
    seed: int = 0,
    metrics: Sequence[str] = (),
    device: str = "cpu",
    trace: bool | int = TRACED,
    include: str | Sequence[str] = (),
    progress: bool = False,
) -> Result | Results:
    """Decodes `count` sequences with a sampler and measures them; a list runs several alike.

    Everything is a spec, as for `maskwalk sample`; sampler, world and denoiser may also be objects,
    a denoiser a function (tokens, at), a graph a `Graph` or a networkx graph. In a list every
    member is a sampler, or a dict that may change sampler, denoiser, preset, draw and ties: all
    have the same prompts and random streams, and the result has paired differences to the first.
    `metrics` are measured besides the world's own; `trace` says how many sequences are followed.
    `progress` draws a bar meanwhile, in a terminal or a notebook; in a log file it writes lines.
    """
    load_installed_plugins()
    for path in [include] if isinstance(include, str) else include:
        load_plugin(path)
    common: dict[str, Any] = {
        "world": None if world is None else world_spec(world),
        "graph": kept_graph(graph),
        "walk": walk,
        "length": length,
        "graph_seed": graph_seed,
        "denoiser": denoiser,
        "task": task,
        "preset": preset,
        "draw": draw,
        "ties": ties,
        "count": count,
        "per_prompt": per_prompt,
        "seed": seed,
    }
    more = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for name in more:
        METRICS.canonical(name)
    _check_device(device)
    if not isinstance(sampler, list | tuple):
        cell = _cell(common | {"sampler": sampler}, more, device)
        with filling_shown(Console(stderr=True), progress):
            return _decoded(*cell, device, trace)
    if not sampler:
        raise MaskwalkError("There is nothing to run: the list of samplers is empty.")
    settings = [common | _setting(member) for member in sampler]
    cells = [_cell(setting, more, device) for setting in settings]
    if len({cell.world for cell, *_ in cells}) > 1:
        raise MaskwalkError(
            "The runs of one list share their prompts, and these denoisers know different worlds: "
            f"{' and '.join(dict.fromkeys(cell.world for cell, *_ in cells))}."
        )
    with filling_shown(Console(stderr=True), progress):
        return Results(tuple(_decoded(*cell, device, trace) for cell in cells))


def _decoded(
    cell: Cell, sampler: Sampler | None, kept: object, device: str, trace: bool | int
) -> Result:
    """A run; `kept` is the denoiser where it is an object, which is there only while it is held."""
    record, decoded = run_cell(cell, device, trace, sampler)
    return Result(cell, record, decoded, build_world(cell.world))


def _cell(
    setting: dict[str, Any], metrics: tuple[str, ...], device: str
) -> tuple[Cell, Sampler | None, object]:
    """The cell, with metrics besides the world's own, and sampler and denoiser if objects."""
    for key in TEXTS:
        _check_text(key, setting[key])
    rule, kept = setting["sampler"], None
    if rule is not None and not isinstance(rule, str):
        rule = as_sampler(rule)
    if not isinstance(setting["denoiser"], str):
        setting, kept = _with_object(setting, device)
    if not isinstance(rule, Sampler):
        spec = preset_sampler(setting["preset"], SAMPLER) if rule is None else rule
        cell, rule = Cell.checked(**setting | {"sampler": spec}), None
    else:
        cell = Cell.checked(**setting | {"sampler": SAMPLER})
        cell = replace(cell, sampler=spec_of(rule))
    every = tuple(dict.fromkeys((*cell.metrics, *metrics)))
    return replace(cell, metrics=every), rule, kept


def _with_object(setting: dict[str, Any], device: str) -> tuple[dict[str, Any], object]:
    """The setting with a name for its denoiser, which is an object, and the object."""
    given, place = setting["denoiser"], {key: setting[key] for key in ("world", *WALK)}
    name = source_of(given)
    if name is not None:
        return setting | {"denoiser": name}, None
    law = getattr(given, "law", None)  # of an oracle: its world
    if isinstance(law, World) and not any(part is not None for part in place.values()):
        place["world"] = world_spec(law)
    spec = resolve_world("oracle", place)
    denoiser = as_denoiser(given, build_world(spec))
    name = denoiser_name(denoiser, build_world(spec), device)
    blank = dict.fromkeys(WALK)
    return setting | blank | {"world": spec, "denoiser": name}, (denoiser, law)


def _setting(member: Any) -> dict[str, Any]:
    """What a member of a list changes."""
    if not isinstance(member, dict):
        return {"sampler": member}
    for key in member:
        if key not in VARIES:
            raise unknown("setting of a run in a list:", str(key), VARIES)
    return {"sampler": None} | member


def _check_text(what: str, given: Any) -> None:
    if given is not None and not isinstance(given, str):
        raise MaskwalkError(f"{what} is a text in quotes, not {shown(given)}.")


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError):
        raise MaskwalkError(f"The device {shown(device)} is not usable here; use cpu.") from None


def spec_of(sampler: Sampler) -> str:
    """What a record calls a sampler that was given as an object: its spec, if that makes it."""
    text = str(_spec(sampler))
    try:
        same = SAMPLERS.build(text) == sampler
    except MaskwalkError:  # in no table, or made with what no spec can say
        same = False
    return SAMPLERS.canonical(text) if same else text.replace(parse(text).name, _kind(sampler), 1)


def _kind(sampler: Sampler) -> str:
    return type(sampler).__name__


def _spec(sampler: Sampler) -> Spec:
    """Its name in the table, or its class's, and the fields that a spec can say."""
    maker: Any = type(sampler)
    names = [name for name in SAMPLERS if SAMPLERS[name] is maker]
    names += [name for name in SAMPLERS if SAMPLERS[name].__module__ == maker.__module__]
    plain = (int, float, str, tuple, type(None))
    every = [f.name for f in fields(maker) if f.init] if is_dataclass(maker) else []
    values = {key: getattr(sampler, key) for key in every if key != "world"}
    kwargs = {
        key: _spec(value) if isinstance(value, Sampler) else value
        for key, value in values.items()
        if isinstance(value, (Sampler, *plain))
    }
    return Spec(names[0] if names else _kind(sampler), (), kwargs)
