"""How long decoding with the network takes, and how much of it is the sampler's own work.

    PYTHONPATH=src python benchmarks/sampling.py                  # 16,384 sequences, accelerator
    PYTHONPATH=src python benchmarks/sampling.py --device cpu --sequences 64

Single-token rounds on fully masked walks of 24 tokens: greedy entropy, which scores every masked
position every round, and random, which asks only where it reveals; exact float64 draws. The share
of the network is measured in the same run, by calling it on the same canvases.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from maskwalk.decoding import decode
from maskwalk.denoisers.network import NetworkDenoiser
from maskwalk.denoisers.pretrained import load_pretrained
from maskwalk.denoisers.weights import DDiTConfig, layout
from maskwalk.draws import Streams
from maskwalk.samplers import SAMPLERS

LENGTH = 24


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def median(run: Callable[[], object], device: str, repeats: int) -> float:
    run()
    times = []
    for _ in range(repeats):
        wait(device)
        begun = time.perf_counter()
        run()
        wait(device)
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2]


class Recorder:
    """Remembers the canvases a sampler asked about."""

    def __init__(self, denoiser: NetworkDenoiser) -> None:
        self.inner, self.asked = denoiser, []
        self.vocab_size, self.mask_id = denoiser.vocab_size, denoiser.mask_id
        self.grid = denoiser.grid

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        self.asked.append((tokens.clone(), None if at is None else at.clone()))
        return self.inner(tokens, at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sequences", type=int, default=16_384)
    parser.add_argument("--rows", type=int, default=0, help="sequences a network call")
    parser.add_argument("--model", default="", help="a directory or zoo name; default: random")
    args = parser.parse_args()
    device, options = args.device, {"device": args.device, "rows": args.rows or None}
    if args.model:
        denoiser = load_pretrained(args.model).denoiser(**options)
    else:
        config = DDiTConfig()
        weights = layout(config).initial([0])[0]
        weights += 0.03 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
        denoiser = NetworkDenoiser(config, weights, **options)
    ids = torch.arange(args.sequences, device=device)
    blank = torch.full((args.sequences, LENGTH), denoiser.mask_id, device=device)
    name = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    print(
        f"{name}, torch {torch.__version__}, {args.sequences:,} sequences, {denoiser.rows} a call"
    )
    print(f"  {'sampler':20s} {'seconds':>8s} {'network':>8s} {'own work':>9s}")
    for spec in ("entropy(block=1)", "random(block=1)"):
        sampler = SAMPLERS.build(spec)

        def run(sampler=sampler, denoiser=denoiser) -> Tensor:
            return decode(sampler, denoiser, blank, streams=Streams(0, ids)).tokens

        recorder = Recorder(denoiser)
        run(denoiser=recorder)

        def network(asked=recorder.asked) -> None:
            for tokens, at in asked:
                denoiser(tokens, at)

        total = median(run, device, 3)
        spent = median(network, device, 3)
        print(f"  {spec:20s} {total:8.3f} {spent:8.3f} {total / spent - 1:9.0%}", flush=True)


if __name__ == "__main__":
    main()
