"""`maskwalk tune`: budgets kept, knobs found, the best by paired differences, fronts, resuming."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from maskwalk.bench.plan import Job
from maskwalk.bench.tuning import trial
from maskwalk.bench.tuning.candidates import Knob, bisection_calls, knobs, settings
from maskwalk.bench.tuning.result import choose, front, summary, within
from maskwalk.bench.tuning.search import Search, check_budgets, load_rows
from maskwalk.cli.tune import table
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import decoding_of, read_draw
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.text.metrics import token_entropy
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law
from tests.text_files import eager, own_model, texts

Cli = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("masked", "calls"), [(16, 4), (16, 5), (11, 16), (16, 1)])
def test_settings_keep_the_budget_and_spend_it(masked: int, calls: int) -> None:
    law = small_law(length=masked)
    oracle, spent = oracle_for(law), {}
    blank = torch.full((8, masked), oracle.mask_id)
    for spec in settings(masked, calls):
        result = decode(SAMPLERS.build(spec), oracle, blank, streams=Streams(0, 8))
        assert int(result.calls.max()) <= calls, spec
        spent[spec] = int(result.calls.max())
    assert spent[f"random(block={-(-masked // calls)})"] == -(-masked // -(-masked // calls))
    assert ("left_to_right()" in spent) == (calls >= masked)
    orders = [k for k in range(1, masked + 1) if f"bisection(order={k})" in spent]
    assert all(bisection_calls(k + 1, masked) > calls for k in orders if k < masked)


def test_calls_of_bisection_by_its_formula() -> None:
    oracle = oracle_for(small_law(length=24))
    blank = torch.full((1, 24), oracle.mask_id)
    for order in (1, 2, 3, 5, 24):
        rule = SAMPLERS.build(f"bisection(order={order})")
        calls = decode(rule, oracle, blank, streams=Streams(0, 1)).calls
        assert int(calls) <= bisection_calls(order, 24)
    assert bisection_calls(32, 1024) == 192 and bisection_calls(1, 24) == 5


@pytest.mark.parametrize("scale", ["ratio", "odds", "whole"])
def test_a_knob_is_halved_on_its_own_scale(scale: str) -> None:
    ends = {"ratio": (0.01, 100.0, 1.0), "odds": (0.1, 0.9, 0.5), "whole": (1, 10, 5)}
    low, high, middle = ends[scale]
    knob = Knob("threshold(tau={})", low, high, True, scale)
    assert knob.middle(low, high) == pytest.approx(middle)
    assert Knob("bisection(order={})", 4, 5, True, "whole").middle(4, 5) is None


class Bare(Search):
    """A search whose pilots are a formula: calls = what the knob says."""

    def __init__(self, calls: Callable[[str], float]) -> None:
        super().__init__(lambda spec, pilot: Job(spec, "", {}), 64, Path("nowhere"))
        self.calls, self.asked = calls, []

    def _pilot(self, spec: str) -> float:
        self.asked.append(spec)
        return self.calls(spec)


def number(spec: str) -> float:
    return float(spec.split("=")[1].split(",")[0].rstrip(")"))


def test_a_knob_is_turned_to_the_most_calls_within_the_budget() -> None:
    guided, threshold, bounded, constant = knobs(64)
    search = Bare(number)
    assert number(str(search._turned(guided, 20))) == 20  # order k with k calls
    falling = Bare(lambda spec: 100 / number(spec))
    turned = number(str(falling._turned(constant, 20)))
    assert 100 / turned <= 20 < 100 / turned * 1.2  # near, from below
    assert Bare(lambda spec: 99)._turned(threshold, 20) is None
    assert Bare(lambda spec: 2)._turned(bounded, 20) is not None


def row(spec: str, calls: float, each: list[float] | None, quality: float, **more: Any) -> Any:
    likelihood = None
    if each is not None:
        likelihood = {"value": float(np.mean(each)), "se": 0.1, "n": len(each), "each": each}
        likelihood |= {"better": -1, "unit": "bits per byte"}
    about = {"value": quality, "se": 0.01, "n": 8, "better": 1, "unit": "coherence"}
    found = {"sampler": spec, "calls": {"value": calls, "n": 8}, "kind": "factorised"}
    return found | {"likelihood": likelihood, "quality": about} | more


def test_the_best_is_paired_passage_by_passage() -> None:
    """Passages differ by far more than the settings do: only pairs tell them apart."""
    hard = np.linspace(1, 9, 40)
    noise = np.random.default_rng(0).normal(0, 0.02, (2, 40))
    rows = [
        row("a", 8, (hard + noise[0]).tolist(), 0.5),
        row("b", 8, (hard + 0.05 + noise[1]).tolist(), 0.5),
        row("c", 8, (hard + noise[1]).tolist(), 0.5),
        row("d", 8, None, 0.9),
        row("e", 8, (hard - 1).tolist(), 1.0, kind="shaped"),
    ]
    by_likelihood, by_quality = (choose(rows, name) for name in ("likelihood", "quality"))
    assert by_likelihood is not None and by_quality is not None
    assert {by_likelihood.best, *by_likelihood.level} == {"a", "c"}  # b is told apart, e shaped
    assert by_quality.best == "d" and by_quality.level == ()
    assert choose([rows[3]], "likelihood") is None


def test_the_front_has_no_setting_that_another_beats_with_fewer_calls() -> None:
    rows = [row("few", 2, None, 0.2), row("mid", 4, None, 0.1), row("many", 8, None, 0.9)]
    rows.append(row("false", 1, None, 1.0, kind="shaped"))
    assert front(rows, "quality") == ["few", "many"]
    assert [r["sampler"] for r in within(rows, 4)] == ["few", "mid", "false"]
    told = summary(rows, [8, 4])
    assert [(b["calls"], b["best"]) for b in told["best"]] == [(8, "many"), (4, "few")]


def test_settings_are_not_cut_inside_an_argument() -> None:
    """In 80 columns, beside the widest numbers."""
    specs = ["guided_bisection(order=12, score='entropy')", "entropy_bounded(gamma=0.123456789)"]
    rows = [row(spec, 8, [13.5, 17.25], 0.9) | {"quality": None} for spec in specs]
    told = {"settings": rows, "front": {"likelihood": specs, "quality": []}}
    console = Console(width=80, file=StringIO(), color_system=None)
    console.print(table(told))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    for part in " ".join(specs).split():
        assert f"{part} " in shown or f"{part}\n" in shown, shown


def test_budgets() -> None:
    assert check_budgets([4, 32, 4], 16) == [16, 4]
    with pytest.raises(MaskwalkError, match="at least 1"):
        check_budgets([0], 16)


def test_tune_on_a_model_of_the_users_own(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    words = ["tune", "--denoiser", f"{own_model(tmp_path)}:model", "--texts"]
    words += [str(tmp_path / "tokens.npy"), "--length", "6", "--calls", "3", "--count", "6"]
    words += ["--written", "4", "--paths", "2", "--out", str(tmp_path / "tuned")]
    code, out, err = cli(*words, "--json")
    assert code == 0, err
    told = json.loads(out)
    found = {r["sampler"]: r for r in told["settings"]}
    assert {"random(block=2)", "entropy(block=2)", "bisection(order=1)"} <= set(found)
    assert any(name.startswith("threshold") for name in found)
    assert found["ancestral(steps=3, cached=False, finish='draw', eps=1e-05)"]["likelihood"] is None
    lines = (tmp_path / "tuned" / "tune.jsonl").read_text()
    monkeypatch.setattr(trial, "tune_text", None)  # nothing is run again
    code, out, err = cli(*words)
    assert code == 0, err
    assert "bits per token" in out and "Best with 3 calls by likelihood" in out
    best = told["best"][0]["best"]
    assert f"Next: {found[best]['decoding']}" in out.splitlines()
    assert found[best]["decoding"] == decoding_of(best, *read_draw("exact"))
    assert (tmp_path / "tuned" / "tune.jsonl").read_text() == lines
    assert len(load_rows(tmp_path / "tuned" / "tune.jsonl")) > len(found)  # pilots, too


def test_the_likelihood_and_quality_of_a_setting_by_hand(tmp_path: Path) -> None:
    """One at a time, what is written is read in another random order by the model itself."""
    from maskwalk.analysis.paths import along_paths
    from maskwalk.bench.subject import Subject

    np.save(tmp_path / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    subject = Subject(f"{own_model(tmp_path)}:model", texts=str(tmp_path / "tokens.npy"), count=5)
    how = {"draw": "draw()", "ties": "uniform", "seed": 3, "judge": None, "texts": 4, "paths": 2}
    job = trial.text_job(subject, "random(block=2)", how)
    made = trial.tune_text(**job.arguments, device="cpu")
    model, passages = subject.load()
    rule = SAMPLERS.build("random(block=2)")
    paths = along_paths(rule, model, passages.tokens, 2, seed=3)
    assert made["likelihood"]["each"] == pytest.approx(paths.over().tolist(), abs=1e-5)
    bits = float(paths.over().sum()) / np.log(2) / 30
    assert made["likelihood"]["value"] == pytest.approx(bits) and made["likelihood"]["bound"]
    blank = torch.full((4, 6), model.mask)
    written = decode(rule, model.denoiser, blank, streams=Streams(3, 4)).tokens
    alone = along_paths(SAMPLERS.build("random(block=1)"), model, written, 1, seed=3 ^ trial.OTHERS)
    assert made["quality"]["value"] == pytest.approx(float(alone.nats.sum()) / np.log(2) / 24)
    assert made["calls"]["value"] == 3.0 and made["kind"] == "factorised"


def test_a_preset_is_that_of_generate(cli: Cli, tmp_path: Path) -> None:
    """On a model of the hub's layout: what may be drawn and how scores are ranked, too."""
    pytest.importorskip("transformers")
    folder = eager(STAND_INS["llada"](tmp_path / "llada"), tmp_path / "eager")
    words = ["tune", "--denoiser", f"hf:{folder}", "--texts", str(texts(tmp_path))]
    words += ["--length", "16", "--calls", "4", "--count", "3", "--written", "3"]
    words += [
        "--samplers",
        "confidence(block=4)",
        "--draw",
        "draw(over='all')",
        "--out",
        str(tmp_path / "tuned"),
        "--json",
    ]
    code, out, err = cli(*words, "--preset", "llada")
    assert code == 0, err
    (found,) = json.loads(out)["settings"]
    model = load(folder)
    text: dict[str, Any] = {"length": 16, "count": 3, "draw": "draw(over='all')", "ties": "index"}
    whole = generate(model, "confidence(block=4)", preset="llada", **text)
    plain = generate(model, "confidence(block=4)", stop=False, **text)
    entropies = [token_entropy(made.tokens).double().mean() for made in (whole, plain)]
    assert found["entropy"]["value"] == pytest.approx(float(entropies[0]))
    assert abs(float(entropies[0] - entropies[1])) > 1e-3
    assert found["quality"]["value"] > 0 and found["likelihood"]["value"] > 0
    code, out, err = cli(*words, "--ties", "index")  # without the preset: another row
    assert json.loads(out)["settings"][0]["key"] != found["key"], err


def test_tune_in_a_world(cli: Cli) -> None:
    words = (
        "tune",
        "--denoiser",
        "oracle",
        "--world",
        "walk(graph=st_er(nodes=6, p=0.2), length=8)",
    )
    specs = "bisection;random(block=4);left_to_right"
    more = ("--calls", "8", "--count", "16", "--samplers", specs, "--json")
    code, out, err = cli(*words, *more)
    assert code == 0, err
    told = json.loads(out)
    found = {r["sampler"]: r for r in told["settings"]}
    assert found["bisection(order=1)"]["quality"]["value"] == 1.0
    assert found["bisection(order=1)"]["quality"]["se"] > 0.01  # 16 of 16 is no certainty
    assert found["random(block=4)"]["likelihood"]["value"] > 0.05
    assert told["best"][0]["best"] in ("bisection(order=1)", "left_to_right()")


def test_tune_refuses_in_sentences(cli: Cli, tmp_path: Path) -> None:
    own = f"{own_model(tmp_path)}:model"
    np.save(tmp_path / "tokens.npy", np.zeros((4, 6), dtype=np.int64))
    texts = ("--texts", str(tmp_path / "tokens.npy"), "--count", "2", "--length", "6")
    for words, sentence in (
        (("--denoiser", own), "--texts FILE"),
        (("--denoiser", own, *texts, "--calls", "0"), "at least 1"),
        (("--denoiser", own, *texts, "--task", "endpoints"), "no task"),
        (("--denoiser", own, *texts, "--judge", "gpt2"), "no tokenizer"),
        (("--denoiser", "oracle", "--texts", "x.txt"), "belong to a model of text"),
        (("--denoiser", "zoo:books_ar", "--count", "2"), "nothing to tune"),
        (("--denoiser", "nobody"), "There is no denoiser"),
    ):
        code, _, err = cli("tune", *words)
        assert code == 2 and sentence in err, (words, err)
