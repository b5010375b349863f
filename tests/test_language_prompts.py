"""What is put before a model is what its authors put there, and its answers are ranked as theirs.

One beginning and not two, none that a tokenizer does not add; passages that begin with end-of-text;
scores over all tokens, on a grid of the user's; unknown tokens and missing vocabularies are said.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw, read_draw
from maskwalk.decoding.generation import generate
from maskwalk.decoding.presets import PRESETS
from maskwalk.decoding.stopping import StopAt
from maskwalk.denoisers.language import Causal, LanguageModel, Masked, load
from maskwalk.denoisers.language.standins import write_bert, write_gpt2, write_llada, write_mdlm
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.text.prompts import canvas

pytest.importorskip("transformers")
WRITERS = {"gpt2": write_gpt2, "bert": write_bert, "llada": write_llada, "mdlm": write_mdlm}
GREEDY = Draw(temperature=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, write in WRITERS.items():
        write(folder / name)
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    return {name: load(folder / name) for name in WRITERS}


# --- the beginning of a text


def greedy(model: Any, tokens: list[int], count: int) -> list[int]:
    """The likeliest continuation, token by token, by the network alone."""
    for _ in range(count):
        logits = model.model(torch.tensor([tokens])).logits[0, -1]
        logits[list(model.forbidden)] = -torch.inf
        tokens = [*tokens, int(logits.argmax())]
    return tokens[-count:]


def added(model: LanguageModel, adds: bool, begin: int) -> LanguageModel:
    """The same network, as if its tokenizer named a beginning, and put it before a text or not."""
    assert isinstance(model.denoiser, Causal)
    denoiser = Causal(model.denoiser.model, begin=begin, adds=adds, forbidden=[begin])
    return LanguageModel(denoiser, model.tokenizer, longest=64)


@pytest.mark.parametrize("adds", [False, True])
def test_a_causal_model_reads_the_beginning_its_tokenizer_adds(
    adds: bool, models: dict[str, LanguageModel]
) -> None:
    model, begin = added(models["gpt2"], adds, 9), 9
    prompt = model.encode("the cat")
    made = generate(model, prompt="the cat", length=len(prompt) + 6, draw=GREEDY)
    read = [begin, *prompt] if adds else prompt
    assert made.tokens[0, len(prompt) :].tolist() == greedy(model.denoiser, read, 6)
    other = greedy(model.denoiser, prompt if adds else [begin, *prompt], 6)
    assert made.tokens[0, len(prompt) :].tolist() != other  # the two can be told apart
    # Before an empty text there has to be something.
    made = generate(model, length=4, draw=GREEDY)
    assert made.tokens[0].tolist() == greedy(model.denoiser, [begin], 4)


def test_a_chat_template_that_writes_the_beginning_is_not_given_another(
    models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "a cat on the mat"
    monkeypatch.setattr("maskwalk.worlds.text.prompts.wrapped", lambda *_: text)
    tokens = models["gpt2"].encode(text)
    model = added(models["gpt2"], True, tokens[0])
    made = generate(model, prompt="x", chat=True, length=len(tokens) + 5, draw=GREEDY)
    assert made.tokens[0, len(tokens) :].tolist() == greedy(model.denoiser, tokens, 5)
    twice = greedy(model.denoiser, [tokens[0], *tokens], 5)
    assert made.tokens[0, len(tokens) :].tolist() != twice
    # On a canvas that a tokenizer's beginning is put on, likewise.
    bert = models["bert"]
    monkeypatch.setattr("maskwalk.worlds.text.prompts.wrapped", lambda *_: "[CLS] the cat")
    row = canvas(bert, prompt="x", chat=True, length=12)[0].tolist()
    assert row[:3] == [*bert.begin, *bert.encode("the cat")][:3] and row.count(bert.begin[0]) == 1
    assert canvas(bert, prompt="the", length=12)[0, 0] == bert.begin[0]


# --- passages that begin with end-of-text


def test_a_passage_may_begin_with_end_of_text(models: dict[str, LanguageModel]) -> None:
    """As MDLM's do, trained on passages wrapped in it: the text is what follows."""
    end = models["mdlm"].end_of_text
    assert models["mdlm"].wrapped and end == 0 and not models["llada"].wrapped
    words = models["mdlm"].encode("the cat sat on")
    passage = [end, *words, end, *words]

    def always(tokens: Tensor) -> Tensor:
        logits = torch.full((*tokens.shape, 331), -9.0)
        for place, token in enumerate(passage):
            logits[:, place, token] = 9.0
        return logits

    masked = Masked(always, mask_id=330, vocab_size=331)
    plain = LanguageModel(masked, models["mdlm"].tokenizer, end_of_text=end)
    wrapped = LanguageModel(masked, models["mdlm"].tokenizer, end_of_text=end, wrapped=True)
    for stop in (None, False):
        told: dict[str, Any] = {"length": len(passage), "draw": GREEDY, "stop": stop}
        assert generate(wrapped, "random", **told).texts == ["the cat sat on"]
        assert generate(plain, "random", **told).texts == [""]
    rule = StopAt(SAMPLERS.build("left_to_right"), end, first=1)
    blank = torch.full((1, len(passage)), 330)
    done = decode(rule, masked, blank, streams=Streams(0, 1), draw=GREEDY)
    assert done.calls.tolist() == [len(words) + 2]


# --- scores


def llada_by_hand(model: LanguageModel, row: Tensor, size: int, steps: int) -> list[int]:
    """LLaDA's loop: in each block, in each step, the surest of the likeliest tokens are kept.

    Sure by the softmax over all tokens; those that are never drawn are no candidates.
    """
    network, never = model.denoiser, list(model.denoiser.forbidden)
    assert isinstance(network, Masked)
    row = row.clone()
    start = int((row == model.mask).nonzero()[0])
    for block in range(start, len(row), size):
        inside = torch.zeros(len(row), dtype=torch.bool)
        inside[block : block + size] = True
        for _ in range(steps):
            with torch.no_grad():
                logits = network.model(row[None]).logits[0].double()
            probs = logits.softmax(-1)
            best = logits.index_fill(1, torch.tensor(never), -torch.inf).argmax(-1)
            sure = probs.gather(1, best[:, None])[:, 0]
            sure[~(inside & (row == model.mask))] = -1
            chosen = sure.topk(size // steps).indices
            row[chosen] = best[chosen]
    return row.tolist()


def test_the_preset_llada_is_llada_on_a_model_with_tokens_that_are_never_drawn(
    models: dict[str, LanguageModel],
) -> None:
    """32 of 32 tokens, at a grid that does not round; over the drawn tokens only it is another."""
    model = models["llada"]
    masked = model.denoiser
    assert isinstance(masked, Masked)
    never = [*masked.forbidden, *range(2, 330, 2)]  # with a share that matters
    model = LanguageModel(
        Masked(masked.model, mask_id=model.mask, forbidden=never), model.tokenizer
    )
    row = canvas(
        model, prompt="once upon a time", length=len(model.encode("once upon a time")) + 32
    )
    expected = llada_by_hand(model, row[0], 8, 4)
    sampler = "blocks(size=8, inner=low_confidence(steps=4))"
    told: dict[str, Any] = {"prompt": "once upon a time", "length": row.shape[1], "ties": "index"}
    made = generate(model, sampler, **told, draw=PRESETS["llada"].draw, score_grid=1e-12)
    assert made.tokens[0].tolist() == expected and int(made.calls[0]) == 16
    other = generate(model, sampler, **told, draw="draw(temperature=0)", score_grid=1e-12)
    assert other.tokens[0].tolist() != expected


def test_scores_over_all_tokens(models: dict[str, LanguageModel]) -> None:
    masked, row = models["llada"].denoiser, canvas(models["llada"], prompt="the", length=12)
    assert isinstance(masked, Masked)
    at = row == masked.mask_id
    drawn, everything = masked.over_all(row, at)
    with torch.no_grad():
        logits = masked.model(row).logits[at]
    torch.testing.assert_close(everything, logits.log_softmax(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(drawn, masked(row), rtol=1e-5, atol=1e-5)
    assert bool((everything[:, list(masked.forbidden)] > -torch.inf).all())
    for name in ("llada", "dream", "fast_dllm", "dinfer"):
        assert "over='all'" in read_draw(name)[0]
    for name in ("exact", "as_published", "mdlm"):
        assert "over" not in read_draw(name)[0]
    with pytest.raises(MaskwalkError, match="over"):
        Draw(over="some")


def test_scores_over_all_tokens_cost_one_call_each() -> None:
    """Also where a denoiser has no other tokens: the same texts and calls."""
    table = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))

    def logits(tokens: Tensor) -> Tensor:
        return table[tokens.roll(1, 1)] + table.T[tokens.roll(-1, 1)]

    class Bare:
        """A denoiser that knows nothing of other tokens."""

        inner = Masked(logits, mask_id=4, vocab_size=5)
        vocab_size, mask_id, score_grid = 5, 4, 1e-4

        def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
            return self.inner(tokens, at)

    blank = torch.full((3, 6), 4)
    for denoiser in (Bare(), Bare.inner):
        found = [
            decode("entropy(block=2)", denoiser, blank, streams=Streams(0, 3), draw=Draw(over=over))
            for over in ("drawn", "all")
        ]
        assert [each.calls.tolist() for each in found] == [[3, 3, 3]] * 2
        if isinstance(denoiser, Bare):
            assert torch.equal(found[0].tokens, found[1].tokens)


def test_the_grid_of_scores_can_be_told() -> None:
    """Two positions nearer to each other than the grid are a tie, and the first one is taken."""

    def logits(tokens: Tensor) -> Tensor:
        answer = torch.zeros(*tokens.shape, 3)
        answer[..., 0] = torch.tensor([1.0, 1.000001, 0.5])
        return answer

    model = LanguageModel(Masked(logits, mask_id=2, vocab_size=3), None)
    told: dict[str, Any] = {"length": 3, "ties": "index", "trace": True, "draw": GREEDY}
    model = LanguageModel(model.denoiser, type("Words", (), {"decode": lambda *_, **__: ""})())
    first = {}
    for grid in (None, 1e-12):
        made = generate(model, "confidence(block=1)", **told, score_grid=grid)
        assert made.trace is not None
        first[grid] = int(made.trace.reveal_rounds()[0].argmin())
    assert first == {None: 0, 1e-12: 1}
    assert model.denoiser.score_grid == 1e-4  # the model itself is as it was
    with pytest.raises(MaskwalkError, match="score_grid"):
        generate(model, **told, score_grid=0.0)


# --- what is said


def test_unknown_tokens_are_said(models: dict[str, LanguageModel], cli: Any, folder: Path) -> None:
    bert = models["bert"]
    with pytest.raises(MaskwalkError, match=r"1 unknown token\. .*spaces between residues"):
        generate(bert, prompt="ΩΩΩ", length=10)
    made = generate(bert, prompt="the ΩΩΩ cat", length=12)
    given = len(bert.encode("the ΩΩΩ cat"))
    assert made.notes == (f"1 of the {given} given tokens are unknown to the tokenizer",)
    assert generate(bert, prompt="the cat", length=12).notes == ()
    words = ("generate", "--denoiser", f"hf:{folder}/bert", "--length", "12")
    code, _, err = cli(*words, "--prompt", "the ΩΩΩ cat", "--score-grid", "1e-9")
    assert code == 0 and "unknown to the tokenizer" in " ".join(err.split())
    code, _, err = cli(*words, "--prompt", "ΩΩΩ")
    assert code == 2 and "knows nothing of what is given" in " ".join(err.split())


def without_capitals(source: Path, target: Path) -> Path:
    """A stand-in whose tokenizer lacks A to Z and has no unknown token: it leaves them out."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    whole = json.loads((target / "tokenizer.json").read_text())
    vocab = whole["model"]["vocab"]
    whole["model"]["vocab"] = {
        f"<{i}>" if len(word) == 1 and "A" <= word <= "Z" else word: i for word, i in vocab.items()
    }
    (target / "tokenizer.json").write_text(json.dumps(whole))
    return target


def test_characters_that_leave_no_token_are_said(folder: Path, cli: Any, tmp_path: Path) -> None:
    lacking = without_capitals(folder / "llada", tmp_path / "lacking")
    model = load(lacking)
    assert model.tokenizer.unk_token_id is None and model.encode("XYZ") == []
    note = "1 of the 8 given characters are left out: the tokenizer lacks them"
    assert generate(model, prompt="A graph is", new_tokens=4).notes == (note,)
    assert generate(model, template="A graph{2} is").notes == (note,)
    assert generate(model, prompt=["the cat", "A"[:0]], new_tokens=4).notes == ()
    chat = [{"role": "user", "content": "A graph is"}]
    assert generate(model, prompt=chat, new_tokens=4).notes == (note,)
    refused: list[dict[str, Any]] = [
        {"prompt": "XYZ"},
        {"prompt": ["the cat", "XYZ"]},
        {"prompt": "the cat", "chat": True, "system": "XYZ"},
        {"prompt": [{"role": "user", "content": "XYZ"}]},
        {"template": "X{3}YZ"},
    ]
    for given in refused:
        with pytest.raises(MaskwalkError, match=r"knows nothing of what is given: it leaves out"):
            generate(model, **given)
    code, _, err = cli("generate", "--denoiser", f"hf:{lacking}", "--prompt", "XYZ")
    assert code == 2 and "knows nothing of what is given" in " ".join(err.split())


def test_the_stand_ins_know_every_byte(models: dict[str, LanguageModel]) -> None:
    for name in ("llada", "mdlm", "gpt2"):
        model = models[name]
        assert model.decode(model.encode("A gräph is Ω")) == "A gräph is Ω"
        length = len(model.encode("A gräph is Ω")) + 3
        assert generate(model, prompt="A gräph is Ω", length=length).notes == ()


def test_a_missing_vocabulary_is_said(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "bert").iterdir():
        if file.name != "tokenizer.json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    about = {"tokenizer_class": "BertTokenizer", "mask_token": "[MASK]", "unk_token": "[UNK]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(about))
    with pytest.raises(MaskwalkError, match=r"vocabulary \(tokenizer\.json, vocab\.txt.*missing"):
        load(tmp_path)


def test_help_keeps_its_brackets(cli: Any) -> None:
    code, out, _ = cli("generate", "--help")
    shown = " ".join(out.replace("│", " ").split())
    assert code == 0 and "[float32; ours on cuda float16]" in shown
    assert "[1; ours 8, on cuda 256]" in shown
