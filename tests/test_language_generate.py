"""From a name to a text: loading, prompts, stopping, the command line, and what is refused."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwalk.decoding.draw import Draw
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import Causal, LanguageModel, Masked, load
from maskwalk.denoisers.language.checkpoint import describe_checkpoint
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.denoisers.language.tokenizer import around, pieces
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.text.prompts import canvas

pytest.importorskip("transformers")
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, write in STAND_INS.items():
        write(folder / name)
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    return {name: load(folder / name) for name in STAND_INS}


def copy_of(source: Path, target: Path) -> Path:
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


@pytest.mark.parametrize("name", STAND_INS)
def test_text_from_every_kind_of_model(name: str, models: dict[str, LanguageModel]) -> None:
    model = models[name]
    made = generate(model, prompt="the cat", length=20, count=2, seed=3, trace=True)
    again = generate(model, prompt="the cat", length=20, count=1, seed=3)
    assert made.texts[0] == again.texts[0] != made.texts[1]  # the same text in any batch
    assert all(text.startswith("the cat") for text in made.texts)
    free = 20 - len(model.encode("the cat")) - len(model.begin) - len(model.end)
    assert bool((made.calls <= free).all()) and made.tokens_per_call == 1.0
    assert made.trace is not None and made.seconds > 0
    special = {model.mask, model.tokenizer.pad_token_id, model.tokenizer.unk_token_id}
    drawn = set(made.tokens[~made.given].tolist())
    assert not drawn & (special - {None, model.end_of_text})


def test_what_the_checkpoints_say_of_themselves(
    folder: Path, models: dict[str, LanguageModel], tmp_path: Path
) -> None:
    assert describe_checkpoint(folder / "mdlm").kind == "mdlm"
    assert describe_checkpoint(folder / "bert").automatic == "AutoModelForMaskedLM"
    assert describe_checkpoint(folder / "gpt2").kind == "causal"
    # A decoder is masked if it looks both ways, and causal if it does not say so.
    assert describe_checkpoint(folder / "llada").kind == "masked"
    assert describe_checkpoint(folder / "llada", "causal").kind == "causal"
    assert models["bert"].begin == (2,) and models["bert"].end == (3,)
    assert models["mdlm"].longest == 64 and models["mdlm"].end_of_text == 0
    assert isinstance(models["gpt2"].denoiser, Causal) and models["gpt2"].causal
    bare = copy_of(folder / "bert", tmp_path / "bare")
    for built in (None, ["BertForPreTraining"], ["BertModel"]):
        config = {"model_type": "bert", "architectures": built}
        (bare / "config.json").write_text(json.dumps(config))
        assert describe_checkpoint(bare).kind == "masked"
    (bare / "config.json").write_text(json.dumps(config | {"architectures": ["BertLMHeadModel"]}))
    assert describe_checkpoint(bare).kind == "causal"
    about = {"model_type": "Dream", "mask_token_id": 7, "auto_map": {"AutoModel": "m.D"}}
    real = copy_of(folder / "dream", tmp_path / "real")
    (real / "config.json").write_text(json.dumps(about))
    found = describe_checkpoint(real)
    assert found.kind == "masked" and found.shifted and found.mask_id == 7
    assert found.native is not None and not found.remote  # its code is not needed
    about = {"model_type": "llada", "auto_map": {"AutoModelForCausalLM": "m.L", "AutoModel": "m"}}
    (real / "config.json").write_text(json.dumps(about))
    found = describe_checkpoint(real)
    assert (found.kind, found.shifted, found.mask_id) == ("masked", False, 126336)
    assert found.native is not None
    code = {"model_type": "new", "auto_map": {"AutoModel": "m.D"}}
    (real / "config.json").write_text(json.dumps(code))
    assert describe_checkpoint(real).automatic == "AutoModel" and describe_checkpoint(real).remote


def test_shift_and_mask_can_be_told(folder: Path) -> None:
    shifted, straight = load(folder / "dream"), load(folder / "dream", shifted=False, mask="334")
    assert isinstance(shifted.denoiser, Masked) and shifted.denoiser.shifted
    assert not straight.denoiser.shifted and straight.mask == shifted.mask == 334
    tokens = canvas(straight, prompt="the cat", length=8)
    assert not torch.allclose(straight.denoiser(tokens), shifted.denoiser(tokens))


def test_prompts_templates_and_lengths(models: dict[str, LanguageModel]) -> None:
    bert, gpt = models["bert"], models["llada"]
    the, cat = bert.encode("the"), bert.encode("cat")
    row = canvas(bert, template="the {3} cat {2}", length=12, count=3)
    middle = [2, *the, 4, 4, 4, *cat, 4, 4]
    expected = [*middle, *[4] * (11 - len(middle)), 3]
    assert row.tolist() == [expected] * 3
    assert canvas(bert, template="the {3} cat").shape == (1, 2 + 3 + len(the) + len(cat))
    assert canvas(gpt, prompt="the").shape[1] == len(gpt.encode("the")) + 32
    assert (canvas(gpt, length=5) == gpt.mask).all()
    made = generate(bert, "bisection", template="the {3} cat {2}", length=12)
    kept = torch.tensor(expected) != 4
    assert torch.equal(made.tokens[0][kept], torch.tensor(expected)[kept])
    for given, says in (
        ({"prompt": "the cat", "length": 3}, "leaves nothing to fill"),
        ({"template": "no gap"}, "has no gap"),
        ({"template": "a {2}", "prompt": "b"}, "not both"),
        ({"length": 65}, "at most 64 tokens, not 65"),
        ({"prompt": "a", "chat": True}, "no chat template"),
        ({"count": 0}, "count"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            canvas(bert, **given)
    with pytest.raises(MaskwalkError, match="does not see what comes after"):
        generate(models["gpt2"], template="the {3} cat")


def test_a_chat_template_wraps_the_prompt(folder: Path) -> None:
    model = load(folder / "llada")
    model.tokenizer.chat_template = "{% for m in messages %}a {{ m['content'] }} on{% endfor %}"
    row = canvas(model, prompt="cat", chat=True, length=30)[0]
    assert model.decode(row.tolist()).startswith("a cat on")


def test_the_text_ends_at_end_of_text(models: dict[str, LanguageModel]) -> None:
    rows: dict[str, Any] = {"prompt": "the cat", "length": 24, "count": 4, "seed": 1}
    plain = generate(models["llada"], "left_to_right", **rows)
    end = int(plain.tokens[0, 12])  # a token this model does draw, taken for end-of-text
    model = replace(models["llada"], end_of_text=end)
    stopped = generate(model, "left_to_right", **rows)
    whole = generate(model, "left_to_right", **rows, stop=False)
    assert stopped.texts == whole.texts and torch.equal(stopped.new, whole.new)
    assert torch.equal(whole.tokens, plain.tokens) and whole.texts[0] != plain.texts[0]
    over = (stopped.tokens == end) & ~stopped.given
    assert bool(over[0, 12:].all()) and torch.equal(stopped.calls, stopped.new)
    assert bool((whole.calls == 24 - len(model.encode("the cat"))).all())
    assert int(stopped.calls[0]) < int(whole.calls[0])
    # A sampler that takes tokens back fills everything; its text is cut.
    cut = generate(model, "p2(steps=3)", **rows)
    assert bool((cut.calls <= 3).all()) and bool((cut.tokens != model.mask).all())
    with pytest.raises(MaskwalkError, match="takes revealed tokens back"):
        generate(model, "p2(steps=3)", **rows, stop=True)


def test_draw_options_reach_the_draws(models: dict[str, LanguageModel]) -> None:
    cold = Draw(temperature=1e-3)
    one, two = (
        generate(models["bert"], "left_to_right", length=10, seed=seed, draw=cold).texts
        for seed in (1, 2)
    )
    assert one == two
    assert generate(models["bert"], "left_to_right", length=10, seed=1).texts != one


def test_pieces_put_together_are_the_text(models: dict[str, LanguageModel]) -> None:
    for name in ("bert", "gpt2"):
        tokenizer, text = models[name].tokenizer, "the cat sat on another node"
        found = "".join(pieces(tokenizer, tokenizer.encode(text, add_special_tokens=False)))
        assert found.strip() == text
    assert around(models["gpt2"].tokenizer) == ((), ())


# --- what is refused, a sentence each


def test_wrong_vocabulary(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match=r"tokenizer has 330 tokens and .* only 60"):
        small = copy_of(folder / "mdlm", tmp_path / "mdlm")
        tensors = load_file(small / "model.safetensors")
        for key in ("vocab_embed.embedding", "output_layer.linear.weight"):
            tensors[f"backbone.{key}"] = tensors[f"backbone.{key}"][:61].clone()
        bias = "backbone.output_layer.linear.bias"
        save_file({**tensors, bias: tensors[bias][:61].clone()}, small / "model.safetensors")
        config = json.loads((small / "config.json").read_text())
        (small / "config.json").write_text(json.dumps(config | {"vocab_size": 61}))
        load(small)
    with pytest.raises(MaskwalkError, match="cannot be loaded as a masked model"):
        other = copy_of(folder / "bert", tmp_path / "bert")
        config = json.loads((other / "config.json").read_text())
        (other / "config.json").write_text(json.dumps(config | {"vocab_size": 200}))
        load(other)
    with pytest.raises(MaskwalkError, match="mask 5000 is not a token of this model"):
        load(folder / "bert", mask=5000)
    with pytest.raises(MaskwalkError, match="no token '<nothing>'"):
        load(folder / "llada", mask="<nothing>")
    with pytest.raises(MaskwalkError, match="names a mask token"):
        load(folder / "gpt2", kind="masked")


def test_missing_and_extra_weights(folder: Path, tmp_path: Path) -> None:
    for name, key in (("bert", "cls.predictions.transform.dense.bias"), ("gpt2", "ln_f.bias")):
        broken = copy_of(folder / name, tmp_path / name)
        tensors = load_file(broken / "model.safetensors")
        full = next(k for k in tensors if k.endswith(key))
        fewer = {k: v for k, v in tensors.items() if k != full}
        save_file(fewer, broken / "model.safetensors", {"format": "pt"})
        with pytest.raises(MaskwalkError, match=f"lacks .*{re.escape(key)}.* left random"):
            load(broken)
        more = tensors | {"cls.seq_relationship.bias": torch.ones(2)}
        save_file(more, broken / "model.safetensors", {"format": "pt"})
        assert load(broken).notes == (
            "1 weights of the file are not used, such as cls.seq_relationship.bias",
        )
    broken = copy_of(folder / "mdlm", tmp_path / "mdlm")
    tensors = load_file(broken / "model.safetensors")
    save_file(tensors | {"backbone.more": torch.ones(2)}, broken / "model.safetensors")
    with pytest.raises(MaskwalkError, match=r"has more .0 missing, 1 unknown"):
        load(broken)


def test_pickles_and_directories_without_models(folder: Path, tmp_path: Path) -> None:
    for name in ("bert", "mdlm"):
        pickled = copy_of(folder / name, tmp_path / name)
        (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
        with pytest.raises(MaskwalkError, match=r"only as pytorch_model\.bin, a pickle"):
            load(pickled)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MaskwalkError, match="holds no model"):
        load(tmp_path / "empty")
    (tmp_path / "empty" / "model.json").write_text("{}")
    with pytest.raises(MaskwalkError, match="model of walks"):
        load(tmp_path / "empty")
    bare = copy_of(folder / "mdlm", tmp_path / "bare")
    for file in bare.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(MaskwalkError, match=r"no tokenizer that can be read.*gpt2"):
        load(bare)
    assert load(bare, tokenizer=folder / "gpt2").mask == 330


def test_no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MaskwalkError, match=r"no directory 'nobody/model'.*HF_HUB_OFFLINE"):
        load("hf:nobody/model")
    with pytest.raises(MaskwalkError, match="no directory 'not a name!'"):
        load("hf:not a name!")


@pytest.mark.parametrize("revision", [None, "9a4d1b3"])
def test_a_revision_of_the_hub(
    revision: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NAME@REVISION; without one the hub's default."""
    asked: list[Any] = []

    def snapshot(name: str, **told: Any) -> str:
        asked.append((name, told["revision"]))
        assert "*.safetensors" in told["allow_patterns"]
        return str(folder / "bert")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    name = "somebody/bert" if revision is None else f"somebody/bert@{revision}"
    assert load(f"hf:{name}").longest == load(folder / "bert").longest
    assert asked == [("somebody/bert", revision)]


def test_remote_code_and_precision_are_asked_for(folder: Path, tmp_path: Path) -> None:
    remote = copy_of(folder / "dream", tmp_path / "remote")
    config = json.loads((remote / "config.json").read_text())
    config |= {"auto_map": {"AutoModel": "m.D"}, "model_type": "new"}
    (remote / "config.json").write_text(json.dumps(config))
    with pytest.raises(MaskwalkError, match="Python code that comes with it"):
        load(remote)
    with pytest.raises(MaskwalkError, match="On a CPU the network runs in float32"):
        load(folder / "bert", precision="bfloat16")
    with pytest.raises(MaskwalkError, match="kind"):
        load(folder / "bert", kind="diffusion")


def test_without_the_extra_the_core_works_and_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['transformers'] = sys.modules['tokenizers'] = None\n"
        "import maskwalk.denoisers.language, maskwalk.analysis.contract, maskwalk.cli.main\n"
        "from maskwalk.errors import MaskwalkError\n"
        "try:\n    maskwalk.load('somewhere')\n"
        "except MaskwalkError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "pip install 'maskwalk[language]'" in done.stdout, done.stderr


# --- the command line


def test_generate_prints_text_and_cost(cli: Any, folder: Path) -> None:
    words = ("generate", "--denoiser", f"hf:{folder}/bert", "--prompt", "the cat", "--length", "12")
    code, out, err = cli(*words, "--sampler", "bisection", "--trace")
    lines = [line for line in out.splitlines() if line.strip()]
    assert code == 0 and err == ""
    assert lines[0].startswith("given") and lines[0].count("░") == 7
    assert [line.split()[:2] for line in lines[1:4]] == [["round", str(i)] for i in (1, 2, 3)]
    assert lines[1].count("[") == 3 and "░" not in lines[3]  # [CLS], [SEP] and one that is new
    assert lines[4].startswith("the cat")
    assert lines[5].startswith("3 calls per text · 2.33 tokens per call · ")
    code, out, _ = cli(
        *words, "--count", "2", "--json", "--draw", "draw(temperature=0.5)", "--trace"
    )
    found = json.loads(out)
    assert code == 0 and len(found["texts"]) == 2 and found["calls"] == [7, 7]
    assert "temperature=0.5" in found["draw"] and found["sampler"] == "confidence(block=1)"
    assert found["tokens_per_call"] == 1.0 and found["seconds"] > 0 and found["length"] == 12
    assert max(found["rounds"][0]) == 6 and min(found["rounds"][0]) == -1


def test_a_function_of_the_users_own_writes(cli: Any, folder: Path, tmp_path: Path) -> None:
    """What it gives is used as it is; a denoiser without a tokenizer has nothing to write with."""
    file = tmp_path / "own.py"
    file.write_text(
        "import maskwalk, torch\n\n\n"
        f"def words(device):\n    return maskwalk.load({str(folder / 'bert')!r}, device=device)\n"
        "\n\ndef numbers():\n"
        "    return maskwalk.Masked(lambda t: torch.zeros(*t.shape, 5), mask_id=4, vocab_size=5)\n"
    )
    words = ("--prompt", "the cat", "--length", "12", "--json")
    found = []
    for name in (f"{file}:words", f"hf:{folder}/bert"):
        code, out, err = cli("generate", "--denoiser", name, *words)
        assert code == 0, err
        found.append(json.loads(out)["texts"])
    assert found[0] == found[1]
    code, out, err = cli("generate", "--denoiser", f"{file}:words", "--mask", "[MASK]", *words)
    assert code == 2 and "makes the model itself: leave out mask" in " ".join(err.split())
    code, out, err = cli("generate", "--denoiser", f"{file}:numbers", *words)
    assert code == 2 and not out and "has no tokenizer" in " ".join(err.split())


def test_unmasking_is_in_colour(models: dict[str, LanguageModel]) -> None:
    from maskwalk.cli.unmasking import rounds

    made = generate(
        models["dream"], "p2(steps=4, eta=3.0)", prompt="the cat", length=20, trace=True
    )
    lines = list(rounds(models["dream"], made, colour=True))
    styles = {str(span.style) for line in lines for span in line.spans}
    assert {"dim", "bold green", "bold red"} <= styles and not any(str(x.style) for x in lines)
    assert len(lines) == 1 + int(made.rounds[0]) and "[" not in lines[-1].plain


def test_the_command_line_says_what_is_wrong(cli: Any, folder: Path, tmp_path: Path) -> None:
    gpt, bert = f"hf:{folder}/gpt2", f"hf:{folder}/bert"
    for words, says in (
        (("--denoiser", gpt, "--sampler", "entropy"), "Use the sampler left_to_right"),
        (("--denoiser", "oracle"), "hf:NAME or FILE.py:function, not 'oracle'"),
        (("--denoiser", bert, "--sampler", "entropi"), "Did you mean 'entropy'"),
        (("--denoiser", bert, "--draw", "draw(top_p=0.0)"), "top_p"),
        (("--denoiser", f"hf:{tmp_path}"), "holds no model"),
    ):
        code, out, err = cli("generate", *words)
        assert code == 2 and out == "" and says in " ".join(err.split()), err
    code, out, err = cli("sample", "--denoiser", bert)
    assert code == 2 and "maskwalk generate" in " ".join(err.split())


def test_the_documents_recipes_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "your_model.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 7  # the stand-ins, five recipes, replay
    for number, block in enumerate(blocks):
        exec(compile(block, f"your_model.md[{number}]", "exec"), {})


def test_memory_stays_near_one_table() -> None:
    """A smaller copy of the benchmark, where slices of fixed size weigh more; copies would be 2."""
    script = ROOT / "benchmarks" / "vocabulary.py"
    words = ("--batch", "1", "--models", "mdlm", "--limit", "1.5")
    sampler = ("--samplers", "entropy(block=1000)")
    done = subprocess.run(
        [sys.executable, str(script), *words, *sampler], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
