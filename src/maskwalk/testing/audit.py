"""`audit`: anybody's decoder under our contract, on a model that is never wrong.

    from maskwalk import audit
    audit(generate, like="llada").passed

Statistical checks have a false-alarm rate of 1e-6 each and fixed seeds: a decoder without faults
has a finding with probability below 1e-4 over the whole audit, and then it always has it.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError, one_of, real, shown, unknown
from maskwalk.resources import one_thread
from maskwalk.specs import load_plugin
from maskwalk.testing import draws, order, rows
from maskwalk.testing.calling import Decoder, Failed
from maskwalk.testing.laws import WORLD, law_of
from maskwalk.testing.model import LIKE
from maskwalk.testing.order import RANKS
from maskwalk.testing.result import FINDING, Audit, Point, Result, not_applicable
from maskwalk.testing.trial import Trial

CHECKS: dict[str, Callable[[Trial], Result]] = {
    check.__name__: check
    for check in (
        rows.runs,
        rows.alignment,
        rows.given_tokens,
        rows.batch,
        rows.uneven_rows,
        rows.padding,
        order.calls,
        order.repeats,
        order.temperature_0,
        order.confidence,
        order.noise,
        order.ties,
        order.remasks,
        draws.law,
        draws.precision,
        order.manners,
    )
}
LAST = "curve"
METHOD = "diffusion_generate"  # of a class, unless another one is named
ALG = {"maskgit_plus": "confidence", "entropy": "entropy", "topk_margin": "margin",
       "origin": "random"}  # fmt: skip
REMASKING = {"low_confidence": "confidence", "random": "random"}


def audit(
    decoder: str | Callable[..., Any],
    like: str = "llada",
    *,
    world: str = WORLD,
    options: Mapping[str, Any] | None = None,
    ranks: str | None = None,
    remasks: bool = False,
    only: Iterable[str] | None = None,
    timeout: float = 60.0,
    watch: Callable[[list[str]], Iterable[str]] = iter,
) -> Audit:
    """Calls a decoder (a function, or FILE.py:name) as `like` says, and checks what it does.

    `ranks` is what it says it ranks positions by, `remasks` that it takes tokens back. `options`
    are passed on. `only` names some checks; `timeout` is the seconds one call may take; `watch`
    sees the names of the checks and hands them on as they are done.
    """
    named, function, owner = _found(decoder)
    one = Decoder(
        named, one_of("like", like, LIKE), function, owner, dict(options or {}),
        real("timeout", timeout, 1e-3),
    )  # fmt: skip
    one.signature.check(one.options)
    if ranks is not None:
        one_of("ranks", ranks, RANKS)
    wanted = _wanted(only)
    trial = Trial(one, law_of(world), ranks or _says(one), remasks)
    with one_thread():
        results, points, floor = _checked(trial, wanted, watch)
    return Audit(
        decoder if isinstance(decoder, str) else named, like, world, one.options, tuple(results),
        points, floor, {name: _asks(name) for name in wanted},
    )  # fmt: skip


def _checked(
    trial: Trial, wanted: list[str], watch: Callable[[list[str]], Iterable[str]]
) -> tuple[list[Result], tuple[Point, ...], dict[str, float]]:
    """Every check; what does not even run has one finding and no others."""
    results: list[Result] = []
    points: tuple[Point, ...] = ()
    floor: dict[str, float] = {}
    crashed = ""
    try:
        first = rows.runs(trial)
    except Failed as problem:
        crashed = str(problem)
        first = Result("runs", FINDING, crashed)
    for name in watch(wanted):
        if name == "runs":
            results.append(first)
        elif crashed:
            results.append(not_applicable(name, "it does not get through one sequence"))
        elif name == LAST:
            try:
                result, points, floor = draws.curve(trial)
            except Failed as problem:
                result = Result(LAST, FINDING, str(problem))
            results.append(result)
        else:
            results.append(_result(name, trial))
    if crashed and "runs" not in wanted:
        results.insert(0, first)
    return results, points, floor


def _result(name: str, trial: Trial) -> Result:
    try:
        return CHECKS[name](trial)
    except Failed as problem:
        return Result(name, FINDING, str(problem))


def _wanted(only: Iterable[str] | None) -> list[str]:
    every = [*CHECKS, LAST]
    some = every if only is None else list(only)
    for name in some:
        if name not in every:
            raise unknown("check", name, every)
    return [name for name in every if name in some]


def _asks(name: str) -> str:
    """What a check asks: the first line of its docstring."""
    check = draws.curve if name == LAST else CHECKS[name]
    return (inspect.getdoc(check) or "").split("\n")[0]


def _says(decoder: Decoder) -> str | None:
    """What it says it ranks by, from an option or a default that public code has."""
    for name, meaning in (("remasking", REMASKING), ("alg", ALG)):
        said = decoder.options.get(name, decoder.signature.default(name))
        if said in meaning:
            return meaning[said]
    return None


def _found(decoder: str | Callable[..., Any]) -> tuple[str, Callable[..., Any], type | None]:
    """(name, function, the class whose method it is) of a decoder, or a sentence."""
    if not isinstance(decoder, str):
        if not callable(decoder):
            raise MaskwalkError(f"A decoder is a function, not {shown(decoder)}.")
        if inspect.isclass(decoder):
            return decoder.__name__, _method(decoder, decoder.__name__), decoder
        return getattr(decoder, "__name__", type(decoder).__name__), decoder, None
    path, colon, name = decoder.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise MaskwalkError(
            f"Say which decoder of which file, FILE.py:function, not {shown(decoder)}."
        )
    if not Path(path).is_file():
        raise MaskwalkError(f"There is no file {path}.")
    thing: Any = load_plugin(path)
    known = [key for key, value in vars(thing).items() if callable(value) and key[0] != "_"]
    owner: type | None = None
    for part in name.split("."):
        if not hasattr(thing, part):
            raise unknown(f"decoder in {path}:", name, known)
        owner, thing = (thing if inspect.isclass(thing) else None), getattr(thing, part)
    if not callable(thing):
        raise MaskwalkError(f"{decoder} cannot be called: it is {shown(thing)}.")
    if inspect.isclass(thing):
        owner, thing = thing, _method(thing, decoder)
    return name, thing, owner


def _method(owner: type, name: str) -> Callable[..., Any]:
    """The method of a class that generates."""
    method: Callable[..., Any] | None = getattr(owner, METHOD, None)
    if method is None:
        raise MaskwalkError(f"{name} is a class without {METHOD}; name a method: {name}.method.")
    return method
