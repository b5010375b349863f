"""Texts of `generate` under the presets, token for token those of the public loops (public.py).

On the stand-ins of LLaDA, Dream and MDLM, whose networks answer here by the classes of
`transformers` themselves (MDLM: this project's network), with prompts of odd and even lengths. As
in a trained model the mask is never the likeliest token (its row of the last map is zero), and some
answers are sure (the map is scaled). MDLM has no argmax decoding: with temperature 0 its coins
stay, so the loop is given the same ones, and tokens are compared; the law of its draws is compared
in tests/test_field_laws.py.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import LanguageModel, load
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.streams import Purpose, Streams
from tests.golden import public
from tests.golden.public import Logits

pytest.importorskip("transformers")
WORDS = "the cat sat on the mat and the dog lay by the door; a walk on a graph visits one node"
PROMPTS = [WORDS[:n] for n in (1, 30, 76)]  # 1, 8 and 24 or 25 tokens


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    folder = tmp_path_factory.mktemp("models")
    found = {name: load(STAND_INS[name](folder / name)) for name in ("llada", "dream", "mdlm")}
    for name in ("llada", "dream"):
        network: Any = found[name].denoiser.model  # type: ignore[attr-defined]
        with torch.no_grad():
            network.lm_head.weight *= 12
            network.lm_head.weight[found[name].mask] = 0.0
    return found


def network(model: LanguageModel) -> Logits:
    """The logits of the model's own class."""

    @torch.no_grad()
    def logits(canvas: list[int]) -> Tensor:
        answer: Tensor = model.denoiser.model(torch.tensor([canvas])).logits[0]  # type: ignore[attr-defined]
        return answer

    return logits


def answers(model: LanguageModel) -> Logits:
    """MDLM's log-probabilities at every position; the mask has none."""

    def table(canvas: list[int]) -> Tensor:
        return model.denoiser(torch.tensor([canvas]), torch.ones(1, len(canvas), dtype=torch.bool))

    return table


def coins(length: int) -> public.Coins:
    """The uniforms that `decode` chooses by, of text 0 at seed 0."""
    streams = Streams(0, 1)
    return lambda step: streams.uniform(Purpose.CHOICE, step, length)[0].tolist()


def compare(model: LanguageModel, loop: Callable[[list[int]], list[int]], **options: Any) -> None:
    """Runs `generate` and a loop on every prompt; the tokens have to be equal."""
    assert [len(model.encode(prompt)) for prompt in PROMPTS[:2]] == [1, 8]
    for prompt in PROMPTS:
        made = generate(model, prompt=prompt, **options)
        given = model.encode(prompt)
        assert made.tokens[0].tolist() == loop(given), prompt
        assert model.mask not in made.tokens


@pytest.mark.parametrize(
    ("new", "block", "steps"), [(32, 8, 16), (24, 8, 24), (20, 20, 7), (15, 5, 6)]
)
def test_llada(models: dict[str, LanguageModel], new: int, block: int, steps: int) -> None:
    model = models["llada"]
    each = steps * block // new
    compare(
        model,
        lambda given: public.llada(network(model), given, model.mask, new, block, steps),
        sampler=f"blocks(size={block}, inner=low_confidence(steps={each}))",
        preset="llada",
        new_tokens=new,
    )


def test_llada_as_it_is_called_by_default(models: dict[str, LanguageModel]) -> None:
    model = models["llada"]
    given = model.encode("the cat sat")
    model = short(model, len(given) + 128)
    made = generate(model, preset="llada", prompt="the cat sat", new_tokens=128)
    loop = public.llada(network(model), given, model.mask, 128, 128, 128)
    assert made.tokens[0].tolist() == loop and int(made.calls) == 128


def short(model: LanguageModel, longest: int) -> LanguageModel:
    """The same model, allowed to read more: rotary positions have no end."""
    return replace(model, longest=longest)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_llada_with_guidance(models: dict[str, LanguageModel], scale: float) -> None:
    model, made = models["llada"], []

    def loop(given: list[int]) -> list[int]:
        led = public.guided(network(model), given, model.mask, scale)
        made.append(public.llada(led, given, model.mask, 12, 6, 6))
        return made[-1]

    rule = "blocks(size=6, inner=low_confidence(steps=3))"
    compare(model, loop, sampler=rule, preset="llada", new_tokens=12, guidance=scale)
    plain = [public.llada(network(model), model.encode(p), model.mask, 12, 6, 6) for p in PROMPTS]
    assert sum(a != b for a, b in zip(made, plain)) >= len(PROMPTS) // 2


def test_guidance_is_two_calls(models: dict[str, LanguageModel]) -> None:
    rule = "blocks(size=6, inner=low_confidence(steps=3))"
    text: dict[str, Any] = {"prompt": "the cat", "preset": "llada", "new_tokens": 12}
    once = generate(models["llada"], rule, **text)
    twice = generate(models["llada"], rule, **text, guidance=1.0)
    assert int(once.calls) == 6 and int(twice.calls) == 12


@pytest.mark.parametrize("threshold", [0.9, 0.6])
def test_fast_dllm_threshold(models: dict[str, LanguageModel], threshold: float) -> None:
    model, calls = models["llada"], []

    def loop(given: list[int]) -> list[int]:
        tokens, count = public.fast_dllm(network(model), given, model.mask, 24, 8, threshold)
        calls.append(count)
        return tokens

    rule = f"blocks(size=8, inner=threshold_drawn(tau={threshold}))"
    compare(model, loop, sampler=rule, preset="fast_dllm", new_tokens=24)
    made = [generate(model, rule, preset="fast_dllm", prompt=p, new_tokens=24) for p in PROMPTS]
    assert [int(one.calls) for one in made] == calls
    assert min(calls) < 24 and max(calls) > 3  # some rounds reveal several, some one


def test_fast_dllm_as_it_is_called_by_default(models: dict[str, LanguageModel]) -> None:
    model = models["llada"]
    given = model.encode("a walk on")
    tokens, _ = public.fast_dllm(network(model), given, model.mask, 64, 32, 0.9)
    made = generate(model, preset="fast_dllm", prompt="a walk on", new_tokens=64)
    assert made.tokens[0].tolist() == tokens


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_fast_dllm_factor(models: dict[str, LanguageModel], factor: float) -> None:
    model = models["llada"]
    compare(
        model,
        lambda given: public.fast_dllm(network(model), given, model.mask, 24, 8, factor=factor)[0],
        sampler=f"blocks(size=8, inner=factor(f={factor}))",
        preset="fast_dllm",
        new_tokens=24,
    )


RULES = {"entropy": "entropy", "maskgit_plus": "confidence", "topk_margin": "margin"}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("steps", "top_p", "top_k"), [(12, 0.95, None), (40, None, None), (7, 0.8, 9)]
)
def test_dream(
    models: dict[str, LanguageModel], rule: str, steps: int, top_p: float | None, top_k: int | None
) -> None:
    model = models["dream"]
    logits = public.shifted(network(model))
    compare(
        model,
        lambda given: public.dream(logits, given, model.mask, 24, steps, rule, top_p, top_k),
        sampler=f"{RULES[rule]}(steps={steps}, spread='late')",
        preset="dream",
        draw=f"draw(temperature=0, top_p={top_p or 1.0}, top_k={top_k or 0}, scores='shaped', "
        "over='all')",
        ties="index",
        new_tokens=24,
    )


def test_dream_origin(models: dict[str, LanguageModel]) -> None:
    model = models["dream"]
    logits = public.shifted(network(model))

    def loop(given: list[int]) -> list[int]:
        told = coins(len(given) + 24)
        return public.dream(logits, given, model.mask, 24, 10, "origin", coins=told)

    rule = "ancestral(steps=10, finish='last', eps=0.001)"
    compare(model, loop, sampler=rule, preset="dream_origin", new_tokens=24)


def test_mdlm(models: dict[str, LanguageModel]) -> None:
    model = models["mdlm"]

    def loop(given: list[int]) -> list[int]:
        told = coins(len(given) + 24)
        return public.mdlm(answers(model), given, model.mask, 24, 16, told, eps=0.05)

    rule = "ancestral(steps=16, cached=True, finish='argmax', eps=0.05)"
    compare(model, loop, sampler=rule, preset="mdlm", draw="draw(temperature=0)", new_tokens=24)


@pytest.mark.parametrize(
    ("name", "changed"), [("bos", {"special": False}), ("eos", {"stop": True})]
)
def test_a_preset_is_what_its_options_say(
    name: str, changed: dict[str, bool], models: dict[str, LanguageModel]
) -> None:
    """What is said beside a preset goes before it; by itself it ranks unrounded scores, goes on
    behind an end of text, and draws special tokens: here one is as likely as a common token."""
    model = deepcopy(models["llada"])
    text: dict[str, Any] = {"prompt": "the dog", "new_tokens": 32}
    rule = "blocks(size=32, inner=low_confidence(steps=32))"
    common = generate(model, rule, preset="llada", **text).tokens[0, 3:].mode().values
    weight = model.denoiser.model.lm_head.weight.data  # type: ignore[attr-defined]
    token = getattr(model.tokenizer, f"{name}_token_id")
    weight[token] = 1.1 * weight[common]
    said: dict[str, Any] = {"draw": "llada", "score_grid": 1e-12, "stop": False, "special": True}
    by_name = generate(model, rule, preset="llada", **text)
    assert torch.equal(by_name.tokens, generate(model, rule, **said, **text).tokens)
    given = model.encode("the dog")
    loop = public.llada(network(model), given, model.mask, 32, 32, 32)
    assert by_name.tokens[0].tolist() == loop and token in loop
    for other in (changed, {"score_grid": 0.2}):
        made = generate(model, rule, preset="llada", **other, **text)
        assert not torch.equal(made.tokens, by_name.tokens), other
