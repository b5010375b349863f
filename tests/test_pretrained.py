"""Model files: round trips, the zoo's hashes, and files that are not what they should be."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwalk import resources
from maskwalk.denoisers.files import (
    Pretrained,
    from_pretrained,
    load_pretrained,
    load_zoo,
    save_pretrained,
    save_zoo,
)
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.resources import zoo_manifest

TINY = DDiTConfig(vocab_size=11, length=6, hidden=32, cond=8, blocks=2, heads=2)


@pytest.fixture
def model() -> Pretrained:
    flat = layout(TINY).initial([3])[0]
    flat += 0.1 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(0))
    # what lies between the weights is not part of the model
    flat = layout(TINY).pack(layout(TINY).named(flat[None]))[0]
    return Pretrained(TINY, flat, {"graph": "st_er(nodes=11, p=0.1)"})


def test_a_directory_gives_the_same_model_back(model: Pretrained, tmp_path: Path) -> None:
    save_pretrained(model, tmp_path / "m")
    back = load_pretrained(tmp_path / "m")
    assert back.config == TINY and back.about == model.about
    assert torch.equal(back.weights, model.weights)
    tokens = torch.full((2, 6), 11)
    assert torch.equal(from_pretrained(tmp_path / "m")(tokens), model.denoiser()(tokens))
    assert not list(tmp_path.rglob("*.partial"))


def test_the_public_mdlm_keys_are_understood(model: Pretrained, tmp_path: Path) -> None:
    save_pretrained(model, tmp_path)
    file = tmp_path / "model.safetensors"
    named = {f"backbone.{k}": v for k, v in load_file(file).items()}
    assert "backbone.blocks.1.adaLN_modulation.weight" in named
    save_file({**named, "backbone.rotary_emb.inv_freq": torch.ones(8)}, file)
    assert torch.equal(load_pretrained(tmp_path).weights, model.weights)


def test_the_zoo_keeps_bfloat16_and_checks_the_hash(
    model: Pretrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_zoo({"small": model}, tmp_path)
    monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path))
    assert zoo_manifest()["small"]["graph"] == model.about["graph"]
    for name in ("small", "zoo:small"):
        weights = load_pretrained(name).weights
        assert torch.equal(weights, model.weights.to(torch.bfloat16).float())
    packed = tmp_path / "small.safetensors.xz"
    packed.write_bytes(packed.read_bytes()[:-1] + b"?")
    with pytest.raises(MaskwalkError, match="not the file its manifest describes"):
        load_zoo("small")
    with pytest.raises(MaskwalkError, match="Did you mean 'small'"):
        load_pretrained("smalt")


def test_what_is_not_a_model_is_refused(model: Pretrained, tmp_path: Path) -> None:
    save_pretrained(model, tmp_path)
    weights, about = tmp_path / "model.safetensors", tmp_path / "model.json"
    whole, text = weights.read_bytes(), about.read_text()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MaskwalkError, match="not a complete safetensors file"):
        load_pretrained(tmp_path)
    weights.write_bytes(b"\x80\x04pickled")
    with pytest.raises(MaskwalkError, match="not a complete safetensors file"):
        load_pretrained(tmp_path)
    save_file({"other.weight": torch.ones(3)}, weights)
    with pytest.raises(MaskwalkError, match="lacks blocks"):
        load_pretrained(tmp_path)
    weights.write_bytes(whole)
    about.write_text(text.replace('"hidden": 32', '"hidden": 64'))
    with pytest.raises(MaskwalkError, match="belongs to another configuration"):
        load_pretrained(tmp_path)
    about.write_text(text.replace("maskwalk-model/1", "something-else"))
    with pytest.raises(MaskwalkError, match="'something-else'"):
        load_pretrained(tmp_path)
    about.write_text(text[:-20])
    with pytest.raises(MaskwalkError, match="cut short"):
        load_pretrained(tmp_path)
    about.unlink()
    with pytest.raises(MaskwalkError, match="no finished model"):
        load_pretrained(tmp_path)


def test_the_manifest_is_parsed_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "manifest.json"
    entry = {"file": "x.safetensors.xz", "sha256": "0" * 64, "config": {}}
    file.write_text(json.dumps({"format": resources.ZOO, "models": {"a": entry}}))
    parsed = []
    read = resources.read_json
    monkeypatch.setattr(resources, "read_json", lambda *a: parsed.append(a) or read(*a))
    for _ in range(3):
        assert list(resources.zoo_manifest(tmp_path)) == ["a"]
    assert len(parsed) == 1
    file.write_text(json.dumps({"format": resources.ZOO, "models": {"b": entry}}))
    os.utime(file, ns=(1, 1))
    assert list(resources.zoo_manifest(tmp_path)) == ["b"] and len(parsed) == 2
