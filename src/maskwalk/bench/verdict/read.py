"""An evaluation as it was written (files.py), read back and checked: it may have been edited."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk.bench.verdict.files import FILE, FOLDER
from maskwalk.bench.verdict.verdict import ORDER
from maskwalk.errors import MaskwalkError
from maskwalk.reading import (
    Shape,
    Wrong,
    flag,
    json_value,
    listed,
    maybe,
    number,
    table,
    text,
)
from maskwalk.stats import half_width, settled_se

MOST_BYTES = 50_000_000
MANY = 10_000
SHARE, COST = number(0, 1), number(0, 1e6)
DIFFERENCE = table({"value": number(), "low": number(), "high": number()}, ("value", "low", "high"))
POINT: dict[str, Shape] = {
    "calls": COST,
    "coherence": maybe(SHARE),
    "coherence_se": maybe(number(0)),
}
BASELINE = table(POINT | {"sampler": text(), "on_front": flag}, ("sampler", "calls", "coherence"))
NATS = ("dependence", "dependence_se", "denoiser", "denoiser_se", "kl", "kl_se", "masked")
LOSS = table({name: maybe(number()) for name in NATS})
SETTING = table(
    POINT
    | {
        "setting": text(),
        "position": text(),
        "kind": text(),
        "p_holm": number(0, 1),
        "difference": maybe(DIFFERENCE),
        "front_difference": maybe(DIFFERENCE),
        "departure": maybe(DIFFERENCE),
        "difference_seen": maybe(number()),
        "best_baseline": maybe(BASELINE),
        "dominated_by": maybe(BASELINE),
        "loss": maybe(LOSS),
    },
    ("setting", "calls", "coherence", "position"),
)
SCENE = table(
    {
        "scene": text(),
        "structure": text(),
        "task": text(),
        "count": maybe(number(0)),
        "world": maybe(text()),
        "denoiser": maybe(text()),
        "baselines": listed("baselines", BASELINE, MANY),
        "policy": listed("settings", SETTING, MANY),
    },
    ("scene", "structure", "task", "baselines", "policy"),
)
EVALUATION = table(
    {
        "policy": text(1),
        "suite": text(),
        "verdict": text(),
        "command": maybe(text()),
        "settings": listed("settings", text(), MANY),
        "contract": table(
            {"kept": flag, "broken": table({}, others=table({}, others=text()))},
            ("kept", "broken"),
        ),
        "structures": listed(
            "structures",
            table(
                {"structure": text(), "denoiser": text(), "position": text()},
                ("structure", "denoiser", "position"),
            ),
            MANY,
        ),
        "scenes": listed("scenes", SCENE, MANY),
        "seconds": number(0),
    },
    ("policy", "suite", "verdict", "settings", "contract", "structures", "scenes", "seconds"),
)


@dataclass(frozen=True)
class Point:
    """A sampler in a scene: what it costs, and how good it is."""

    name: str
    cost: float
    quality: float
    half: float  # of the 95 % interval of the quality
    on_front: bool = False


@dataclass(frozen=True)
class Setting:
    """One setting of the policy in a scene, against the baselines there."""

    point: Point
    position: str
    shaped: bool
    p: float
    best: Point | None
    difference: dict[str, float] | None
    front: dict[str, float] | None
    departure: dict[str, float] | None
    seen: float | None
    cheaper: Point | None
    loss: dict[str, float | None] | None


@dataclass(frozen=True)
class Stage:
    """A scene: its baselines and the policy's settings."""

    title: str
    structure: str
    task: str
    baselines: list[Point]
    settings: list[Setting]
    world: str = ""
    denoiser: str = ""


@dataclass(frozen=True)
class Verdict:
    """An evaluation, as a page shows it."""

    policy: str
    suite: str
    sentence: str
    settings: list[str]
    kept: bool
    broken: dict[str, dict[str, str]]
    structures: list[tuple[str, str, str]]  # structure, denoiser, position
    scenes: list[Stage]
    seconds: float
    command: str | None = None  # what was typed


def read_evaluations(directory: Path) -> list[Verdict]:
    """Those of a directory of `evaluate --out`: the last one first, then the others by name."""
    last = directory / FILE
    if not last.is_file():
        return []
    own = sorted((directory / FOLDER).glob("*.json"))
    same = last.read_bytes()
    return [read_evaluation(p) for p in (last, *(p for p in own if p.read_bytes() != same))]


def read_evaluation(path: Path) -> Verdict:
    """One file, or a sentence that says where it is wrong."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MaskwalkError(f"{path} is larger than an evaluation can be.")
        data = json_value(path.read_bytes())
        EVALUATION(data)
        return _verdict(data)
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None
    except Wrong as wrong:
        raise MaskwalkError(
            f"{path} is not an evaluation: {wrong.told()}. Run `maskwalk evaluate … --out` again."
        ) from None


def _verdict(data: dict[str, Any]) -> Verdict:
    for one in (*data["structures"], *(s for scene in data["scenes"] for s in scene["policy"])):
        if one["position"] not in ORDER:
            raise Wrong(f"one of {', '.join(ORDER)}", one["position"]).inside("position")
    return Verdict(
        data["policy"],
        data["suite"],
        data["verdict"],
        data["settings"],
        data["contract"]["kept"],
        data["contract"]["broken"],
        [(s["structure"], s["denoiser"], s["position"]) for s in data["structures"]],
        [_stage(scene) for scene in data["scenes"]],
        data["seconds"],
        data.get("command"),
    )


def _stage(scene: dict[str, Any]) -> Stage:
    prompts = scene.get("count") or 1
    return Stage(
        scene["scene"],
        scene["structure"],
        scene["task"],
        [_point(one, prompts) for one in scene["baselines"]],
        [_setting(one, prompts) for one in scene["policy"]],
        scene.get("world") or "",
        scene.get("denoiser") or "",
    )


def _point(one: dict[str, Any], prompts: float) -> Point:
    """A share of 0 or 1 is not certain, also where an earlier version wrote that it is."""
    quality = one["coherence"] or 0.0
    error = settled_se(quality, one.get("coherence_se"), prompts)
    name = one.get("sampler", one.get("setting", ""))
    half = half_width(error) or 0.0
    return Point(name, one["calls"], quality, half, one.get("on_front", False))


def _setting(one: dict[str, Any], prompts: float) -> Setting:
    best, cheaper = (one.get(key) for key in ("best_baseline", "dominated_by"))
    return Setting(
        _point(one, prompts),
        one["position"],
        one.get("kind") == "shaped",
        one.get("p_holm", 1.0),
        None if best is None else _point(best, prompts),
        one.get("difference"),
        one.get("front_difference"),
        one.get("departure"),
        one.get("difference_seen"),
        None if cheaper is None else _point(cheaper, prompts),
        one.get("loss"),
    )
