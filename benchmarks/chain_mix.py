"""Which mix of separations fits the paper's chain, and how many prompts its spread speaks of.

    PYTHONPATH=src python benchmarks/chain_mix.py [results/paper] [as_published | exact]

The paper's bottleneck-conditional column of the chain of ten communities is a mean over prompts
whose ends are 1 to 9 communities apart; it does not say in which proportions. Our records have the
coherence at every separation, so a mix w ≥ 0, Σ w = 1 gives every printed cell a value:

    uniform    the separations 1 … H equally often, for H = 1 … 9
    fitted     the w of least squares over the cells printed above .05, all or without one sampler

Spread: the paper prints the standard deviation of four group means. With n prompts a group it is
s·√(3/4)/√n on average, s² being the variance of a prompt's coherence, which our records imply:
n = (3/4)·(s/spread)², with a 95 % interval by the chi-square law of three degrees of freedom.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.stats import chi2

from maskwalk.bench.records import Record, load_records
from maskwalk.paper.compare import ABOVE, mode_of
from maskwalk.paper.tables import printed, published_cell

COLUMN, GUIDED = "chain_m10", "guided_bisection(order=1, score='entropy')"


def cells(records: list[Record], mode: str = "as_published") -> list[dict[str, Any]]:
    """The chain's cells printed above .05: ours by separation, and the printed numbers."""
    result = []
    for record in records:
        where = published_cell(record)
        if where is None or where[0] != "bottleneck_conditional" or where[2] != COLUMN:
            continue
        number, coherence = printed(*where), record["metrics"]["coherence"]
        if mode_of(record) == mode and number["value"] > ABOVE and coherence:
            by = record["metrics"]["coherence_by_separation"]["by"]
            result.append(
                {
                    "sampler": record["sampler"],
                    "ours": coherence["value"],
                    "printed": number["value"],
                    "printed_sd": number["sd"],
                    "by": [part["value"] for part in by],
                    "prompt_sd": coherence["se"] * record["count"] ** 0.5,
                }
            )
    return result


def fitted(some: list[dict[str, Any]], without: str | None = None) -> dict[str, Any]:
    """The mix of least squares; weights sum to one by a heavy extra equation."""
    used = [cell for cell in some if cell["sampler"] != without]
    table = np.array([cell["by"] for cell in used])
    goal = np.array([cell["printed"] for cell in used])
    heavy = 1e4
    weights, _ = nnls(
        np.vstack([table, heavy * np.ones(table.shape[1])]), np.append(goal, heavy), maxiter=1000
    )
    return {"weights": weights.tolist(), "rmse": _rmse(table @ weights, goal)}


def uniform(some: list[dict[str, Any]], without: str | None = None) -> list[float]:
    """The RMSE of separations 1 … H equally often, for every H."""
    used = [cell for cell in some if cell["sampler"] != without]
    table = np.array([cell["by"] for cell in used])
    goal = np.array([cell["printed"] for cell in used])
    return [_rmse(table[:, :far].mean(1), goal) for far in range(1, table.shape[1] + 1)]


def prompts_a_group(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every cell how many prompts a group its printed spread speaks of, with an interval."""
    result = []
    for cell in some:
        ratio = (cell["prompt_sd"] / cell["printed_sd"]) ** 2 / 4
        low, high = (ratio * q for q in chi2.ppf([0.025, 0.975], 3))
        result.append({"sampler": cell["sampler"], "n": 3 * ratio, "low": low, "high": high})
    return result


def _rmse(one: Any, other: Any) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


def verify(name: str, where: str) -> str:
    """A table for `maskwalk verify`: the fits of mixes, or what the paper prints."""
    records = load_records(Path(where))
    if name == "mix":
        some = cells(records)
        errors = [(f"1 to {n}", error) for n, error in enumerate(uniform(some, GUIDED), 1)]
        lines = [f"| {far} | {error} |" for far, error in errors]
        rest = [cell for cell in some if cell["sampler"] != GUIDED]
        ours, goal = (np.array([cell[key] for cell in rest]) for key in ("ours", "printed"))
        lines.append(f"| ours | {_rmse(ours, goal)} |")
        lines.append(f"| best mix | {fitted(some, GUIDED)['rmse']} |")
        return "\n".join(("| separations | RMSE |", "|---|---|", *lines))
    lines = ["| sampler | endpoints | bottleneck |", "|---|---|---|"]
    for called, sampler in (("guided", GUIDED), ("entropy", "entropy(block=1)")):
        texts = {}
        for record in records:
            cell = published_cell(record) if record["sampler"] == sampler else None
            if cell is not None and cell[2] == COLUMN:
                number = printed(*cell)
                texts[cell[0]] = f"{number['value']} ± {number['sd']}"
        tables = (texts["endpoint_conditional"], texts["bottleneck_conditional"])
        lines.append(f"| {called} | {' | '.join(tables)} |")
    return "\n".join(lines)


def main() -> None:
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "results/paper")
    mode = sys.argv[2] if len(sys.argv) > 2 else "as_published"
    some = cells(load_records(where), mode)
    spreads = prompts_a_group(some)
    print(f"{'sampler':45s} ours printed fitted prompts a group")
    mix, rest = fitted(some), fitted(some, GUIDED)
    for cell, spread in zip(some, spreads):
        value = float(np.dot(cell["by"], rest["weights"]))
        group = f"{spread['n']:.0f} ({spread['low']:.0f} to {spread['high']:.0f})"
        print(f"{cell['sampler']:45s} {cell['ours']:.3f} {cell['printed']:.3f} {value:.3f} {group}")
    for name, found in (("all cells", mix), ("without guided bisection", rest)):
        weights = " ".join(f"{w:.2f}" for w in found["weights"])
        print(f"fitted, {name}: RMSE {found['rmse']:.3f}, weights of separations 1 … 9: {weights}")
    for name, without in (("all cells", None), ("without guided bisection", GUIDED)):
        errors = " ".join(f"{error:.3f}" for error in uniform(some, without))
        print(f"separations 1 … H equally often, {name}: RMSE for H = 1 … 9: {errors}")


if __name__ == "__main__":
    main()
