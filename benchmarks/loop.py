"""What the decoding loop costs a round beside a plain one, at small batches on a CPU.

    PYTHONPATH=src python benchmarks/loop.py                       # batch 1, 8 and 64
    PYTHONPATH=src python benchmarks/loop.py --profile             # and where our time goes
    PYTHONPATH=src python benchmarks/loop.py --batch 1 --temperature 0 --vocab 500 4000

One position a round on 64 masked positions over 500 tokens, or what `--vocab` says. The plain loop
is written as LLaDA's: Gumbel noise in float64, argmax, the probability of every position (or a
random number), top-k row by row. Both ask the same tiny network, which is timed alone on as many
canvases. All take turns in one process on one thread; the seconds are the processor's and the best
of several times counts. At temperature 0 both have to give the same tokens. *Unchecked* is our own
work again, with the check of answers (NaN, log-probabilities above 0, sums) taken out.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from maskwalk.decoding import counting
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.kernels.small import small, true_places
from maskwalk.streams import Streams

LENGTH, WIDTH = 64, 32
RULES = [  # LLaDA's remasking and temperature, and the same rule here
    ("low_confidence", 0.0, f"low_confidence(steps={LENGTH})"),
    ("low_confidence", 1.0, f"low_confidence(steps={LENGTH})"),
    ("random", 1.0, f"random(steps={LENGTH})"),
    ("low_confidence", 1.0, "confidence(block=1)"),
    ("low_confidence", 1.0, "entropy(block=1)"),
]


class Tiny(nn.Module):
    """Embeds, mixes every position with the mean of all, and maps to logits."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(vocab + 1, WIDTH)
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.last = nn.Linear(WIDTH, vocab)

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.place
        return self.last(torch.tanh(x + x.mean(1, keepdim=True)))


class Asked:
    """The network as a Denoiser."""

    score_grid = 1e-9

    def __init__(self, network: nn.Module, vocab: int) -> None:
        self.network, self.vocab_size, self.mask_id = network, vocab, vocab

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        asked = self.network(tokens).flatten(0, 1).index_select(0, true_places(small(at)))
        return torch.log_softmax(asked, -1)


def plain(network: nn.Module, start: Tensor, remasking: str, temperature: float) -> Tensor:
    """LLaDA's loop in one block that is all mask, with as many steps as positions."""
    x, mask = start.clone(), start[0, 0]
    counts = torch.ones(start.shape, dtype=torch.int64)
    for step in range(LENGTH):
        masked = x == mask
        logits = network(x)
        noisy = logits
        if temperature > 0:
            noise = (-torch.log(torch.rand_like(logits, dtype=torch.float64))) ** temperature
            noisy = logits.to(torch.float64).exp() / noise
        drawn = noisy.argmax(-1)
        if remasking == "low_confidence":
            probs = torch.softmax(logits, -1)
            sure = probs.gather(-1, drawn[..., None])[..., 0]
        else:
            sure = torch.rand(drawn.shape)
        sure[:, LENGTH:] = -torch.inf  # what lies behind the block
        drawn = torch.where(masked, drawn, x)
        sure = torch.where(masked, sure, -torch.inf)
        kept = torch.zeros_like(drawn, dtype=torch.bool)
        for row in range(len(x)):
            _, places = sure[row].topk(int(counts[row, step]))
            kept[row, places] = True
        x[kept] = drawn[kept]
    return x


def best_of(times: int, *functions: Callable[[], object]) -> list[float]:
    """Milliseconds per round each takes at its best, in turns."""
    seconds = [float("inf")] * len(functions)
    for _ in range(times):
        for number, function in enumerate(functions):
            begin = time.process_time()
            function()
            seconds[number] = min(seconds[number], time.process_time() - begin)
    return [1e3 * s / LENGTH for s in seconds]


def loops(batch: int, vocab: int, rule: tuple[str, float, str]) -> dict[str, Callable[[], object]]:
    """The network alone, the plain loop, ours, and ours without the check of answers."""
    remasking, temperature, spec = rule
    network = Tiny(vocab)
    asked, start = Asked(network, vocab), torch.full((batch, LENGTH), vocab)
    streams, draw = Streams(0, batch), Draw(temperature=temperature)
    ties = "index" if temperature == 0 else "uniform"

    def alone() -> None:
        for _ in range(LENGTH):
            network(start)

    def theirs() -> Tensor:
        return plain(network, start, remasking, temperature)

    def ours() -> Tensor:
        return decode(spec, asked, start, streams=streams, draw=draw, ties=ties).tokens

    def unchecked() -> Tensor:
        with patch.object(counting, "check_answer", lambda *_: None):
            return ours()

    if temperature == 0:
        assert torch.equal(ours(), theirs())
    return {"network": alone, "plain": theirs, "ours": ours, "unchecked": unchecked}


def row(
    batch: int, vocab: int, rule: tuple[str, float, str], times: int, profile: bool
) -> list[str]:
    """Milliseconds per round of the network, the plain loop and ours."""
    each = loops(batch, vocab, rule)
    spent = best_of(times, *each.values())
    if profile:
        with cProfile.Profile() as told:
            each["ours"]()
        pstats.Stats(told).sort_stats("tottime").print_stats(25)
    own = [one - spent[0] for one in spent[1:]]
    numbers = [f"{x:.3f}" for x in (spent[0], *own)]
    about = [f"{vocab:,}", str(batch), rule[2], f"{rule[1]:g}"]
    return [*about, *numbers, f"{own[1] / own[0]:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--vocab", type=int, nargs="+", default=[500])
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--only", default="", help="rules whose name holds this")
    parser.add_argument("--temperature", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--profile", action="store_true", help="where our time goes")
    given = parser.parse_args()
    torch.set_num_threads(1)
    columns = "tokens", "batch", "rule", "T", "network", "plain's own", "our own", "unchecked"
    shown = Table(*columns, "ratio", title="milliseconds per round")
    for vocab in given.vocab:
        for batch in given.batch:
            for rule in RULES:
                if given.only in rule[2] and rule[1] in given.temperature:
                    shown.add_row(*row(batch, vocab, rule, given.times, given.profile))
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
