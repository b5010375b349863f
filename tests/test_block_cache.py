"""The prefix and the dual cache: what they keep is what Fast-dLLM's loops keep, token for token;
exact where nothing has changed, and the change they make elsewhere is the one they say."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import LanguageModel, Masked, load
from maskwalk.denoisers.language.block_cache import CACHES, BlockCache
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.errors import MaskwalkError

pytest.importorskip("transformers")
RULE = "blocks(size=6, inner=low_confidence(steps=3))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    found = {
        name: load(STAND_INS[name](folder / name)) for name in ("llada", "dream", "mdlm", "bert")
    }
    for name in ("llada", "dream"):
        network: Any = found[name].denoiser.model  # type: ignore[attr-defined]
        with torch.no_grad():  # surer answers, never the mask
            network.lm_head.weight *= 8
            network.lm_head.weight[found[name].mask] = 0.0
    return found


Kept = list[tuple[Tensor, Tensor]]


@torch.no_grad()
def states(network: Any, tokens: list[int], places: list[int], kept: Kept) -> tuple[Tensor, Kept]:
    """A Llama or Qwen2 written out: (logits, keys and values) of some places, which also look at
    kept keys and values of others."""
    about = network.config
    heads, few = about.num_attention_heads, about.num_key_value_heads
    width = about.hidden_size // heads
    rates = about.rope_parameters["rope_theta"] ** -(torch.arange(0, width, 2) / width)
    angle = torch.tensor(places, dtype=torch.float32)[:, None] * rates
    cos, sin = (f(torch.cat([angle, angle], 1)) for f in (torch.cos, torch.sin))

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return weight * x / (x.square().mean(-1, keepdim=True) + about.rms_norm_eps).sqrt()

    def turned(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat([-right, left], -1) * sin

    x, now = network.model.embed_tokens.weight[tokens], []
    for number, layer in enumerate(network.model.layers):
        h, attend = norm(x, layer.input_layernorm.weight), layer.self_attn
        q, k, v = (
            F.linear(h, part.weight, part.bias).view(len(tokens), count, width).transpose(0, 1)
            for part, count in ((attend.q_proj, heads), (attend.k_proj, few), (attend.v_proj, few))
        )
        k = turned(k)
        now.append((k, v))
        if kept:
            k, v = (torch.cat([old, new], 1) for old, new in zip(kept[number], (k, v)))
        k, v = (y.repeat_interleave(heads // few, 0) for y in (k, v))
        weights = torch.softmax(turned(q) @ k.transpose(1, 2) / width**0.5, -1)
        x = x + attend.o_proj((weights @ v).transpose(0, 1).reshape(len(tokens), -1))
        h = norm(x, layer.post_attention_layernorm.weight)
        x = x + layer.mlp.down_proj(F.silu(layer.mlp.gate_proj(h)) * layer.mlp.up_proj(h))
    return norm(x, network.model.norm.weight) @ network.lm_head.weight.T, now


Choice = Callable[[dict[int, float]], list[int]]


def two_surest(sure: dict[int, float]) -> list[int]:
    return sorted(sure, key=lambda i: -sure[i])[:2]


def by_loop(model: LanguageModel, prompt: list[int], new: int, kind: str) -> list[int]:
    """Fast-dLLM's loops with a cache: blocks of 6, two tokens per step, the surest first."""
    return looped(model, prompt, new, kind, two_surest)[0]


def by_threshold(
    model: LanguageModel, prompt: list[int], new: int, kind: str, tau: float
) -> tuple[list[int], int]:
    """The same with its threshold: all that are as sure, and the surest in any case."""

    def chosen(sure: dict[int, float]) -> list[int]:
        best = max(sure, key=lambda i: sure[i])
        return [i for i in sure if i == best or sure[i] >= tau]

    return looped(model, prompt, new, kind, chosen)


def looped(
    model: LanguageModel, prompt: list[int], new: int, kind: str, choice: Choice
) -> tuple[list[int], int]:
    """(tokens, calls)."""
    network: Any = model.denoiser.model  # type: ignore[attr-defined]
    shift = int(model.denoiser.shifted)  # type: ignore[attr-defined]
    canvas, calls = [*prompt, *[model.mask] * new], 0
    for start in range(len(prompt), len(canvas), 6):
        end, first = min(start + 6, len(canvas)), max(0, start - shift)
        again = list(range(first, len(canvas) if kind == "prefix" else end))
        outside = [i for i in range(len(canvas)) if i not in again]
        places, kept = list(range(len(canvas))), []  # the first call of a block reads everything
        while left := [i for i in range(start, end) if canvas[i] == model.mask]:
            logits, now = states(network, [canvas[i] for i in places], places, kept)
            table = {i: logits[places.index(max(0, i - shift))] for i in left}
            sure = {i: float(torch.softmax(row, -1).max()) for i, row in table.items()}
            calls += 1
            for i in choice(sure):
                canvas[i] = int(table[i].argmax())
            if not kept:
                kept = [(k[:, outside], v[:, outside]) for k, v in now]
            places = again
    return canvas, calls


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("name", ["llada", "dream"])
def test_it_is_the_public_loop(name: str, kind: str, models: dict[str, LanguageModel]) -> None:
    model = models[name]
    for prompt in ("t", "the cat sat on", "a walk on a graph visits one"):
        made = generate(model, RULE, preset="llada", prompt=prompt, new_tokens=18, cache=kind)
        assert made.tokens[0].tolist() == by_loop(model, model.encode(prompt), 18, kind)
        assert int(made.calls) == 9


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("name", ["llada", "dream", "bert"])
def test_it_is_exact_until_something_changes(
    name: str, kind: str, models: dict[str, LanguageModel]
) -> None:
    model = models[name]
    assert isinstance(model.denoiser, Masked)
    row = [*model.encode("the cat sat on the mat"), *[model.mask] * 10]
    tokens, prompt = torch.tensor([row]), len(row) - 10
    place = torch.arange(len(row))
    first, second = ((place >= prompt + 4 * b) & (place < prompt + 4 * b + 4) for b in (0, 1))
    cached = BlockCache(model.denoiser, kind, 4, prompt)

    def apart(tokens: Tensor, at: Tensor) -> float:
        exact = model.denoiser(tokens, at[None]).exp()
        return float((cached(tokens, at[None]).exp() - exact).abs().sum(1).max() / 2)

    assert apart(tokens, first) < 1e-5  # reads everything
    assert apart(tokens, first) < 1e-5  # from the cache, nothing has changed
    tokens[0, prompt] = tokens[0, 0]
    later = first & (tokens[0] == model.mask)
    changed = apart(tokens, later)
    assert 1e-4 < changed < 1  # keys and values of what lies outside are old
    assert apart(tokens, later) == changed  # asked again, the same
    assert apart(tokens, second) < 1e-5  # a new block reads everything again
    assert apart(tokens, later | second) < 1e-5  # about more than a block: everything


def test_every_kind_writes_texts_of_its_own(models: dict[str, LanguageModel]) -> None:
    """None is the model's; a text does not depend on how many are made."""
    model, rule = models["llada"], "blocks(size=10, inner=low_confidence(steps=10))"

    def tokens(kind: str | None, prompt: str, count: int = 1) -> list[list[int]]:
        text: dict[str, Any] = {"prompt": prompt, "new_tokens": 20, "count": count}
        return generate(model, rule, preset="llada", cache=kind, **text).tokens.tolist()  # type: ignore[no-any-return]

    prompts = ("the cat sat on", "once upon a time", "a walk on a graph", "the dog lay by")
    found = {kind: [tokens(kind, prompt)[0] for prompt in prompts] for kind in (None, *CACHES)}
    assert found[None] != found["prefix"] != found["dual"] != found[None]
    assert tokens("dual", prompts[0], count=2) == [found["dual"][0]] * 2


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("llada", {"sampler": "confidence", "cache": "dual"}, "one block after another"),
        ("llada", {"sampler": RULE, "cache": "both"}, "cache"),
        ("mdlm", {"sampler": RULE, "cache": "dual"}, "leave it out"),
        ("llada", {"sampler": RULE, "cache": "dual", "guidance": 1.0}, "without a cache"),
    ],
)
def test_what_is_refused(
    name: str, options: dict[str, Any], says: str, models: dict[str, LanguageModel]
) -> None:
    with pytest.raises(MaskwalkError, match=says):
        generate(models[name], prompt="the cat", length=24, **options)


def test_what_changes_the_answers_is_said(folder: Path, cli: Any) -> None:
    """On the terminal, in JSON, and in the line that gives the same text again."""
    if not (folder / "llada").exists():
        STAND_INS["llada"](folder / "llada")
    words = ["generate", "--denoiser", f"hf:{folder / 'llada'}", "--preset", "llada", "--sampler"]
    words += [RULE, "--prompt", "the cat", "--new-tokens", "12"]
    dual = "dual cache: answers within a block are approximate"
    for more, note in (
        (("--cache", "dual"), dual),
        (("--guidance", "0.5"), "classifier-free guidance 0.5"),
    ):
        code, out, err = cli(*words, *more)
        assert code == 0 and f"Note: {note}." in " ".join(err.split()), err
        line = next(line for line in out.splitlines() if line.startswith("--sampler"))
        assert line.endswith(f"--special {' '.join(more)}")
        code, again, err = cli(*words[:3], *words[-4:], *shlex.split(line))
        assert again.splitlines()[0] == out.splitlines()[0]
        code, out, _ = cli(*words, *more, "--json")
        assert json.loads(out)["notes"].count(note) == 1
    assert note not in cli(*words, "--json")[1]


def test_fast_dllms_threshold_with_a_cache(models: dict[str, LanguageModel]) -> None:
    """Its threshold in every block, prefix and dual: tokens and calls of a plain loop."""
    rule = "blocks(size=6, inner=threshold_drawn(tau={}))"
    several = set()
    for name in ("llada", "dream"):
        model = models[name]
        for kind in CACHES:
            for prompt, tau in (("t", 0.3), ("the cat sat on", 0.5), ("once upon a time", 0.9)):
                text: dict[str, Any] = {"prompt": prompt, "new_tokens": 18, "cache": kind}
                made = generate(model, rule.format(tau), preset="fast_dllm", **text)
                tokens, calls = by_threshold(model, model.encode(prompt), 18, kind, tau)
                assert made.tokens[0].tolist() == tokens and int(made.calls) == calls
                several.add(calls)
    assert min(several) < 18 and len(several) > 2  # the threshold does something
