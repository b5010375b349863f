"""Trains the zoo, all models in one batched run, and packs it.

    PYTHONPATH=src python benchmarks/train_zoo.py --out zoo            # the seven shipped models
    PYTHONPATH=src python benchmarks/train_zoo.py --models ablations --out runs/ablations
    PYTHONPATH=src python benchmarks/train_zoo.py --models worlds --steps 30000 --lr 0.002
    PYTHONPATH=src python benchmarks/train_zoo.py --models frontier --lr 0.001 --out runs/front

Weights and the manifest go to --out (eight files), the run's own files to --work. If the machine
goes away, the same command with --resume continues from the last checkpoint in --work.
"""

import argparse
import time
from pathlib import Path

import torch

from maskwalk.training.fit import fit_zoo
from maskwalk.training.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["zoo"])
    parser.add_argument("--out", default="zoo")
    parser.add_argument("--work", default="runs/zoo")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0, help="of the weights of the first model")
    parser.add_argument("--every", type=int, default=2_000)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--commit", help="recorded in the manifest [the checkout's]")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    begun = time.monotonic()
    models = fit_zoo(
        args.models,
        Path(args.out),
        Path(args.work),
        settings=Settings(
            steps=args.steps, lr=args.lr, batch=args.batch, every=min(args.every, args.steps)
        ),
        seed=args.seed,
        device=args.device,
        resume=args.resume,
        samples=args.samples,
        commit=args.commit,
    )
    print(f"{len(models)} models in {time.monotonic() - begun:.0f} s, everything included")
    for name, model in models.items():
        about = model.about
        scores = [f"{key} {about[key]:.3f}" for key in about if key.startswith("coherence")]
        if "bound" in about:
            bound = f"bound {about['bound']:.4f} ± {about['bound_se']:.4f}"
        else:  # an output with exact zeros
            bound = f"p = 0: {about['impossible']:.4f}, bound of the rest {about['bound_rest']:.4f}"
        bound += f" floor {about['floor']:.4f}"
        print(f"  {name:20s} {bound}  {', '.join(scores)}")


if __name__ == "__main__":
    main()
