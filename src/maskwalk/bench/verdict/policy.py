"""From what a user hands over to samplers: a file's class, a class, an instance, or a spec.

A class is evaluated at every setting of its `sweep`, and so is a registered name on its own
("entropy"); a spec with values ("entropy(block=2)") and an instance are one setting.
"""

import inspect
from dataclasses import dataclass
from typing import Any

from maskwalk.decoding.guard import believed_kind, knows_world
from maskwalk.decoding.kinds import SHAPED
from maskwalk.decoding.policy import Sampler
from maskwalk.errors import MaskwalkError, misbehaved, shown, unknown, user_code
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec, load_plugin, parse

Policy = str | type[Sampler] | Sampler
MOST_SETTINGS = 100  # of a sweep: each is run with every world and model of the suite
HOW = (
    "Give FILE.py:Class, a registered spec such as 'entropy(block=2)', a class, or an instance of "
    "maskwalk.Sampler."
)


@dataclass(frozen=True)
class Candidate:
    """A policy under evaluation: its name, and its settings by label."""

    name: str
    settings: dict[str, Sampler]


def setting_spec(name: str, label: str) -> str:
    """The policy and its setting as one spec, for records: Mine(bound=3.0)."""
    if label == name:
        return f"{name}()"
    whole = label.startswith(f"{name}(")  # a setting that was given as a spec
    return label if whole else f"{name}({label})"


def candidate(policy: Policy) -> Candidate:
    """The policy a user means, at every setting to evaluate."""
    if isinstance(policy, str):
        return _from_file(policy) if ".py" in policy else _from_spec(policy)
    if isinstance(policy, Sampler):
        return Candidate(type(policy).__name__, {type(policy).__name__: policy})
    if inspect.isclass(policy) and issubclass(policy, Sampler):
        return _swept(policy.__name__, policy)
    raise MaskwalkError(f"{policy!r} is not a sampler. {HOW}")


def _swept(name: str, maker: Any) -> Candidate:
    """A class at every setting of its sweep; only what the settings change is in the labels."""
    settings: dict[str, Sampler] = {}
    for kwargs in _sweep(name, maker):
        label = str(Spec("", (), kwargs))[1:-1]
        try:
            with user_code():
                settings[label or name] = maker(**kwargs)
        except TypeError as problem:
            raise MaskwalkError(f"{name}({label}) cannot be made: {problem}.") from None
    if not settings:
        raise MaskwalkError(f"The sweep of {name} is empty: it needs at least one setting, {{}}.")
    return Candidate(name, settings)


def _sweep(name: str, maker: Any) -> list[dict[str, Any]]:
    """The settings of a class, or a sentence."""
    sweep: Any = getattr(maker, "sweep", ({},))
    fine = isinstance(sweep, list | tuple) and all(
        isinstance(some, dict) and all(isinstance(key, str) for key in some)
        for some in sweep[: MOST_SETTINGS + 1]
    )
    if not fine:
        raise misbehaved(
            maker,
            "must have a sweep that is a tuple of settings, such as ({'bound': 1.0}, "
            f"{{'bound': 2.0}}), not {shown(sweep)}.",
        )
    if len(sweep) > MOST_SETTINGS:
        raise misbehaved(
            maker,
            f"has a sweep of {len(sweep):,} settings; an evaluation takes at most {MOST_SETTINGS}: "
            "keep those worth comparing.",
        )
    return list(sweep)


def _from_spec(text: str) -> Candidate:
    spec = parse(text)
    if not spec.args and not spec.kwargs and "(" not in text:
        return _swept(spec.name, SAMPLERS[spec.name])
    return Candidate(spec.name, {str(spec): SAMPLERS.build(text)})


def check_world_unknown(name: str, sampler: Sampler) -> None:
    """Refuses a rule that has to know its world, and one that could sample from it instead."""
    if sampler.needs_world:
        raise MaskwalkError(
            f"{name} has to know its world, and the contract and the suites have worlds that "
            "cannot tell it what it asks for; compare it with `maskwalk bench`."
        )
    if believed_kind(sampler) == SHAPED and knows_world(sampler):
        raise misbehaved(
            sampler,
            "is told its world (a field `world`, or in_world()) and draws in a step of its own, so "
            "it could sample the world instead of asking the denoiser. Leave the world out, or "
            "choose positions only (UnmaskingPolicy), or compare it with `maskwalk bench`.",
        )


def as_spec(text: str) -> str:
    """FILE.py:Class as a spec, FILE.py:Class(bound=2.0) too: the file is run, and its class is in
    the table from then on. Another text is a spec already."""
    head, ending, rest = text.partition(".py")
    if not ending or "(" in head or rest[:1] not in ("", ":", "("):
        return text
    name, bracket, values = rest.removeprefix(":").partition("(")
    chosen = _class_in(f"{head}.py", name)
    known = [key for key, maker in SAMPLERS.own().items() if maker is chosen]
    if not known:
        known = [chosen.__name__]
        SAMPLERS.register(chosen.__name__)(chosen)
    return f"{known[0]}{bracket}{values}"


def _from_file(text: str) -> Candidate:
    """FILE.py:Class; the class may be left out where the file defines one sampler."""
    path, _, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    chosen = _class_in(path, name)
    return _swept(chosen.__name__, chosen)


def _class_in(path: str, name: str) -> type[Sampler]:
    """A sampler's class in a file; "" where there is one."""
    module = load_plugin(path)
    own = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Sampler)
        and value.__module__ == module.__name__
    }
    if not name and len(own) != 1:
        listed = ", ".join(own) or "none"
        raise MaskwalkError(f"Say which sampler of {path} is meant, {path}:Class: {listed}.")
    if name and name not in own:
        raise unknown(f"sampler in {path}:", name, own)
    chosen = own[name] if name else next(iter(own.values()))
    if inspect.isabstract(chosen):
        raise MaskwalkError(f"{chosen.__name__} in {path} has no choose() or step() yet.")
    return chosen
