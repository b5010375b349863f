"""Decodings by name: how a token is drawn and ties are broken, and whose sampler that goes with.

`exact` and `as_published` name a draw for any sampler. The others are named after public decoders
and do what that code does when it is called as its source, named beside it, calls it; their sampler
is used unless another one is said. Numbers that public code scales with the length of an answer
(steps, blocks) are those of its own default length.

For a model of text a preset also says what that code does around the draw: it ranks scores as they
are (`score_grid`), goes on behind an end-of-text (`stop`), and draws any token but the mask
(`special`). A mask that is drawn would stay a hole in the public result; it is never drawn here.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A named decoding."""

    draw: str
    ties: str = "uniform"
    sampler: str | None = None
    source: str = "this project"
    differs: str = ""  # from the public code, in what it computes
    score_grid: float | None = None  # of texts: None is the denoiser's
    stop: bool | None = None  # of texts: whether an end-of-text ends the decoding; None: if it can
    special: bool = False  # of texts: whether special tokens may be drawn

    @property
    def line(self) -> str:
        """The whole of it, as options."""
        return decoding_line(self.sampler, self.draw, self.ties)


AS_IT_IS: dict[str, Any] = {"score_grid": 1e-12, "stop": False, "special": True}


class Presets(dict[str, Preset]):
    """The presets by name; as a text, their names."""

    def __repr__(self) -> str:
        return f"<{len(self)} presets: {', '.join(self)}>"


PRESETS = Presets(
    {
        "exact": Preset("draw()"),
        "as_published": Preset(
            "draw(precision='bfloat16')",
            "index",
            source="the paper's code: MDLM's race in bfloat16",
        ),
        "llada": Preset(
            "draw(temperature=0, over='all')",
            "index",
            "blocks(size=128, inner=low_confidence(steps=128))",
            "ML-GSAI/LLaDA b7e6c35, the defaults of generate()",
            "counts and blocks are each sequence's own",
            **AS_IT_IS,
        ),
        "dream": Preset(
            "draw(temperature=0.2, top_p=0.95, scores='shaped', over='all')",
            "index",
            "entropy(steps=512, spread='late')",
            "DreamLM/Dream fac0a7f, the call in its README: alg='entropy'",
            "counts are each sequence's own, not the batch's mean; a step that would reveal "
            "nothing is not a call",
            **AS_IT_IS,
        ),
        "dream_origin": Preset(
            "draw(temperature=0)",
            "index",
            "ancestral(steps=512, finish='last', eps=0.001)",
            "DreamLM/Dream fac0a7f, the defaults of diffusion_generate(): alg='origin'",
            **AS_IT_IS,
        ),
        "fast_dllm": Preset(
            "draw(temperature=0, over='all')",
            "index",
            "blocks(size=32, inner=threshold_drawn(tau=0.9))",
            "NVlabs/Fast-dLLM 24cc59e, eval_gsm8k.sh: threshold=0.9, block_length=32, no cache",
            "blocks are each sequence's own",
            **AS_IT_IS,
        ),
        "dinfer": Preset(
            "draw(temperature=0, over='all')",
            "index",
            "blocks(size=64, inner=threshold_drawn(tau=0.9))",
            "inclusionAI/dInfer fce4e32, the defaults of eval_dinfer.py, no cache",
            "there a token within 1e-5 of the surest one is revealed with it",
            **AS_IT_IS,
        ),
        "mdlm": Preset(
            "draw(precision='float32')",
            "index",
            "ancestral(steps=128, cached=True, finish='argmax', eps=1e-05)",
            "kuleshov-group/mdlm c112c52, configs/config.yaml: ddpm_cache, noise_removal",
            "the cache is each sequence's own; its network answers in bfloat16",
            **AS_IT_IS,
        ),
        "remdm": Preset(
            "draw(top_p_strict=0.9)",
            "index",
            "remdm(kind='cap', steps=1024, eta=0.008)",
            "kuleshov-group/remdm f830d65, scripts/remdm-cap.sh",
            "a sequence with nothing masked is not a call",
            **AS_IT_IS,
        ),
    }
)


def around(name: str) -> dict[str, Any]:
    """What a preset says around the draw of a text, as options of `generate`."""
    named = PRESETS.get(name, PRESETS["exact"])  # a draw's spec says nothing of it
    return {"score_grid": named.score_grid, "stop": named.stop, "special": named.special}


def around_line(
    score_grid: float | None,
    stop: bool | None,
    special: bool,
    guidance: float = 0.0,
    cache: str | None = None,
) -> str:
    """The same and what else changes answers, as options of a command, where they are not the
    usual ones."""
    words = [] if score_grid is None else [f"--score-grid {score_grid:g}"]
    words += [] if stop is None else ["--stop" if stop else "--no-stop"]
    words += ["--special"] if special else []
    words += [f"--guidance {guidance:g}"] if guidance else []
    words += [] if cache is None else [f"--cache {cache}"]
    return "".join(f" {word}" for word in words)


def decoding_line(sampler: str | None, draw: str, ties: str) -> str:
    """Options that say the whole decoding, to be pasted behind a command."""
    rule = f"--sampler {_quoted(sampler)} " if sampler else ""
    return f"{rule}--draw {_quoted(draw)} --ties {ties}"


def _quoted(text: str) -> str:
    """A spec in a shell's quotes; its own quotes are single ones."""
    return f'"{text}"' if "'" in text else f"'{text}'"
