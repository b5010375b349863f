"""What a masking costs in training, against uniform masks.

    python benchmarks/maskings.py                                        # a small network on a CPU
    python benchmarks/maskings.py --device cuda --hidden 256 --batch 256 --steps 4000 --every 1000

The same network on the same walks, one masking after another in one process, each twice, in turns.
A masking that looks at the model fills its table every `--every` steps, with an entry for every
eighth sample shown until the next look (32,768 for 1,000 steps of 256, as in docs/frontier.md).
The seconds are the processor's on a CPU and the clock's on an accelerator, the lesser of two runs,
less those of a run of one look only.
"""

import argparse
import tempfile
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.training.loop import train
from maskwalk.training.settings import Job, Settings
from maskwalk.training.zoo import LENGTH, RECIPES, TRAIN_SEED

LOOKING = "{name}(share=0.5, rest='coarse', every={every}, sequences={sequences}{more})"
MASKINGS = {
    "uniform": "uniform",
    "coarse": "coarse(share=0.9)",
    "planner": "coarse(share=0.9, planner=1.0)",
    "along": LOOKING.replace("{more}", ", sampler=guided_bisection()"),
    "distil": LOOKING.replace("{more}", ""),
    "mistakes": LOOKING.replace("{more}", "").replace("0.5", "0.25"),
}


def seconds(work: Callable[[], object], device: str) -> float:
    """How long it takes."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    began = clock()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=100, help="steps between two looks")
    args = parser.parse_args()
    config = DDiTConfig(500, LENGTH, hidden=args.hidden, cond=16, heads=2)
    walks = RECIPES["st_er_deg7"].law().sample(20_000, seed=TRAIN_SEED)
    sequences = max(1, args.every * args.batch // 8)

    def run(name: str, steps: int) -> None:
        spec = MASKINGS[name].format(name=name, every=args.every, sequences=sequences)
        settings = Settings(steps=steps, batch=args.batch, lr=1e-3, every=steps)
        job = Job(name, walks, dropout=0.0, masking=spec)
        with tempfile.TemporaryDirectory() as out:
            train(config, [job], settings, out, device=args.device, live=False)

    run("uniform", 2)  # warm
    first, whole = {}, {}
    for _ in range(2):
        for name in MASKINGS:
            for steps, kept in ((args.every, first), (args.every + args.steps, whole)):
                taken = seconds(lambda name=name, steps=steps: run(name, steps), args.device)
                kept[name] = min(taken, kept.get(name, taken))
    table = Table("masking", "ms per step", "tokens/s", "times uniform")
    each = {name: (whole[name] - first[name]) / args.steps for name in MASKINGS}
    for name, taken in each.items():
        rate = args.batch * LENGTH / taken
        table.add_row(name, f"{1e3 * taken:.2f}", f"{rate:,.0f}", f"{taken / each['uniform']:.2f}")
    about = f"hidden {args.hidden}, {args.batch} walks per step, {args.device}"
    Console().print(f"{about}, torch {torch.__version__}, tables of {sequences:,}", table)


if __name__ == "__main__":
    main()
