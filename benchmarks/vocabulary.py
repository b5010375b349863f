"""Peak memory of decoding over a large vocabulary, as a multiple of one float32 table of logits.

    PYTHONPATH=src python benchmarks/vocabulary.py

Every model and sampler is decoded in a process of its own: a tiny network (the memory is that of
the vocabulary, not of the network) over the full vocabulary, 8 × 1,024 masked positions. The peak
is the largest resident size while decoding, less what was resident before it began (interpreter,
libraries, network). One table is masked positions × vocabulary × 4 bytes. Exits with 1
if a sampler needs more than `--limit` tables.

    PYTHONPATH=src python benchmarks/vocabulary.py --rounds 2 --vocab 126464 --models bert \
        --samplers 'confidence(block=1);blocks(size=32, inner=confidence(block=1))'

`--rounds` stops every decoding after so many calls and prints GiB and seconds per round: what one
round of LLaDA's vocabulary costs where every masked position is asked for, and where the open block
is.
"""

import argparse
import ctypes
import gc
import json
import re
import subprocess
import sys
import time
from pathlib import Path

SAMPLERS = (
    "entropy(block=512)",
    "confidence(block=512)",
    "margin(block=512)",
    "random(block=512)",
    "bisection(order=1)",
    "threshold(tau=0.0)",
    "low_confidence(steps=2)",
    "ancestral(steps=2)",
)
HUNGRY = ("pc(block=512)",)  # as klass and dependence_bounded, it makes tables of its own


def resident(name: str) -> int:
    """VmRSS (now) or VmHWM (the largest so far), in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def build(model: str, vocab: int, length: int):
    import torch

    if model == "mdlm":
        from maskwalk.denoisers.language import MDLM
        from maskwalk.denoisers.network.weights import DDiTConfig, layout

        config = DDiTConfig(vocab - 1, length, hidden=32, cond=16, blocks=1, heads=2)
        flat = layout(config).initial([0])[0]
        flat += torch.empty_like(flat).uniform_(-0.3, 0.3, generator=torch.Generator())
        return MDLM(config, flat)
    from transformers import BertConfig, BertForMaskedLM

    from maskwalk.denoisers.language import Masked

    shape = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
    shape |= {"intermediate_size": 64, "max_position_embeddings": length}
    network = BertForMaskedLM(BertConfig(vocab_size=vocab, **shape))
    return Masked(network, mask_id=vocab - 1)


class Enough(Exception):
    """So many calls were to be made."""


class Counting:
    """A denoiser that answers so many questions."""

    def __init__(self, denoiser, most: int) -> None:
        self.denoiser, self.left = denoiser, most
        self.vocab_size, self.mask_id = denoiser.vocab_size, denoiser.mask_id
        self.score_grid = denoiser.score_grid

    def __call__(self, tokens, at=None):
        if self.left == 0:
            raise Enough
        self.left -= 1
        return self.denoiser(tokens, at)


def measure(
    model: str, sampler: str, batch: int, length: int, vocab: int, top_p: float, rounds: int
) -> None:
    """One decoding, in this process; prints a JSON line."""
    import torch

    from maskwalk import SAMPLERS as TABLE
    from maskwalk import Draw, Streams, decode

    torch.set_num_threads(1)
    denoiser, rule, draw = build(model, vocab, length), TABLE.build(sampler), Draw(top_p=top_p)

    def run(rows: int, positions: int) -> int:
        canvas = torch.full((rows, positions), denoiser.mask_id)
        asked = Counting(denoiser, rounds or -1)
        try:
            found = decode(rule, asked, canvas, streams=Streams(0, rows), draw=draw)
        except Enough:
            return rounds
        return int(found.calls.max())

    run(1, 8)  # loads what is loaded on first use
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, began = resident("VmRSS"), time.perf_counter()
    calls = run(batch, length)
    seconds = time.perf_counter() - began
    table = batch * length * denoiser.vocab_size * 4
    peak = resident("VmHWM") - before
    about = {"tables": peak / table, "table": table, "calls": calls, "seconds": seconds}
    print(json.dumps(about | {"peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocab", type=int, default=50_258)
    parser.add_argument("--limit", type=float, default=1.1)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--models", default="mdlm;bert")
    parser.add_argument("--samplers", default=";".join(SAMPLERS))
    parser.add_argument("--hungry", action="store_true", help="also those that keep tables")
    parser.add_argument("--rounds", type=int, default=0, help="stop after so many")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(*given.one, given.batch, given.length, given.vocab, given.top_p, given.rounds)
        return
    worst = 0.0
    print(f"{given.batch} × {given.length} masked positions, {given.vocab:,} tokens")
    print(f"{'model':<6}{'sampler':<28}{'calls':>6}{'seconds':>9}{'tables':>8}")
    jobs = [(s, True) for s in given.samplers.split(";") if s]
    jobs += [(s, False) for s in HUNGRY] if given.hungry else []
    for model in given.models.split(";"):
        for sampler, counts in jobs:
            shape = ["--batch", given.batch, "--length", given.length, "--vocab", given.vocab]
            shape += ["--rounds", given.rounds]
            words = [*shape, "--top-p", given.top_p, "--one", model, sampler]
            done = subprocess.run(
                [sys.executable, __file__, *map(str, words)], capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(done.stderr)
            row = json.loads(done.stdout.splitlines()[-1])
            worst = max(worst, row["tables"] * counts)
            shown = f"{model:<6}{sampler:<28}{row['calls']:>6}{row['seconds']:>9.1f}"
            if given.rounds:
                each = (
                    f"{row['peak'] / 2**30:.2f} GiB, {row['seconds'] / row['calls']:.1f} s a round"
                )
                print(f"{shown}  {each}", flush=True)
                continue
            print(
                f"{shown}{row['tables']:>8.3f}{'' if counts else '  (keeps its own)'}", flush=True
            )
    if given.rounds:
        return
    print(f"at most {worst:.3f} tables of {row['table'] / 1e9:.2f} GB; allowed {given.limit}")
    sys.exit(worst > given.limit)


if __name__ == "__main__":
    main()
