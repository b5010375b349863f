"""The registry the sampler files add themselves to, and what can be asked of any of them.

`source` reads where a rule comes from out of its file's docstring ("Source: DUS [arXiv
2506.19037]. …"), so that it is written once. `expand` turns one entry of an experiment into a
sampler's whole calls-versus-quality curve:

    sweep(entropy)                             every setting of the class's `sweep`
    sweep(guided_bisection(score='margin'))    the same with a parameter held fixed
    sweep(entropy, threshold)                  several curves
    sweep(all)                                 the curve of every registered sampler
"""

import re
import sys
from typing import Any

from maskwalk.decoding.policy import SAMPLERS
from maskwalk.errors import MaskwalkError
from maskwalk.specs import Spec, parse

SWEEP, ALL = "sweep", "all"


def source(name: str) -> str:
    """Where a registered sampler comes from, as its file's docstring says; "" if it does not."""
    module = sys.modules.get(SAMPLERS[name].__module__)
    text = " ".join(((module and module.__doc__) or "").split())
    # Up to the arXiv id, or to the end of the sentence or clause.
    match = re.search(r"Source: (.*?(?:\]|(?=[.;](?:\s|$))|$))", text)
    return match.group(1) if match else ""


def expand(text: str) -> list[str]:
    """The specs an entry of an experiment stands for: itself, unless it is a sweep."""
    spec = parse(text)
    if spec.name != SWEEP:
        return [text]
    if spec.kwargs or not spec.args or not all(isinstance(arg, Spec) for arg in spec.args):
        raise MaskwalkError(
            f"Cannot read {text!r}: write sweep(NAME), sweep(NAME, NAME) or sweep({ALL})."
        )
    specs: dict[str, None] = {}  # a dict: in order, and each once
    for arg in spec.args:
        for one in map(Spec, SAMPLERS) if arg == Spec(ALL) else (arg,):
            specs |= dict.fromkeys(curve(one))
    return list(specs)


def curve(spec: Spec) -> list[str]:
    """The settings of a sampler's `sweep`, with what the spec says held fixed."""
    if spec.args:
        raise MaskwalkError(f"Name what a sweep holds fixed, {spec.name}(key=value): not {spec}.")
    settings: tuple[dict[str, Any], ...] = getattr(SAMPLERS[spec.name], "sweep", ({},))
    specs = [str(Spec(spec.name, (), {**kwargs, **spec.kwargs})) for kwargs in settings]
    return list(dict.fromkeys(map(SAMPLERS.canonical, specs)))
