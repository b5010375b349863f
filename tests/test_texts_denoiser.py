"""The language experiment with somebody's model: MDLM's published fields and names, own texts."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maskwalk.analysis.judge import load_judge
from maskwalk.bench.judging import Judging
from maskwalk.bench.records import HELD_OUT, latest, load_records
from maskwalk.bench.run import Run
from maskwalk.bench.subject import is_foreign, weights_of
from maskwalk.bench.text_experiment import AUTOREGRESSIVE, TextExperiment
from maskwalk.denoisers.language.source import text_model
from maskwalk.resources import shipped
from maskwalk.worlds.text.held_out import passages_for
from tests.text_files import texts

pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")
FILE = shipped("experiments") / "paper" / "figure_language.toml"
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("theirs")
    for name in ("mdlm", "bert", "gpt2"):
        standins.STAND_INS[name](folder / name)
    texts(folder, documents=40, lines=6)
    return folder


def experiment(folder: Path, model: str) -> TextExperiment:
    file = TextExperiment.load(FILE, quick=True, denoiser=True)
    theirs = file.with_denoiser(f"hf:{folder / model}", (), str(folder / "texts.txt"), 12)
    few = {"samplers": ("bisection(order=2)", "random(block=4)"), "presets": ("exact",)}
    few |= {"judge": ("bisection(order=2)",), "exact_only": ()}
    numbers = {"count": 24, "replayed": 6, "paths": 2, "judged": 24, "references": 24}
    return replace(theirs, **few, **numbers)


@pytest.mark.parametrize("name", ["mdlm", "bert"])
def test_somebodys_model_writes_is_replayed_and_judged(folder: Path, name: str) -> None:
    e, out = experiment(folder, name), folder / f"run_{name}"
    for _ in Run(e.jobs(out), out / "records.jsonl"):
        pass
    records = {record["sampler"]: record for record in load_records(out)}
    assert set(records) == {HELD_OUT, "bisection(order=2)", "random(block=4)"}
    model = text_model(f"hf:{folder / name}")
    passages = passages_for(model, folder / "texts.txt", 12)
    replayed = records["bisection(order=2)"]["metrics"]["replay_bpb"]
    assert replayed is not None and len(replayed["nats"]) == 6
    sizes = passages.sizes[24:30]
    total = sum(replayed["nats"]) / np.log(2) / int(sizes.sum())
    assert (
        replayed["value"] == pytest.approx(total, rel=1e-5) and replayed["bytes"] == sizes.tolist()
    )
    tokens = np.load(out / "samples" / f"{records['bisection(order=2)']['key']}.npy")
    assert tokens.shape == (24, 12)
    if name == "bert":
        assert set(tokens[:, 0]) == {2} and set(tokens[:, -1]) == {3}
    references = np.load(out / "samples" / "references.npy")
    assert references.tolist() == passages.tokens[:24].tolist()
    for record in records.values():
        assert str(folder) not in json.dumps(record)
    for _ in Judging(out, load_judge(folder / "gpt2")):
        pass
    judged = {r["sampler"]: r["metrics"] for r in latest(load_records(out))}
    assert judged["bisection(order=2)"]["judge_bpb"] is not None
    assert judged["bisection(order=2)"]["mauve"] is not None
    assert "judge_bpb" not in judged["random(block=4)"]


def test_settings_with_an_autoregressive_model_are_left_out(folder: Path) -> None:
    file = TextExperiment.load(FILE, denoiser=True)
    assert (file.references, file.judged) == (2048, 1024)
    theirs = file.with_denoiser("hf:somebody/mdlm-owt", ("tokenizer=gpt2",), "x.txt", 1024)
    assert AUTOREGRESSIVE in file.samplers and AUTOREGRESSIVE not in theirs.samplers
    assert (
        theirs.causal is None and theirs.length == 1024 and theirs.title == "hf:somebody/mdlm-owt"
    )
    # Calls are the same share of a text four times as long.
    longer = {"ancestral(steps=172, cached=False, finish='draw', eps=1e-05)", "random(block=6)"}
    assert {*longer, "bisection(order=128)", "threshold(tau=0.05)"} <= set(theirs.samplers)
    assert "ancestral(steps=43, cached=False, finish='draw', eps=1e-05)" not in theirs.samplers
    assert len(theirs.samplers) == len(file.samplers) - 1 and theirs.judge == file.judge
    same = file.with_denoiser("hf:somebody/mdlm-owt", (), "x.txt", 256)
    assert same.samplers == tuple(s for s in file.samplers if s != AUTOREGRESSIVE)
    plain = TextExperiment.load(FILE)
    assert (plain.references, plain.texts, plain.options) == (512, None, ())


def test_a_setting_is_known_by_weights_texts_and_options(folder: Path) -> None:
    e = experiment(folder, "mdlm")
    one = e.key(e.settings[1])
    assert one != replace(e, options=("rows=2",)).key(e.settings[1])
    other = folder / "other.txt"
    other.write_text((folder / "texts.txt").read_text() + " the cat")
    assert one != replace(e, texts=str(other)).key(e.settings[1])
    moved = folder / "moved"
    moved.mkdir()
    (moved / "texts.txt").write_text((folder / "texts.txt").read_text())
    assert one == replace(e, texts=str(moved / "texts.txt")).key(e.settings[1])
    assert is_foreign(f"hf:{folder / 'mdlm'}") and not is_foreign("zoo:books_mdm")
    assert weights_of(f"hf:{folder / 'mdlm'}") != weights_of("zoo:books_mdm")


def test_what_belongs_to_a_model_of_theirs(cli: Cli, folder: Path) -> None:
    words = ("reproduce", "paper", "--out", str(folder / "none"))
    only = (*words, "--only", "figure_language", "--quick", "--judge", "none")
    theirs = ("--denoiser", f"hf:{folder / 'mdlm'}")
    for line, sentence in (
        ((*words, *theirs), "belong to --only figure_language"),
        ((*only, "--length", "12"), "belong to --denoiser"),
        ((*only, "--denoiser", "zoo:books_mdm"), "--denoiser is hf:PATH"),
        ((*only, *theirs, "--length", "12"), "--texts FILE"),
        ((*only, *theirs, "--texts", str(folder / "texts.txt"), "--length", "60"), "too few for"),
    ):
        code, _, err = cli(*line)
        assert code == 2 and sentence in err, err
