"""A user's own file that fails: one sentence names file, class and fault, then their own lines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from maskwalk import UnmaskingPolicy, broken_checks
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import Bisection
from maskwalk.specs import load_plugin
from tests.abuse.case import TRACEBACK, Case, refused
from tests.abuse.own import fresh_tables, without_type_checks

HEAD = """import sys
from dataclasses import dataclass, replace
import numpy as np
import torch
from maskwalk import *
from maskwalk import METRICS, SAMPLERS, TASKS, WORLDS, DENOISERS, GRAPHS
"""
SMALL = ("--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "4")
ENDS = ("--task", "endpoints")


def policy(body: str, kind: str = "UnmaskingPolicy", more: str = "") -> str:
    """A file with a sampler `mine` whose one method is `body`."""
    method = (
        "choose(self, view, state, rng)" if kind == "UnmaskingPolicy" else "step(self, c, d, r)"
    )
    head = f'{HEAD}\n@SAMPLERS.register("mine")\nclass Mine({kind}):\n{more}'
    return f"{head}    def {method}:\n        {body}\n"


LEFT = "view.masked & (view.masked.cumsum(1) == 1)"
STEP = "a = c.reveal(c.masked, r.draw(d(c.tokens, c.masked), c.masked)); "
# name -> (file, what is said, whether their lines follow)
POLICIES = {
    "raises": (policy("raise KeyError('lost')"), "Mine.choose in mine.py failed", True),
    "divides by zero": (policy("return 1 / 0, state"), "ZeroDivisionError", True),
    "asks what is not there": (policy("return view.nothing, state"), "no attribute", True),
    "exits": (policy("sys.exit(0)"), "Mine.choose in mine.py called sys.exit", True),
    "exits by raise": (policy("raise SystemExit"), "called sys.exit", True),
    "raises what is no Exception": (
        policy("raise BaseException('no')"),
        "Mine.choose in mine.py failed with BaseException: no",
        True,
    ),
    "ends a generator": (policy("raise GeneratorExit"), "Mine.choose in mine.py failed", True),
    "recurses": (policy("return self.choose(view, state, rng)"), "RecursionError", True),
    "gives None": (policy("return None"), "mine.py must give back (chosen, state)", False),
    "gives a mask alone": (policy(f"return {LEFT}"), "must give back (chosen, state)", False),
    "gives a list": (policy("return [1, 2], state"), "must choose by a boolean tensor", False),
    "gives numpy": (policy(f"return ({LEFT}).numpy(), state"), "not a ndarray of shape", False),
    "gives floats": (policy(f"return ({LEFT}).double(), state"), "of torch.float64", False),
    "gives numbers": (policy(f"return ({LEFT}).long(), state"), "of torch.int64", False),
    "gives NaN": (policy("return view.masked * float('nan'), state"), "of torch.float32", False),
    "gives another shape": (policy(f"return ({LEFT})[:, 1:], state"), "shape (4, 5)", False),
    "gives one row": (policy(f"return ({LEFT})[:1], state"), "shape (1, 6)", False),
    "forgets its state": (policy(f"return {LEFT}, None"), "a dictionary of tensors", False),
    "remembers a list": (policy(f"return {LEFT}, {{'a': [1]}}"), "a dictionary of tensors", False),
    "remembers one row": (
        policy(f"return {LEFT}, {{'a': torch.zeros(1)}}"),
        "a row for each of 4 sequences",
        False,
    ),
    "chooses nothing": (
        policy("return torch.zeros_like(view.masked), state"),
        "must choose at least one",
        False,
    ),
    "has no choose": (
        f'{HEAD}\n@SAMPLERS.register("mine")\nclass Mine(UnmaskingPolicy):\n    pass\n',
        "Mine in mine.py cannot be made",
        False,
    ),
    "is no sampler": (
        f'{HEAD}\n@SAMPLERS.register("mine")\nclass Mine:\n    pass\n',
        "which is no sampler",
        False,
    ),
    "makes None": (
        f'{HEAD}\n@SAMPLERS.register("mine")\ndef mine():\n    return None\n',
        "mine in mine.py makes None",
        False,
    ),
    "fails when made": (
        policy("pass", more="    def __init__(self):\n        raise OSError('no')\n"),
        "Mine.__init__ in mine.py failed",
        True,
    ),
    "fails in init": (
        policy("pass", more="    def init(self, canvas):\n        return canvas.x\n"),
        "Mine.init in mine.py failed",
        True,
    ),
    "begins with None": (
        policy("pass", more="    def init(self, canvas):\n        return None\n"),
        "must remember a dictionary",
        False,
    ),
    "is finished by a number": (
        policy("pass", more="    def finished(self, canvas):\n        return 1\n"),
        "must say which of 4 rows are finished",
        False,
    ),
    "has rounds that are text": (
        policy("pass", more="    def max_rounds(self, length):\n        return 'many'\n"),
        "must give a whole number of rounds",
        False,
    ),
    "steps to None": (policy("return None", "Sampler"), "must give back a Canvas", False),
    "changes what was given": (
        policy(f"{STEP}return replace(a, tokens=torch.zeros_like(a.tokens))", "Sampler"),
        "Mine in mine.py changed the given token at position",
        False,
    ),
    "writes what is no token": (
        policy(f"{STEP}return replace(a, tokens=a.tokens.where(c.given, 99))", "Sampler"),
        "wrote 99, which is no token",
        False,
    ),
    "writes below zero": (
        policy(f"{STEP}return replace(a, tokens=a.tokens.where(c.given, -1))", "Sampler"),
        "wrote -1, which is no token",
        False,
    ),
    "loses rows": (
        policy(f"{STEP}return replace(a, tokens=a.tokens[:1])", "Sampler"),
        "must keep the canvas a table of shape (4, 6)",
        False,
    ),
    "makes tokens floats": (
        policy(f"{STEP}return replace(a, tokens=a.tokens.double())", "Sampler"),
        "not a Tensor of shape (4, 6) of torch.float64",
        False,
    ),
    "never ends": (policy("return c", "Sampler"), "did not finish 6 positions", False),
}
WORLD = '''
@WORLDS.register("mine")
class Mine:
    """A world."""
    vocab_size, length = 3, 4
    def sample(self, count, seed, first=0): return torch.zeros((count, 4), dtype=torch.int64)
    def valid(self, tokens): return torch.ones_like(tokens, dtype=torch.bool)
    def log_prob(self, tokens): return None
    def oracle(self): return None
    def show(self, tokens): return "x"
'''
WORLDS_ = {
    "samples None": ("def sample(self, count, seed, first=0): return", "must sample 2 sequences"),
    "samples floats": (
        "def sample(self, count, seed, first=0): return torch.zeros(count, 4)",
        "not float32 (2, 4)",
    ),
    "samples strangers": (
        "def sample(self, count, seed, first=0): return torch.full((count, 4), 7)",
        "outside its vocabulary 0..2",
    ),
    "fails to sample": ("def sample(self, count, seed, first=0): 1 / 0", "Mine.sample in mine.py"),
    "is valid in words": ("def valid(self, tokens): return 'yes'", "by bool (2, 4), not 'yes'"),
    "is likely in words": ("def log_prob(self, tokens): return 'very'", "must give two numbers"),
    "shows a number": ("def show(self, tokens): return 1", "must give text from show()"),
    "has no length": ("length = None", "has length None, no whole number"),
    "has a vocabulary of text": ("vocab_size = 'many'", "has vocab_size 'many'"),
    "exits": ("def show(self, tokens): sys.exit(0)", "Mine.show in mine.py called sys.exit"),
}
ANSWERS = {
    "None": ("None", "answers with None"),
    "a list": ("[0.0]", "answers with [0.0]"),
    "NaN": ("flat * float('nan')", "Mine in mine.py answers with log-probabilities that are NaN"),
    "a NaN": ("flat.index_fill(0, torch.tensor([3]), float('nan'))", "that are NaN"),
    "all -inf": ("flat - float('inf')", "a place where no token is possible"),
    "one row of -inf": ("flat.index_fill(0, torch.tensor([1]), -torch.inf)", "(all -inf)"),
    "too few rows": ("flat[1:]", "with a table of shape (23, 12)"),
    "another vocabulary": ("flat[:, 1:]", "with a table of shape (24, 11)"),
    "whole numbers": ("flat.long()", "of torch.int64"),
    "logits": ("flat + 9", "above 0; it has to be normalised"),
    "unnormalised": ("flat - 3", "a marginal that sums to 0.0498, not 1"),
    "a failure": ("flat @ flat", "Mine.__call__ in mine.py failed"),
}
DENOISER = '''
@DENOISERS.register("mine")
class Mine:
    """A denoiser."""
    score_grid = 1e-9
    def __init__(self, world): self.vocab_size = self.mask_id = world.vocab_size
    def __call__(self, tokens, at=None):
        n = int((tokens == self.mask_id).sum() if at is None else at.sum())
        flat = torch.full((n, self.vocab_size), 1 / self.vocab_size, dtype=torch.float64).log()
        return {}
'''
TASK = '\n@TASKS.register("mine")\ndef mine(world, prompts, seed):\n    """A task."""\n    {}\n'
METRIC = '\n@METRICS.register("mine")\ndef mine(sample):\n    """A metric."""\n    {}\n'
GRAPH = '\n@GRAPHS.register("mine")\ndef mine(seed):\n    """A graph."""\n    {}\n'
PROMPTS = "from maskwalk.worlds.tasks import Prompts; return Prompts({}, True)"
MEMBERS = {
    "task None": (TASK.format("return None"), ("--task", "mine"), "makes None, which is no task"),
    "task raises": (TASK.format("1 / 0"), ("--task", "mine"), "mine in mine.py failed"),
    "task of few": (
        TASK.format(PROMPTS.format("torch.zeros((2, 6), dtype=torch.int64)")),
        ("--task", "mine"),
        "must make 4 prompts as int64 (4, 6)",
    ),
    "task of floats": (
        TASK.format(PROMPTS.format("torch.zeros((4, 6))")),
        ("--task", "mine"),
        "must make 4 prompts",
    ),
    "task of strangers": (
        TASK.format(PROMPTS.format("torch.full((4, 6), 99)")),
        ("--task", "mine"),
        "of tokens 0..12 (the mask)",
    ),
    "metric raises": (METRIC.format("return sample.nothing"), (), "mine in mine.py failed"),
    "metric of text": (METRIC.format("return 'good'"), (), "makes 'good', which is no metric"),
    "metric exits": (METRIC.format("sys.exit(0)"), (), "mine in mine.py called sys.exit"),
    "denoiser None": (
        '\n@DENOISERS.register("mine")\ndef mine(world):\n    """D."""\n',
        ("--denoiser", "mine()"),
        "makes None, which is no denoiser",
    ),
    "denoiser incomplete": (
        '\n@DENOISERS.register("mine")\nclass Mine:\n    """D."""\n    mask_id = 3\n',
        ("--denoiser", "mine()"),
        "it has no score_grid, vocab_size",
    ),
}
GRAPHS_ = {
    "graph None": (GRAPH.format("return None"), "makes None, which is no graph"),
    "graph raises": (GRAPH.format("raise ValueError('no arcs')"), "failed with ValueError"),
}
FILES = {
    "no Python": ("def x(:", "mine.py is not Python at line 1"),
    "fails when read": ("1 / 0", "the module in mine.py failed when it was read"),
    "imports what is not there": ("import nowhere_at_all", "ModuleNotFoundError"),
    "exits when read": ("import sys; sys.exit(0)", "called sys.exit when it was read"),
    "takes a name": (policy("pass").replace('"mine"', '"entropy"'), "There is a sampler 'entropy'"),
    "holds a NUL": ("x = 1\0", "mine.py"),
}
EXPERIMENT = (
    'count = 4\nlength = 6\nsamplers = ["random(block=2)", "mine"]\n'
    '[[graphs]]\ntitle = "T"\ngraph = "st_er(nodes=12, p=0.1)"\nwalk = "lazy()"\n'
)
INCLUDE = ("--include", "mine.py")


def cases() -> Iterator[Case]:
    sample = ("sample", *SMALL, *INCLUDE)
    for name, (file, says, theirs) in POLICIES.items():
        argv = (*sample, *ENDS, "--sampler", "mine")
        yield Case(f"policy {name}", argv, says, {"mine.py": file}, user_traceback=theirs)
    for name in (
        "raises",
        "exits",
        "raises what is no Exception",
        "gives None",
        "changes what was given",
        "fails when made",
    ):
        file, says, theirs = POLICIES[name]
        files = {
            "mine.py": file,
            "e.toml": EXPERIMENT.replace("length", 'tasks = ["endpoints"]\nlength'),
        }
        bench = ("bench", "e.toml", "--out", "{dir}/run", *INCLUDE)
        yield Case(f"bench {name}", bench, says, files, user_traceback=theirs)
        yield Case(f"evaluate {name}", ("evaluate", "mine.py:Mine"), says.split(" at ")[0], files)
    for name in ("raises", "exits", "gives None", "gives another shape", "fails in init"):
        argv = ("diagnose", *SMALL, *INCLUDE, "--samplers", "mine")
        yield Case(f"diagnose {name}", argv, POLICIES[name][1], {"mine.py": POLICIES[name][0]})
    for name, (line, says) in WORLDS_.items():
        file = HEAD + WORLD + f"    {line}\n"
        argv = ("sample", "--world", "mine()", "--count", "4", *INCLUDE)
        yield Case(f"world {name}", argv, says, {"mine.py": file})
    file = HEAD + WORLD + "    def sample(self, count, seed, first=0): 1 / 0\n"
    argv = ("train", "--world", "mine()", "--out", "{dir}/m", *INCLUDE)
    yield Case("train on a world that fails", argv, "Mine.sample in mine.py", {"mine.py": file})
    for name, (answer, says) in ANSWERS.items():
        argv = (*sample, "--sampler", "entropy(block=1)", "--denoiser", "mine()")
        yield Case(f"denoiser {name}", argv, says, {"mine.py": HEAD + DENOISER.format(answer)})
    for name, (body, words, says) in MEMBERS.items():
        yield Case(name, (*sample, *words), says, {"mine.py": HEAD + body})
    for name, (body, says) in GRAPHS_.items():
        argv = ("sample", "--graph", "mine()", "--count", "4", *INCLUDE)
        yield Case(name, argv, says, {"mine.py": HEAD + body})
    for name, (file, says) in FILES.items():
        yield Case(f"file {name}", sample, says, {"mine.py": file})
    for name, sweep in {
        "number": "3",
        "dict": "{'a': 1}",
        "strings": "('a',)",
        "None": "None",
    }.items():
        more = f"    sweep = {sweep}\n"
        file = policy(f"return {LEFT}, state", more=more)
        says = "Mine in mine.py must have a sweep that is a tuple"
        yield Case(f"evaluate sweep {name}", ("evaluate", "mine.py:Mine"), says, {"mine.py": file})
    file = policy(f"return {LEFT}, state", more="    sweep = [{'x': 1}] * 10**6\n")
    yield Case("evaluate a long sweep", ("evaluate", "mine.py"), "at most 100", {"mine.py": file})
    for line, says in {
        "score_grid = 0": "Mine in mine.py has score_grid 0;",
        "score_grid = float('nan')": "Mine in mine.py has score_grid nan;",
        "score_grid, passes = 1e-9, 'x'": "Mine in mine.py has passes 'x';",
    }.items():
        file = HEAD + DENOISER.format("flat").replace("score_grid = 1e-9", line)
        argv = (*sample, "--sampler", "entropy(block=1)", "--denoiser", "mine()")
        yield Case(f"denoiser {line}", argv, says, {"mine.py": file})
    file = policy("pass", more="    sweep = ({'x': 1},)\n")
    yield Case(
        "evaluate sweep of strangers", ("evaluate", "mine.py"), "cannot be made", {"mine.py": file}
    )
    file, says, _ = POLICIES["exits"]
    argv = ("sample", *SMALL, *INCLUDE, "--sampler", "mine")
    yield Case("process exits", argv, says, {"mine.py": file}, process=True)
    argv = ("bench", "e.toml", "--out", "{dir}/run", "--workers", "2", *INCLUDE)
    for name in ("exits", "raises what is no Exception"):
        file, says, _ = POLICIES[name]
        files = {"mine.py": file, "e.toml": EXPERIMENT}
        yield Case(f"process of two workers {name}", argv, says, files, process=True)
    file = policy(f"sys.stderr.close(); return {LEFT}, state")
    files = {"mine.py": file, "e.toml": EXPERIMENT}
    yield Case("process without stderr", argv[:4] + INCLUDE, "leave it open", files, process=True)
    argv = ("sample", *SMALL, *INCLUDE, "--sampler", "mine")
    files = {"mine.py": policy("sys.stderr.close(); return None")}
    yield Case("process that closes stderr", argv, "must give back", files, process=True)


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    with fresh_tables(), without_type_checks():
        yield


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_a_failing_file_is_a_sentence(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(case, tmp_path, capsys, monkeypatch)


def test_their_own_lines_and_none_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = policy("return helper(view), state").replace("@SAM", "def helper(v):\n    1 / 0\n\n@SAM")
    argv = ("sample", *SMALL, *INCLUDE, "--sampler", "mine")
    Case("lines", argv, "", {"mine.py": file}).prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["maskwalk", *argv])
    from maskwalk.cli.main import main

    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: helper in mine.py failed with ZeroDivisionError: division by zero."
    places = [line.strip() for line in lines if "File " in line]
    assert places == ['File "mine.py", line 14, in choose', 'File "mine.py", line 9, in helper']
    assert lines[-1] == "ZeroDivisionError: division by zero" and TRACEBACK not in lines


def test_in_python_a_crash_is_a_broken_contract_with_its_own_traceback() -> None:
    class Crash(UnmaskingPolicy):
        def choose(self, view, state, rng):  # type: ignore[no-untyped-def]
            raise KeyError("lost")

    assert "KeyError" in broken_checks(Crash())["terminates"]
    assert broken_checks(Bisection()) == {}


def test_a_sentence_of_a_users_own_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from maskwalk.errors import MaskwalkError\nraise MaskwalkError('Not today.')\n"
    )
    with pytest.raises(MaskwalkError, match=r"^Not today\.$"):
        load_plugin(str(file))
