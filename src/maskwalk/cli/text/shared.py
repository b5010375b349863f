"""What the commands of text share: long work with its bars, and policies to try a model with."""

from pathlib import Path
from typing import TYPE_CHECKING

from maskwalk.cli.common import progress

if TYPE_CHECKING:
    from maskwalk.analysis.judge import Judge

TRIED = (
    "random(block=8)",
    "entropy(block=8)",
    "bisection(order=4)",
    "guided_bisection(order=4, score='entropy')",
)


def judged(run: Path, judge: "Judge", only_read: bool = False) -> int:
    """Reads everything in `run` and judges it, with a bar for each; returns how many texts."""
    from maskwalk.bench.judging import Judging

    work = Judging(run, judge)
    total = work.total
    with progress() as bars:
        texts = bars.add_task(f"{judge.name}, texts", total=total)
        work.told = lambda more: bars.advance(texts, more)
        if only_read:
            for _ in work.read():
                pass
        else:
            settings = bars.add_task("MAUVE, settings", total=len(work.todo))
            for _ in work:
                bars.advance(settings)
    return total
