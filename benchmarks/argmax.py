"""What the draw at temperature 0 costs beside a plain argmax, over large vocabularies.

    PYTHONPATH=src python benchmarks/argmax.py

Two questions, at the vocabularies of BERT and LLaDA. One draw: `draw(temperature=0)` of a table of
log-marginals against `argmax` of it. A whole decoding: `blocks(32, low_confidence(steps=32))` of 64
masked positions behind a prompt of 16, one per step, against a loop written as LLaDA's (softmax and
argmax of every position, top-k of what is masked). The network is a fixed table of logits, so what
is measured is the decoding. All take turns in one process on one thread; the seconds are the
processor's, the best of several times counts, and both decodings have to give the same tokens.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.streams import Streams

PROMPT, ANSWER, BLOCK = 16, 64, 32
ROWS = 128  # of the table that is drawn from once


@dataclass
class Fixed:
    """A network that says the same of a position whatever the canvas, as a Denoiser."""

    logits: Tensor
    score_grid: float = 1e-12

    def __post_init__(self) -> None:
        self.vocab_size = self.mask_id = self.logits.shape[1]

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        return torch.log_softmax(self.logits[at.nonzero()[:, 1]], -1)


def plain(logits: Tensor, start: Tensor, mask: int) -> Tensor:
    """LLaDA's loop at temperature 0: in every block as many steps as positions."""
    x = start.clone()
    for begin in range(PROMPT, PROMPT + ANSWER, BLOCK):
        for _ in range(BLOCK):
            answer = logits.clone()[None]
            best = answer.argmax(-1)
            sure = torch.softmax(answer, -1).gather(-1, best[..., None])[..., 0]
            sure[:, begin + BLOCK :] = -torch.inf
            sure = torch.where(x == mask, sure, -torch.inf)
            index = sure.topk(1, -1).indices
            x.scatter_(1, index, best.gather(1, index))
    return x


def best_of(times: int, *functions: Callable[[], Tensor]) -> list[float]:
    """Seconds each takes at its best, in turns."""
    seconds = [float("inf")] * len(functions)
    for _ in range(times):
        for number, function in enumerate(functions):
            begin = time.process_time()
            function()
            seconds[number] = min(seconds[number], time.process_time() - begin)
    return seconds


def measure(vocab: int, times: int) -> tuple[list[float], list[float]]:
    """Seconds of (argmax, the draw) and of (the plain loop, ours)."""
    random = torch.Generator().manual_seed(vocab)
    table = torch.randn((ROWS, vocab), generator=random).log_softmax(-1)
    rows, positions = torch.zeros(ROWS, dtype=torch.int64), torch.arange(ROWS)
    draw, streams = Draw(temperature=0), Streams(0, 1)
    assert torch.equal(draw(table, streams, 0, rows, positions), table.argmax(-1))
    once = best_of(
        5 * times, lambda: table.argmax(-1), lambda: draw(table, streams, 0, rows, positions)
    )
    network = Fixed(torch.randn((PROMPT + ANSWER, vocab), generator=random) * 2)
    start = torch.full((1, PROMPT + ANSWER), network.mask_id)
    start[:, :PROMPT] = 1

    def ours() -> Tensor:
        spec = f"blocks(size={BLOCK}, inner=low_confidence(steps={BLOCK}))"
        return decode(spec, network, start, streams=streams, draw=draw, ties="index").tokens

    def theirs() -> Tensor:
        return plain(network.logits, start, network.mask_id)

    assert torch.equal(ours(), theirs())
    return once, best_of(times, theirs, ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocab", type=int, nargs="+", default=[30_522, 126_464])
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    shown = Table("vocabulary", "", "plain, ms", "maskwalk, ms", "ratio")
    for vocab in given.vocab:
        for words, (one, other) in zip(
            ("one draw", "a decoding"), measure(vocab, given.times), strict=True
        ):
            numbers = (f"{1e3 * one:.1f}", f"{1e3 * other:.1f}", f"{other / one:.2f}")
            shown.add_row(f"{vocab:,}", words, *numbers)
    Console().print(shown)


if __name__ == "__main__":
    main()
