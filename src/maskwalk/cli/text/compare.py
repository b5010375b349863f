"""`maskwalk text compare`: what the records of a run say of its policies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import out
from maskwalk.errors import MaskwalkError

if TYPE_CHECKING:
    from maskwalk.report.comparison import Difference


COLUMNS = 6  # metrics that fit beside each other


def compare(
    run: Annotated[Path, typer.Argument(help="A run of the language experiment.")],
    samplers: Annotated[
        list[str] | None, typer.Argument(help="Two policies; or none for the whole picture.")
    ] = None,
    mode: Annotated[str, typer.Option(help="How tokens were drawn.")] = "exact",
    as_json: common.AsJson = False,
) -> None:
    """Two policies of a run, metric by metric; or what predicts what, and what truncation does.

    Differences are ± half of a 95 % interval; * marks those that leave zero out. The replay of a
    stochastic policy is an upper bound (≤): it may be ahead by it, but none is said to be ahead.

    Example: maskwalk text compare results/language 'bisection(order=8)' 'random(block=6)'

    Example: maskwalk text compare results/language
    """
    import json
    from dataclasses import asdict

    from maskwalk.bench.labels import samplers as labelled
    from maskwalk.bench.versions import load_newest
    from maskwalk.report import comparison
    from maskwalk.worlds.metrics import METRICS

    records = [r for r in load_newest(run)[0] if r.get("texts") is not None]
    if not records:
        raise MaskwalkError(f"{run} holds no records of texts; `maskwalk compare` reads walks.")
    if samplers:
        if len(samplers) != 2:
            raise MaskwalkError(f"Give two samplers to compare, or none, not {len(samplers)}.")
        one, other = (comparison.find(records, name, mode) for name in samplers)
        found = comparison.differences(one, other)
        if as_json:
            print(json.dumps([asdict(row) for row in found]))
            return
        table = common.plain_table("metric", "first", "second", "difference")
        for row in found:
            numbers = [(r["metrics"][row.metric] or {}) for r in (one, other)]
            values = [f"{number['value']:.4f}" for number in numbers]
            table.add_row(row.metric, *values, _shown(row))
        out.print(table)
        return
    predictions = comparison.predictions(records)
    drawn = list(dict.fromkeys(record["mode"] for record in records))
    cuts = comparison.truncations(records) if len(drawn) > 1 else {}
    same = comparison.agreements(records) if len(drawn) > 1 else {}
    if as_json:
        cut_rows = {name: [asdict(row) for row in rows] for name, rows in cuts.items()}
        found_all = {"predictions": [asdict(p) for p in predictions], "truncation": cut_rows}
        print(json.dumps(found_all | {"agreement": same}))
        return
    table = common.plain_table("draw", "does", "predict", "rank correlation", "p", "settings")
    for p in predictions:
        chance = "< .001" if p.p < 0.001 else f"{p.p:.3f}"
        table.add_row(p.mode, p.one, p.other, f"{p.rho:+.2f}", chance, str(p.n))
    out.print(table)
    if not cuts:
        return
    out.print(f"\n{drawn[1]} minus {drawn[0]}; * where the 95 % interval leaves zero out:")
    metrics = list(dict.fromkeys(row.metric for rows in cuts.values() for row in rows))
    names = [name for name in metrics if METRICS.describe(name).drawn][:COLUMNS]
    table = common.plain_table("policy", *names)
    for policy in labelled(list(cuts)):
        by_metric = {row.metric: row for row in cuts[policy.spec]}
        table.add_row(
            policy.label, *(_brief(by_metric[n]) if n in by_metric else "–" for n in names)
        )
    out.print(table)
    ranks = ", ".join(f"{name} {rho:+.3f}" for name, rho in same.items())
    out.print(f"Rank correlation of the policies under the two draws: {ranks}.")


def _brief(row: "Difference") -> str:
    return f"{row.value:+.3f}{'*' if row.clear else ' '}"


def _shown(row: "Difference") -> str:
    half = "–" if row.half is None else f"{row.half:.3f}"
    remarks = " paired" * row.paired + (f", {row.bound} ≤" if row.bound else "")
    return f"{row.value:+.3f} ± {half}{'*' if row.clear else ' '}{remarks}"
