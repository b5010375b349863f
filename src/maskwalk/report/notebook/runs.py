"""`maskwalk.run`: what `maskwalk sample` does, for one sampler or several, as objects.

The command line calls this function, so a mistake is the same sentence in both places.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, overload

import torch

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.decoding.draw import preset_sampler
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, shown, unknown
from maskwalk.report.notebook.result import Result
from maskwalk.report.notebook.results import Results
from maskwalk.specs import Spec, load_installed_plugins, load_plugin, parse
from maskwalk.worlds.metrics import METRICS
from maskwalk.worlds.walks.graphs.files import kept_graph
from maskwalk.worlds.world import World, build_world

SAMPLER = "bisection(order=1)"
TRACED = 64  # sequences whose unmasking is followed
VARIES = ("sampler", "denoiser", "preset", "draw", "ties")  # may differ between runs of one list
TEXTS = ("task", "walk", "preset", "draw", "ties")
Setting = str | Sampler | dict[str, Any]


@overload
def run(sampler: str | Sampler | None = None, **settings: Any) -> Result: ...
@overload
def run(sampler: Sequence[Setting], **settings: Any) -> Results: ...
def run(  # type: ignore[misc]  # the two above say which result, this one which settings
    sampler: str | Sampler | Sequence[Setting] | None = None,
    *,
    world: str | None = None,
    graph: Any = None,
    walk: str | None = None,
    length: int | None = None,
    graph_seed: int | None = None,
    denoiser: str = "oracle",
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
) -> Result | Results:
    """Decodes `count` sequences with a sampler and measures them; a list runs several alike.

    Everything is a spec, as for `maskwalk sample`; a sampler may also be an object, a graph a
    `Graph` or a networkx graph. In a list every member is a sampler, or a dict that may change
    sampler, denoiser, preset, draw and ties: all have the same prompts and random streams, and the
    result has paired differences to the first. `metrics` are measured besides the world's own;
    `trace` says how many sequences are followed.
    """
    load_installed_plugins()
    for path in [include] if isinstance(include, str) else include:
        load_plugin(path)
    common: dict[str, Any] = {
        "world": _named("world", world, World, "@WORLDS.register"),
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
        return _decoded(*_cell(common | {"sampler": sampler}, more), device, trace)
    if not sampler:
        raise MaskwalkError("There is nothing to run: the list of samplers is empty.")
    settings = [common | _setting(member) for member in sampler]
    cells = [_cell(setting, more) for setting in settings]
    if len({cell.world for cell, _ in cells}) > 1:
        raise MaskwalkError(
            "The runs of one list share their prompts, and these denoisers know different worlds: "
            f"{' and '.join(dict.fromkeys(cell.world for cell, _ in cells))}."
        )
    return Results(tuple(_decoded(*cell, device, trace) for cell in cells))


def _decoded(cell: Cell, sampler: Sampler | None, device: str, trace: bool | int) -> Result:
    record, decoded = run_cell(cell, device, trace, sampler)
    return Result(cell, record, decoded, build_world(cell.world))


def _cell(setting: dict[str, Any], metrics: tuple[str, ...]) -> tuple[Cell, Sampler | None]:
    """The cell, with metrics besides the world's own, and the sampler if it is an object."""
    rule = setting["sampler"]
    if isinstance(rule, type) and issubclass(rule, Sampler):
        raise MaskwalkError(
            f"{rule.__name__} is a class; give an instance of it, {rule.__name__}()."
        )
    if rule is not None and not isinstance(rule, str | Sampler):
        raise MaskwalkError(f"A sampler, or a spec such as '{SAMPLER}', not {shown(rule)}.")
    _named("denoiser", setting["denoiser"], Denoiser, "@DENOISERS.register")
    for key in TEXTS:
        _named(key, setting[key])
    if not isinstance(rule, Sampler):
        spec = preset_sampler(setting["preset"], SAMPLER) if rule is None else rule
        cell, rule = Cell.checked(**setting | {"sampler": spec}), None
    else:
        cell = Cell.checked(**setting | {"sampler": SAMPLER})
        cell = replace(cell, sampler=spec_of(rule))
    every = tuple(dict.fromkeys((*cell.metrics, *metrics)))
    return replace(cell, metrics=every), rule


def _setting(member: Any) -> dict[str, Any]:
    """What a member of a list changes."""
    if not isinstance(member, dict):
        return {"sampler": member}
    for key in member:
        if key not in VARIES:
            raise unknown("setting of a run in a list:", str(key), VARIES)
    return {"sampler": None} | member


def _named(what: str, given: Any, kind: Any = None, how: str = "") -> Any:
    """A text as it is; a sentence for an object, which no record could name."""
    if given is None or isinstance(given, str):
        return given
    if kind is not None and isinstance(given, kind):
        raise MaskwalkError(
            f"{what} is a spec, so that a record can name it, not {shown(given)}: register the "
            f"class or a function that makes it with {how}(name), and give that name."
        )
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
