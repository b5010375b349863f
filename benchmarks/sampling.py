"""How long decoding with the network takes, and how much of it is the sampler's own work.

    PYTHONPATH=src python benchmarks/sampling.py                  # 16,384 sequences, accelerator
    PYTHONPATH=src python benchmarks/sampling.py --device cpu --sequences 64
    PYTHONPATH=src python benchmarks/sampling.py --text           # 1,024 texts of 256 tokens

Single-token rounds on fully masked walks of 24 tokens: greedy entropy, which scores every masked
position every round, and random, which asks only where it reveals; exact float64 draws. The share
of the network is measured in the same run, by calling it on the same canvases.

With --text a network of 24 million parameters over 8,192 tokens, 16 tokens a round. Its answers are
a table of up to 8.6 GB, so what is done with logits after the last map counts: `plain` adds the
bias, copies, normalises and checks one after the other, in the same run.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.denoiser import masked_positions
from maskwalk.denoisers.files import load_pretrained
from maskwalk.denoisers.language.base import few_at_a_time
from maskwalk.denoisers.language.mdlm import MDLM
from maskwalk.denoisers.network.ddit import hidden_states, output_map
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.fit_text import Plan

LENGTH = 24
ROUND = 16  # tokens a round of --text


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
        self.score_grid = denoiser.score_grid

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        self.asked.append((tokens.clone(), None if at is None else at.clone()))
        return self.inner(tokens, at)


class Plain(MDLM):
    """The same network; every operation on its logits is a pass of its own over the table."""

    @torch.no_grad()
    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = masked_positions(tokens, self.mask_id, at)
        states, angles = [], self.config.angles(tokens.shape[1], self.device)
        for given, group in few_at_a_time(tokens, at, self.rows):
            hidden = hidden_states(
                self.config, self.weights, given[None], angles, self._modulation
            )[0]
            states.append(hidden[: at[group].numel()][at[group].flatten()])
        answer = torch.empty((int(at.sum()), self.vocab_size), device=tokens.device)
        last = output_map(self.config, self.weights)[0]
        bias = self.weights["output_layer.linear.bias"][0].float()
        for part, some in zip(answer.split(4096), torch.cat(states).split(4096)):
            if last.dtype == torch.float32:
                part.copy_(torch.addmm(bias, some, last.t())[:, : self.vocab_size])
            else:
                found = torch.mm(some, last.t(), out_dtype=torch.float32) + bias
                part.copy_(found[:, : self.vocab_size])
        for part in answer.split(2048):
            part.copy_(torch.log_softmax(part, -1))
            assert not bool(part.amax(1).isnan().any())
        return answer


def texts(args: argparse.Namespace) -> None:
    """Seconds a call of decoding texts, with our answers and with plain ones."""
    config = Plan("masked").config(8192)
    weights = layout(config).initial([0])[0]
    weights += 0.03 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
    narrow, count = args.device != "cpu", min(args.sequences, 1024)
    shape = {"device": args.device, "precision": "float16" if narrow else "float32"}
    kinds = [kind(config, weights, rows=args.rows or 256, **shape) for kind in (MDLM, Plain)]
    ids = torch.arange(count, device=args.device)
    blank = torch.full((count, config.length), config.mask_id, device=args.device)
    print(f"  {'sampler':24s} {'ms a call':>10s} {'plain':>8s} {'ratio':>6s}")
    for name in ("entropy", "confidence", "margin", "random"):
        sampler = SAMPLERS.build(f"{name}(block={ROUND})")
        spent = []
        for model in kinds:
            calls = decode(sampler, model, blank[:1], streams=Streams(0, ids[:1])).calls
            run = partial(decode, sampler, model, blank, streams=Streams(0, ids))
            spent.append(median(run, args.device, 3) / int(calls) * 1e3)
        ratio = spent[1] / spent[0]
        print(f"  {name:24s} {spent[0]:10.1f} {spent[1]:8.1f} {ratio:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sequences", type=int, default=16_384)
    parser.add_argument("--rows", type=int, default=0, help="sequences a network call")
    parser.add_argument("--model", default="", help="a directory or zoo name; default: random")
    parser.add_argument("--text", action="store_true", help="texts, over 8,192 tokens")
    args = parser.parse_args()
    if args.text and args.model:
        parser.error("--text has a network of its own; leave --model out")
    if args.text:
        texts(args)
        return
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
