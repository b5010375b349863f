"""Replay and diagnosis of somebody's model of text, against its own answers asked one by one."""

import json
from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from maskwalk.analysis.paths import along_paths, batch_for
from maskwalk.analysis.replay import replay
from maskwalk.bench.subject import Subject, short
from maskwalk.bench.text_diagnosis import resolved
from maskwalk.denoisers.language.source import text_model
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.text.held_out import passages_for
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import STANDS
from tests.text_files import own_model, texts

pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    standins.write_bert(folder / "bert")
    texts(folder), own_model(folder)
    np.save(folder / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    return folder


def test_a_model_as_its_own_law_splits_like_the_oracle_of_a_world() -> None:
    law = STANDS["chain"]
    oracle, walks = oracle_for(law), law.sample(16, 0)
    for spec in ("random(block=3)", "entropy(block=2)", "bisection"):
        rule = SAMPLERS.build(spec)
        known = replay(rule, oracle, walks, streams=Streams(0, 16), world=law)
        taken = replay(rule, oracle, walks, streams=Streams(0, 16), law=oracle)
        assert taken.log_law is None
        for name in ("dependence", "dependence_path"):
            torch.testing.assert_close(taken.split[name], known.split[name])
        assert float(taken.split["dependence"].sum()) > (0.1 if "bisection" not in spec else -1)


def test_replay_of_a_masked_model_gives_nothing_for_what_is_given(cli: Cli, folder: Path) -> None:
    model = text_model(f"hf:{folder / 'bert'}")
    passages = passages_for(model, folder / "texts.txt", 12).part(1, 3)
    nats = []
    for row, given in zip(passages.tokens, passages.given):
        canvas, total = torch.where(given, row, model.mask)[None], 0.0
        for place in range(1, 11):  # left to right, asked one by one
            at = torch.zeros_like(canvas, dtype=torch.bool)
            at[0, place] = True
            total -= float(model.denoiser(canvas, at)[0, row[place]])
            canvas[0, place] = row[place]
        nats.append(total)
    words = ("text", "replay", f"hf:{folder / 'bert'}", "--texts", str(folder / "texts.txt"))
    more = ("--length", "12", "--skip", "1", "--count", "3", "--json")
    code, out, err = cli(*words, *more, "--sampler", "left_to_right", "--rows", "2")
    assert code == 0, err
    (row,) = json.loads(out)
    assert row["calls"] == 10 and not row["bound"]
    assert row["value"] == pytest.approx(sum(nats) / log(2) / int(passages.sizes.sum()), rel=1e-5)


def test_paths_know_what_is_given() -> None:
    law = STANDS["chain"]
    walks = law.sample(4, 0)
    given = torch.zeros_like(walks).bool()
    given[:, 0] = given[:, -1] = True
    from maskwalk.denoisers.language.model import LanguageModel

    model = LanguageModel(oracle_for(law), None)
    rule = SAMPLERS.build("random(block=2)")
    some = along_paths(rule, model, walks, 3, known=given, batch=2)
    alone = replay(rule, model.denoiser, walks, streams=Streams(0, 4), given=given)
    assert some.nats.shape == (3, 4) and some.calls.tolist() == [2.0] * 4
    torch.testing.assert_close(some.nats[0], -alone.log_prob.sum(1))


def test_the_batch_keeps_its_answers_in_bounds() -> None:
    class Wide:
        vocab_size, mask_id, score_grid = 1 << 17, 0, 1e-4

        def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
            raise AssertionError("nobody asks")

    from maskwalk.denoisers.language.model import LanguageModel

    wide = LanguageModel(Wide(), None)
    assert batch_for(wide, 256, 32) == 8 and batch_for(wide, 1 << 16, 32) == 1
    assert batch_for(wide, 8, 32) == 32


@pytest.mark.parametrize(("said", "usual", "length"), [(None, 64, 6), (None, 4, 4), (5, 4, 5)])
def test_the_usual_length_is_no_longer_than_the_passages(
    said: int | None, usual: int, length: int, folder: Path
) -> None:
    subject = Subject(f"{folder / 'own.py'}:model", {}, str(folder / "tokens.npy"), said, count=4)
    found, _ = resolved(subject, "cpu", usual)
    assert found.length == length and found.load()[1].tokens.shape[1] == length


def test_a_function_of_the_users_own_is_replayed(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, tokens = f"{folder / 'own.py'}:model", str(folder / "tokens.npy")
    words = ("text", "replay", name, "--texts", tokens, "--count", "4", "--paths", "2")
    code, out, err = cli(*words)
    assert code == 0, err
    assert "bits per token" in out and "4 passages of 6 tokens" in out
    monkeypatch.setenv("WORLD_SIZE", "2")  # as torchrun says
    code, out, err = cli(*words)
    assert code == 2 and not out and "torchrun started 2" in " ".join(err.split())


def test_the_dependence_of_one_call_is_the_models_own(cli: Cli, folder: Path) -> None:
    """Everything in one round: what each token's answer changes once those left of it are seen."""
    model = text_model(f"hf:{folder / 'bert'}")
    passages = passages_for(model, folder / "texts.txt", 8).part(0, 2)
    losses = []
    for row, given in zip(passages.tokens, passages.given):
        blank = torch.where(given, row, model.mask)[None]
        alone, loss, canvas = model.denoiser(blank).double(), 0.0, blank.clone()
        for place in range(1, 7):
            at = torch.zeros_like(canvas, dtype=torch.bool)
            at[0, place] = True
            seen = model.denoiser(canvas, at)[0].double()
            terms = seen.exp() * (seen - alone[place - 1])
            loss += float(terms[seen > -torch.inf].sum())
            canvas[0, place] = row[place]
        losses.append(loss)
    to = folder / "why"
    words = ("diagnose", "--denoiser", f"hf:{folder / 'bert'}", "--texts")
    words += (str(folder / "texts.txt"), "--length", "8", "--count", "2", "--out", str(to))
    code, out, err = cli(*words, "--samplers", "random(block=8);left_to_right", "--json")
    assert code == 0, err
    whole, single = json.loads(out)
    assert whole["dependence"] == pytest.approx(sum(losses) / 2, rel=1e-4)
    assert single["dependence"] == 0.0 and single["calls"] == 6.0
    assert whole["kl"] is None and whole["rounds"][0]["denoiser"] is None
    assert whole["model"] == "hf:bert" and "bert" not in whole["world"]
    code, out, err = cli(*words, "--samplers", "random(block=8);left_to_right")
    assert code == 0 and "bits per byte" in out and "nats per token" in out, err
    assert len((to / "diagnosis.jsonl").read_text().splitlines()) == 2  # nothing was run again
    code, out, err = cli("report", str(to))
    assert code == 0 and (to / "report.html").exists(), err


def test_diagnosis_of_text_says_what_it_does_not_take(cli: Cli, folder: Path) -> None:
    text = ("diagnose", "--denoiser", "zoo:books_mdm", "--count", "2", "--length", "8")
    walks = ("diagnose", "--samplers", "bisection", "--texts", str(folder / "texts.txt"))
    for words, sentence in (
        ((*text, "--task", "endpoints"), "is a model of text"),
        ((*text, "--samplers", "p2(steps=4)"), "cannot be replayed"),
        (walks, "belong to a model of text"),
        (("diagnose", "--denoiser", f"hf:{folder / 'bert'}"), "--texts FILE"),
    ):
        code, _, err = cli(*words)
        assert code == 2 and sentence in err, err


def test_records_name_no_folders(folder: Path) -> None:
    subject = Subject(f"hf:{folder / 'bert'}", texts=str(folder / "texts.txt"), length=8, count=2)
    assert subject.name == "hf:bert" and set(subject.sources) == {"hf:bert", "texts.txt"}
    assert short(f"{folder / 'own.py'}:model") == "own.py:model"
    assert short("hf:somebody/something") == "hf:somebody/something"
    assert str(folder) not in json.dumps(subject.about)
