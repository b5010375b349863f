"""Names a reader can read: spec strings become short labels; a sampler family keeps one look.

Records hold canonical specs with every parameter written out. A label keeps only what tells the
samplers of this report apart: `random(block=4)` is "random ×4", `guided_bisection(order=1,
score='entropy')` is "guided bisection" unless another score was run too.

A family (the spec's name) has a colour and a marker that depend on the name alone: the families of
the paper have fixed places, any other hashes into the remaining ones, so a sampler added later
needs no change here. Colours follow Okabe & Ito (2008) and Tol (2021), darkened or lightened to a
contrast of at least 3:1 on the light and the dark page; the marker repeats what the colour says.
"""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from zlib import crc32

from maskwalk.errors import MaskwalkError
from maskwalk.specs import Spec, parse

# name: (colour on light, colour on dark, marker); the order is the order of the legend.
KNOWN: dict[str, tuple[str, str, str]] = {
    "left_to_right": ("#1f2328", "#e8eaed", "cross"),
    "random": ("#6b7280", "#a9b1bd", "circle"),
    "entropy": ("#0072b2", "#56b4e9", "square"),
    "confidence": ("#00855f", "#2cc79a", "up"),
    "margin": ("#9a6a00", "#f0c14b", "down"),
    "bisection": ("#d55e00", "#ff8f4a", "diamond"),
    "guided_bisection": ("#b03a86", "#f29bce", "star"),
}
SPARE: tuple[tuple[str, str, str], ...] = (
    ("#332288", "#4e82e7", "hexagon"),
    ("#882255", "#bb5cb5", "pentagon"),
    ("#689707", "#b2fc94", "circle"),
    ("#0f96a9", "#59ebf0", "square"),
    ("#b8404f", "#e15d64", "up"),
    ("#7a4b2a", "#b57b02", "down"),
    ("#24570a", "#5f9477", "diamond"),
    ("#5b3cc4", "#ae8fff", "star"),
)
MARKERS = ("circle", "square", "diamond", "up", "down", "star", "cross", "hexagon", "pentagon")


@dataclass(frozen=True)
class Family:
    """All samplers of one spec name: one colour, one marker, one entry in the legend."""

    name: str
    label: str
    light: str
    dark: str
    marker: str


@dataclass(frozen=True)
class Sampler:
    """A sampler as the report shows it."""

    spec: str
    family: str
    label: str
    short: str  # the label without the family's name, for the chips of the legend
    line: str  # samplers with the same `line` differ only in numbers and are joined in figures


def spoken(name: str) -> str:
    """`guided_bisection` as "guided bisection"."""
    return name.replace("_", " ").strip()


@lru_cache(maxsize=1 << 16)
def read(text: str) -> Spec:
    """The parsed spec; a text that is none becomes a name without parameters."""
    try:
        return parse(text)
    except MaskwalkError:
        return Spec(text)


def leading_name(text: str) -> str:
    """`network` of "network(path='x')": what kind of thing a spec or a path names."""
    name = re.match(r"[A-Za-z_]\w*", text)
    return name.group() if name else text


def task_label(text: str) -> str:
    """`bottleneck(separation=3)` as "bottleneck, separation 3"; what is left open is dropped."""
    spec = read(text)
    set_ = [f"{spoken(k)} {v}" for k, v in spec.kwargs.items() if v is not None]
    return ", ".join([spoken(spec.name), *map(str, spec.args), *set_])


def families(names: list[str]) -> list[Family]:
    """The families of a report in the order of its legend; the look depends on the name alone.

    Two new names that hash to one place are told apart by moving the later one (by name) on; from
    the ninth on colours come back with other markers.
    """
    look = dict(KNOWN)
    free = [list(range(len(SPARE))) for _ in MARKERS]  # a colour comes back with another marker
    new = sorted(set(names) - set(KNOWN))
    for name in new:
        wanted = crc32(name.encode()) % len(SPARE)
        turn = next((i for i, places in enumerate(free) if places), 0)
        place = min(free[turn] or [wanted], key=lambda i: (i - wanted) % len(SPARE))
        free[turn] = [i for i in free[turn] if i != place]
        light, dark, marker = SPARE[place]
        look[name] = (light, dark, MARKERS[(MARKERS.index(marker) + turn) % len(MARKERS)])
    order = [name for name in KNOWN if name in names] + new
    return [Family(name, spoken(name), *look[name]) for name in order]


def samplers(specs: list[str]) -> list[Sampler]:
    """Labelled samplers, by family and then by parameters."""
    parsed = {text: read(text) for text in dict.fromkeys(specs)}
    order = {family.name: i for i, family in enumerate(families([s.name for s in parsed.values()]))}
    made = []
    for text, spec in parsed.items():
        mates = [s for s in parsed.values() if s.name == spec.name]
        short = _words(spec, mates)
        label = f"{spoken(spec.name)} {short}".strip()
        key = (order[spec.name], [_rank(v) for v in spec.kwargs.values()], text)
        plain = "×1" if "block" in spec.kwargs else label
        made.append((key, Sampler(text, spec.name, label, short or plain, line(spec))))
    labelled = [sampler for _, sampler in sorted(made, key=lambda pair: pair[0])]
    twice = {label for label, count in Counter(s.label for s in labelled).items() if count > 1}
    return [replace(s, label=s.spec, short=s.spec) if s.label in twice else s for s in labelled]


def line(spec: Spec, along: Collection[str] | None = None, inside: str = "") -> str:
    """The spec with a star for what a line runs along, here and in nested specs.

    By default that is every number; names (a score, "exponential") start another line. `along`
    names parameters instead, by their paths, such as "inner.block".
    """
    words = []
    for key, value in [*((str(i), v) for i, v in enumerate(spec.args)), *spec.kwargs.items()]:
        path = inside + key
        if isinstance(value, Spec):
            word = line(value, along, path + ".")
        else:
            word = "*" if (_number(value) if along is None else path in along) else repr(value)
        words.append(f"{key}={word}")
    return f"{spec.name}({', '.join(words)})"


def numbers(spec: Spec, inside: str = "") -> dict[str, float]:
    """Every number of a spec by its path: {"order": 1.0, "inner.block": 8.0}."""
    out: dict[str, float] = {}
    for key, value in spec.kwargs.items():
        if isinstance(value, Spec):
            out |= numbers(value, f"{inside}{key}.")
        elif _number(value):
            out[inside + key] = float(value)
    return out


def _words(spec: Spec, mates: list[Spec]) -> str:
    """What a label says after the name: whatever tells the spec apart from its mates.

    A nested sampler is always named, in brackets if it takes more than a word; its own parameters
    are compared with those of mates that nest the same one.
    """
    parts = [str(value) for value in spec.args]
    for key, value in spec.kwargs.items():
        others = [m.kwargs.get(key) for m in mates]
        if isinstance(value, Spec):
            same = [o for o in others if isinstance(o, Spec) and o.name == value.name]
            inner = f"{spoken(value.name)} {_words(value, same)}".strip()
            parts.append(f"({inner})" if " " in inner else inner)
        else:
            parts += _part(key, value, any(other != value for other in others))
    return " ".join(parts)


def _part(key: str, value: Any, varies: bool) -> list[str]:
    """The words one parameter adds to a label: a block always, anything else where it varies."""
    if key == "block":
        return {1: [], "exponential": ["exp"]}.get(value, [f"×{value}"])
    if isinstance(value, tuple) and value and all(map(_number, value)):
        if key == "sizes":  # not "in 3": the last size repeats until the walk is done
            return ["·".join(map(str, value))]
        return [f"in {int(max(value)) + 1}"]  # a plan
    if not varies:
        return []
    return [value] if isinstance(value, str) else [f"{spoken(key)} {value}"]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rank(value: Any) -> tuple[bool, float, str]:
    return (not _number(value), float(value) if _number(value) else 0.0, str(value))


def tell_apart(labels: list[str], details: list[dict[str, Any]]) -> list[str]:
    """Labels that occur more than once get the details in which their bearers differ."""
    out = []
    for label, detail in zip(labels, details):
        twins = [d for other, d in zip(labels, details) if other == label]
        extra = [f"{spoken(k)} {v}" for k, v in detail.items() if any(t.get(k) != v for t in twins)]
        out.append(" · ".join([label, *extra]))
    return out
