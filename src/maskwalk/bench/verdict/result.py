"""What an evaluation found: for a person (80 columns), for a notebook, and for a machine."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from maskwalk.analysis.losses import for_json
from maskwalk.bench.labels import samplers
from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.bench.verdict.suite import Scene
from maskwalk.bench.verdict.verdict import Comparison, Place, best_of, front_of, standing
from maskwalk.bench.verdict.words import calls, near_the_law, sentence
from maskwalk.decoding.kinds import MARK, SHAPED
from maskwalk.stats import Difference, settled_se

WIDTH = 80
HEAD = " " * 14 + "calls coh.  best baseline, calls diff.     to the front"
LEGEND = (
    "coh.            share of coherent sequences",
    "best baseline   the most coherent with at most as many calls; diff.: from it",
    "to the front    from the best mixture of baselines at the same calls, paired by",
    "                prompt, with a 95 % interval",
    "beyond, inside  ahead of the front, or behind it, after Holm's correction",
    "on              neither is shown; ±… would have been seen four times in five",
    "dominated       a baseline with fewer calls is at least as coherent",
    "void            hardly a sequence is coherent",
)
SHAPED_LEGEND = (
    f"{MARK}: shaped. It does not only choose where to draw, so it is measured against the",
    "law: off by …, the excess of its rank TV over left to right, one token at a",
    "time; near: within .05 of it. A shaped policy is never beyond the front.",
)
COLUMNS = 4  # settings whose losses fit beside each other


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `maskwalk.evaluate`; print it, or look at `verdict` and `comparisons`."""

    name: str
    suite: str
    settings: tuple[str, ...]
    contract: Mapping[str, Mapping[str, str]]  # setting -> failed check -> reason
    comparisons: tuple[Comparison, ...]
    baselines: Mapping[Scene, Sequence[Outcome]]
    seconds: float
    draw: str = "exact"  # how the policy's tokens were drawn
    command: str | None = None  # what was typed, or what one would type for the same

    @property
    def kept(self) -> bool:
        """Whether every setting keeps the contract."""
        return not any(self.contract.values())

    @property
    def standing(self) -> dict[Place, str]:
        """The position (verdict.py) for every (structure, with the model or not)."""
        return standing(self.comparisons)

    @property
    def verdict(self) -> str:
        """In plain sentences."""
        checks = list(dict.fromkeys(check for broken in self.contract.values() for check in broken))
        verdict_words = sentence(self.name, self.comparisons) if self.comparisons else ""
        verdict_words += self._left_out()
        if not checks:
            return verdict_words
        broken = f"{self.name} breaks the contract ({', '.join(checks)})"
        if not verdict_words:
            return f"{broken}, so its numbers would mean nothing: mend that first."
        return f"{broken}, so do not trust what follows: {verdict_words}"

    def _left_out(self) -> str:
        """What truncated draws can never make, from the scene with least to that with most."""
        found = [c.loss["lost"] for c in self.comparisons if c.loss is not None]
        if self.draw == "exact" or not found or max(found) == 0:
            return ""
        least, most = f"{min(found):.0%}", f"{max(found):.0%}"
        amount = most if least == most else f"{least} to {most}"
        return f" With {self.draw} it can never make {amount} of the law's sequences."

    def as_dict(self) -> dict[str, Any]:
        """Everything, as `maskwalk evaluate --json` prints it."""
        broken = {setting: dict(found) for setting, found in self.contract.items() if found}
        result = {
            "policy": self.name,
            "suite": self.suite,
            "draw": self.draw,
            "settings": list(self.settings),
            "contract": {"kept": self.kept, "broken": broken},
            "structures": [
                {"structure": name, "denoiser": "model" if model else "oracle", "position": where}
                for (name, model), where in self.standing.items()
            ],
            "scenes": [self._scene(scene) for scene in self.baselines],
            "verdict": self.verdict,
            "command": self.command,
            "seconds": round(self.seconds, 1),
        }
        return dict(for_json(result))

    def _scene(self, scene: Scene) -> dict[str, Any]:
        outcomes = self.baselines[scene]
        own = {id(b) for b in front_of(outcomes)}
        points = [{**_point(b), "on_front": id(b) in own} for b in outcomes]
        mine = [_comparison(c) for c in self.comparisons if c.scene == scene]
        about = {k: outcomes[0].record.get(k) for k in ("world", "denoiser", "count")}
        return {
            "scene": scene.title,
            "structure": scene.structure,
            "task": scene.task,
            **about,
            "baselines": points,
            "policy": mine,
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shaped = "" if self.draw == "exact" else f" · {self.draw}"
        head = f"{self.name}{shaped} · {self.suite} suite · {self.seconds:.0f} s"
        lines = [head, *self._contract()]
        if self.comparisons:
            lines += ["", HEAD]
            for scene in self.baselines:
                here = [c for c in self.comparisons if c.scene == scene]
                lines += [scene.title, *(line for c in here for line in _row(c))]
            off = any(c.kind == SHAPED for c in self.comparisons)
            lines += ["", *LEGEND, *(SHAPED_LEGEND if off else ())]
            lines += [*self._losses(), *self._standing()]
        return "\n".join([*lines, "", *textwrap.wrap(f"Verdict: {self.verdict}", WIDTH)])

    def _contract(self) -> list[str]:
        if self.kept:
            many = f"{len(self.settings)} settings" if len(self.settings) > 1 else "one setting"
            return [f"Contract: kept ({many})."]
        lines = ["Contract: broken."]
        for setting, broken in self.contract.items():
            for check, reason in broken.items():
                text = f"{setting}: {check}: {reason}"
                lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
        return lines

    def _losses(self) -> list[str]:
        """The split of the loss, for a few settings from one end of the sweep to the other."""
        known = [c for c in self.comparisons if c.loss is not None]
        if not known:
            return ["", "Not a policy that only chooses: no split of its loss by replay."]
        names = list(dict.fromkeys(c.setting for c in known))
        step = max(1, len(names) - 1) / (COLUMNS - 1)
        some = names if len(names) <= COLUMNS else [names[round(i * step)] for i in range(COLUMNS)]
        lines = ["", "Nats per sequence lost to dependence + to the denoiser, by replay"]
        if len(names) > 1:
            knob, short = _knob(some)
            lines.append(f"{knob:>38}" + "".join(f"{name:>10.9}" for name in short))
        for scene in self.baselines:
            rows = {c.setting: c.loss for c in known if c.scene == scene}
            cells = [f"{_nats(rows.get(name)):>10}" for name in some]
            lines.append(f"{scene.title:<38.38}{''.join(cells)}")
        return [*lines, *self._cut_off(known)]

    def _cut_off(self, known: Sequence[Comparison]) -> list[str]:
        """What truncated draws lose for good, and what they do to the rest."""
        lines = []
        for c in known:
            if c.loss is not None and c.loss["kl_infinite"] and c.loss["kl_rest"] is not None:
                name = f"{c.scene.title}, {_inside(c.setting)}"
                lines.append(f"  {name:<54.54}{c.loss['lost']:>8.0%}{c.loss['kl_rest']:>16.2f}")
        head = f"{'Exact sequences that can never be drawn':<56}{'share':>8}{'KL of the rest':>16}"
        return ["", head, *lines] if lines else []

    def _standing(self) -> list[str]:
        lines = ["", f"{'structure':<25}{'':<10}its best there"]
        for (structure, model), position in self.standing.items():
            here = [
                c
                for c in self.comparisons
                if (c.scene.structure, c.scene.model) == (structure, model)
            ]
            same = [c for c in here if c.position == position] or here
            where = f"{structure} · {'model' if model else 'oracle'}"
            lines += textwrap.wrap(
                _best_words(best_of(same)),
                WIDTH,
                initial_indent=f"{where:<25.24}{position:<10}",
                subsequent_indent=" " * 35,
            )
        return lines


def _best_words(best: Comparison | None) -> str:
    """The row a structure is judged by, in a few words."""
    if best is None or best.front is None:
        return "no baseline is so cheap"
    at = f"at {calls(best.calls)}"
    if best.position == "off" and best.departure is not None:
        return f"{_interval(best.departure)} off, coherence {_signed(best.gain)} {at}"
    if best.position == "near":
        return f"{near_the_law(best)} {at}"
    p = f"p = {best.p:.2g}" if best.p >= 1e-4 else "p < .0001"
    words = f"{_interval(best.front)} {at}, {p}"
    if best.cheaper is None:
        return words
    label = samplers([best.cheaper.sampler])[0].label
    return f"{words}; as good: {label} at {calls(best.cheaper.calls.mean())}"


def _row(c: Comparison) -> list[str]:
    """A setting's numbers; names that are too long for their columns go on below."""
    best, gap = "none so cheap", ""
    if c.best is not None and c.single is not None:
        label = samplers([c.best.sampler])[0].label
        at = f"{c.best.calls.mean():.1f}".removesuffix(".0")
        best, gap = f"{label}, {at}", _signed(c.single.value)
    far = "" if c.front is None else _interval(c.front)
    numbers = f"{c.calls:>5.1f}{_share(c.coherence):>5}"
    names = textwrap.wrap(_inside(c.setting), 13), textwrap.wrap(best, 21)
    lines = []
    for row, (own, other) in enumerate(zip_longest(*names, fillvalue="")):
        middle, rest = (numbers, f"{gap:>5} {far:>16} {_mark(c)}") if row == 0 else ("", "")
        lines.append(f" {own:<13}{middle:10}  {other:<21}{rest}".rstrip())
    return lines


def _knob(settings: Sequence[str]) -> tuple[str, list[str]]:
    """What settings differ in, where that is one parameter, and its values; else themselves."""
    keys = {name.partition("=")[0] for name in settings}
    if len(keys) == 1 and all(name.count("=") == 1 and "(" not in name for name in settings):
        return f"{keys.pop()}=", [name.partition("=")[2] for name in settings]
    return "", list(settings)


def _inside(setting: str) -> str:
    """What a setting sets: tau=0.5 of threshold_drawn(tau=0.5)."""
    return setting[setting.index("(") + 1 : -1] or setting if setting.endswith(")") else setting


def _mark(c: Comparison) -> str:
    """The position in a few letters."""
    if c.position == "off" and c.departure is not None:
        return f"off {_share(c.departure.value)[:3]}{MARK}"
    if c.kind == SHAPED and c.position != "void":
        return f"{c.position}{MARK}"
    if c.position == "on" and c.seen is not None:
        return f"on ±{_share(min(c.seen, 1.0))[:3]}"
    return c.position


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1.00"


def _signed(value: float) -> str:
    text = f"{value:+.2f}".replace("0.", ".", 1)
    return {"+.00": "0", "-.00": "0", "+1.00": "+1", "-1.00": "-1"}.get(text, text)


def _interval(d: Difference) -> str:
    return f"{_signed(d.value)} [{_signed(d.low)},{_signed(d.high)}]"


def _nats(loss: Mapping[str, Any] | None) -> str:
    if loss is None:
        return "–"
    parts = [loss["dependence"], loss["denoiser"]]
    if any(value is None or value != value for value in parts):
        return "–"
    return "+".join("∞" if v == float("inf") else f"{v:.{2 if v < 10 else 1}f}" for v in parts)


def _point(found: Outcome) -> dict[str, Any]:
    coherence = found.record["metrics"]["coherence"] or {}
    value, error = coherence.get("value"), coherence.get("se")
    if value is not None:
        error = settled_se(value, error, len(found.coherent))
    return {
        "sampler": found.sampler,
        "calls": float(found.calls.mean()),
        "coherence": value,
        "coherence_se": error,
    }


def _comparison(c: Comparison) -> dict[str, Any]:
    loss = None
    if c.loss is not None:
        names = ("dependence", "dependence_se", "denoiser", "denoiser_se", "kl", "kl_se", "masked")
        loss = {name: c.loss[name] for name in (*names, "worst_round", "lost", "kl_rest")}
    return {
        "setting": c.setting,
        **{k: v for k, v in _point(c.outcome).items() if k != "sampler"},
        "best_baseline": None if c.best is None else _point(c.best),
        "difference": None if c.single is None else asdict(c.single),
        "front_difference": None if c.front is None else asdict(c.front),
        "p_holm": c.p,
        "position": c.position,
        "kind": c.kind,
        "departure": None if c.departure is None else asdict(c.departure),
        "difference_seen": c.seen,
        "calls_of_the_front": c.same,
        "dominated_by": None if c.cheaper is None else _point(c.cheaper),
        "loss": loss,
    }
