"""Trains the zoo, all models in one batched run, and packs it.

    PYTHONPATH=src python benchmarks/train_zoo.py --out zoo            # the seven shipped models
    PYTHONPATH=src python benchmarks/train_zoo.py --models ablations --out runs/ablations

Weights and the manifest go to --out (eight files), the run's own files to --work. If the machine
goes away, the same command with --resume continues from the last checkpoint in --work.
"""

import argparse
import subprocess
import time
from datetime import UTC, datetime

import torch

from maskwalk.decoding import decode
from maskwalk.denoisers.network import NetworkDenoiser
from maskwalk.draws import Streams
from maskwalk.samplers import SAMPLERS
from maskwalk.training.settings import Settings
from maskwalk.training.zoo import chosen, train_zoo

WATCHED = {"coherence": "entropy(block=1)", "coherence_bisection": "bisection(order=1)"}


def commit() -> str | None:
    """The commit that is checked out, where git can say."""
    try:
        said = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    except OSError:
        return None
    return said.stdout.strip() or None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["zoo"])
    parser.add_argument("--out", default="zoo")
    parser.add_argument("--work", default="runs/zoo")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--every", type=int, default=2_000)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--commit", default=commit(), help="recorded in the manifest")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    laws = {name: recipe.law() for name, recipe in chosen(args.models).items()}
    ids = torch.arange(args.samples, device=args.device)

    def validate(name: str, denoiser: NetworkDenoiser) -> dict[str, float]:
        """Unconditional coherence with exact draws."""
        blank = torch.full((args.samples, 24), denoiser.mask_id, device=args.device)
        found = {}
        for key, spec in WATCHED.items():
            walks = decode(SAMPLERS.build(spec), denoiser, blank, streams=Streams(0, ids)).tokens
            found[key] = float(laws[name].valid(walks.cpu()).all(1).double().mean())
        return found

    device = torch.cuda.get_device_name() if args.device != "cpu" else "CPU"
    begun = time.monotonic()
    models = train_zoo(
        args.models,
        args.out,
        args.work,
        settings=Settings(steps=args.steps, every=args.every),
        device=args.device,
        resume=args.resume,
        validate=validate,
        extra={
            "commit": args.commit,
            "device": device,
            "trained": datetime.now(UTC).date().isoformat(),
            "trained_together": len(laws),
        },
    )
    print(f"{len(models)} models in {time.monotonic() - begun:.0f} s, everything included")
    for name, model in models.items():
        about = model.about
        print(
            f"  {name:14s} bound {about['bound']:.4f} ± {about['bound_se']:.4f}  "
            f"floor {about['floor']:.4f}  coherence: entropy {about['coherence']:.3f}, "
            f"bisection {about['coherence_bisection']:.3f}"
        )


if __name__ == "__main__":
    main()
