"""How long decoding with the network takes, and how much of it is the sampler's own work.

    PYTHONPATH=src python benchmarks/sampling.py                  # 16,384 sequences, accelerator
    PYTHONPATH=src python benchmarks/sampling.py --profile        # and the longest kernels
    PYTHONPATH=src python benchmarks/sampling.py --device cpu --sequences 64
    PYTHONPATH=src python benchmarks/sampling.py --text           # 1,024 texts of 256 tokens

Single-token rounds on fully masked walks of 24 tokens: greedy entropy, which scores every masked
position every round, and random, which asks only where it reveals; exact float64 draws. The share
of the network is measured in the same run, by calling it on the same canvases. `all` computes every
place behind the last attention, `asked` only those asked for, `default` those where they are few.
Beside them a loop written as the public MDLM sampler is, with the same network in plain modules.

With --text a network of 24 million parameters over 8,192 tokens, 16 tokens a round. Its answers are
a table of up to 8.6 GB, so what is done with logits after the last map counts: `plain` adds the
bias, copies, normalises and checks one after the other, in the same run.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

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
from maskwalk.streams import Purpose, Streams, _inverse_cdf
from maskwalk.training.fit_text import Plan
from plain_ddit import PlainDDiT

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
    parser.add_argument("--profile", action="store_true", help="the longest kernels")
    args = parser.parse_args()
    if args.text and args.model:
        parser.error("--text has a network of its own; leave --model out")
    if args.text:
        texts(args)
        return
    walks(args)


def network(args: argparse.Namespace, **how: bool | None) -> NetworkDenoiser:
    """The model named, or a random one of the paper's size."""
    options = {"device": args.device, "rows": args.rows or None, **how}
    if args.model:
        return load_pretrained(args.model).denoiser(**options)
    config = DDiTConfig()
    weights = layout(config).initial([0])[0]
    weights += 0.03 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
    return NetworkDenoiser(config, weights, **options)


def walks(args: argparse.Namespace) -> None:
    """Seconds of decoding walks: every place behind the last attention, or those asked for."""
    device, kinds = (
        args.device,
        {
            "all": network(args, asked_only=False),
            "asked": network(args, asked_only=True),
            "default": network(args),
        },
    )
    whole = kinds["all"]
    ids = torch.arange(args.sequences, device=device)
    blank = torch.full((args.sequences, LENGTH), whole.mask_id, device=device)
    name = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    print(f"{name}, torch {torch.__version__}, {args.sequences:,} sequences, {whole.rows} a call")
    if not args.model:
        spent = median(partial(public, PlainDDiT(whole.config).to(device), blank), device, 1)
        print(f"  written as the public MDLM sampler, bfloat16 draws: {spent:.3f} s")
    print(f"  {'sampler':18s} {'places':7s} {'seconds':>8s} {'network':>8s} {'own work':>9s}")
    for spec in ("entropy(block=1)", "random(block=1)"):
        tokens, sampler = {}, SAMPLERS.build(spec)
        for kind, denoiser in kinds.items():

            def run(denoiser=denoiser, sampler=sampler) -> Tensor:
                return decode(sampler, denoiser, blank, streams=Streams(0, ids)).tokens

            recorder = Recorder(denoiser)
            tokens[kind] = run(denoiser=recorder)

            def alone(asked=recorder.asked, denoiser=denoiser) -> None:
                for canvas, at in asked:
                    denoiser(canvas, at)

            total, spent = median(run, device, 3), median(alone, device, 3)
            own = f"{total / spent - 1:.0%}"
            print(f"  {spec:18s} {kind:7s} {total:8.3f} {spent:8.3f} {own:>9s}", flush=True)
            if args.profile:
                profile(run, device)
        for kind in ("asked", "default"):
            differ = int((tokens["all"] != tokens[kind]).any(1).sum())
            print(f"  sequences that differ between all and {kind}: {differ:,}")
    if device != "cpu":
        draws(args.sequences, whole.vocab_size, device)


@torch.no_grad()
def public(model: PlainDDiT, blank: Tensor) -> Tensor:
    """Ancestral sampling as in the public MDLM code: Gumbel noise for all tokens in every step."""
    x, mask = blank.clone(), model.config.mask_id
    times = torch.linspace(1, 1e-5, LENGTH + 1).tolist()
    for now, then in pairwise(times):
        with torch.autocast(blank.device.type, torch.bfloat16, enabled=blank.is_cuda):
            logits = model(x)
        logits[..., mask] = -torch.inf
        weights = torch.log_softmax(logits, -1).exp() * (now - then)
        weights[..., mask] = then
        noise = 1e-10 - (torch.rand_like(weights) + 1e-10).log()
        x = torch.where(x == mask, (weights / noise).argmax(-1), x)
    return x


NETWORK = ("nvjet", "gemm", "cutlass", "splitK", "_forward", "_residual_norm", "_gelu", "gelu")


def profile(run: Callable[[], object], device: str, most: int = 16) -> None:
    """Milliseconds of kernels in one decoding, the longest first, and the network's share."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    activity = ProfilerActivity.CPU if device == "cpu" else ProfilerActivity.CUDA
    with record(activities=[activity], acc_events=True) as told:
        run()
        wait(device)
    spent = "self_cpu_time_total" if device == "cpu" else "self_device_time_total"
    events = sorted(told.key_averages(), key=lambda event: -getattr(event, spent))
    total = sum(getattr(event, spent) for event in events)
    within = [e for e in events if any(name in e.key for name in NETWORK)]
    share = sum(getattr(event, spent) for event in within) / total
    print(f"    kernels {total / 1e3:.1f} ms, products, attention, norms and GELU {share:.0%}:")
    for event in events[:most]:
        print(f"    {getattr(event, spent) / 1e3:9.2f} ms {event.count:6d} x  {event.key[:80]}")


def draws(rows: int, vocab: int, device: str) -> None:
    """Microseconds of a draw by inverse CDF: passes of torch, and one kernel."""
    from maskwalk.kernels.inverse_cdf import inverse_cdf as fused

    table = torch.randn((rows, vocab), device=device, dtype=torch.float64).log_softmax(-1)
    u = Streams(0, torch.arange(rows, device=device)).uniform(Purpose.TOKEN, 0, 1)[:, 0]
    differ = int((fused(table, u) != _inverse_cdf(table, u)).sum())
    old, new = (median(partial(f, table, u), device, 20) * 1e6 for f in (_inverse_cdf, fused))
    told = f"{old:.0f} us by passes, {new:.0f} us by a kernel; {differ} of them differ"
    print(f"  a draw of {rows:,} tokens: {told}")


if __name__ == "__main__":
    main()
