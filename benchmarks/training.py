"""How long a training step takes, and where the time goes.

    PYTHONPATH=src python benchmarks/training.py                  # an accelerator, about 2 minutes
    PYTHONPATH=src python benchmarks/training.py --only eager,zoo # just these two
    PYTHONPATH=src python benchmarks/training.py --device cpu
    PYTHONPATH=src python benchmarks/training.py --text masked    # or causal: the models of text

The paper's model and batch (256 walks of 24 tokens), or with --text the 24-million-parameter models
of text (256 passages of 256 tokens out of 8,192). `eager` is written as the public trainer is:
autocast, AdamW, an averaging loop over parameters, `.item()` every step. The floor is the step's
matrix arithmetic at the rate measured for one large product on the same device; with --text also
the share of the H200's 989 TFLOP/s that the arithmetic of a step reaches (utilisation).
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable

import torch

from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.training.fit_text import Plan
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Stepper, arithmetic
from plain_ddit import PlainDDiT

MODELS = 7
PEAK = 989e12  # dense bfloat16 of an H200, as its maker states


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(run: Callable[[int], object], steps: int, device: str) -> float:
    """Seconds a step: the median of three runs after a warm-up."""
    run(max(1, steps // 4))
    wait(device)
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        run(steps)
        wait(device)
        times.append((time.perf_counter() - begun) / steps)
    return sorted(times)[1]


def jobs(config: DDiTConfig, count: int) -> list[Job]:
    generator = torch.Generator().manual_seed(0)
    shape = (2_400_000 // config.length, config.length)
    walks = [torch.randint(0, config.vocab_size, shape, generator=generator) for _ in range(count)]
    return [Job(f"model{i}", w, i) for i, w in enumerate(walks)]


def eager(config: DDiTConfig, settings: Settings, device: str) -> Callable[[int], None]:
    torch.manual_seed(0)
    model = PlainDDiT(config, dropout=0.1).to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=0.0)
    average = [p.detach().clone() for p in model.parameters()]
    walks, n = jobs(config, 1)[0].walks.to(device), settings.batch
    state = {"updates": 0}

    def step() -> float:
        x = walks[torch.randint(0, len(walks), (n,), device=device)]
        t = (torch.rand(n, device=device) + torch.arange(n, device=device)) / n
        t = (t % 1) * (1 - 1e-3) + 1e-3
        masked = torch.rand(x.shape, device=device) < (1 - 1e-3) * t[:, None]
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
            logits = model(x if config.causal else torch.where(masked, config.mask_id, x))
        logits = logits.float()
        logits[..., config.mask_id] = -torch.inf
        log_p = torch.log_softmax(logits, -1).gather(-1, x[..., None])[..., 0]
        if not config.causal:
            log_p = torch.where(masked, log_p, 0.0) / t[:, None]
        loss = -log_p.sum() / x.numel()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        state["updates"] += 1
        decay = min(settings.ema, (1 + state["updates"]) / (10 + state["updates"]))
        with torch.no_grad():
            for mean, parameter in zip(average, model.parameters()):
                mean.sub_((1 - decay) * (mean - parameter))
        return loss.item()

    def run(steps: int) -> None:
        for _ in range(steps):
            step()

    return run


def rate(device: str) -> float:
    """Operations a second of one large matrix product on random data."""
    size, kind = (8192, torch.bfloat16) if device != "cpu" else (1024, torch.float32)
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))

    def run(times: int) -> None:
        for _ in range(times):
            a @ b

    return 2 * size**3 / seconds(run, 10, device)


KINDS = {
    "matrix products": ("nvjet", "gemm", "cutlass", "splitK", "Memset"),
    "attention": ("_forward", "_backward"),
    "norms, residuals, dropout": ("_join",),
    "GELU": ("_gelu",),
    "clip, AdamW, average": ("lerp", "_pow_sum"),
    "loss": ("logsumexp", "eq_exp", "arange_div_eq"),
}


def profile(stepper: Stepper, models: int, steps: int = 20) -> None:
    """Microseconds of kernels by kind, for one step of all models."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CUDA], acc_events=True) as found:
        stepper.advance(steps)
        torch.cuda.synchronize()
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for event in found.key_averages():
        if event.self_device_time_total:
            kinds = [k for k, names in KINDS.items() if any(n in event.key for n in names)]
            totals[kinds[0] if kinds else "the rest"][0] += event.self_device_time_total / steps
            totals[kinds[0] if kinds else "the rest"][1] += event.count / steps
    print(f"\nWhere a step of {models} model(s) goes (microseconds of kernels, how many):")
    for kind, (spent, count) in sorted(totals.items(), key=lambda item: -item[1][0]):
        print(f"  {kind:28s} {spent:8.0f} {count:6.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="", help="of eager, compiled, graph and zoo, with commas")
    parser.add_argument("--text", default="", help="masked or causal")
    args = parser.parse_args()
    config, settings, device = DDiTConfig(), Settings(), args.device
    only = args.only.split(",") if args.only else ["eager", "compiled", "graph", "zoo"]
    steps = 200 if device != "cpu" else 2
    if args.text:
        plan = Plan(args.text)
        config, settings, steps = plan.config(8192), plan.settings, max(2, steps // 5)
    name = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    work = arithmetic(config, settings.batch, config.length)
    floor = work / rate(device) * 1e3
    print(f"{name}, torch {torch.__version__}; ms per step and model")
    rows: list[tuple[str, float]] = []

    def measure(kind: str, label: str, models: int, make: Callable[[], Callable]) -> None:
        if kind not in only:
            return
        begun = time.perf_counter()
        run = make()
        spent = seconds(run, steps if kind != "eager" else max(2, steps // 4), device)
        rows.append((label, spent * 1e3 / models))
        took = time.perf_counter() - begun
        told = f"all of it took {took:.0f} s"
        if args.text:
            tokens = settings.batch * config.length / spent
            told = f"{tokens / 1e6:.3f} million tokens/s, {work / spent / PEAK:.1%} of peak; {told}"
        print(f"  {label:34s} {rows[-1][1]:9.3f}   ({told})", flush=True)

    def stepper(models: int, **how: bool) -> Stepper:
        return Stepper(config, jobs(config, models), settings, device, **how)

    measure("eager", "eager, as the public trainer", 1, lambda: eager(config, settings, device))
    if device == "cpu":
        measure("graph", "ours, eager", 1, lambda: stepper(1).advance)
    else:
        measure("compiled", "compiled", 1, lambda: stepper(1, graph=False).advance)
        one = stepper(1) if "graph" in only else None
        measure("graph", "one CUDA graph", 1, lambda: one.advance)
        zoo = stepper(MODELS) if "zoo" in only and not args.text else None
        if zoo is not None:
            measure("zoo", f"one CUDA graph, {MODELS} models batched", MODELS, lambda: zoo.advance)
    print(f"  {'floor: the arithmetic alone':34s} {floor:9.3f}", flush=True)
    if device != "cpu" and (args.text and one is not None):
        profile(one, 1)
    elif device != "cpu" and zoo is not None:
        profile(zoo, MODELS)


if __name__ == "__main__":
    main()
