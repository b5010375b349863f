"""What an evaluation found: for a person (80 columns), for a notebook, and for a machine."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from maskwalk.analysis.losses import for_json
from maskwalk.bench.labels import samplers
from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.bench.verdict.suite import Scene
from maskwalk.bench.verdict.verdict import Comparison, Place, front_of, sentence, standing
from maskwalk.stats import Difference

HEAD = f"{'':16}{'calls':>5}{'coh.':>6}  {'best baseline, calls':<21}{'':5} {'to the front':>16}"
LEGEND = (
    "coh.: share of coherent sequences. best baseline: with at most as many calls,",
    "and the difference to it. to the front: to the best mixture of baselines at",
    "its calls, paired by prompt, with a 95 % interval; what follows is after",
    "Holm's correction. inside†: not shown to be less coherent, but with a quarter",
    "fewer calls the front keeps 95 % of its coherence. void: hardly one coherent.",
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

    @property
    def kept(self) -> bool:
        """Whether every setting keeps the contract."""
        return not any(self.contract.values())

    @property
    def standing(self) -> dict[Place, str]:
        """beyond, on or inside the front, for every (structure, with the model or not)."""
        return standing(self.comparisons)

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        checks = list(dict.fromkeys(check for broken in self.contract.values() for check in broken))
        verdict_words = sentence(self.name, self.comparisons) if self.comparisons else ""
        if not checks:
            return verdict_words
        broken = f"{self.name} breaks the contract ({', '.join(checks)})"
        if not verdict_words:
            return f"{broken}, so its numbers would mean nothing: mend that first."
        return f"{broken}, so do not trust what follows: {verdict_words}"

    def as_dict(self) -> dict[str, Any]:
        """Everything, as `maskwalk evaluate --json` prints it."""
        broken = {setting: dict(found) for setting, found in self.contract.items() if found}
        result = {
            "policy": self.name,
            "suite": self.suite,
            "settings": list(self.settings),
            "contract": {"kept": self.kept, "broken": broken},
            "structures": [
                {"structure": name, "denoiser": "model" if model else "oracle", "position": where}
                for (name, model), where in self.standing.items()
            ],
            "scenes": [self._scene(scene) for scene in self.baselines],
            "verdict": self.verdict,
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
        lines = [f"{self.name} · {self.suite} suite · {self.seconds:.0f} s", *self._contract()]
        if self.comparisons:
            lines += ["", HEAD]
            for scene in self.baselines:
                here = [c for c in self.comparisons if c.scene == scene]
                lines += [scene.title, *(_row(c) for c in here)]
            lines += ["", *LEGEND, *self._losses(), *self._standing()]
        return "\n".join([*lines, "", *textwrap.wrap(f"Verdict: {self.verdict}", 80)])

    def _contract(self) -> list[str]:
        if self.kept:
            many = f"{len(self.settings)} settings" if len(self.settings) > 1 else "one setting"
            return [f"Contract: kept ({many})."]
        lines = ["Contract: broken."]
        for setting, broken in self.contract.items():
            for check, reason in broken.items():
                text = f"{setting}: {check}: {reason}"
                lines += textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="    ")
        return lines

    def _losses(self) -> list[str]:
        """The split of the loss, for a few settings from one end of the sweep to the other."""
        known = [c for c in self.comparisons if c.loss is not None]
        if not known:
            return ["", "It draws before it chooses, or remasks: no split of its loss by replay."]
        names = list(dict.fromkeys(c.setting for c in known))
        step = max(1, len(names) - 1) / (COLUMNS - 1)
        some = names if len(names) <= COLUMNS else [names[round(i * step)] for i in range(COLUMNS)]
        lines = ["", "Nats per sequence lost to dependence + to the denoiser, by replay"]
        if len(names) > 1:
            # One knob: its values are enough.
            short = [n.split("=", 1)[1] if n.count("=") == 1 and "(" not in n else n for n in some]
            lines.append(" " * 38 + "".join(f"{name:>10.9}" for name in short))
        for scene in self.baselines:
            rows = {c.setting: c.loss for c in known if c.scene == scene}
            cells = [f"{_nats(rows.get(name)):>10}" for name in some]
            lines.append(f"{scene.title:<38.38}{''.join(cells)}")
        return lines

    def _standing(self) -> list[str]:
        lines = ["", f"{'structure':<25}{'front':<7}its best there"]
        for (structure, model), position in self.standing.items():
            here = [
                c
                for c in self.comparisons
                if (c.scene.structure, c.scene.model) == (structure, model) and c.front is not None
            ]
            best = max(here, key=lambda c: (not c.void, _value(c)), default=None)
            words = "no baseline is so cheap"
            if best is not None and best.front is not None:
                p = f"p={best.p:.2g}" if best.p >= 1e-4 else "p<.0001"
                words = f"{_interval(best.front)} at {best.calls:.3g} calls, {p}"
                if best.same is not None and best.same < best.calls - 0.05:
                    words += f"; {best.same:.2g} do"
            where = f"{structure} · {'model' if model else 'oracle'}"
            lines.append(f"{where:<25.24}{position:<7}{words}")
        return lines


def _value(c: Comparison) -> float:
    return -2.0 if c.front is None else c.front.value


def _row(c: Comparison) -> str:
    best, gap = "none so cheap", ""
    if c.best is not None and c.single is not None:
        label = samplers([c.best.sampler])[0].label
        calls = f"{c.best.calls.mean():.3g}"
        best, gap = f"{label:.{20 - len(calls)}} {calls}", _signed(c.single.value)
    far = "" if c.front is None else _interval(c.front)
    mark = "inside†" if c.dearer else c.position
    head = f"  {c.setting:<14.14}{c.calls:>5.1f}{_share(c.coherence):>6}"
    return f"{head}  {best:<21}{gap:>5} {far:>16} {mark}"


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
    return {
        "sampler": found.sampler,
        "calls": float(found.calls.mean()),
        "coherence": coherence.get("value"),
        "coherence_se": coherence.get("se"),
    }


def _comparison(c: Comparison) -> dict[str, Any]:
    loss = None
    if c.loss is not None:
        names = ("dependence", "dependence_se", "denoiser", "denoiser_se", "kl", "worst_round")
        loss = {name: c.loss[name] for name in names}
    return {
        "setting": c.setting,
        **{k: v for k, v in _point(c.outcome).items() if k != "sampler"},
        "best_baseline": None if c.best is None else _point(c.best),
        "difference": None if c.single is None else asdict(c.single),
        "front_difference": None if c.front is None else asdict(c.front),
        "p_holm": c.p,
        "position": c.position,
        "dearer": c.dearer,
        "calls_of_the_front": c.same,
        "loss": loss,
    }
