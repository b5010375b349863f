"""The tables of docs/atlas.md on other laws, from the records of experiments/laws.toml.

python benchmarks/laws_answers.py results/laws
"""

import sys
from pathlib import Path

from maskwalk.bench.records import Record, latest, load_records
from maskwalk.stats import NORMAL, settled_se

LAWS = {
    "Lazy": "lazy",
    "Drift .9": "drift",
    "There and back": "drift, there and back",
    "Lazy, stay .375": "lazy, stay .375",
    "Slow, then fast": "slow, then fast",
    "Slow and fast in turns": "in turns",
}
HIERARCHIES = {"Hierarchy 1-3-9": 2, "Hierarchy 1-2-4-8": 3}
RULES = (
    "bisection(order=1)",
    "dependence_bounded(budget=0.1)",
    "halton(steps=8)",
    "spaced(inner=confidence(block=8), gap=3)",
    "entropy(block=2)",
    "random(block=2)",
    "halton(steps=4)",
    "dus(base=2, merge=True, skip=0.0)",
    "p2(eta=2.0, steps=8, rescore=False)",
)


def short(value: float, se: float | None = None) -> str:
    """.512, with ± half of a 95 % interval."""
    half = "" if se is None else f" ± {NORMAL * se:.3f}"
    return f"{value:.3f}{half}".replace("0.", ".")


def name(sampler: str) -> str:
    """The spec without what it need not say."""
    return sampler.replace(", merge=True, skip=0.0", "").replace(", rescore=False", "")


class Laws:
    """The records of the run by title, task and sampler."""

    def __init__(self, directory: str) -> None:
        records = latest(load_records(Path(directory)))
        self.cells = {(r["title"], r["task"].split("(")[0], r["sampler"]): r for r in records}

    def ends(self) -> str:
        """Endpoints given: coherence and calls on every law."""
        lines = [f"| endpoints given | {' | '.join(LAWS.values())} | calls |"]
        lines.append("|---" * (len(LAWS) + 2) + "|")
        for sampler in RULES:
            row = [self.cells[title, "endpoints", sampler] for title in LAWS]
            shown = [short(r["metrics"]["coherence"]["value"]) for r in row]
            lines.append(f"| `{name(sampler)}` | {' | '.join(shown)} | {calls(row)} |")
        return "\n".join(lines)

    def levels(self) -> str:
        """Two hierarchies: coherence by the level where the ends meet."""
        heads = [
            f"{title[10:]}: {h} up" for title, n in HIERARCHIES.items() for h in range(1, n + 1)
        ]
        lines = [f"| levels | {' | '.join(heads)} | calls |", "|---" * (len(heads) + 2) + "|"]
        for sampler in RULES:
            row = [self.cells[title, "levels", sampler] for title in HIERARCHIES]
            parts = [p for r in row for p in r["metrics"]["coherence_by_level"]["by"]]
            errors = [settled_se(p["value"], p["se"], p["n"]) for p in parts]
            shown = [short(p["value"], se) for p, se in zip(parts, errors)]
            lines.append(f"| `{name(sampler)}` | {' | '.join(shown)} | {calls(row)} |")
        return "\n".join(lines)


def calls(records: list[Record]) -> str:
    """The mean calls, or from where to where they go."""
    means = sorted({f"{r['metrics']['calls']['value']:.1f}" for r in records}, key=float)
    return (means[0] if len(means) == 1 else f"{means[0]}–{means[-1]}").replace(".0", "")


def verify(name: str, directory: str) -> str:
    """A table for `maskwalk verify`."""
    laws = Laws(directory)
    return laws.ends() if name == "ends" else laws.levels()


if __name__ == "__main__":
    laws = Laws(sys.argv[1] if len(sys.argv) > 1 else "results/laws")
    print(laws.ends(), laws.levels(), sep="\n\n")
