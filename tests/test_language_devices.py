"""A model over several devices answers as on one, and its last map is still taken off.

The second device is torch's lazy one: a device of its own, whose tensors no operation mixes with
the CPU's, on any machine.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import LanguageModel, Masked, load
from maskwalk.denoisers.language.masked import place_of
from maskwalk.denoisers.language.selftest import self_test
from maskwalk.denoisers.language.standins import write_dream, write_llada

accelerate = pytest.importorskip("accelerate")
backend = pytest.importorskip("torch._lazy.ts_backend")
OTHER = "lazy:0"
BLOCKS = "blocks(size=4, inner=low_confidence(steps=2))"
FIRST, SECOND = ("model.embed_tokens", "model.layers.0"), ("model.layers.1", "model.norm")


@pytest.fixture(scope="module", autouse=True)
def other_device() -> Iterator[None]:
    backend.init()
    with pytest.raises(RuntimeError):  # it is no CPU
        torch.allclose(torch.zeros(1, device=OTHER), torch.zeros(1))
    yield


@pytest.fixture(scope="module", params=[write_llada, write_dream], ids=["llada", "dream"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return load(request.param(tmp_path_factory.mktemp("devices") / "model"))


def spread(model: LanguageModel, last: str, main: str = "cpu") -> LanguageModel:
    """The same, its first half on the CPU and its second on the other device."""
    network: Any = model.denoiser.model
    again = type(network)(network.config)
    again.load_state_dict(network.state_dict())
    places = dict.fromkeys(FIRST, "cpu") | dict.fromkeys(SECOND, OTHER)
    places |= {"model.rotary_emb": "cpu", "lm_head": last}
    for module in again.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False
    placed = accelerate.dispatch_model(again.eval(), device_map=places, main_device=main)
    old: Any = model.denoiser
    known = {"mask_id": old.mask_id, "shifted": old.shifted, "forbidden": old.forbidden}
    return replace(model, denoiser=Masked(placed, **known))


@pytest.mark.parametrize("last", ["cpu", OTHER])
def test_a_model_over_two_devices_answers_as_on_one(model: LanguageModel, last: str) -> None:
    both: Any = spread(model, last).denoiser
    assert both._map is not None  # else the logits of all positions are made
    self_test(both, "a model on two devices", "cpu")
    mask = model.mask
    tokens = torch.tensor([[5, 6, mask, 8, mask], [5, 7, mask, mask, 3]])
    assert torch.allclose(both(tokens), model.denoiser(tokens), atol=1e-5)


@pytest.mark.parametrize("cache", [None, "prefix", "dual"])
def test_texts_over_two_devices(model: LanguageModel, cache: str | None) -> None:
    told: dict[str, Any] = {"prompt": "the cat", "new_tokens": 12, "preset": "llada"}
    told |= {"sampler": BLOCKS, "cache": cache}
    assert generate(spread(model, OTHER), **told).texts == generate(model, **told).texts


def test_tokens_are_read_where_an_offloaded_table_is_used(model: LanguageModel) -> None:
    """Its weights are kept in main memory, and it is used on the accelerator."""
    away: Any = spread(model, OTHER, main=OTHER).denoiser
    assert next(away.model.parameters()).is_meta
    assert str(place_of(away.model)) == OTHER and away._map is not None
