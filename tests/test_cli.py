"""The command line as a user meets it: help, JSON, sentences instead of tracebacks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from rich.console import Console
from rich.progress import TimeRemainingColumn

from maskwalk import __version__, resources
from maskwalk.bench.verdict.run import _Bar
from maskwalk.cli import theory
from maskwalk.cli.common import progress, watched
from maskwalk.cli.main import app
from maskwalk.errors import time_left
from maskwalk.resources import zoo_manifest
from maskwalk.samplers import SAMPLERS
from tests.computed_theory import computed_claims, computed_laws, computed_lemmas

SMALL = ["--graph", "st_er(nodes=20, p=0.1)", "--length", "8", "--count", "8"]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)


def test_version_and_help(cli) -> None:
    code, out, err = cli("--version")
    assert code == 0 and err == "" and out.startswith(f"{__version__} (")
    assert f"torch {torch.__version__.partition('+')[0]}" in out
    assert resources.commit() is None or f"commit {str(resources.commit())[:12]}, " in out
    code, out, _ = cli("--help")
    assert code == 0
    some = ("list", "sample", "play", "bench", "report", "diagnose", "theory", "zoo", "train")
    for command in some:
        assert command in out
        assert cli(command, "--help")[0] == 0


def test_the_command_line_starts_without_torch() -> None:
    slow = "{'torch', 'scipy', 'networkx', 'matplotlib'}"
    words = f"import sys, maskwalk.cli.main; print(sorted({slow} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_takes_long_shows_the_time_left() -> None:
    for bars in (progress(), _Bar(True)._progress):
        assert any(isinstance(column, TimeRemainingColumn) for column in bars.columns)
    assert list(watched(iter("abc"), "letters", 3)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "about 0 s left"),
        (95, "about 95 s left"),
        (1500, "about 25 min left"),
        (257789, "about 72 h left"),
        (6 * 86400, "about 6 days left"),
        (float("nan"), "time left unknown"),
        (None, "time left unknown"),
    ],
)
def test_the_time_left_is_in_words(seconds: float | None, words: str) -> None:
    assert time_left(seconds) == words


def test_the_bar_says_the_time_left_in_words() -> None:
    bars = progress()
    bars.add_task("work", total=10)
    column = next(c for c in bars.columns if isinstance(c, TimeRemainingColumn))
    assert column.render(bars.tasks[0]).plain == "time left unknown"


def test_theory_knows_how_many_checks_there_are() -> None:
    assert theory.TOTAL["lemmas"] == len(computed_lemmas())
    assert theory.TOTAL["laws"] == len(computed_laws())
    assert theory.TOTAL["claims"] == len(computed_claims())


@pytest.mark.parametrize("own", [{}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "ACTIVE"}])
def test_threads_that_wait_do_not_spin_unless_told_to(own: dict[str, str]) -> None:
    """Beside other work a command took three times as long; torch reads this when it is loaded."""
    program = (
        "import atexit, os, sys; from maskwalk.cli.main import main; sys.argv = ['maskwalk', 'new']"
        "\natexit.register(lambda: print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules))"
        "\nmain()"
    )
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    env = {key: value for key, value in os.environ.items() if key not in names} | own
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    kept = own.get("GOMP_SPINCOUNT", None if own else "1000")
    assert done.stdout.splitlines()[-1] == f"{kept} False", done.stderr


def test_help_keeps_text_and_machines_apart_from_what_everybody_needs(cli) -> None:
    boxes = {"Arguments", "Options", "World", "Decoding", "Models of text", "Machines"}
    for command in ("evaluate", "tune", "diagnose", "sample"):
        found, box = {}, ""
        for line in cli(command, "--help")[1].splitlines():
            box = line.strip("╭╮─ ") if line.startswith("╭") else box
            if option := re.match(r"│ \*? *(--[\w-]+)", line):
                found[option[1]] = box
        assert set(found.values()) <= boxes
        assert found["--help"] == found["--include"] == found["--json"] == "Options"
        texts, rays = ("--texts", "--tokenizer", "--model-option"), ("--engine", "--gpus")
        assert {found.get(name, "Models of text") for name in texts} == {"Models of text"}
        assert {found.get(name, "Machines") for name in rays} == {"Machines"}
    assert found["--device"] == "Machines" and found["--graph"] == "World"


def test_help_breaks_lines_at_the_window_only() -> None:
    """Docstrings are wrapped in their files; the help has a line per paragraph."""

    def every(command: Any) -> Iterator[Any]:
        yield command
        for below in getattr(command, "commands", {}).values():
            yield from every(below)

    helps = [command.help or "" for command in every(typer.main.get_command(app))]
    assert len(helps) > 30
    for text in helps:
        assert all("\n" not in paragraph for paragraph in text.split("\n\n")), text


def test_help_shows_what_is_in_brackets(cli) -> None:
    """Square brackets are markup to the printer: an unescaped default was silently left out."""
    out = " ".join(cli("sample", "--help")[1].replace("│", " ").split())
    for shown in ("[st_er(nodes=500, p=0.01)]", "[lazy(stay=0.125)]", "[24]", "[0]"):
        assert shown in out


def test_no_help_loses_a_bracket() -> None:
    """A word in square brackets is a style to the printer, unless the bracket is escaped."""

    def unescaped(command: Any, path: str) -> Iterator[str]:
        for parameter in command.params:
            text = getattr(parameter, "help", None) or ""
            yield from (f"{path} {each}" for each in re.findall(r"(?<!\\)\[[a-z/#@][^]]*]", text))
        for name, below in getattr(command, "commands", {}).items():
            yield from unescaped(below, f"{path} {name}")

    assert not list(unescaped(typer.main.get_command(app), "maskwalk"))


def test_list_names_every_sampler(cli) -> None:
    code, out, _ = cli("list")
    assert code == 0 and all(name in out for name in SAMPLERS)
    assert cli("list", "sampler")[0] == 2


@pytest.mark.parametrize("task", ["unconditional", "endpoints"])
def test_sample_prints_one_json_object(cli, task: str) -> None:
    code, out, _ = cli("sample", *SMALL, "--task", task, "--json")
    found = json.loads(out)
    assert code == 0 and found["coherence"] == 1.0 and found["coherence_se"] > 0
    assert found["calls_max"] == (4 if task == "unconditional" else 3)
    assert (found["tv1"] is None) == (found.get("tv1_floor") is None) == (task == "endpoints")
    assert found["sampler"] == "bisection(order=1)" and found["version"] == __version__
    assert found["seconds"] >= 0 and found["graph_seed"] == 0


def test_sample_takes_the_seed_it_is_given(cli) -> None:
    words = ("sample", *SMALL, "--sampler", "random(block=4)", "--json", "--seed")
    found = [json.loads(cli(*words, seed)[1]) for seed in ("0", "1")]
    assert [one["seed"] for one in found] == [0, 1]
    assert found[0]["tv1"] != found[1]["tv1"]


def test_sample_for_a_person(cli, tmp_path: Path) -> None:
    trace = tmp_path / "trace.parquet"
    code, out, _ = cli("sample", *SMALL, "--sampler", "random(block=4)", "--trace", str(trace))
    assert code == 0 and "coherence" in out and "round 2" in out and trace.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sampler", "bisecton"], "Did you mean 'bisection'"),
        (["--graph", "st_er(nodes=500)"], "needs p"),
        (["--graph", "st_er(nodes=500, p=2)"], "p must be"),
        (["--graph", "__import__('os').abort()"], "code"),
        (["--walk", "lazy(stay=1.5)"], "stay"),
        (["--length", "1"], "length"),
        (["--task", "bottleneck"], "communit"),
        (["--task", "endpoints(start=0, end=20)"], "mask"),
        (["--task", "endpoints(start=0, end=99)"], "99"),
        (["--preset", "published"], "as_published"),
        (["--count", "0"], "count"),
        (["--denoiser", "orakel"], "There is no denoiser 'orakel'"),
        (["--denoiser", "runs/nope"], "There is no denoiser 'runs/nope'"),
        (["--denoiser", "docs"], "no finished model"),
        (["--denoiser", "zoo:st_er_deg8"], "Did you mean 'st_er_deg7'"),
        (["--denoiser", "zoo:st_er_deg7"], "was trained with graph"),
        (["--device", "meta"], "cpu, cuda"),
        (["--trace", "missing/trace.parquet"], "missing"),
        (["--walk", "distant", "--graph", "st_er(nodes=500, p=0.01)"], "500"),
        (["--graph", "file(path='missing.txt')"], "missing.txt"),
        (["--include", "missing.py"], "missing.py"),
    ],
)
def test_mistakes_are_sentences(cli, words: list[str], says: str) -> None:
    code, out, err = cli("sample", *SMALL, *words)
    assert code == 2 and out == ""
    assert says in " ".join(err.split()) and "Traceback" not in err


def test_unreachable_endpoints(cli) -> None:
    """On a path graph of 20 nodes, walks of 8 tokens cannot join far ends."""
    spec = "tree_line_dag(chains=2, length=3)"
    code, _, err = cli(
        *("sample", "--graph", spec, "--walk", "dag", "--length", "4", "--count", "4"),
        *("--task", "endpoints(start=0, end=1)"),
    )
    assert code == 2 and "no walk" in err.lower()


def test_wrong_types_are_sentences_in_a_real_process() -> None:
    """In a process of its own: here the test-time type checker would speak first."""
    code = (
        "import sys\nfrom maskwalk.errors import MaskwalkError\n"
        "from maskwalk.samplers import SAMPLERS\n"
        "for spec in ('bisection(order=1.5)', \"bisection(order='x')\", 'margin(block=None)',\n"
        "             'entropy(block=1.0)', 'guided_bisection(score=3)'):\n"
        "    try:\n        SAMPLERS.build(spec)\n"
        "    except MaskwalkError as e:\n        print(e)\n"
        "    else:\n        sys.exit(f'{spec} was accepted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 5, done.stderr


def test_include_brings_in_a_sampler(cli, tmp_path: Path) -> None:
    """The thirty-line promise: one file, and it can be listed, run and benchmarked."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from dataclasses import dataclass\n"
        "from maskwalk import UnmaskingPolicy\n"
        "from maskwalk.samplers import SAMPLERS\n\n"
        '@SAMPLERS.register("right_to_left")\n'
        "@dataclass(frozen=True)\n"
        "class RightToLeft(UnmaskingPolicy):\n"
        '    """The last masked position first."""\n'
        "    def choose(self, view, state, rng):\n"
        "        return view.masked & (view.masked.flip(1).cumsum(1).flip(1) == 1), state\n"
    )
    code, out, _ = cli(
        "sample", *SMALL, "--sampler", "right_to_left", "--json", "--include", str(mine)
    )
    assert code == 0 and json.loads(out)["calls"] == 8.0
    experiment = tmp_path / "e.toml"
    experiment.write_text(
        'length = 6\ncount = 4\nsamplers = ["right_to_left", "bisection"]\n'
        '[[graphs]]\ngraph = "st_er(nodes=10, p=0.1)"\nwalk = "lazy()"\n'
    )
    out_dir = tmp_path / "out"
    words = ("bench", str(experiment), "--out", str(out_dir), "--workers", "2")
    code, out, err = cli(*words, "--include", str(mine))
    assert code == 0 and "right to left" in out.replace("_", " "), err
    code, out, _ = cli("report", str(out_dir))
    assert code == 0 and (out_dir / "report.html").stat().st_size > 1000
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    assert cli("list", "--include", str(broken))[0] == 2
    del SAMPLERS._makers["right_to_left"]


def test_report_without_records(cli, tmp_path: Path) -> None:
    code, _, err = cli("report", str(tmp_path))
    assert code == 2 and "no records" in err
    assert cli("bench", str(tmp_path / "none.toml"), "--out", str(tmp_path))[0] == 2


def test_the_zoo_is_listed_and_brings_its_graph(cli) -> None:
    code, out, _ = cli("zoo")
    assert code == 0 and "zoo:st_er_deg7" in out and "zoo:distant_k" in out
    words = ("sample", "--denoiser", "zoo:st_er_p0", "--sampler", "bisection", "--count", "32")
    code, out, _ = cli(*words, "--json")
    found = json.loads(out)
    assert code == 0 and found["walk"] == "lazy(stay=0.5, start='uniform')"
    assert found["coherence"] > 0.7  # .93 of 512 walks on the H200 (docs/training.md)


def test_a_card_says_what_the_manifest_holds(cli) -> None:
    code, out, _ = cli("zoo", "zoo:two_b8")
    about = zoo_manifest()["two_b8"]
    assert code == 0 and out.startswith("## zoo:two_b8\n") and about["graph"] in out
    assert f"{about['bound']:.3f} ± {1.96 * about['bound_se']:.3f} nats" in out
    assert f"{about['coherence_bisection']:.3f} by `bisection(order=1)`" in out
    assert "3.86 million parameters" in out and about["sha256"][:16] in out
    code, out, _ = cli("zoo", "books_ar")
    assert code == 0 and "causal transformer" in out and "bits per byte" in out
    code, _, err = cli("zoo", "two_b9")
    assert code == 2 and "Did you mean 'two_b8'?" in err
    code, out, _ = cli("zoo", "--cards")
    assert code == 0 and out == Path("docs/models.md").read_text("utf-8")


def test_train_says_what_is_wrong(cli, tmp_path: Path) -> None:
    small = ("train", "--graph", "st_er(nodes=10, p=0.1)", "--length", "4", "--steps", "2")
    assert cli(*small, "--out", str(tmp_path / "m"), "--batch", "5", "--devices", "2")[0] == 2
    assert cli(*small, "--out", str(tmp_path / "m"), "--hidden", "30")[0] == 2
    assert cli(*small, "--out", "/dev/null/m", "--hidden", "16", "--walks", "50")[0] == 2


def test_a_card_is_rendered_in_a_terminal_only(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cli("zoo", "st_er_p0")[1]
    assert plain.startswith("#")
    monkeypatch.setattr("maskwalk.cli.zoo.out", Console(force_terminal=True, width=80))
    rendered = cli("zoo", "st_er_p0")[1]
    assert "st_er_p0" in rendered and "\n#" not in rendered and not rendered.startswith("#")
