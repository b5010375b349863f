"""The paper's graph results, as a list of experiment files and what they need.

`experiments/paper` has a file for every table and figure; their cells overlap, and one file of
records serves them all. Each runs in three modes: `as_published` (bfloat16 draws, ties to the
lowest index: what was printed), `exact` (what the model does), `oracle` (what the sampler could).
"""

from pathlib import Path

from maskwalk.bench.experiment import Experiment
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.resources import shipped, zoo_manifest
from maskwalk.training.fit import fit_zoo
from maskwalk.training.settings import Settings

PAPER = (
    "table_unconditional",
    "table_endpoints",
    "table_bottleneck",
    "figure_endpoints",
    "figure_unconditional",
    "figure_bottleneck",
    "figure_distant_k",
)
LANGUAGE = "figure_language"  # of another kind: texts, not walks; only by name
QUICK = (32, 2)  # prompts, samples of each
MODELS = ("st_er_p0", "st_er_deg7", "two_b1", "two_b8", "two_b64", "chain_m10", "distant_k")


def paper(only: list[str] | None = None, quick: bool = False) -> list[Experiment]:
    """The paper's experiments, or those named; `quick` has a few dozen sequences per cell."""
    for name in only or ():
        if name == LANGUAGE:
            raise MaskwalkError(f"{LANGUAGE} has a report of its own: name it alone.")
        if name not in PAPER:
            raise unknown("table or figure", name, (*PAPER, LANGUAGE))
    chosen = [name for name in PAPER if not only or name in only]
    experiments = [
        Experiment.load(shipped("experiments") / "paper" / f"{name}.toml") for name in chosen
    ]
    return [experiment.reduced(*QUICK) for experiment in experiments] if quick else experiments


def lacking() -> list[str]:
    """The models of the paper that the zoo here does not have."""
    return [name for name in MODELS if name not in zoo_manifest()]


def train(out: Path, device: str) -> Path:
    """Trains all seven models with the paper's settings into `out`/zoo; goes on after a kill."""
    if (out / "zoo" / "manifest.json").exists():
        return out / "zoo"
    if device == "cpu":
        raise MaskwalkError(
            "Training the paper's seven models takes days on a CPU. Use --device cuda (about five "
            "minutes on an H200), or leave --train out to take the shipped models."
        )
    return fit(out, list(MODELS), Settings(steps=50_000, every=5_000), device)


def fit(out: Path, names: list[str], settings: Settings, device: str, samples: int = 512) -> Path:
    """One batched training run into `out`/zoo, from its last checkpoint if there is one."""
    work = out / "training"
    fit_zoo(
        names,
        out / "zoo",
        work,
        settings=settings,
        device=device,
        resume=work.exists(),
        samples=samples,
    )
    return out / "zoo"
