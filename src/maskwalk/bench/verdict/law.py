"""How far a policy's sequences are from those of one-at-a-time decoding, scene by scene.

Coherence alone can be bought: a rule that copies one token, repeats a stored walk, or keeps only
what is likely is coherent more often than the law's own samples. What is not built to draw from the
denoiser's marginals (`decoding/kinds.py`) is therefore measured: the distance of its tokens' ranks
to the law's (`rank_tv`) beside that of left to right, one token at a time, with the same denoiser,
prompts and number of samples; where tokens are given, with eight samples of each prompt.
"""

from dataclasses import replace
from statistics import NormalDist

from maskwalk.bench.cell import Cell
from maskwalk.bench.kinds import REFERENCE
from maskwalk.bench.law_cells import METRIC
from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.stats import NORMAL, Difference, combined

PROMPTS, PER_PROMPT = 32, 8


def law_cell(cell: Cell, conditional: bool) -> Cell:
    """The cell that measures a setting's distance to the law."""
    size = (min(cell.count, PROMPTS), PER_PROMPT) if conditional else (cell.count, 1)
    return replace(cell, count=size[0], per_prompt=size[1], metrics=(METRIC,))


def reference_cell(cell: Cell, conditional: bool) -> Cell:
    """The same of one-at-a-time decoding."""
    return law_cell(replace(cell, sampler=f"{REFERENCE}()"), conditional)


def departure(own: Outcome, reference: Outcome) -> Difference | None:
    """The excess of the distance over the reference's, its interval, and a one-sided p-value."""
    one, other = (outcome.record["metrics"].get(METRIC) for outcome in (own, reference))
    if not one or not other:
        return None
    excess, error = one["value"] - other["value"], combined(one["se"], other["se"])
    p = float(excess <= 0) if error == 0 else NormalDist().cdf(-excess / error)
    return Difference(excess, excess - NORMAL * error, excess + NORMAL * error, p)
