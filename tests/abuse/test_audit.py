"""Targets that are none, options that do not fit, and decoders that misbehave under audit."""

import sys
from pathlib import Path

import pytest

from maskwalk.cli import main as cli
from tests.abuse.case import TRACEBACK, Case, refused

HEAD = "import os, sys, time\nimport torch\n"
GENERATE = "def generate(model, prompt, steps, gen_length):\n    "
FINE = {"d.py": f"{HEAD}THREE = 3\n{GENERATE}return prompt\n"}
CASES = [
    Case("no file", ("audit", "nowhere.py:generate"), "There is no file nowhere.py"),
    Case("no name", ("audit", "d.py"), "Say which decoder of which file", FINE),
    Case("no Python file", ("audit", "d.txt:generate"), "FILE.py:function"),
    Case("nothing", ("audit", ""), "FILE.py:function"),
    Case("brackets", ("audit", "[/x].py:[/y]"), "[/x].py"),
    Case("a name that is not there", ("audit", "d.py:genrate"), "Did you mean 'generate'", FINE),
    Case("a method that is not there", ("audit", "d.py:generate.x"), "Unknown decoder", FINE),
    Case("what cannot be called", ("audit", "d.py:THREE"), "d.py:THREE cannot be called", FINE),
    Case("a class without a method", ("audit", "d.py:time.struct_time"), "name a method", FINE),
    Case("an unknown style", ("audit", "d.py:generate", "--like", "bert"), "Known: dream", FINE),
    Case("an unknown check", ("audit", "d.py:generate", "--only", "lawn"), "mean 'law'", FINE),
    Case("an unknown ranking", ("audit", "d.py:generate", "--ranks", "x"), "ranks 'x'", FINE),
    Case("half an option", ("audit", "d.py:generate", "--option", "x"), "name=value", FINE),
    Case("a strange option", ("audit", "d.py:generate", "--option", "x=1"), "takes: steps", FINE),
    Case("no number", ("audit", "d.py:generate", "--option", "steps=1e999"), "decimals", FINE),
    Case("a large world", ("audit", "d.py:generate", "--world", "walk()"), "at most 5,000", FINE),
    Case("no time", ("audit", "d.py:generate", "--timeout", "0"), "timeout must be", FINE),
    Case("a page in a file", ("audit", "d.py:generate", "--only", "runs", "--out", "d.py/a.html"),
         "d.py", FINE),
    Case("fails when read", ("audit", "d.py:generate"), "failed when it was read",
         {"d.py": "1 / 0"}, user_traceback=True),
    Case("needs what nobody knows", ("audit", "d.py:generate"), "say --option schedule=",
         {"d.py": "def generate(model, prompt, schedule):\n    pass\n"}),
]  # fmt: skip
# what the body of generate does -> what the finding says
FOUND = {
    "raise KeyError('lost')": "generate in d.py failed with KeyError: 'lost'",
    "sys.exit(0)": "generate in d.py called sys.exit",
    "return generate(model, prompt, steps, gen_length)": "RecursionError",
    "time.sleep(60)": "took longer than 0.5 s",
    "return None": "gave back None instead of a table of tokens",
    "return torch.zeros(3, 4, 5, dtype=torch.int64)": "torch.int64 (3, 4, 5)",
    "return torch.zeros(1, 6)": "torch.float32 (1, 6)",
    "return [[1, 2], [3]]": "instead of a table of tokens",
    "return prompt": "shape (1, 1) for 1 sequences",
    "return model(prompt[:, :, None])": "takes token ids as a table",
    "return model(prompt + 100).logits": "was shown token 106",
    "return model(prompt, use_cache=True).logits": "no key-value cache",
    "return torch.full((1, 6), 99)": "5 tokens that the model rules out",
    "return torch.zeros(1, 6, dtype=torch.int64)": "without asking the model",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refused(
    case: Case,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused(case, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("body", FOUND)
def test_found(
    body: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "d.py").write_text(f"{HEAD}{GENERATE}{body}\n")
    monkeypatch.chdir(tmp_path)
    words = ["maskwalk", "audit", "d.py:generate", "--timeout", "0.5", "--only", "runs"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr()
    assert stopped.value.code == 1 and TRACEBACK not in said.err
    assert FOUND[body] in " ".join(said.out.split()), said.out
