"""What keys and values kept within a block change and save, on a masked model of your own.

    maskwalk convert path/to/antiberty antiberty_hf
    PYTHONPATH=src python benchmarks/caches.py antiberty_hf --text 'E V Q L V Q S G …'

The end of the text is masked and filled block by block. *Distance* is the largest total variation
between the marginals of the open block with and without the cache, while the text's own tokens are
revealed from left to right: its mean over the steps, and the most. *Equal* is the share of tokens
that greedy decoding (one token per call) writes as it does without the cache. Milliseconds per call
are the least of `--times` decodings, in turns, everything included.
"""

import argparse
from typing import Any

import torch
from torch import Tensor

from maskwalk import generate, load
from maskwalk.decoding.reader import reader

HEAVY = (
    "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSED"
    "TAVYYCAAPYCSSISCNDGFDIWGQGTMVTVS"
)


def distances(model: Any, row: Tensor, masked: slice, block: int, kind: str) -> tuple[float, float]:
    """The mean over steps of the largest distance, and the most."""
    canvas = row.clone()
    canvas[0, masked] = model.mask
    cached = reader(model, canvas, cache=kind, block_size=block)
    place, found = torch.arange(row.shape[1]), []
    for at in range(masked.start, masked.stop):
        end = masked.start + ((at - masked.start) // block + 1) * block
        asked = (canvas == model.mask) & (place < end)
        one, other = (denoiser(canvas, asked).exp() for denoiser in (cached, model.denoiser))
        found.append(float((one - other).abs().sum(1).max()) / 2)
        canvas[0, at] = row[0, at]
    return sum(found) / len(found), max(found)


def written(model: Any, row: Tensor, masked: slice, block: int, kind: str | None) -> Any:
    """Greedy decoding of the masked end, through `generate`."""
    front = model.decode(row[0, : masked.start].tolist())
    return generate(
        model,
        f"blocks(size={block}, inner=low_confidence(steps={block}))",
        template=f"{front} {{{masked.stop - masked.start}}}",
        draw="draw(temperature=0)",
        ties="index",
        cache=kind,
    )


def main() -> None:
    """One line per size of the blocks and cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="what hf: takes: a folder or a name")
    parser.add_argument("--text", default=" ".join(HEAVY), help="a text the model may know")
    parser.add_argument("--masked", type=int, default=64, help="tokens at its end to fill")
    parser.add_argument("--block", type=int, action="append", help="repeatable [8, 32]")
    parser.add_argument("--times", type=int, default=3)
    told = parser.parse_args()
    torch.set_num_threads(1)
    model: Any = load(told.model)
    ids = model.encode(told.text)
    row = torch.tensor([[*model.begin, *ids, *model.end]])
    end = row.shape[1] - len(model.end)
    masked = slice(end - told.masked, end)
    print("| block | cache | distance, mean | most | equal | ms per call | without |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for block in told.block or (8, 32):
        made: dict[str | None, Any] = {}
        least: dict[str | None, float] = {}
        for _ in range(told.times):
            for kind in (None, "prefix", "dual"):
                made[kind] = written(model, row, masked, block, kind)
                spent = 1e3 * made[kind].seconds / int(made[kind].calls[0])
                least[kind] = min(spent, least.get(kind, spent))
        for kind in ("prefix", "dual"):
            mean, most = distances(model, row, masked, block, kind)
            same = (made[kind].tokens == made[None].tokens)[0, masked].float().mean()
            print(
                f"| {block} | {kind} | {mean:.3f} | {most:.3f} | {float(same):.3f} | "
                f"{least[kind]:.1f} | {least[None]:.1f} |"
            )


if __name__ == "__main__":
    main()
