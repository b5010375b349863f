"""Masked models of other families and fields, tiny ones always and a real one where it is there.

Any AutoModelForMaskedLM loads and answers as its class does: ALBERT, DistilBERT, ELECTRA, and ESM
of proteins with its scaled embeddings. AntiBERTy (antibodies; 26 million weights, 104 MB, MIT) is
the one trained model that a wheel carries: `pip install --no-deps antiberty==0.1.3`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import Masked, load
from maskwalk.denoisers.language.convert import convert
from maskwalk.errors import MaskwalkError

transformers = pytest.importorskip("transformers")
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SHAPE = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
SHAPE |= {"intermediate_size": 32, "max_position_embeddings": 64, "vocab_size": 25}
FAMILIES: dict[str, dict[str, Any]] = {
    "Albert": SHAPE | {"embedding_size": 8},
    "DistilBert": {"dim": 16, "n_heads": 2, "n_layers": 2, "hidden_dim": 32, "vocab_size": 25},
    "Electra": SHAPE | {"embedding_size": 16},
    "Esm": SHAPE
    | {"position_embedding_type": "rotary", "token_dropout": True, "mask_token_id": 4}
    | {"pad_token_id": 0},
}


def write_vocabulary(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "vocab.txt").write_text("\n".join([*SPECIAL, *RESIDUES]) + "\n")


def write(family: str, directory: Path) -> Any:
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = getattr(transformers, f"{family}ForMaskedLM")(config)
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.4)
    model.save_pretrained(directory)
    write_vocabulary(directory)
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return model.eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_any_masked_model_of_transformers(family: str, tmp_path: Path) -> None:
    direct = write(family, tmp_path)
    model = load(tmp_path)
    assert isinstance(model.denoiser, Masked) and (model.begin, model.end) == ((2,), (3,))
    text = model.encode("E V Q L V")
    assert text == [5 + RESIDUES.index(residue) for residue in "EVQLV"]  # capitals are kept
    tokens = torch.tensor([[2, *text[:2], 4, *text[3:], 4, 3]])
    with torch.no_grad():
        logits = direct(tokens).logits[tokens == 4]
    logits[:, list(model.denoiser.forbidden)] = -torch.inf
    gap = (model.denoiser(tokens) - logits.log_softmax(-1)).abs()
    assert float(gap[gap.isfinite()].max()) <= 1e-5
    made = generate(model, "entropy(block=2)", template="E V {4} L", seed=1)
    assert set(made.tokens[~made.given].tolist()) <= set(range(5, 25))
    with pytest.raises(MaskwalkError, match="spaces between residues"):
        generate(model, prompt="EVQLV", length=12)


def test_a_lower_case_vocabulary_stays_so(tmp_path: Path) -> None:
    write("Albert", tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, *RESIDUES.lower()]) + "\n")
    assert load(tmp_path).encode("E v") == [5 + RESIDUES.index("E"), 5 + RESIDUES.index("V")]


# The variable heavy chain that AntiBERTy's own description shows.
HEAVY = "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSED"
HEAVY += "TAVYYCAAPYCSSISCNDGFDIWGQGTMVTVS"


@pytest.mark.skipif(find_spec("antiberty") is None, reason="pip install antiberty==0.1.3")
def test_a_real_model_of_antibodies(tmp_path: Path) -> None:
    """Its pickled weights are converted without being run; its own code is not imported."""
    spec = find_spec("antiberty")
    assert spec is not None and spec.submodule_search_locations
    files = Path(spec.submodule_search_locations[0]) / "trained_models"
    source = files / "AntiBERTy_md_smooth"
    if not (source / "pytorch_model.bin").exists():
        pytest.skip("this version of antiberty carries no weights")
    with pytest.raises(MaskwalkError, match="maskwalk convert"):
        load(source)
    convert(source, tmp_path / "model", tokenizer=files / "vocab.txt")
    model = load(tmp_path / "model", rows=8)
    direct = transformers.BertForMaskedLM(transformers.BertConfig.from_pretrained(source))
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    left = direct.load_state_dict(weights, strict=False)
    assert not left.missing_keys
    text = model.encode(" ".join(HEAVY))
    assert len(text) == len(HEAVY) and 1 not in text
    row = torch.tensor([2, *text, 3])
    canvas = row.repeat(len(text), 1)
    canvas[torch.arange(len(text)), torch.arange(1, len(text) + 1)] = model.mask
    found = model.denoiser(canvas)
    with torch.no_grad():
        logits = direct.eval()(canvas[:16]).logits[canvas[:16] == model.mask]
    logits[:, list(model.denoiser.forbidden)] = -torch.inf
    gap = (found[:16] - logits.log_softmax(-1)).abs()
    assert float(gap[gap.isfinite()].max()) <= 1e-4
    right = (found.argmax(1) == row[1:-1]).double().mean()
    print(f"largest gap {float(gap[gap.isfinite()].max()):.2g}, recovered {float(right):.3f}")
    assert float(right) > 0.7  # chance is .05
