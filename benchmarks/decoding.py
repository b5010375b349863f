"""`generate` beside a plain loop as LLaDA's public one, on a model of LLaDA-8B's shape with random
weights: seconds a call, memory, tokens a second; and what the caches save and change.

    PYTHONPATH=src python benchmarks/decoding.py --device cuda    # 8.0 billion parameters, bfloat16
    PYTHONPATH=src python benchmarks/decoding.py --width 64 --heads 2 --layers 2 --vocab 2000
    PYTHONPATH=src python benchmarks/decoding.py --device cuda --layers 4 --profile

The second is a small one for a CPU; the third prints in which operations a block of each goes, and
how often a call makes the host wait for the device (synchronisations and copies to the host).
The loop asks the model for logits at every position, takes softmax and argmax there, and keeps the
surest of the open block (formulas of ML-GSAI/LLaDA b7e6c35, low_confidence, temperature 0). All run
in one process on one model, after a warm-up, in the order of the table; memory is the peak beyond
the weights (of the device; on a CPU it is not measured). "Equal" is the share of drawn tokens that
are the plain loop's; in bfloat16 its probabilities tie where ours, in float32, do not. The last
column has the largest distance between marginals (total variation) with the cache and without, over
the calls of one text, mean and most. A cache reads one text at a time, so it is measured with
`--rows 1` only.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from maskwalk import Masked, generate
from maskwalk.decoding.reader import reader
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.streaming import both_ways

MASK = 126_336  # LLaDA's, where the vocabulary is its own
WAITS = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "aten::_local_scalar_dense",
    "Memcpy DtoH (Device -> Pageable)",
    "Memcpy DtoH (Device -> Pinned)",
)


@dataclass
class Numbers:
    """A tokenizer of numbers: the text of a token is its id."""

    size: int
    eos_token_id: int | None = None
    unk_token_id: int | None = None
    vocabulary: dict[str, int] = field(default_factory=dict)

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [int(word) % self.size for word in text.split()]

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        return " ".join(map(str, tokens))

    def get_vocab(self) -> dict[str, int]:
        return self.vocabulary


def build(given: argparse.Namespace) -> LanguageModel:
    """A Llama that looks both ways, of LLaDA's widths."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=given.vocab,
        hidden_size=given.width,
        intermediate_size=3 * given.width,
        num_hidden_layers=given.layers,
        num_attention_heads=given.heads,
        num_key_value_heads=given.heads,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        is_causal=False,
        use_cache=False,
        tie_word_embeddings=False,
    )
    on_cpu = given.device == "cpu"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if on_cpu else torch.bfloat16)
    torch.manual_seed(0)
    try:
        with torch.device(given.device):
            network = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    both_ways(network)
    with torch.no_grad():
        network.lm_head.weight *= given.sharp
    mask = min(MASK, given.vocab - 1)
    denoiser = Masked(network, mask_id=mask, rows=given.rows)
    return LanguageModel(denoiser, Numbers(given.vocab), device=given.device)


@torch.no_grad()
def plain(model: Any, prompt: Tensor, new: int, block: int, steps: int, mask: int) -> Tensor:
    """The public loop: `steps` in every block."""
    x = torch.full((len(prompt), prompt.shape[1] + new), mask, device=prompt.device)
    x[:, : prompt.shape[1]] = prompt
    for start in range(prompt.shape[1], x.shape[1], block):
        end = start + block
        total = (x[:, start:end] == mask).sum(1)
        for step in range(steps):
            logits = model(x).logits
            drawn = logits.argmax(-1)
            sure = torch.softmax(logits, -1).gather(-1, drawn[..., None])[..., 0]
            sure[:, end:] = -torch.inf
            masked = x == mask
            drawn = torch.where(masked, drawn, x)
            sure = torch.where(masked, sure, -torch.inf)
            for row in range(len(x)):
                count = int(total[row]) // steps + (step < int(total[row]) % steps)
                chosen = sure[row].topk(count).indices
                x[row, chosen] = drawn[row, chosen]
    return x


def timed(run: Any, device: str) -> tuple[Any, float, float | None]:
    """(the result, seconds, GiB at the peak beyond what was there)."""
    if device == "cpu":
        began = time.perf_counter()
        return run(), time.perf_counter() - began, None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, began = torch.cuda.memory_allocated(), time.perf_counter()
    result = run()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    return result, seconds, (torch.cuda.max_memory_allocated() - before) / 2**30


def distances(model: LanguageModel, start: Tensor, tokens: Tensor, kind: str, block: int) -> Any:
    """Total variation between marginals with and without a cache, filling a text's blocks from left
    to right, a token at a time: one number a call, of the block's masked positions the largest."""
    cached = reader(model, start, cache=kind, block_size=block)
    prompt, found = int((start[0] != model.mask).sum()), []
    x = start.clone()
    for place in range(prompt, min(prompt + 2 * block, x.shape[1])):
        end = prompt + ((place - prompt) // block + 1) * block
        at = (x == model.mask) & (torch.arange(x.shape[1], device=x.device) < end)
        gap = (cached(x, at).exp() - model.denoiser(x, at).exp()).abs().sum(1) / 2
        found.append(float(gap.max()))
        x[0, place] = tokens[0, place]
    return sum(found) / len(found), max(found)


def profiled(job: Any, calls: int, device: str) -> str:
    """The longest operations of one job, and how often a call waits for the device."""
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device != "cpu")
    with profile(activities=kinds) as seen:
        job()
    found = seen.key_averages()
    waits = {each.key: each.count for each in found if each.key in WAITS}
    told = ", ".join(f"{name} {count / calls:.2f}" for name, count in waits.items()) or "none"
    longest = "self_cpu_time_total" if device == "cpu" else "self_device_time_total"
    table = found.table(sort_by=longest, row_limit=20, max_name_column_width=50)
    return f"{table}\nhost waits per call: {told}"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("width", 4096), ("heads", 32), ("layers", 32), ("vocab", 126_464)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("prompt", 64), ("new", 256), ("block", 32), ("steps", 32), ("rows", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--sharp", type=float, default=4.0, help="scale of the last map")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", help="a file for the numbers")
    parser.add_argument("--profile", action="store_true", help="where the time of a block goes")
    given = parser.parse_args()
    model = build(given)
    network, mask = model.denoiser.model, model.mask  # type: ignore[attr-defined]
    parameters = sum(weight.numel() for weight in network.parameters())
    words = torch.randint(
        0, given.vocab - 1000, (given.prompt,), generator=torch.Generator().manual_seed(1)
    )
    prompt = words.to(given.device).repeat(given.rows, 1)
    sampler = f"blocks(size={given.block}, inner=low_confidence(steps={given.steps}))"
    text: dict[str, Any] = {"prompt": " ".join(map(str, words.tolist())), "count": given.rows}
    text["preset"] = "llada"
    calls = -(-given.new // given.block) * given.steps

    def ours(**more: Any) -> Any:
        return lambda new: generate(model, sampler, **text, new_tokens=new, **more).tokens

    jobs = {
        "plain loop": lambda new: plain(network, prompt, new, given.block, given.steps, mask),
        "generate": ours(),
    }
    if given.rows == 1:
        jobs |= {f"generate, {kind} cache": ours(cache=kind) for kind in ("prefix", "dual")}
    size = f"{given.rows} × ({given.prompt} + {given.new}) tokens"
    print(f"{parameters / 1e9:.2f} billion parameters, {size}")
    print(f"{'':<24}{'s a call':>10}{'GiB':>8}{'tokens/s':>10}{'equal':>8}{'distance':>18}")
    rows, first = [], None
    start = torch.full((1, given.prompt + given.new), mask, device=given.device)
    start[0, : given.prompt] = prompt[0]
    for name, job in jobs.items():
        job(given.block)  # what is compiled or loaded on first use
        result, seconds, memory = timed(partial(job, given.new), given.device)
        result = result.cpu()
        first = result if first is None else first
        equal = float((result == first)[:, given.prompt :].double().mean())
        row = {"name": name, "seconds_per_call": seconds / calls, "gib": memory, "equal": equal}
        row |= {"tokens_per_second": given.rows * given.new / seconds, "seconds": seconds}
        if "cache" in name:
            kind = name.split()[-2]
            row["distance_mean"], row["distance_most"] = distances(
                model, start, first.to(given.device), kind, given.block
            )
        rows.append(row)
        apart = (
            f"{row['distance_mean']:.4f}, {row['distance_most']:.4f}"
            if "distance_mean" in row
            else ""
        )
        peak = "" if memory is None else f"{memory:.2f}"
        numbers = f"{seconds / calls:>10.5f}{peak:>8}{row['tokens_per_second']:>10.1f}"
        print(f"{name:<24}{numbers}{equal:>8.3f}{apart:>18}", flush=True)
        if given.profile:
            print(profiled(partial(job, given.block), given.steps, given.device), flush=True)
    if given.json:
        about = vars(given) | {"parameters": parameters, "calls": calls, "torch": torch.__version__}
        if given.device != "cpu":
            about["device_name"] = torch.cuda.get_device_name()
        Path(given.json).write_text(json.dumps({"settings": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
