"""Texts of other people's models on a device: presets, guidance, padding and caches give the tokens
of the CPU in float32."""

from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.standins import STAND_INS

pytestmark = pytest.mark.gpu
pytest.importorskip("transformers")
RULE = "blocks(size=8, inner=low_confidence(steps=4))"
PROMPTS = ["the cat", "a walk on a graph visits one", "door"]


@pytest.mark.parametrize("name", ["llada", "dream"])
@pytest.mark.parametrize(
    "options", [{}, {"guidance": 1.0}, {"cache": "prefix"}, {"cache": "dual"}], ids=str
)
def test_texts_are_those_of_the_cpu(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    STAND_INS[name](tmp_path)
    here, there = load(tmp_path), load(tmp_path, device="cuda")
    text: dict[str, Any] = {"preset": "llada", "prompt": PROMPTS, "new_tokens": 16, **options}
    ours, theirs = generate(here, RULE, **text), generate(there, RULE, **text)
    assert torch.equal(ours.tokens, theirs.tokens) and torch.equal(ours.calls, theirs.calls)
    if not options:
        rows = load(tmp_path, device="cuda", rows=3)
        assert torch.equal(generate(rows, RULE, **text).tokens, theirs.tokens)
