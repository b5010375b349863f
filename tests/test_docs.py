"""The tutorials' code and commands run as they stand in the documents."""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from maskwalk import WORLDS, broken_denoiser, sampler_law, total_variation
from maskwalk.bench.experiment import Experiment
from maskwalk.bench.verdict import suite
from maskwalk.cli.main import app, main
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.exact.listing import support_of

DOCS = Path(__file__).parent.parent / "docs"


def test_add_a_sampler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """From nothing to a verdict: every command in order, the code in its place."""
    page = (DOCS / "add_a_sampler.md").read_text()
    sampler, check = re.findall(r"```python\n(.*?)```", page, re.S)
    commands = [shlex.split(line) for line in re.findall(r"^    (maskwalk .*)$", page, re.M)]
    assert [words[1] for words in commands] == ["new", "sample", "evaluate"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path / "cache"))
    # One of the real scenes, on fewer prompts and with every fourth baseline.
    scene = next(s for s in suite.SUITES["quick"] if s.task == "bottleneck" and not s.model)
    monkeypatch.setitem(
        suite.SUITES,
        "quick",
        (replace(scene, count=8, replayed=4, baselines=scene.baselines[::4]),),
    )

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", [*words])
        with pytest.raises(SystemExit) as stop:
            main()
            raise SystemExit(0)
        captured = capsys.readouterr()
        assert not stop.value.code, captured.err
        return captured.out

    new, sample, evaluate = commands
    run(*new)
    assert (tmp_path / "test_my_policy.py").exists()
    (tmp_path / "my_policy.py").write_text(sampler)
    assert "coherence" in run(*sample, "--count", "8")
    said = " ".join(run(*evaluate, "--workers", "0").split())
    assert "Contract: kept (3 settings)" in said
    assert "Verdict: With the oracle, MyPolicy is" in said
    exec(compile(check, "add_a_sampler.md", "exec"), {})
    del SAMPLERS._makers["my_policy"], sys.modules["my_policy"]


def test_add_a_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The world of the page in thirty lines, and every command of the page on it."""
    page = (DOCS / "add_a_world.md").read_text("utf-8")
    world, check = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(world.splitlines()) <= 30
    commands = [shlex.split(line) for line in re.findall(r"^    (maskwalk .*)$", page, re.M)]
    assert [words[1] for words in commands] == ["list", "sample", "diagnose", "train"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.py").write_text(world, "utf-8")
    quicker = {"sample": ["--count", "16"], "diagnose": ["--count", "8"], "list": []}
    quicker["train"] = ["--steps", "4", "--walks", "64", "--batch", "16"]
    said = {}
    try:
        for words in commands:
            monkeypatch.setattr(sys, "argv", [*words, *quicker[words[1]]])
            with pytest.raises(SystemExit) as stop:
                main()
                raise SystemExit(0)
            captured = capsys.readouterr()
            assert not stop.value.code, captured.err
            said[words[1]] = captured.out
        assert "ring(length=12, colours=3)" in said["list"]
        assert "coherence" in said["sample"] and "bisection" in said["diagnose"]
        assert (tmp_path / "runs/ring/model.safetensors").exists()
        names = {"Ring": WORLDS["ring"]}
        exec(compile(check, "add_a_world.md", "exec"), names)
        # The page says where bisection loses, and that the rest of the truth is exact.
        canvases = WORLDS["ring"](length=6).sample(8, 0)
        canvases[:, ::2] = 3
        assert broken_denoiser(WORLDS["ring"](length=6).oracle(), canvases) == {}
        ring = WORLDS["ring"](length=6)
        law = sampler_law(SAMPLERS.build("bisection"), ring.oracle(), torch.full((6,), 3))
        assert total_variation(law, support_of(ring)) > 0.1
    finally:
        del WORLDS._members["ring"]


def test_the_likelihood_of_held_out_text(capsys: pytest.CaptureFixture) -> None:
    page = (DOCS / "language.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["bisection(order=4)", "random(block=10)"]
    assert all("inf" not in line and "nan" not in line for line in printed)


def test_the_experiment_file_of_the_page_is_one(tmp_path: Path) -> None:
    page = (DOCS / "experiments.md").read_text("utf-8")
    [text] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    entries = Experiment.load(tmp_path / "mine.toml").entries
    titles = [entry.title for entry in entries]
    assert {title: titles.count(title) for title in titles} == {
        "Average degree 7": 4,
        "two_b1": 4,
        "Short walks": 2,
        "Books": 2,
    }


def test_the_test_of_the_audit_page_passes_and_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "audit.md").read_text("utf-8"), re.S)
    monkeypatch.syspath_prepend(str(tmp_path))
    for made in ("llada()", "llada(with_gumbel_noise)"):
        (tmp_path / "my_decoder.py").write_text(
            f"from tests.mutants.foreign import *\ngenerate = {made}\n"
        )
        sys.modules.pop("my_decoder", None)
        names: dict[str, Any] = {}
        exec(compile(code, "audit.md", "exec"), names)
        if made == "llada()":
            names["test_my_decoder"]()
        else:
            with pytest.raises(AssertionError, match="is in the scores"):
                names["test_my_decoder"]()
    del sys.modules["my_decoder"]


@pytest.mark.parametrize("page", ["docs/diagnosis.md", "docs/library.md", "README.md"])
def test_the_python_of_a_page_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    text = (DOCS.parent / page).read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{path.name}" for path in DOCS.glob("*.md"))]
)
def test_the_commands_of_a_page_are_read(page: str) -> None:
    text = (DOCS.parent / page).read_text("utf-8")
    for line in re.findall(r"^    maskwalk (.*)$", text, re.MULTILINE):
        words, command = shlex.split(line, comments=True), typer.main.get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        if not {"--help", "…"} & set(words):
            command.make_context(page, words)  # raises where the parser would refuse
