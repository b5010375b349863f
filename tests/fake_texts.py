"""Realistic made-up records of texts for the tests of their report; nothing here is a result."""

import hashlib
import math
from typing import Any

import numpy as np

from tests.fake_records import draw

BISECTION_CALLS = {1: 9, 2: 16, 4: 28, 8: 48, 16: 80}
SAMPLERS = {  # sampler: (calls per text, how much parallel draws cost it)
    "left_to_right()": (256.0, 0.0),
    **{f"ancestral(steps={k})": (k * 0.98, 1.2) for k in (16, 32, 64, 128)},
    **{f"random(block={256 // k})": (float(k), 1.0) for k in (16, 32, 64, 128)},
    **{f"entropy(block={256 // k})": (float(k), 1.5) for k in (16, 32, 64)},
    **{f"confidence(block={256 // k})": (float(k), 1.4) for k in (16, 32, 64)},
    **{f"margin(block={256 // k})": (float(k), 1.3) for k in (16, 32, 64)},
    "constant_entropy(h=4.0)": (71.3, 0.9),
    "constant_entropy(h=8.0)": (38.6, 0.9),
    "entropy_bounded(gamma=1.0, score='entropy')": (52.4, 0.95),
    "threshold(conf=0.7)": (114.2, 1.1),
    "dus(base=2, merge=True, skip=0.0)": (9.0, 0.95),
    **{f"bisection(order={k})": (float(v), 0.7) for k, v in BISECTION_CALLS.items()},
    **{
        f"guided_bisection(order={k}, score='entropy')": (v * 1.12, 0.75)
        for k, v in BISECTION_CALLS.items()
    },
}
MODES = ("exact", "draw(top_p=0.9)")
SOME = ["left_to_right()", "random(block=8)", "bisection(order=1)", "bisection(order=4)"]
WORDS = (
    "the old house stood upon a hill and nobody had lived there since the winter of that year but "
    "she would often walk past it in the evening with a lamp though her mother told her not to"
)


def metric(value: float | None, se: float | None, n: int | None) -> dict[str, Any]:
    return {"value": value, "se": se, "n": n}


def passage(rng: np.random.Generator, paragraphs: int = 2) -> str:
    """A made-up text of a few paragraphs."""
    out = []
    for _ in range(paragraphs):
        words = list(rng.choice(WORDS.split(), size=int(rng.integers(30, 70))))
        out.append(" ".join(words).capitalize() + ".")
    return "\n\n".join(out)


def record(
    sampler: str = "bisection(order=4)", mode: str = "exact", judged: bool = True
) -> dict[str, Any]:
    """One record; the same arguments give the same record. `judged`: with MAUVE and a judge."""
    name = f"{sampler}|{mode}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    rng = np.random.default_rng(int(digest[:12], 16))
    held = sampler == "held_out"
    calls, cost = SAMPLERS.get(sampler, (32.0, 1.0))
    sharp = 0.0 if mode == "exact" else 0.35
    loss = 0.0 if held else 0.12 + cost * 12 / calls + 0.3 * (not sampler.startswith("left"))
    noise = lambda scale: float(rng.normal(0, scale))  # noqa: E731
    own = 1.62 if held else 1.62 + 0.9 * loss - sharp + noise(0.005)
    judge = 1.18 if held else 1.18 + 1.1 * loss - 0.9 * sharp + noise(0.01)
    entropy = 4.72 if held else 4.72 + 0.2 * loss - 0.6 * sharp + noise(0.01)
    rep = 0.41 if held else 0.41 - 0.05 * loss + 0.15 * sharp + noise(0.004)
    metrics: dict[str, Any] = {
        "own_bpb": metric(own, 0.006, 1024),
        "own_ppl": metric(math.exp(own * 2.9), 1.1, 1024),
        "entropy": metric(entropy, 0.008, 1024),
        "rep1": metric(rep, 0.003, 1024),
        "rep2": metric(rep / 6, 0.002, 1024),
        "rep3": metric(rep / 30, 0.001, 1024),
    }
    if not held:
        fixed = float(calls).is_integer()
        metrics["calls"] = metric(calls, 0.0 if fixed else 0.21, 1024)
        metrics["tokens_per_call"] = metric(256 / calls, 0.0, 1024)
        if mode == "exact" and not sampler.startswith(("ancestral", "threshold")):
            replay = 1.6 + 0.6 * loss * (not sampler.startswith("left")) + noise(0.004)
            metrics["replay_bpb"] = metric(replay, 0.007, 512) | {"bound": False, "paths": 1}
    if judged:
        mauve = 0.96 if held else max(0.96 * math.exp(-1.4 * loss) + 0.2 * sharp * loss, 0.01)
        metrics["mauve"] = metric(min(mauve + noise(0.01), 0.99), 0.012, 256)
        metrics["judge_bpb"] = metric(judge, 0.011, 256)
        metrics["judge_ppl"] = metric(math.exp(judge * 2.9), 1.4, 256)
    model = "" if held else "books_ar" if sampler == "left_to_right()" else "books_mdm"
    drawn = draw() if mode == "exact" else draw(top_p=0.9)
    return {
        "schema": 2, "key": digest, "version": "0.1.0", "commit": "0123abc",
        "experiment": "figure_language", "denoiser": model, "title": "Books", "sampler": sampler,
        "world": "text(source=None, length=256)", "task": "unconditional()", "mode": mode,
        "draw": drawn, "ties": "uniform", "count": 1024, "seed": 0,
        "metrics": metrics, "texts": [passage(rng, 2) for _ in range(3)],
        "seconds": 0.0 if held else 12.3,
        "notes": ["judged: bits per byte of whole texts"] if judged else [],
    } | ({"judge": "SmolLM2-135M"} if judged else {})  # fmt: skip


def records(samplers: list[str] | None = None, modes: int = 2) -> list[dict[str, Any]]:
    """A whole experiment: held-out text, AR, and the policies; MAUVE and judge for some."""
    out = []
    for mode in MODES[:modes]:
        for i, sampler in enumerate(["held_out", *(samplers or SAMPLERS)]):
            out.append(record(sampler, mode, judged=i < 2 or i % 2 == 0 or "bisec" in sampler))
    return out


def small(**changes: Any) -> list[dict[str, Any]]:
    return records(**{"samplers": SOME} | changes)


def with_metric(
    record: dict[str, Any], name: str, value: float | None, se: float | None = 0.01, n: int = 256
) -> dict[str, Any]:
    return record | {"metrics": record["metrics"] | {name: metric(value, se, n)}}
