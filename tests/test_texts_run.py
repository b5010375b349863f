"""The language experiment: its file, a run that goes on, a judge that goes on, the commands."""

import json
import math
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import maskwalk.bench.judging as judging_module
import maskwalk.bench.texts as run_module
from maskwalk.analysis.judge import Judge, load_judge
from maskwalk.analysis.paths import Paths
from maskwalk.analysis.replay import replay
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.judging import Judging
from maskwalk.bench.records import HELD_OUT, Record, latest, load_records
from maskwalk.bench.run import Run
from maskwalk.bench.text_experiment import Setting, TextExperiment
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import DRAWS, Draw, read_draw
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.files import load_pretrained, save_pretrained
from maskwalk.denoisers.language.books import load_books
from maskwalk.errors import MaskwalkError
from maskwalk.resources import shipped
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.fit_text import total_nats
from maskwalk.worlds.text.metrics import perplexity, token_entropy
from maskwalk.worlds.text.passages import token_bytes
from tests.tiny_books import LENGTH, TinyBooks, for_session, small, written

pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")

FILE = shipped("experiments") / "paper" / "figure_language.toml"
FAMILIES = (
    "left_to_right",
    "ancestral",
    "random",
    "entropy",
    "confidence",
    "margin",
    "constant_entropy",
    "entropy_bounded",
    "threshold",
    "dus",
    "bisection",
    "guided_bisection",
)
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> TinyBooks:
    return for_session(tmp_path_factory)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """A random GPT-2 that reads 256 tokens."""
    folder = tmp_path_factory.mktemp("judge")
    size = len(standins.write_tokenizer(folder))
    shape = {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 256}
    standins._write(folder, 0, "GPT2", "LMHeadModel", vocab_size=size, **shape)
    return load_judge(folder)


def run_of(experiment: TextExperiment, out: Path) -> Run:
    return Run(experiment.jobs(out), out / "records.jsonl")


def draw_of(mode: str) -> Draw:
    return DRAWS.build(read_draw(mode)[0])


def tiny(books: TinyBooks) -> TextExperiment:
    return TextExperiment(
        name="tiny",
        title="Tiny",
        masked=str(books.models / "mdm"),
        causal=str(books.models / "ar"),
        presets=("exact", "draw(top_p=0.9)"),
        samplers=("left_to_right()", "random(block=4)", "bisection(order=2)", "p2(steps=3)"),
        exact_only=("entropy(block=8)",),
        judge=("left_to_right()", "random(block=4)"),
        length=LENGTH,
        count=24,
        replayed=10,
        paths=3,
        judged=22,
        references=30,
        seed=5,
    )


@pytest.fixture(scope="module")
def made(books: TinyBooks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; copy it to write in it."""
    folder = tmp_path_factory.mktemp("run")
    run = run_of(tiny(books), folder)
    told = [run.done for _ in run]
    assert told == list(range(1, 12)) and run.done == run.total == 11
    return folder


def by_setting(folder: Path) -> dict[Setting, Record]:
    records = latest(load_records(folder))
    return {Setting(record["sampler"], record["mode"]): record for record in records}


def timeless(records: list[Record]) -> list[Record]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


# --- the experiment's file


def test_the_shipped_experiment_with_models_of_ones_own() -> None:
    """The paper's number of texts; every held-out passage of the corpus is used once."""
    e, small = TextExperiment.load(FILE, models=Path("models")), TextExperiment.load(FILE)
    assert e.settings == small.settings and all(map(e.reads, e.settings))
    assert e.count == e.judged == 1024 and e.references + e.judged == 2824 <= 2828


@pytest.mark.parametrize("quick", [False, True])
def test_the_shipped_experiment(quick: bool) -> None:
    e = TextExperiment.load(FILE, quick)
    assert (e.masked, e.causal) == ("zoo:books_mdm", "zoo:books_ar")
    assert e.name == "figure_language" and e.presets == ("exact", "draw(top_p=0.9)")
    families = {spec.partition("(")[0] for spec in e.samplers}
    assert families >= set(FAMILIES)
    settings = e.settings
    assert len(set(settings)) == len(settings)
    judged = [setting for setting in settings if e.reads(setting)]
    assert len(judged) <= 16
    assert [s.mode for s in judged if s.sampler == HELD_OUT] == ["exact", "draw(top_p=0.9)"]
    assert {s.sampler for s in judged} == {HELD_OUT, *e.judge}
    assert e.judged <= e.count and e.judged >= 20 <= e.references  # what MAUVE needs
    held = load_books(e.models[0]).held_out
    assert held is not None and held.shape[1] >= e.length
    assert len(held) - e.references >= max(e.judged, e.replayed)
    for setting in settings:
        assert e.model(setting) == (e.causal if setting.sampler == "left_to_right()" else e.masked)
        assert draw_of(setting.mode) == (Draw() if setting.mode == "exact" else Draw(top_p=0.9))
    keys = {e.key(setting) for setting in settings}
    assert len(keys) == len(settings)
    given = tomllib.loads(FILE.read_text())
    expected = {**given, **given["quick"]} if quick else given
    for name in ("length", "count", "replayed", "paths", "judged", "references"):
        assert getattr(e, name) == expected[name]
    assert (e.length == 256) != quick


def flat(tokens: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
    """Two tokens, both always alike."""
    at = tokens == 2 if at is None else at
    return torch.full((int(at.sum()), 2), -math.log(2), dtype=torch.float64)


@pytest.mark.parametrize(("length", "calls"), [(1024, 161), (256, 100)])
def test_bisection_of_the_papers_order_takes_this_many_calls(length: int, calls: int) -> None:
    denoiser: Any = flat
    denoiser.vocab_size, denoiser.mask_id, denoiser.score_grid = 2, 2, 1e-9
    blank = torch.full((1, length), 2)
    found = decode(SAMPLERS.build("bisection(order=32)"), denoiser, blank, streams=Streams(0, 1))
    assert found.calls.tolist() == [calls]


GOOD = """
kind = "text"
masked = "m"
causal = "c"
presets = ["exact"]
samplers = ["random(block=2)", "sweep(bisection)"]
"""


def test_a_file_says_what_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD + '[quick]\nlength = 8\nsamplers = ["random"]')
    full, quick = (TextExperiment.load(file, quick) for quick in (False, True))
    assert full.name == full.title == "mine" and full.length == 256 and quick.length == 8
    assert quick.samplers == ("random(block=1)",)
    assert full.samplers[0] == "random(block=2)" and len(full.samplers) > 3  # a sweep is several
    assert full.judge == () and not any(map(full.reads, full.settings))
    moved = full.with_models(tmp_path)
    assert moved.models == [str(tmp_path / "mdm"), str(tmp_path / "ar")]
    file.write_text(GOOD + '[models]\ncount = 9\njudge = ["all"]\n[quick]\nlength = 8')
    more = TextExperiment.load(file, models=tmp_path)
    assert more.models == moved.models and more.count == 9 and all(map(more.reads, more.settings))
    both = TextExperiment.load(file, quick=True, models=tmp_path)
    assert both.models == moved.models and (both.count, both.length) == (full.count, 8)
    twice = replace(full, presets=("exact", "exact"), exact_only=("random(block=2)",))
    assert twice.settings == full.settings  # each once


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("colour = 1", r"Unknown setting in .*: 'colour'"),
        ("lenght = 8", r"'lenght'\. Did you mean 'length'"),
        ('kind = "walk"', r'kind is not "text"'),
        ("masked = 3", "masked in .* must be a text, not 3"),
        ("presets = []", "presets is empty"),
        ('presets = "exact"', "presets in .* must be a list of texts, not 'exact'"),
        ("presets = [3]", r"presets\[0\] in .* must be a text, not 3"),
        ('presets = ["top_p=0.9"]', r"Unknown preset 'top_p=0.9'.*such as draw\(top_p=0.9\)"),
        ('presets = ["draw(top_q=3)"]', r"Unknown parameter of draw .*'top_q'.*top_p"),
        ('presets = ["draw(top_p=-1)"]', "top_p must be between 1e-06 and 1, not -1"),
        ('presets = ["draw(top_p=0.9, min_p=2)"]', "min_p must be between 0 and 1, not 2"),
        ('samplers = "random"', "samplers in .* must be a list of texts, not 'random'"),
        ("samplers = [3]", r"samplers\[0\] in .* must be a text, not 3"),
        ('samplers = ["best"]', "Unknown sampler 'best'"),
        ('samplers = ["held_out"]', "Unknown sampler 'held_out'"),
        ('judge = ["entropy"]', r"Unknown judged sampler.*'entropy\(block=1\)'"),
        ("judge = 4", "judge in .* must be a list"),
        ("length = 0", "length must be a whole number at least 1, not 0"),
        ("count = true", "count in .* must be a whole number"),
        ("seed = -1", "seed in .* must be a whole number at least 0"),
        ("quick = 3", r"quick in .* must be a table, \[quick\]"),
        ("models = 3", r"models in .* must be a table, \[models\]"),
        ("paths = 0", "paths must be a whole number at least 1, not 0"),
        ("count = ", "is not a TOML file"),
    ],
)
def test_a_file_with_a_mistake(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "mine.toml"
    name = line.partition(" ")[0]
    rest = [other for other in GOOD.splitlines() if other.partition(" ")[0] != name]
    file.write_text("\n".join([*rest, line]))
    with pytest.raises(MaskwalkError, match=says):
        TextExperiment.load(file)


def test_a_file_that_lacks_something(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match=r"Cannot read .*: No such file"):
        TextExperiment.load(tmp_path / "none.toml")
    file = tmp_path / "mine.toml"
    for name in ("masked", "causal", "presets", "samplers"):
        file.write_text("\n".join(row for row in GOOD.splitlines() if not row.startswith(name)))
        with pytest.raises(MaskwalkError, match=rf"mine\.toml has no {name}"):
            TextExperiment.load(file)


def test_keys_depend_on_what_the_numbers_depend_on(books: TinyBooks, tmp_path: Path) -> None:
    e = tiny(books)
    setting, key = e.settings[2], e.key(e.settings[2])
    shutil.copytree(books.models, tmp_path / "models")
    assert e.with_models(tmp_path / "models").key(setting) == key  # by weights, not by place
    other = load_pretrained(tmp_path / "models" / "ar")
    save_pretrained(replace(other, weights=other.weights + 1), tmp_path / "models" / "ar")
    assert e.with_models(tmp_path / "models").key(setting) != key
    for change in (
        {"count": 25},
        {"length": 12},
        {"seed": 6},
        {"replayed": 9},
        {"paths": 2},
        {"references": 31},
    ):
        assert replace(e, **change).key(setting) != key
    for change in ({"name": "x"}, {"title": "x"}, {"judged": 3}, {"judge": ()}):
        assert replace(e, **change).key(setting) == key
    assert len({e.key(one) for one in e.settings}) == len(e.settings)


# --- a run


def test_a_run_has_one_record_a_setting(books: TinyBooks, made: Path) -> None:
    e, records = tiny(books), load_records(made)
    assert [Setting(r["sampler"], r["mode"]) for r in records] == e.settings
    assert [r["key"] for r in records] == [e.key(setting) for setting in e.settings]
    assert [r["cell"] for r in records] == list(range(11))
    for record in records:
        assert record["world"] == f"text(source='mdm', length={LENGTH})"
        assert record["schema"] == 2 and record["task"] == "unconditional()"
        assert record["experiment"] == "tiny" and record["title"] == "Tiny"
        assert (record["count"], record["seed"]) == (24, 5)
        assert ("top_p=0.9" in record["draw"]) == (record["mode"] == "draw(top_p=0.9)")
        assert len(record["texts"]) == 3 and record["seconds"] >= 0
    labels = {r["sampler"]: r["denoiser"] for r in records}
    assert labels[HELD_OUT] == ""  # nobody decodes it
    assert labels["left_to_right()"] == "ar (0.0 M parameters)"  # no path, which means nothing
    assert labels["random(block=4)"] == "mdm (0.0 M parameters)"


CALLS = {
    "left_to_right()": 16,
    "random(block=4)": 4,
    "bisection(order=2)": 7,
    "p2(steps=3)": 3,
    "entropy(block=8)": 2,
}


def test_records_say_what_generating_and_measuring_apart_says(books: TinyBooks, made: Path) -> None:
    e, models = tiny(books), {n: load_books(books.models / n) for n in ("mdm", "ar")}
    for setting, record in by_setting(made).items():
        if setting.sampler == HELD_OUT:
            continue
        model = models["ar" if setting.sampler == "left_to_right()" else "mdm"]
        options: dict[str, Any] = {"length": LENGTH, "count": e.count, "seed": e.seed}
        draw = draw_of(setting.mode)
        texts = generate(model, setting.sampler, draw=draw, stop=False, **options).tokens
        numbers, n = record["metrics"], e.count
        assert record["texts"] == [model.decode(row) for row in texts[:3].tolist()]
        calls = CALLS[setting.sampler]
        assert numbers["calls"] == {"value": calls, "se": 0.0, "n": n, "max": calls}
        assert numbers["tokens_per_call"]["value"] == pytest.approx(LENGTH / CALLS[setting.sampler])
        nats = total_nats(models["ar"], texts)
        expected = perplexity(nats, torch.full((n,), LENGTH)).as_dict()
        assert numbers["own_ppl"] == pytest.approx(expected, rel=1e-6)
        size = token_bytes(model.tokenizer)[texts].sum()
        assert numbers["own_bpb"]["value"] == pytest.approx(
            float(nats.sum()) / math.log(2) / int(size), rel=1e-6
        )
        assert numbers["entropy"]["value"] == pytest.approx(float(token_entropy(texts).mean()))
        for k in (1, 2, 3):
            grams = [
                [tuple(row[i : i + k]) for i in range(LENGTH - k + 1)] for row in texts.tolist()
            ]
            share = [1 - len(set(row)) / len(row) for row in grams]
            assert numbers[f"rep{k}"]["value"] == pytest.approx(sum(share) / n)
        kept = made / "samples" / f"{record['key']}.npy"
        if setting.sampler in e.judge:
            assert np.array_equal(np.load(kept), texts[: e.judged].numpy())


def test_only_exact_draws_of_policies_that_choose_first_are_replayed(
    books: TinyBooks, made: Path
) -> None:
    found = by_setting(made)
    replayed = {s for s, r in found.items() if "replay_bpb" in r["metrics"]}
    specs = ("left_to_right()", "random(block=4)", "bisection(order=2)", "entropy(block=8)")
    assert replayed == {Setting(spec, "exact") for spec in specs}
    model = load_books(books.models / "mdm")
    assert model.held_out is not None
    passages = model.held_out[30:40]  # after the references
    rule = SAMPLERS.build("random(block=4)")
    # Three throws of the dice for each of ten passages: streams 0–9, 10–19, 20–29.
    three = [
        replay(rule, model.denoiser, passages, streams=Streams(5, torch.arange(i, i + 10)))
        for i in (0, 10, 20)
    ]
    each = torch.stack([found.log_prob.sum(1) for found in three])
    nats = -each.exp().mean(0).log()
    size = sum(len(model.decode(row).encode()) for row in passages.tolist())
    value = found[Setting("random(block=4)", "exact")]["metrics"]["replay_bpb"]
    assert value["n"] == 10 and value["se"] > 0 and value["paths"] == 3
    assert value["value"] == pytest.approx(float(nats.sum()) / math.log(2) / size, rel=1e-6)
    one = -float(each.mean(0).sum()) / math.log(2) / size
    assert value["one_path"] == pytest.approx(one, rel=1e-6) and one > value["value"]
    fixed = found[Setting("bisection(order=2)", "exact")]["metrics"]["replay_bpb"]
    assert fixed["paths"] == 1 and fixed["one_path"] == fixed["value"]


def test_held_out_text_is_a_record_of_every_draw(books: TinyBooks, made: Path) -> None:
    found, scorer = by_setting(made), load_books(books.models / "ar")
    one, other = (found[Setting(HELD_OUT, preset)] for preset in ("exact", "draw(top_p=0.9)"))
    assert one["metrics"] == other["metrics"] and one["texts"] == other["texts"]
    numbers = one["metrics"]
    assert "calls" not in numbers and "replay_bpb" not in numbers
    assert scorer.held_out is not None
    held = scorer.held_out[30:]  # the references are MAUVE's alone
    assert one["texts"][0] == scorer.decode(held[0].tolist())
    assert numbers["entropy"]["n"] == len(held)
    assert numbers["entropy"]["value"] == pytest.approx(float(token_entropy(held).mean()))
    # The whole test split, which the scorer was tested with.
    for name in ("bpb", "ppl"):
        assert numbers[f"own_{name}"] == scorer.about[f"test_{name}"]


def test_held_out_text_of_another_length_is_scored_at_that_length(
    books: TinyBooks, tmp_path: Path
) -> None:
    """What the scorer was tested with is not the mark for shorter texts."""
    e = replace(tiny(books), length=6, samplers=(), exact_only=(), judge=(), presets=("exact",))
    (record,) = run_of(e, tmp_path)
    scorer = load_books(books.models / "ar")
    assert scorer.held_out is not None
    nats = total_nats(scorer, scorer.held_out[30:, :6])
    value = record["metrics"]["own_ppl"]["value"]
    assert value == pytest.approx(math.exp(float(nats.mean()) / 6), rel=1e-6)
    assert value > 1.05 * scorer.about["test_ppl"]["value"]


def test_only_what_the_judge_reads_is_kept(books: TinyBooks, made: Path) -> None:
    e, model = tiny(books), load_books(books.models / "mdm")
    keys = {f"{e.key(setting)}.npy" for setting in e.settings if e.reads(setting)}
    assert len(keys) == 6  # two policies and held-out text, under two draws
    kept = {file.name for file in (made / "samples").iterdir()}
    assert kept == keys | {"references.npy", "tokenizer.json"}
    assert model.held_out is not None
    references = np.load(made / "samples" / "references.npy")
    assert np.array_equal(references, model.held_out[:30].numpy())
    held = np.load(made / "samples" / f"{e.key(Setting(HELD_OUT, 'exact'))}.npy")
    assert np.array_equal(held, model.held_out[30:52].numpy())


def test_a_run_goes_on_where_it_stopped(
    books: TinyBooks, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    e, file = tiny(books), tmp_path / "records.jsonl"
    some: Any = iter(run_of(e, tmp_path))
    for _ in range(4):
        next(some)
    some.close()
    before = file.read_bytes()
    file.write_bytes(before + b'{"key": "cut sho')
    monkeypatch.setattr(run_module, "BATCH", 9)  # and does not depend on how many at a time
    run = run_of(e, tmp_path)
    assert len(list(run)) == 7 and run.done == 11
    after = file.read_bytes()
    assert after.startswith(before)
    assert timeless(load_records(tmp_path)) == timeless(load_records(made))
    for name in (made / "samples").iterdir():
        assert (tmp_path / "samples" / name.name).read_bytes() == name.read_bytes()
    run_module._models.cache_clear()
    monkeypatch.setattr(run_module, "decode_rows", lambda *_, **__: pytest.fail("sampled again"))
    monkeypatch.setattr(run_module, "text_model", lambda *_, **__: pytest.fail("loaded again"))
    again = run_of(e, tmp_path)
    assert list(again) == [] and again.done == again.total
    assert file.read_bytes() == after


def test_models_that_do_not_fit(books: TinyBooks, tmp_path: Path) -> None:
    e = tiny(books)
    mdm, ar = str(books.models / "mdm"), str(books.models / "ar")
    for change, says in (
        ({"masked": ar}, "ar is not the masked model it should be"),
        ({"causal": mdm}, "mdm is not the autoregressive model it should be"),
        ({"masked": "zoo:books_mdm"}, "different tokenizers"),
        ({"causal": str(tmp_path / "none")}, "none is no model of text"),
        (
            {"references": 107},
            "107 held-out passages of 16 tokens: too few for 107 references and 20 more",
        ),
        ({"length": 17}, "of 16 tokens: too few for 30 references and 20 more of 17 tokens"),
        ({"causal": None}, r"There is no model for left_to_right\(\)"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            list(run_of(replace(e, **change), tmp_path / "run"))


def test_one_model_alone_can_be_tried(books: TinyBooks, tmp_path: Path) -> None:
    """A masked model without a scorer, as `text train` tries it."""
    e = replace(tiny(books), causal=None, samplers=("random(block=4)",), judge=(), exact_only=())
    held, one = run_of(replace(e, presets=("exact",)), tmp_path)
    assert held["sampler"] == HELD_OUT and "own_bpb" not in one["metrics"] | held["metrics"]
    assert {"calls", "entropy", "replay_bpb"} <= set(one["metrics"])
    assert not (tmp_path / "samples").exists()


# --- the judge


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


def test_a_judge_adds_its_numbers(made: Path, copied: Path, judge: Judge) -> None:
    pytest.importorskip("mauve")
    told: list[int] = []
    work = Judging(copied, judge, told.append)
    assert work.total == 30 + 22 + 4 * 22  # references, held-out text once, two policies twice
    read = list(work)
    assert sum(told) == 140 and len(read) == 6
    lines = (copied / "records.jsonl").read_bytes()
    assert lines.startswith((made / "records.jsonl").read_bytes()) and lines.count(b"\n") == 17
    before, after = by_setting(made), by_setting(copied)
    assert list(before) == list(after)
    for setting, record in after.items():
        judged = setting.sampler in (HELD_OUT, "left_to_right()", "random(block=4)")
        assert ("judge" in record) == judged
        if not judged:
            assert record == before[setting]
            continue
        assert record["judge"] == judge.name
        more = {"judge_bpb", "judge_ppl", "mauve"}
        numbers = record["metrics"]
        assert {k: v for k, v in numbers.items() if k not in more} == before[setting]["metrics"]
        assert all(numbers[name]["n"] == 22 for name in more)
        assert 0 < numbers["mauve"]["value"] <= 1 and numbers["mauve"]["references"] == 30
    exact, cut = (after[Setting(HELD_OUT, p)]["metrics"] for p in ("exact", "draw(top_p=0.9)"))
    assert exact == cut
    # The same by hand: the texts as written, not as tokens.
    record = after[Setting("random(block=4)", "exact")]
    assert_judged(copied, judge, record)
    # A second time there is nothing to do; another judge begins anew.
    again = Judging(copied, judge, told.append)
    assert again.todo == [] and again.total == 0 and list(again) == []
    assert (copied / "records.jsonl").read_bytes() == lines and sum(told) == 140
    assert len(list((copied / "features").iterdir())) == 6


def assert_judged(folder: Path, judge: Judge, record: Record) -> None:
    tokens = np.load(folder / "samples" / f"{record['key']}.npy").tolist()
    tokenizer = judging_module.read_tokenizer_bytes(
        (folder / "samples" / "tokenizer.json").read_bytes()
    )
    texts = [tokenizer.decode(row, skip_special_tokens=True) for row in tokens]
    assert texts[:3] == record["texts"]
    read = judge.read(texts)
    bits = float(read.nats.sum()) / math.log(2) / sum(len(text.encode()) for text in texts)
    assert record["metrics"]["judge_bpb"]["value"] == pytest.approx(bits, rel=1e-5)
    each = float(read.nats.sum()) / int(read.tokens.sum())
    assert record["metrics"]["judge_ppl"]["value"] == pytest.approx(math.exp(each), rel=1e-5)


def counted(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by every text the judge reads from now on."""
    texts: list[str] = []
    read = judge.read

    def also(some: list[str], progress: Any = None) -> Any:
        texts.extend(some)
        return read(some, progress)

    monkeypatch.setattr(judge, "read", also)
    return texts


def test_an_interrupted_judge_goes_on(
    copied: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mauve")
    monkeypatch.setattr(judging_module, "CHUNK", 10)
    seen: list[int] = []

    def stop(texts: int) -> None:
        seen.append(texts)
        if sum(seen) > 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Judging(copied, judge, stop))
    unfinished = (copied / "records.jsonl").read_bytes()
    texts, told = counted(judge, monkeypatch), []
    work = Judging(copied, judge, told.append)
    total = work.total  # all that is not in a record yet, read before or not
    list(work)
    assert sum(told) == total
    # Of 140 texts 30 + 22 were read and used, 18 of the next setting read, 10 of these kept.
    assert len(texts) == 140 - 30 - 22 - 10
    assert (copied / "records.jsonl").read_bytes().startswith(unfinished)
    finished = [r for r in latest(load_records(copied)) if "judge" in r]
    assert len(finished) == 6
    for record in finished:
        assert_judged(copied, judge, record)


def test_another_judge_reads_everything_anew(
    copied: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mauve")
    list(Judging(copied, judge))
    monkeypatch.setattr(judge, "name", "another")
    told, texts = [], counted(judge, monkeypatch)
    work = Judging(copied, judge, told.append)
    assert work.total == 140 and len(list(work)) == 6
    assert sum(told) == len(texts) == 140
    assert {r["judge"] for r in latest(load_records(copied)) if "judge" in r} == {"another"}


def test_records_of_walks_in_the_same_folder_are_let_be(copied: Path, judge: Judge) -> None:
    before = Judging(copied, judge).todo
    walk = {"key": "w", "cell": 3, "sampler": "random()", "mode": "exact", "metrics": {}}
    walk |= {"world": "walk()", "task": "unconditional()", "denoiser": "oracle"}
    with (copied / "records.jsonl").open("a") as file:
        file.write(json.dumps(walk | {"schema": 2}) + "\n")
    assert Judging(copied, judge).todo == before


def test_runs_that_cannot_be_judged(books: TinyBooks, judge: Judge, tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="has no texts to judge; `maskwalk reproduce paper"):
        list(Judging(tmp_path, judge))
    one = ("random(block=4)",)
    few = replace(tiny(books), samplers=one, judge=one, exact_only=(), judged=19, replayed=0)
    assert all("replay_bpb" not in record["metrics"] for record in run_of(few, tmp_path / "few"))
    pytest.importorskip("mauve")
    with pytest.raises(MaskwalkError, match="MAUVE needs at least 20 texts on either side, not 19"):
        list(Judging(tmp_path / "few", judge))
    assert not any("judge" in record for record in latest(load_records(tmp_path / "few")))


def test_replay_says_whether_it_is_a_bound(made: Path) -> None:
    """A few paths of a stochastic policy give, on average, more bits than its law does."""
    found = {
        r["sampler"]: r["metrics"]["replay_bpb"]
        for r in latest(load_records(made))
        if has_replay(r)
    }
    told = {name: number["bound"] for name, number in found.items()}
    fixed = {name for name in told if name.startswith(("bisection", "left_to_right"))}
    assert fixed and {name for name, bound in told.items() if not bound} >= fixed
    assert any(name.startswith("random") and bound for name, bound in told.items())
    for number in found.values():
        bits = sum(number["nats"]) / math.log(2) / sum(number["bytes"])
        assert number["value"] == pytest.approx(bits, rel=1e-4)


def has_replay(record: dict[str, Any]) -> bool:
    return "replay_bpb" in record["metrics"]


def test_texts_that_a_judge_lacks_are_written_again(
    books: TinyBooks, made: Path, tmp_path: Path
) -> None:
    again = shutil.copytree(made, tmp_path / "again")
    one = next(f for f in sorted((again / "samples").glob("*.npy")) if len(f.stem) == 64)
    before = one.read_bytes()
    one.unlink()
    assert [record["key"] for record in run_of(tiny(books), again)] == [one.stem]
    assert one.read_bytes() == before


# --- the commands


def test_prepare_and_train_from_the_command_line(
    cli: Cli, books: TinyBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    source, data = written(tmp_path / "source"), tmp_path / "data"
    code, out, _ = cli("text", "prepare", str(source), "--out", str(data), "--vocab", "512")
    assert code == 0 and f"Wrote {data}" in out
    told = books.corpus.splits["train"]
    assert f"train  5 books, {told['bytes']:,} bytes, {told['tokens']:,} tokens" in out
    assert (data / "train.npy").read_bytes() == (books.corpus.path / "train.npy").read_bytes()
    few = ("--size", "small", "--steps", "3", "--batch", "4", "--length", "16", "--tested", "4")
    ar, mdm = tmp_path / "ar", tmp_path / "mdm"
    words = ["text", "train", str(data), *few, "--samples", "4"]
    code, out, err = cli(*words, "--kind", "causal", "--out", str(ar))
    assert code == 0 and "Test, 107 passages: perplexity" in out, err
    assert f"Wrote {ar / 'model.safetensors'}" in out and "left_to_right():" in out
    code, out, err = cli(*words, "--out", str(mdm), "--scorer", str(ar))
    assert code == 0 and "Test, 4 passages: perplexity, at most" in out, err
    assert "own" in out and "bisection(order=4):" in out
    assert load_books(ar).causal and not load_books(mdm).causal
    code, _, err = cli(*words, "--out", str(mdm))
    assert code == 2 and "already holds a run" in err
    again = ("--kind", "causal", "--out", str(ar), "--resume", "--samples", "9999")
    code, _, err = cli(*words, *again)  # of a finished run: tested and tried again
    assert code == 2 and "no more than" in err
    code, out, err = cli(*words, *again[:-2])
    assert code == 0 and "left_to_right():" in out, err
    code, out, _ = cli("generate", "--denoiser", str(ar), "--length", "16", "--no-stop")
    assert code == 0 and "16 calls per text" in out
    code, out, _ = cli("text", "pack", str(mdm), "--name", "mine", "--zoo", str(tmp_path / "zoo"))
    assert code == 0 and "mine.safetensors.xz" in out
    monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path / "zoo"))
    code, out, _ = cli("zoo")
    assert code == 0 and "zoo:mine" in out and "bits per byte of held-out books" in out


def test_replay_on_the_command_line(cli: Cli, books: TinyBooks) -> None:
    model = load_books(books.models / "mdm")
    assert model.held_out is not None
    words = ("text", "replay", str(books.models / "mdm"), "--count", "6", "--length", "8")
    asked = ("--sampler", "bisection(order=2)", "--sampler", "random(block=3)", "--paths", "4")
    code, out, err = cli(*words, *asked, "--skip", "2", "--seed", "3", "--json")
    rows = json.loads(out)
    assert code == 0, err
    found = [(row["sampler"], row["calls"], row["paths"], row["bound"]) for row in rows]
    fixed, *dice = (
        ("bisection(order=2)", 5, 1, False),
        *(("random(block=3)", 3, k, True) for k in (1, 2, 4)),
    )
    assert found == [fixed, *dice]
    assert rows[1]["value"] > rows[2]["value"] > rows[3]["value"]
    some = model.held_out[2:8, :8]
    forced = replay(SAMPLERS.build(fixed[0]), model.denoiser, some, streams=Streams(3, 6))
    size = int(token_bytes(model.tokenizer)[some].sum())
    bits = -float(forced.log_prob.sum()) / math.log(2) / size
    assert rows[0]["value"] == pytest.approx(bits) and rows[0]["n"] == 6
    code, out, _ = cli(*words, *asked)
    assert code == 0 and "≤" in out and "6 passages of 8 tokens" in out
    code, out, _ = cli(*words, "--sampler", "random(block=3)", "--paths", "3", "--json")
    assert [row["paths"] for row in json.loads(out)] == [1, 2, 3]  # what was asked for, too
    code, out, _ = cli(*words[:-4], "--count", "1", "--length", "4", "--paths", "1")
    assert code == 0 and out.count("± –") == 7  # one passage has no interval


def test_replay_of_truncated_draws_says_what_is_lost(cli: Cli, books: TinyBooks) -> None:
    """A passage with a token below the floor has no likelihood; the others have one."""
    model = load_books(books.models / "mdm")
    assert model.held_out is not None
    passages = model.held_out[:40, :3]
    words = ("text", "replay", str(books.models / "mdm"), "--count", "40", "--length", "3")
    words += ("--sampler", "bisection(order=1)", "--sampler", "left_to_right")
    lost = {}
    for floor in (0.5, 1.0):
        draw = f"draw(floor={floor})"
        rule, shape = SAMPLERS.build("bisection(order=1)"), DRAWS.build(draw)
        forced = replay(rule, model.denoiser, passages, streams=Streams(0, 40), draw=shape)
        nats = -forced.log_prob.sum(1)
        kept = nats.isfinite()
        code, out, err = cli(*words, "--draw", draw, "--json")
        assert code == 0, err
        row = json.loads(out)[0]
        lost[floor] = row["lost"]
        assert row["lost"] == pytest.approx(1 - float(kept.double().mean()))
        size = int(token_bytes(model.tokenizer)[passages[kept]].sum())
        if bool(kept.any()):
            bits = float(nats[kept].sum()) / math.log(2) / size
            assert row["value"] == pytest.approx(bits) and row["n"] == int(kept.sum())
        else:
            assert "value" not in row
        code, out, _ = cli(*words, "--draw", draw)
        assert code == 0 and f"{row['lost']:.1%}" in out and "cannot produce" in out
    assert 0 < lost[0.5] < 1
    several = (*words[:-4], "--sampler", "random(block=1)", "--paths", "4", "--json")
    code, out, err = cli(*several, "--draw", "draw(floor=0.7)")
    one, two, four = (row["lost"] for row in json.loads(out))
    assert code == 0 and 1 > one > two > four > 0, err  # what one path loses another may produce
    code, out, _ = cli(*words)
    assert "lost" not in out and "0.0%" not in out


def test_a_passage_is_lost_if_no_path_of_a_group_produces_it() -> None:
    inf = math.inf
    nats = torch.tensor([[inf, 1.0, inf], [2.0, inf, inf], [inf, 3.0, inf], [inf, 1.0, 1.0]])
    paths = Paths(nats.double(), torch.ones(3).double(), random=True)
    assert [paths.lost(k) for k in (1, 2, 4)] == [7 / 12, 2 / 6, 0.0]


def test_sample_and_bench_know_a_model_of_text_like_any_other(cli: Cli, tmp_path: Path) -> None:
    words = (
        "sample",
        "--denoiser",
        "zoo:books_mdm",
        "--count",
        "3",
        "--sampler",
        "random(block=4)",
    )
    code, by_length, _ = cli(*words, "--length", "8", "--json")
    assert code == 0
    code, by_world, _ = cli(*words, "--world", "text(length=8)", "--json")
    one, other = json.loads(by_length), json.loads(by_world)
    assert one["world"] == "text(source='zoo:books_mdm', length=8)" and one["calls"] == 2
    assert code == 0 and {**one, "seconds": 0} == {**other, "seconds": 0}
    file = tmp_path / "both.toml"
    file.write_text(
        'name = "both"\nsamplers = ["random(block=4)"]\ncount = 3\nlength = 9\n'
        'tasks = ["endpoints"]\n'
        '[[graphs]]\ntitle = "Tree"\ngraph = "st_er(nodes=20, p=0.0)"\nwalk = "lazy(stay=0.5)"\n'
        '[[worlds]]\ntitle = "Books"\ndenoisers = ["zoo:books_mdm"]\n'
        "world = \"text(source='zoo:books_mdm', length=8)\"\n"
    )
    code, out, err = cli("bench", str(file), "--out", str(tmp_path / "both"))
    assert code == 0, err
    walk, text = load_records(tmp_path / "both")
    assert "coherence" in walk["metrics"] and text["metrics"]["entropy"] is not None
    assert text["world"] == one["world"] and text["metrics"]["calls"]["value"] == 2
    assert "token entropy" in out and "coherence" in out
    assert "length=9" in walk["world"]  # a length of the whole file is one of walks


def test_batches_of_a_large_world_do_not_change_its_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell.checked(
        denoiser="zoo:books_mdm", length=8, task="unconditional", sampler="random(block=4)", count=5
    )
    whole = run_cell(cell)[1].tokens
    sizes = []
    monkeypatch.setattr(
        "maskwalk.decoding.shared.decode",
        lambda sampler, denoiser, start, **more: (
            sizes.append(len(start)) or decode(sampler, denoiser, start, **more)
        ),
    )
    monkeypatch.setattr("maskwalk.bench.cell.MARGINALS", 128)  # two texts of 8 tokens at once
    assert run_cell(cell)[1].tokens.equal(whole)
    assert sizes == [2, 2, 1]


def test_mistakes_on_the_command_line(cli: Cli, judge: Judge, tmp_path: Path) -> None:
    data, out_ = str(tmp_path / "data"), str(tmp_path / "out")
    paper = ("reproduce", "paper", "--device", "cpu", "--quick", "--out", out_)
    for words, says in (
        (("text", "prepare", data, "--out", out_), "has no train.txt"),
        (("text", "train", data, "--out", out_), "holds no prepared corpus"),
        (("text", "train", data, "--out", out_, "--kind", "both"), "Unknown kind 'both'"),
        (("generate", "--denoiser", "zoo:st_er_p0"), "generate needs a model of text"),
        (("generate", "--denoiser", "zoo:books_ar", "--mask", "3"), "leave out mask"),
        (("generate", "--denoiser", "zoo:books_ar", "--length", "300"), "at most 256 tokens"),
        (
            ("generate", "--denoiser", "zoo:books_ar", "--precision", "bfloat16"),
            "On a CPU the network runs in float32, not bfloat16",
        ),
        (
            ("generate", "--denoiser", "zoo:books_ar", "--length", "4", "--sampler", "random"),
            "only knows the next token",
        ),
        (("sample", "--denoiser", "zoo:books_mdm", "--graph-seed", "1"), "has no graph_seed"),
        (
            ("sample", "--denoiser", "zoo:books_mdm", "--world", "walk()"),
            "was trained in the world",
        ),
        (("sample", "--denoiser", "zoo:books_mdm", "--length", "999"), "from 1 to 256, not 999"),
        (("sample", "--denoiser", "zoo:books_ar", "--length", "4"), "only knows the next token"),
        (("sample", "--world", "text(length=4)"), "This world has no oracle"),
        (("sample", "--denoiser", "hf:somebody/something"), "passages are not here"),
        (("diagnose", "--world", "text(length=4)"), "no loss to split"),
        (("text", "replay", data), "is no model of text"),
        (("text", "replay", "--count", "1000", "--skip", "25"), "There are 1024 held-out passages"),
        (("text", "replay", "--length", "257"), "--length is 1 to 256"),
        (("text", "replay", "--length", "0"), "--length is 1 to 256"),
        (("text", "replay", "--paths", "0"), "paths must be a whole number from 1 to 10000"),
        (("text", "replay", "--sampler", "p2(steps=3)"), "cannot be replayed"),
        (
            ("text", "replay", "zoo:books_ar", "--length", "4", "--sampler", "random"),
            "only knows the next token",
        ),
        (
            (*paper, "--only", "figure_language", "--only", "table_endpoints"),
            "figure_language has a report of its own: name it alone",
        ),
        ((*paper, "--models", data), "belong to --only figure_language"),
        ((*paper, "--judge", "none"), "belong to --only figure_language"),
        ((*paper, "--only", "figure_language", "--train"), "`maskwalk text train`"),
        ((*paper, "--only", "figure_language", "--models", data), "is no model of text"),
    ):
        code, _, err = cli(*words)
        assert code == 2 and says in err, (words, err)
    folder = judge.tokenizer.name_or_path
    (tmp_path / "empty").mkdir()
    code, _, err = cli("text", "judge", str(tmp_path / "empty"), "--judge", folder)
    assert code == 2 and "has no texts to judge" in err


def test_generating_with_a_shipped_model(cli: Cli) -> None:
    words = ("generate", "--denoiser", "zoo:books_mdm", "--length", "16", "--json")
    code, out, _ = cli(*words, "--sampler", "bisection(order=4)", "--count", "2")
    found = json.loads(out)
    assert code == 0 and found["length"] == 16 and len(found["texts"]) == 2
    assert max(found["calls"]) <= 16 and found["sampler"] == "bisection(order=4)"
    code, out, _ = cli("zoo")
    assert code == 0 and "zoo:books_mdm" in out and "books, masked diffusion" in out


TINY = """
kind = "text"
name = "figure_language"
title = "Tiny books"
masked = "zoo:books_mdm"
causal = "zoo:books_ar"
presets = ["exact", "draw(top_p=0.9)"]
samplers = ["left_to_right", "random(block=4)", "bisection(order=2)", "entropy(block=4)"]
judge = ["random(block=4)"]
length = 256
[quick]
length = 16
count = 20
replayed = 4
judged = 20
references = 20
"""


def test_bench_runs_text_files_with_any_number_of_workers(
    cli: Cli, books: TinyBooks, tmp_path: Path
) -> None:
    file = tmp_path / "tiny.toml"
    models = {"zoo:books_mdm": "mdm", "zoo:books_ar": "ar"}
    text = TINY.replace('judge = ["random(block=4)"]', "judge = []")
    for name, folder in models.items():
        text = text.replace(name, str(books.models / folder))
    file.write_text(text)
    for workers in ("1", "2"):
        out = tmp_path / workers
        code, printed, err = cli(
            "bench", str(file), "--quick", "--out", str(out), "--workers", workers
        )
        assert code == 0 and "held-out text" in printed, err
    one, two = (timeless(load_records(tmp_path / n)) for n in ("1", "2"))
    assert len(one) == 10 and one == two
    before = (tmp_path / "1" / "records.jsonl").read_bytes()
    assert cli("bench", str(file), "--quick", "--out", str(tmp_path / "1"))[0] == 0
    assert (tmp_path / "1" / "records.jsonl").read_bytes() == before
    file.write_text(text.replace('kind = "text"', 'kind = "txt"'))
    code, _, err = cli("bench", str(file), "--out", str(tmp_path / "3"))
    assert code == 2 and "Did you mean 'text'" in err


def test_the_figure_from_the_command_line(
    cli: Cli,
    books: TinyBooks,
    judge: Judge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("mauve")
    (tmp_path / "experiments" / "paper").mkdir(parents=True)
    (tmp_path / "experiments" / "paper" / "figure_language.toml").write_text(TINY)
    monkeypatch.setattr("maskwalk.resources.shipped", lambda name: tmp_path / name)
    to = tmp_path / "run"
    words = ["reproduce", "paper", "--only", "figure_language", "--quick", "--device", "cpu"]
    words += ["--models", str(books.models), "--out", str(to)]
    code, out, err = cli(*words, "--judge", "none")
    assert code == 0 and f"Wrote {to / 'report.html'}" in out, err
    assert "held-out text" in out and "AR" in out
    page = (to / "report.html").read_text()
    assert "Tiny books" in page and "--only figure_language --quick --models MODELS" in page
    assert len(latest(load_records(to))) == 10
    assert "mauve" not in (to / "tables" / "records.csv").read_text()
    # With a judge the same command goes on; killed or not, nothing is written twice.
    before = (to / "records.jsonl").read_bytes()
    code, out, err = cli(*words, "--judge", judge.tokenizer.name_or_path)
    assert code == 0 and f"Wrote {to / 'report.html'}" in out, err
    after = (to / "records.jsonl").read_bytes()
    assert after.startswith(before) and after.count(b"\n") == 14
    assert "mauve" in (to / "tables" / "records.csv").read_text()
    assert judge.name in (to / "report.html").read_text()
    (to / "report.html").unlink()
    code, out, err = cli("text", "judge", str(to), "--judge", judge.tokenizer.name_or_path)
    assert code == 0 and (to / "report.html").exists(), err
    assert (to / "records.jsonl").read_bytes() == after
