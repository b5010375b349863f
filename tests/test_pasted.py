"""What a user pastes from docs/your_model.md runs, on stand-ins in folders of the same names.

Every command of the page, section by section, with the same flags; sizes are smaller but for what
LLaDA and Dream write, and no accelerator is named. A hub's name is a folder here, so nothing is
fetched.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from maskwalk import resources
from tests.test_evaluate_text import POLICY
from tests.test_language_convert import TRAINER, lightning
from tests.text_files import LINES, own_model, texts

pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")
ROOT = Path(__file__).parent.parent
MODELS = {
    "llada": ("stand-ins/llada", "GSAI-ML/LLaDA-8B-Instruct", "GSAI-ML/LLaDA-8B-Base"),
    "dream": ("Dream-org/Dream-v0-Instruct-7B", "Dream-org/Dream-v0-Base-7B"),
    "mdlm": ("path/to/mdlm-owt", "kuleshov-group/mdlm-owt"),
    "bert": ("bert-base-uncased", "path/to/bert", "antiberty_hf"),
    "gpt2": ("gpt2", "path/to/gpt2", "gpt2-large"),
}
OTHER_NAMES = {"GSAI-ML/LLaDA-1.5": "llada", "apple/DiffuCoder-7B-Instruct": "dream"}
SIZES = {"--length": "12", "--new-tokens": "16", "--new": "8", "--count": "2", "--calls": "3"}
AS_TYPED = ("LLaDA", "Dream")  # sections whose --new-tokens are the page's
SMALLER = {  # options that a line leaves at their defaults
    "tune": ("--count", "3", "--written", "2", "--paths", "1"),
    "evaluate": ("--count", "4", "--written", "2", "--paths", "1"),
    "diagnose": ("--count", "2"),
    "text replay": ("--count", "2", "--paths", "1"),
    "text score": ("--count", "2"),
}
DROPPED = ("--device", "--precision", "--model-option")  # where they name an accelerator
TINY = """
kind = "text"
name = "figure_language"
title = "Books"
masked = "zoo:books_mdm"
causal = "zoo:books_ar"
length = 256
count = 24
replayed = 4
paths = 1
judged = 24
references = 24
presets = ["exact"]
samplers = ["left_to_right", "bisection(order=43)", "ancestral(steps=43)"]
judge = ["all"]
"""


def sections() -> dict[str, list[str]]:
    """The page's commands by the heading they stand under, with comments behind them left out."""
    page = (ROOT / "docs" / "your_model.md").read_text()
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", page, flags=re.M):
        lines = re.findall(r"^    maskwalk (.*)$", part, re.M)
        found |= {part.splitlines()[0]: lines} if lines else {}
    return found


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every model and file that the page names, under its name."""
    folder = tmp_path_factory.mktemp("pasted")
    for kind, names in MODELS.items():
        for name in names:
            standins.STAND_INS[kind](folder / name)
    for name, kind in OTHER_NAMES.items():
        standins.STAND_INS[kind](folder / name)
    bert = folder / "path" / "to" / "bert"  # a pickle, as before safetensors
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    lightning(folder / "run", hyper_parameters={"config": TRAINER})[0].rename(folder / "last.ckpt")
    own_model(folder).rename(folder / "my_model.py")
    source = (folder / "my_model.py").read_text().replace("def model(", "def load(")
    (folder / "my_model.py").write_text(source)
    (folder / "my_policy.py").write_text(POLICY.replace("LastFirst", "MyPolicy"))
    np.save(folder / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    texts(folder, documents=40).rename(folder / "mine.txt")
    documents = (folder / "mine.txt").read_text().split("\n\n")
    write_lines(folder / "owt.jsonl", [{"text": text} for text in documents])
    (folder / "results" / "consistency").mkdir(parents=True)
    (folder / "results" / "consistency" / "antibodies.txt").write_text("\n\n".join(documents))
    (folder / "prompts.txt").write_text("the cat\na walk on\n")
    chat = [{"role": "user", "content": "the cat"}]
    write_lines(folder / "chats.jsonl", ["the dog", {"messages": chat}])
    write_lines(folder / "gsm8k.jsonl", [{"prompt": line, "answer": "4"} for line in LINES])
    return folder


def write_lines(file: Path, rows: list[Any]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def smaller(line: str, title: str = "") -> list[str]:
    """The words of a command on a page, at sizes for a test."""
    words = shlex.split(line, comments=True)
    for option in DROPPED:
        while option in words:
            at = words.index(option)
            del words[at : at + 2]
    sizes = SIZES | ({"--length": "48"} if words[0] == "generate" else {})
    sizes = {k: v for k, v in sizes.items() if k != "--new-tokens" or title not in AS_TYPED}
    for option, value in sizes.items():
        for at in (i for i, word in enumerate(words) if word == option):
            words[at + 1] = value
    command = next((name for name in SMALLER if line.startswith(name)), "")
    more = SMALLER.get(command, ())
    for option, value in zip(more[::2], more[1::2]):
        words += [] if option in words else [option, value]
    return words


@pytest.mark.parametrize("title", sections())
def test_what_a_user_pastes_runs(
    title: str, cli: Any, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for line in sections()[title]:
        if "--device-map" in line:
            pytest.importorskip("accelerate")
        code, out, err = cli(*smaller(line, title))
        assert code == 0 and out, f"{line}: {err}"


def test_the_pasted_lines_are_there() -> None:
    every = [line for lines in sections().values() for line in lines]
    assert len(every) == 28 and {line.split()[0] for line in every} == {
        "convert", "diagnose", "evaluate", "generate", "report", "text", "tune",
    }  # fmt: skip


def test_the_papers_experiment_on_text_runs(
    cli: Any, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of docs/language.md, with a smaller list of settings."""
    page = (ROOT / "docs" / "language.md").read_text()
    (line,) = re.findall(r"^    maskwalk (reproduce .*--denoiser hf:.*)$", page, re.M)
    (models / "experiments" / "paper").mkdir(parents=True)
    (models / "experiments" / "paper" / "figure_language.toml").write_text(TINY)
    shipped = resources.shipped

    def mine(name: str) -> Path:
        return models / name if name == "experiments" else shipped(name)

    monkeypatch.setattr(resources, "shipped", mine)
    monkeypatch.chdir(models)
    code, _, err = cli(*smaller(line))
    assert code == 0, err
    rows = (models / "runs" / "owt" / "records.jsonl").read_text().splitlines()
    specs = {json.loads(row)["sampler"] for row in rows}
    assert {"bisection(order=2)"} < specs and "left_to_right()" not in specs
    assert (models / "runs" / "owt" / "report.html").exists()


def test_every_row_of_the_support_table_has_a_grade() -> None:
    page = (ROOT / "docs" / "your_model.md").read_text()
    table = page.partition("| model | as | grade |")[2].partition("\n\n")[0]
    grades = [line.split(" | ")[2] for line in table.splitlines()[2:]]
    legend = re.findall(r"\*\*([A-D])\*\* \w", page)
    assert len(grades) == 15 and set(grades) == {*legend, "–"} and legend == ["A", "B", "C", "D"]
