"""Our own models of text: likelihoods that add up, training that goes on, zoos that hold."""

import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import maskwalk.training.fit_text as fitting
import maskwalk.training.loop as loop
from maskwalk.analysis.paths import along_paths
from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.files import (
    Pretrained,
    load_pretrained,
    load_zoo,
    save_pretrained,
    save_zoo,
)
from maskwalk.denoisers.language.books import BookModel, NextToken, is_books, load_books
from maskwalk.denoisers.language.mdlm import MDLM
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.resources import zoo_manifest
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.fit_text import Plan, fit_text, total_nats
from maskwalk.training.maskings import MASKINGS
from maskwalk.training.pack import pack
from maskwalk.worlds.text.corpus import prepare
from maskwalk.worlds.text.passages import token_bytes
from tests.tiny_books import LENGTH, TinyBooks, for_session, plan, small, written

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> TinyBooks:
    return for_session(tmp_path_factory)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)


def rough(causal: bool, vocab: int, length: int, rows: int = 3, size: float = 0.4) -> BookModel:
    """A network far from its zeros, so that every token matters to every other."""
    config = DDiTConfig(vocab, length, 16, 8, 2, 2, causal=causal, tied=True)
    flat = layout(config).initial([1])
    flat += size * torch.randn(flat.shape, generator=torch.Generator().manual_seed(1))
    kind = NextToken if causal else MDLM
    return BookModel(kind(config, flat[0], rows=rows), None)


def every_text(vocab: int, length: int) -> Tensor:
    return torch.tensor(list(itertools.product(range(vocab), repeat=length)))


# --- likelihoods


def test_a_causal_models_nats_are_its_next_token_answers_one_by_one() -> None:
    model, length = rough(True, 12, 9), 9
    tokens = torch.randint(0, 12, (5, length), generator=torch.Generator().manual_seed(0))
    expected = torch.zeros(5, dtype=torch.float64)
    for place in range(length):
        later = torch.arange(length) >= place
        at = (torch.arange(length) == place).expand(tokens.shape)
        answers = model.denoiser(torch.where(later, model.mask, tokens), at)
        expected -= answers.gather(1, tokens[:, place, None])[:, 0].double()
    nats = total_nats(model, tokens)
    assert float(nats.std()) > 1
    np.testing.assert_allclose(nats, expected, rtol=1e-5)
    rule = SAMPLERS.build("left_to_right()")
    replayed = replay(rule, model.denoiser, tokens, streams=Streams(0, 5))
    np.testing.assert_allclose(nats, -replayed.log_prob.sum(1), rtol=1e-5)
    assert replayed.calls.tolist() == [length] * 5
    short = total_nats(model, tokens[:, :4])  # a beginning costs what it cost in the whole
    np.testing.assert_allclose(short, -replayed.log_prob[:, :4].sum(1), rtol=1e-5)


def test_a_causal_models_texts_have_probability_one_together() -> None:
    model = rough(True, 3, 4)
    probabilities = (-total_nats(model, every_text(3, 4))).exp()
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-5)
    assert float(probabilities.max()) > 3 / 81  # and are not all alike


def test_the_next_token_is_all_a_causal_model_knows() -> None:
    model = rough(True, 12, 6)
    mask = model.mask
    tokens = torch.tensor([[1, 2, mask, mask, 5, mask], [4, mask, 3, mask, mask, mask]])
    next_ones = torch.zeros_like(tokens, dtype=torch.bool)
    next_ones[0, 2] = next_ones[1, 1] = True
    both = model.denoiser(tokens, next_ones)
    assert both.shape == (2, 12) and torch.allclose(both.exp().sum(1), torch.ones(2))
    blind = model.denoiser(torch.where(tokens == 5, 7, tokens), next_ones)
    assert torch.equal(both, blind)  # what stands further right is not read
    for row in (0, 1):
        alone = model.denoiser(tokens[row : row + 1], next_ones[row : row + 1])
        torch.testing.assert_close(alone, both[row : row + 1], rtol=0, atol=1e-5)
    further = next_ones.clone()
    further[0, 3] = True
    for wrong in (further, torch.roll(next_ones, 1, 1), None):
        with pytest.raises(MaskwalkError, match="only knows the next token"):
            model.denoiser(tokens, wrong)
    blank = torch.full((1, 6), mask)
    with pytest.raises(MaskwalkError, match="Use the sampler left_to_right"):
        decode(SAMPLERS.build("bisection()"), model.denoiser, blank, streams=Streams(0, 1))
    found = decode(SAMPLERS.build("left_to_right()"), model.denoiser, blank, streams=Streams(0, 1))
    assert bool((found.tokens != mask).all())


def order_costs(model: BookModel, text: Tensor) -> dict[tuple[int, ...], float]:
    """-log p of a text under a masked model, for every order of revealing one at a time."""
    length = len(text)
    place = torch.arange(length)
    nats: dict[tuple[frozenset[int], int], float] = {}
    for known in itertools.product([False, True], repeat=length):
        shown = torch.tensor(known)
        if not bool(shown.all()):
            answers = model.denoiser(torch.where(shown, text, model.mask)[None])
            for answer, i in zip(answers, place[~shown].tolist()):
                before = frozenset(place[shown].tolist())
                nats[before, i] = -float(answer[text[i]])
    return {
        order: sum(nats[frozenset(order[:k]), order[k]] for k in range(length))
        for order in itertools.permutations(range(length))
    }


def test_more_paths_come_nearer_to_the_likelihood_over_all_orders() -> None:
    """Against every order of a short text; a fixed order has one path, and that is all."""
    model, text = rough(False, 6, 4, 64, 0.4), torch.tensor([1, 4, 4, 2])
    costs = torch.tensor(list(order_costs(model, text).values()), dtype=torch.float64)
    truth = math.log(len(costs)) - float(torch.logsumexp(-costs, 0))
    assert float(costs.mean()) - truth > 0.1  # one path is far from it
    heard: list[int] = []
    rule = SAMPLERS.build("random(block=1)")
    found = along_paths(rule, model, text[None], 4096, batch=64, told=heard.append)
    assert found.random and found.nats.shape == (4096, 1) and sum(heard) == 4096
    assert found.calls.tolist() == [4]
    over = [float(found.over(k)) for k in (1, 4, 16, 4096)]
    assert over == sorted(over, reverse=True)
    assert over[0] == pytest.approx(float(costs.mean()), abs=0.03)
    assert over[3] == pytest.approx(truth, abs=0.02)
    few = along_paths(rule, model, text[None], 3, batch=2)
    assert torch.allclose(few.nats, found.nats[:3])  # whatever the batch, and however many follow
    for spec in ("bisection(order=1)", "left_to_right()"):
        fixed = along_paths(SAMPLERS.build(spec), model, text[None].repeat(5, 1), 9, batch=2)
        assert not fixed.random and fixed.nats.shape == (1, 5)
        assert torch.equal(fixed.over(), fixed.nats[0])


def test_a_masked_models_bound_is_the_mean_over_orders_and_above_the_truth() -> None:
    model, text, copies = rough(False, 6, 4, 64, 0.2), torch.tensor([1, 4, 4, 2]), 1500
    costs = torch.tensor(list(order_costs(model, text).values()), dtype=torch.float64)
    mean, truth = float(costs.mean()), -float(torch.logsumexp(-costs, 0) - math.log(24))
    assert mean > truth + 0.5  # the case is one where orders matter
    many = text.expand(copies, 4)
    rule, streams = SAMPLERS.build("random(block=1)"), Streams(0, copies)
    replayed = -replay(rule, model.denoiser, many, streams=streams).log_prob.sum(1)
    for found in (total_nats(model, many), replayed):
        error = float(found.std()) / math.sqrt(copies)
        assert 0 < error < 0.1 * (mean - truth)
        assert abs(float(found.mean()) - mean) < 4 * error
    listed = costs[:, None] - replayed
    assert float(listed.abs().amin(0).max()) < 1e-4  # every replay is the cost of some order
    assert float((-replayed).exp().mean()) == pytest.approx(math.exp(-truth), rel=0.05)


# --- training


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if not file.name.startswith("checkpoint-")}


@pytest.mark.parametrize("name", ["mdm", "ar"])
@pytest.mark.usefixtures("_small")
def test_a_trained_directory_has_all_that_is_needed(books: TinyBooks, name: str) -> None:
    folder, corpus = books.models / name, books.corpus
    assert names_in(folder) >= {
        "model.safetensors", "model.json", "tokenizer.json", "held_out.npy", "best",
    }  # fmt: skip
    model = load_books(folder)
    assert is_books(folder) and model.causal == (name == "ar") and model.longest == LENGTH
    assert (folder / "tokenizer.json").read_bytes() == (corpus.path / "tokenizer.json").read_bytes()
    assert model.held_out is not None
    assert torch.equal(model.held_out, corpus.chosen("test", LENGTH, 1024))
    about = model.about
    assert about["corpus"] == corpus.splits and about["parameters"] == 12_634
    assert about["passages"] == len(corpus.passages("train", LENGTH))
    assert about["device"] == "CPU" and about["text"]["steps"] == about["settings"]["steps"] == 40
    # The best of three looks at the validation split.
    lines = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    bounds = {line["step"]: line[f"bound/{name}"] for line in lines}
    assert list(bounds) == [14, 28, 40]
    assert about["bound"] == min(bounds.values()) == bounds[about["step"]]
    assert min(bounds.values()) < math.log(len(model.tokenizer)) - 1  # it has learnt something
    best = load_pretrained(folder / "best")
    assert model.pretrained is not None
    assert torch.equal(best.weights, model.pretrained.weights)
    valid = corpus.chosen("valid", LENGTH, 128)
    nats = total_nats(model, valid) / LENGTH
    assert float(nats.mean()) == pytest.approx(about["bound"], rel=1e-5)
    # The test split, counted another way: characters of the text itself.
    every = corpus.passages("test", LENGTH).long()
    some = every if model.causal else corpus.chosen("test", LENGTH, 6)
    assert about["test_passages"] == len(some) == about["test_ppl"]["n"]
    total = float(total_nats(model, some).sum())
    letters = sum(len(model.decode(row)) for row in some.tolist())
    assert about["test_ppl"]["value"] == pytest.approx(math.exp(total / some.numel()), rel=1e-5)
    assert about["test_bpb"]["value"] == pytest.approx(total / math.log(2) / letters, rel=1e-5)
    assert fitting.tested(model, corpus)["test_bpb"] == about["test_bpb"]


@pytest.mark.usefixtures("_small")
def test_the_weights_with_the_lowest_bound_are_kept(
    books: TinyBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = iter([3.0, 1.0, 2.0])

    def bound(config: Any, weights: Any, walks: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        nats = torch.full(walks.shape[:2], next(scripted), dtype=torch.float64)
        return nats, torch.zeros_like(nats)

    monkeypatch.setattr(loop, "split_bound", bound)
    model = fit_text(books.corpus, plan("causal", 3), tmp_path)
    assert model.about["step"] == 2 and model.about["bound"] == 1.0 and model.about["bound_se"] == 0
    two = load_pretrained(tmp_path / "best")
    assert model.pretrained is not None and torch.equal(two.weights, model.pretrained.weights)
    assert model.about["test_ppl"]["value"] != pytest.approx(math.e)  # not scripted: of the test


@pytest.mark.usefixtures("_small")
def test_training_goes_on_after_a_kill_and_keeps_its_directory(
    books: TinyBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, few = books.corpus, plan("masked", 6)
    fit_text(corpus, few, tmp_path / "m")
    whole = (tmp_path / "m" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "m")
    save, saved = loop.save_checkpoint, []

    def killed(*given: Any) -> None:
        save(*given)
        saved.append(given[2])
        if len(saved) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            fit_text(corpus, few, tmp_path / "m")
    assert saved == [2, 4]
    with pytest.raises(MaskwalkError, match="is no model of text"):
        load_books(tmp_path / "m")
    fit_text(corpus, few, tmp_path / "m", resume=True)
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == whole
    again = fit_text(corpus, few, tmp_path / "m", resume=True)  # nothing left but the test
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == whole
    assert "test_bpb" in again.about
    with pytest.raises(MaskwalkError, match=r"already holds a run; continue it with --resume"):
        fit_text(corpus, few, tmp_path / "m")
    # Another corpus is refused too, and the model keeps its tokenizer and passages.
    source = written(tmp_path / "source")
    (source / "train.txt").write_text("Etwas anderes, ganz anderes.\n" * 200)
    other = prepare(source, tmp_path / "data", 512)
    for resume, says in ((False, "already holds a run"), (True, "belongs to another run")):
        with pytest.raises(MaskwalkError, match=says):
            fit_text(other, few, tmp_path / "m", resume=resume)
    assert torch.equal(load_books(tmp_path / "m").held_out, again.held_out)
    assert load_books(tmp_path / "m").tokenizer.get_vocab() == again.tokenizer.get_vocab()
    assert other.path.joinpath("tokenizer.json").read_bytes() != (
        (tmp_path / "m" / "tokenizer.json").read_bytes()
    )


@pytest.mark.parametrize(
    "masking", ["coarse(share=0.9)", "along(sampler=bisection(), every=2, sequences=16)"]
)
def test_a_masking_is_learned_in_and_said(books: TinyBooks, tmp_path: Path, masking: str) -> None:
    usual = fit_text(books.corpus, plan("masked", 3), tmp_path / "usual")
    other = fit_text(books.corpus, replace(plan("masked", 3), masking=masking), tmp_path / "other")
    assert other.about["masking"] == other.about["text"]["masking"] == MASKINGS.canonical(masking)
    assert "masking" not in usual.about
    differ = [
        not torch.equal(a, b)
        for a, b in zip(usual.denoiser.weights.values(), other.denoiser.weights.values())
    ]
    assert any(differ)


def test_plans_that_make_no_sense() -> None:
    for given, says in (
        ({"kind": "autoregressive"}, r"Unknown kind 'autoregressive'.*causal, masked"),
        ({"size": "huge"}, r"Unknown size 'huge'.*base, small"),
        ({"length": 1}, "length must be a whole number at least 2"),
        ({"tested": 0}, "tested must be a whole number at least 1"),
        ({"masking": "coarse(share=2)"}, "share must be between 0 and 1, not 2"),
        ({"kind": "causal", "masking": "coarse"}, "A causal model has no masks to place"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            Plan(**given)
    with pytest.raises(MaskwalkError, match="steps must be a whole number at least 1"):
        _ = plan("masked", 0).settings
    masked, causal = plan("masked").config(500), plan("causal").config(500)
    assert not masked.causal and causal.causal and masked.tied and causal.tied
    assert masked.parameters == causal.parameters


# --- zoos


@pytest.fixture(scope="module")
def zoo(books: TinyBooks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both models packed beside one of walks."""
    folder = tmp_path_factory.mktemp("zoo")
    config = DDiTConfig(vocab_size=5, length=4, hidden=8, cond=4, blocks=1, heads=2)
    walks = Pretrained(config, layout(config).initial([0])[0], {"graph": "st_er(nodes=5, p=0.1)"})
    save_zoo({"walks": walks}, folder)
    before, data = zoo_manifest(folder)["walks"], (folder / "walks.safetensors.xz").read_bytes()
    for name in ("mdm", "ar"):
        made = pack(books.models / name, f"tiny_{name}", "tiny", folder)
        assert made == folder / f"tiny_{name}.safetensors.xz" and made.exists()
    assert zoo_manifest(folder)["walks"] == before
    assert (folder / "walks.safetensors.xz").read_bytes() == data
    return folder


@pytest.mark.parametrize("name", ["mdm", "ar"])
def test_a_packed_model_answers_as_its_directory_does(
    books: TinyBooks, zoo: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWALK_ZOO", str(zoo))
    mine, packed = load_books(books.models / name), load_books(f"zoo:tiny_{name}")
    assert list(zoo_manifest()) == ["walks", "tiny_mdm", "tiny_ar"]
    assert load_zoo("walks").about["graph"] == "st_er(nodes=5, p=0.1)"
    assert mine.held_out is not None and packed.held_out is not None
    assert torch.equal(mine.held_out, packed.held_out)
    assert mine.tokenizer.get_vocab() == packed.tokenizer.get_vocab()
    assert {**packed.about, **mine.about} == packed.about  # and where its files are
    assert type(mine.denoiser) is type(packed.denoiser) and mine.causal == packed.causal
    tokens = mine.held_out[:5].clone()
    tokens[:, 5:] = mine.mask
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[:, 5] = True
    exact, near = mine.denoiser(tokens, at), packed.denoiser(tokens, at)
    torch.testing.assert_close(near, exact, rtol=0.02, atol=0.02)
    assert not torch.equal(near, exact)
    assert mine.pretrained is not None
    rounded = mine.pretrained.weights.to(torch.bfloat16).float()
    same = type(mine.denoiser)(mine.pretrained.config, rounded, rows=8)
    assert torch.equal(same(tokens, at), near)  # nothing but the rounding
    some = mine.held_out[:8]
    np.testing.assert_allclose(total_nats(packed, some), total_nats(mine, some), rtol=0.01)


def test_a_zoo_carries_the_first_of_many_passages(
    books: TinyBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwalk.training.pack.PASSAGES", 7)
    pack(books.models / "ar", "few", "tiny", tmp_path)
    monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path))
    mine, packed = load_books(books.models / "ar").held_out, load_books("zoo:few").held_out
    assert mine is not None and packed is not None and len(mine) > 7
    assert torch.equal(packed, mine[:7])


def test_packing_again_replaces_the_model_of_that_name(
    books: TinyBooks, zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(zoo, tmp_path / "zoo")
    monkeypatch.setenv("MASKWALK_ZOO", str(folder))
    before = zoo_manifest(folder)
    pack(books.models / "ar", "tiny_mdm", "tiny", folder)
    after = zoo_manifest(folder)
    assert list(after) == list(before) and load_books("zoo:tiny_mdm").causal
    assert {k: v for k, v in after.items() if k != "tiny_mdm"} == {
        k: v for k, v in before.items() if k != "tiny_mdm"
    }
    other = shutil.copytree(books.models / "ar", tmp_path / "other")
    passages = np.load(other / "held_out.npy")
    np.save(other / "held_out.npy", passages[:-1])
    with pytest.raises(MaskwalkError, match=r"has another held_out\.npy under the corpus"):
        pack(other, "third", "tiny", folder)
    with pytest.raises(MaskwalkError, match="is not a directory that `maskwalk text train` wrote"):
        pack(tmp_path / "nowhere", "other", "tiny", folder)
    assert zoo_manifest(folder) == after


@pytest.mark.parametrize(
    "part", ["tiny_mdm.safetensors", "tiny.tokenizer.json", "tiny.held_out.npy"]
)
def test_a_damaged_zoo_file_is_named(
    zoo: Path, tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(zoo, tmp_path / "zoo")
    monkeypatch.setenv("MASKWALK_ZOO", str(folder))
    file = folder / f"{part}.xz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(MaskwalkError, match=rf"{part}\.xz is not the file its manifest describes"):
        load_books("zoo:tiny_mdm")
    file.unlink()
    with pytest.raises(MaskwalkError, match=rf"Cannot read .*{part}\.xz"):
        load_books("zoo:tiny_mdm")


def test_what_is_no_model_of_text(
    books: TinyBooks, zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWALK_ZOO", str(zoo))
    for source in ("zoo:walks", "zoo:nothing", tmp_path, tmp_path / "nowhere"):
        assert not is_books(source)
        with pytest.raises(MaskwalkError, match="is no model of text: neither zoo:NAME"):
            load_books(source)
    for name in ("model.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(books.models / "mdm" / name, tmp_path)
    with pytest.raises(MaskwalkError, match=r"Cannot read .*held_out\.npy"):
        load_books(tmp_path)
    save_pretrained(load_zoo("walks"), tmp_path / "walks")
    assert not is_books(tmp_path / "walks")


# --- the shipped ones, out of the box


@pytest.mark.parametrize("name", ["books_mdm", "books_ar"])
def test_a_shipped_model_writes(name: str) -> None:
    model = load_books(f"zoo:{name}", rows=2)
    made = generate(model, length=16, count=2, seed=1)
    assert made.tokens.shape == (2, 16) and bool((made.tokens != model.mask).all())
    assert made.texts[0] != made.texts[1] and all(len(text) > 16 for text in made.texts)
    assert model.causal == (name == "books_ar") and len(model.tokenizer) == 8192
    assert model.held_out is not None and model.held_out.shape == (1024, 256)


def test_held_out_text_replays_under_the_shipped_models() -> None:
    """Bits a byte not far from those of the whole test split."""
    found = {}
    for name, spec in (("books_mdm", "bisection(order=4)"), ("books_ar", "left_to_right()")):
        model = load_books(f"zoo:{name}", rows=1)
        assert model.held_out is not None
        passage = model.held_out[:1, :48] if model.causal else model.held_out[:1]
        rule = SAMPLERS.build(spec)
        replayed = replay(rule, model.denoiser, passage, streams=Streams(0, 1))
        nats = -float(replayed.log_prob.sum())
        size = len(model.decode(passage[0].tolist()).encode())
        assert size == int(token_bytes(model.tokenizer)[passage].sum())
        assert int(replayed.calls[0]) == (48 if model.causal else 25)
        found[name] = nats / math.log(2) / size
        if model.causal:
            assert float(total_nats(model, passage)) == pytest.approx(nats, rel=1e-4)
    assert 1.2 < found["books_ar"] < 2.2 and 1.4 < found["books_mdm"] < 2.6, found
