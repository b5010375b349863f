"""Numbers cannot be stale: an edited file is run again, and what is shown is of today's files."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from maskwalk.analysis.judge import Judge
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.judging import Judging
from maskwalk.bench.plan import Plan
from maskwalk.bench.records import Record, as_written, load_records, read_records
from maskwalk.bench.text_experiment import Setting, TextExperiment
from maskwalk.bench.versions import newest
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.resolve import DENOISERS
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import load_plugin
from maskwalk.specs import sources as sources_module
from maskwalk.specs.sources import code_of, sources
from maskwalk.worlds.text.metrics import Reading
from maskwalk.worlds.world import build_world

ROOT = Path(__file__).parent.parent
SAMPLER = '''
from maskwalk import UnmaskingPolicy
from maskwalk.samplers import SAMPLERS

@SAMPLERS.register("mine_versions")
class Mine(UnmaskingPolicy):
    """Reveals some positions from the left."""
    def choose(self, view, state, rng):
        order = view.masked.cumsum(1)
        return view.masked & (order <= BLOCK), state
'''
WORLD = '[[graphs]]\ntitle = "Tree"\ngraph = "st_er(nodes=12, p=0.1)"\nwalk = "lazy()"\n'
EXPERIMENT = (
    'name = "edited"\nlength = 6\ncount = 64\nmetrics = ["calls", "coherence"]\n'
    'samplers = ["mine_versions", "left_to_right"]\n' + WORLD
)


def write_sampler(path: Path, block: int) -> None:
    path.write_text(SAMPLER.replace("BLOCK", str(block)))


def calls_of(records: list[Record]) -> dict[str, float]:
    return {r["sampler"]: r["metrics"]["calls"]["value"] for r in records}


# ---- an edited file


def test_an_edited_sampler_is_run_again_and_said(cli: Any, tmp_path: Path) -> None:
    mine, file, run = tmp_path / "my.py", tmp_path / "e.toml", tmp_path / "run"
    file.write_text(EXPERIMENT)
    words = ("bench", str(file), "--out", str(run), "--include", str(mine))
    write_sampler(mine, 1)
    assert cli(*words)[0] == 0
    first = load_records(run)
    assert calls_of(first) == {"mine_versions()": 6.0, "left_to_right()": 6.0}
    assert next(r for r in first if r["sampler"] == "mine_versions()")["sources"].keys() == {
        "my.py"
    }
    assert "sources" not in next(r for r in first if r["sampler"] == "left_to_right()")
    code, _, err = cli(*words)
    assert code == 0 and "earlier version" not in err and len(load_records(run)) == 2
    write_sampler(mine, 3)
    code, out, err = cli(*words)
    assert code == 0, err
    assert "1 record of an earlier version of my.py: run again." in err
    assert len(load_records(run)) == 3  # the shipped sampler's cell is not stale
    assert "2.00" in out or " 2" in out
    counting, aside = newest(as_written(run))
    assert calls_of(counting) == {"mine_versions()": 2.0, "left_to_right()": 6.0}
    assert aside.earlier == {"my.py": 1}
    table = read_records(run)
    assert table.num_rows == 2 and 2.0 in table.column("calls").to_pylist()
    code, out, err = cli("report", str(run))
    assert code == 0 and "1 record of an earlier version of my.py: left aside." in err
    assert "1 earlier record of the same cells left out" in (run / "report.html").read_text()
    # Back to the first version: its record is on disk, and becomes the newest again.
    write_sampler(mine, 1)
    code, _, err = cli(*words)
    assert code == 0 and "run again" not in err
    assert calls_of(newest(as_written(run))[0])["mine_versions()"] == 6.0
    before = (run / "records.jsonl").read_bytes()
    assert cli(*words)[0] == 0 and (run / "records.jsonl").read_bytes() == before


def test_an_edited_graph_file_is_run_again(cli: Any, tmp_path: Path) -> None:
    graph, file, run = tmp_path / "g.txt", tmp_path / "e.toml", tmp_path / "run"
    graph.write_text("a b\nb c\nc d\n")
    file.write_text(
        'length = 5\ncount = 8\nsamplers = ["left_to_right"]\ntraces = false\n'
        f'[[graphs]]\ngraph = "file(path={str(graph)!r})"\nwalk = "lazy()"\n'
    )
    assert cli("bench", str(file), "--out", str(run))[0] == 0
    (old,) = load_records(run)
    assert list(old["sources"]) == ["g.txt"]
    graph.write_text("a b\nb c\nc d\nd a\na c\n")
    os.utime(graph, ns=(1, 1))  # not even the time has to be later
    code, _, err = cli("bench", str(file), "--out", str(run))
    assert code == 0 and "1 record of an earlier version of g.txt: run again." in err
    new = as_written(run)[-1]
    assert new["key"] != old["key"] and new["metrics"] != old["metrics"]
    assert build_world(new["world"]).graph.nodes == 4  # type: ignore[attr-defined]


def test_an_edited_sampler_is_diagnosed_again(cli: Any, tmp_path: Path) -> None:
    mine, run = tmp_path / "my.py", tmp_path / "why"
    words = (
        *("diagnose", "--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "8"),
        *("--samplers", "mine_versions;left_to_right", "--out", str(run), "--json"),
        *("--include", str(mine)),
    )
    write_sampler(mine, 1)
    assert json.loads(cli(*words)[1])[0]["calls"] == 6
    write_sampler(mine, 3)
    code, out, err = cli(*words)
    assert code == 0 and json.loads(out)[0]["calls"] == 2
    assert "1 record of an earlier version of my.py: run again." in err
    lines = (run / "diagnosis.jsonl").read_text().splitlines()
    assert len(lines) == 3


def test_a_text_runs_key_holds_the_policys_file(tmp_path: Path) -> None:
    e = TextExperiment("t", "t", "zoo:books_mdm", None, ("exact",), ("random(block=8)",))
    shipped = e.key(Setting("random(block=8)", "exact"))
    keys = set()
    for block in (1, 2):
        write_sampler(tmp_path / "my.py", block)
        load_plugin(str(tmp_path / "my.py"))
        keys.add(e.key(Setting("mine_versions()", "exact")))
        assert e.key(Setting("random(block=8)", "exact")) == shipped
        (job,) = [j for j in e.jobs(tmp_path) if j.says["sampler"] == "random(block=8)"]
        assert job.sources == {}
    assert len(keys) == 2


# ---- what counts


KINDS = {
    "worlds": ("WORLDS", "class it:\n    length = 1\n    vocab_size = 2"),
    "graphs": ("GRAPHS", "def it(): pass"),
    "laws": ("WALKS", "def it(): pass"),
    "tasks": ("TASKS", "def it(): pass"),
    "samplers": ("SAMPLERS", "def it(): pass"),
    "denoisers": ("DENOISERS", "def it(): pass"),
    "metrics": ("METRICS", "def it(sample): pass"),
    "scores": ("SCORES", "def it(log_probs): pass"),
    "draws": ("DRAWS", "def it(): pass"),
}
HOMES = """
from maskwalk.worlds.world import WORLDS
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS
from maskwalk.worlds.tasks import TASKS
from maskwalk.samplers import SAMPLERS
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.resolve import DENOISERS
from maskwalk.worlds.metrics import METRICS
from maskwalk.decoding.scores import SCORES
from maskwalk.decoding.draw import DRAWS
"""
FIELDS = {  # where a cell names one
    "worlds": {"world": "it_is_mine(length=3)"},
    "graphs": {"world": "walk(graph=it_is_mine(nodes=3), law=lazy(), length=3, seed=0)"},
    "laws": {"world": "walk(graph=st_er(nodes=3), law=it_is_mine(), length=3, seed=0)"},
    "tasks": {"task": "it_is_mine()"},
    "samplers": {"sampler": "blocks(inner=it_is_mine(), size=4)"},
    "denoisers": {"denoiser": "it_is_mine()"},
    "metrics": {"metrics": ("calls", "it_is_mine")},
    "scores": {"sampler": "guided_bisection(order=1, score='it_is_mine')"},
    "draws": {"draw": "it_is_mine()"},
}
PLAIN: dict[str, Any] = {
    "world": "walk(graph=st_er(nodes=3), law=lazy(), length=3, seed=0)",
    "task": "unconditional()",
    "sampler": "left_to_right()",
    "denoiser": "oracle",
    "draw": "draw()",
    "ties": "uniform",
    "count": 1,
    "per_prompt": 1,
    "seed": 0,
    "metrics": ("calls",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_member_counts_where_it_is_named(kind: str, tmp_path: Path) -> None:
    table, text = KINDS[kind]
    plain, mine = Cell(**PLAIN), Cell(**{**PLAIN, **FIELDS[kind]})
    shipped, keys = plain.key, set()
    for edit in ("", "# edited\n"):
        file = tmp_path / f"{kind}.py"
        file.write_text(f"{HOMES}\n@{table}.register('it_is_mine')\n{text}\n{edit}")
        load_plugin(str(file))
        keys.add(mine.key)
        assert list(mine.files) == [f"{kind}.py"]
        assert plain.files == {} and plain.key == shipped
    assert len(keys) == 2


def test_what_stands_beside_an_included_file_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside_versions.py").write_text("SIZE = 1\ndef size(): return SIZE\n")
    (tmp_path / "my.py").write_text(
        "import json, torch\nfrom beside_versions import size\n"
        + SAMPLER.replace("BLOCK", "size()")
    )
    load_plugin(str(tmp_path / "my.py"))
    first = sources("mine_versions()")
    assert set(first) == {"my.py", "beside_versions.py"}  # and neither torch nor maskwalk
    (tmp_path / "beside_versions.py").write_text("SIZE = 22\ndef size(): return SIZE\n")
    del sys.modules["beside_versions"]
    load_plugin(str(tmp_path / "my.py"))
    second = sources("mine_versions()")
    assert first["my.py"] == second["my.py"]
    assert first["beside_versions.py"] != second["beside_versions.py"]
    del sys.modules["beside_versions"]


def test_an_installed_packages_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "a_plugin_versions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from a_plugin_versions.rules import Mine\n")
    (package / "rules.py").write_text(
        "from a_plugin_versions.sizes import SIZE, size\n" + SAMPLER.replace("BLOCK", "SIZE")
    )
    (package / "sizes.py").write_text("SIZE = 1\ndef size(): return SIZE\n")
    monkeypatch.syspath_prepend(str(package.parent))
    try:
        __import__("a_plugin_versions")
        assert {"rules.py", "sizes.py"} <= set(sources("mine_versions()"))
    finally:
        for name in [name for name in sys.modules if name.startswith("a_plugin_versions")]:
            del sys.modules[name]


def test_a_models_key_holds_its_configuration(tmp_path: Path) -> None:
    """The same numbers with other heads are another network."""
    config = DDiTConfig(vocab_size=12, hidden=16, heads=2, blocks=1, cond=8)
    model = Pretrained(config, layout(config).initial([0])[0], {"length": 6})
    save_pretrained(model, tmp_path / "m")
    cell = Cell(**{**PLAIN, "denoiser": str(tmp_path / "m")})
    before, file = cell.key, tmp_path / "m" / "model.json"
    file.write_text(file.read_text().replace('"heads": 2', '"heads": 4'))
    os.utime(file, (1, 1))
    assert cell.key != before


def test_a_file_is_known_by_content_not_by_place(tmp_path: Path) -> None:
    found = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "my.py"
        path.parent.mkdir()
        write_sampler(path, 1)
        SAMPLERS._members.pop("mine_versions", None)
        load_plugin(str(path))
        found.append(sources("mine_versions()"))
    assert found[0] == found[1]
    assert code_of(SAMPLERS["mine_versions"]) == found[0]
    assert code_of(SAMPLERS["random"]) == {} == code_of(DENOISERS["oracle"])
    assert sources_module._by_name([("x", "1"), ("x", "2")]) == sources_module._by_name(
        [("x", "2"), ("x", "1")]
    )


def test_committed_records_keep_their_keys() -> None:
    """Cells of nothing of the user's: exactly the keys they were written with."""
    checked = 0
    for name, step in (("carries", 1), ("worlds", 60)):
        for r in load_records(ROOT / "results" / name)[::step]:
            about = {key: r[key] for key in PLAIN if key != "metrics"}  # type: ignore[literal-required]
            assert Cell(**about, metrics=tuple(r["metrics"])).key == r["key"]
            checked += 1
    assert checked > 100


def test_an_evaluated_class_is_known_by_its_file(tmp_path: Path) -> None:
    keys = set()
    for block in (1, 2):
        write_sampler(tmp_path / "my.py", block)
        module = load_plugin(str(tmp_path / "my.py"))
        cell = Cell.checked(
            graph="st_er(nodes=9, p=0.1)", length=5, task="unconditional",
            sampler="left_to_right", count=2,
        )  # fmt: skip
        record, _ = run_cell(cell, sampler=module.Mine())
        assert list(record["sources"]) == ["my.py"]
        keys.add(record["key"])
    assert len(keys) == 2 and cell.key not in keys


# ---- forged records


def test_a_record_with_anothers_key_is_not_done(cli: Any, tmp_path: Path) -> None:
    file, run = tmp_path / "e.toml", tmp_path / "run"
    file.write_text(EXPERIMENT.replace('"mine_versions", ', ""))
    words = ("bench", str(file), "--out", str(run))
    assert cli(*words)[0] == 0
    path = run / "records.jsonl"
    good = json.loads(path.read_text())
    for field, value in (
        ("count", 7),
        ("sampler", "random(block=4)"),
        ("metrics", {"calls": None}),
    ):
        path.write_text(json.dumps(good | {field: value}) + "\n")
        code, _, err = cli(*words)
        assert code == 0 and "1 record with the key of another cell" in err, field
        again = as_written(run)[-1]
        assert again[field] == good[field] and again["metrics"] == good["metrics"]  # type: ignore[literal-required]
    path.write_text(json.dumps(good) + "\n")
    assert cli(*words)[0] == 0 and len(as_written(run)) == 1


# ---- a quick run after a full one


def test_a_quick_run_does_not_replace_the_full_one(cli: Any, tmp_path: Path) -> None:
    file, run = tmp_path / "e.toml", tmp_path / "run"
    file.write_text(EXPERIMENT.replace('"mine_versions", ', ""))
    words = ("bench", str(file), "--out", str(run))
    assert cli(*words)[0] == 0
    assert cli("report", str(run))[0] == 0
    full = (run / "tables" / "records.csv").read_text()
    assert cli(*words, "--quick")[0] == 0
    assert [r["count"] for r in as_written(run)] == [64, 32]
    code, _, err = cli("report", str(run))
    assert code == 0
    assert "1 record of a smaller run of the same cells: left aside." in err
    assert (run / "tables" / "records.csv").read_text() == full
    assert "1 earlier record of the same cells left out" in (run / "report.html").read_text()


def test_a_quick_run_of_today_counts_more_than_a_full_one_of_an_older_file() -> None:
    about = {"sampler": "mine()", "metrics": {"calls": {"value": 1.0}}}
    old, quick = ({**about, "count": count} for count in (512, 32))
    old |= {"key": "old", "sources": {"my.py": "1"}}
    quick |= {"key": "quick", "sources": {"my.py": "2"}}
    counting, aside = newest([old, quick])
    assert [r["key"] for r in counting] == ["quick"] and aside.earlier == {"my.py": 1}
    counting, aside = newest([old | {"sources": {"my.py": "2"}}, quick])
    assert [r["key"] for r in counting] == ["old"] and aside.smaller == 1
    # Two experiments that ask one cell for different things: both count.
    more = old | {"key": "more", "metrics": {"mine": {"value": 1.0}}, "sources": {"m.py": "3"}}
    assert len(newest([old, more])[0]) == 2
    assert len(newest([more, old])[0]) == 2
    # One that measures something else on fewer sequences stays beside the larger one.
    law = quick | {"key": "law", "metrics": {"rank_tv": {"value": 0.1}}}
    assert len(newest([old | {"sources": {"my.py": "2"}}, law])[0]) == 2
    # A record from before files were noted, and one of today.
    counting, aside = newest(
        [{k: v for k, v in old.items() if k != "sources"}, quick | {"count": 512}]
    )
    assert [r["key"] for r in counting] == ["quick"] and aside.total == 1


# ---- judges, and names of models


class FakeJudge(Judge):
    """What `Judging` asks a judge when it reads."""

    def __init__(self, weights: str, nats: float) -> None:
        self.name, self.accelerated, self.weights, self.nats = "mine", False, weights, nats

    def read(self, texts: list[str], progress: Any = None) -> Reading:
        ones = torch.ones(len(texts), dtype=torch.int64)
        return Reading(ones.double() * self.nats, ones, ones, np.zeros((len(texts), 2), np.float32))


def test_a_judge_is_known_by_its_weights(tmp_path: Path) -> None:
    """A retrained judge in a directory of the same name reads again; an old reading stays valid."""
    pytest.importorskip("transformers")
    from maskwalk.denoisers.language.loading import content_hash, read_of

    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = content_hash(read_of(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"2")
    second = content_hash(read_of(tmp_path))
    assert first != second

    def nats(weights: str, value: float) -> float:
        judging = Judging(tmp_path, FakeJudge(weights, value))
        judging.__dict__["_tokenizer"] = SimpleNamespace(decode=lambda row, **_: "text")
        return float(judging._read(np.zeros((3, 4), np.uint16), tmp_path / "a.npz")["nats"][0])

    assert nats(first, 1.0) == 1.0 and nats(first, 7.0) == 1.0  # read once, kept
    assert nats(second, 2.0) == 2.0
    judging = Judging(tmp_path, FakeJudge(second, 0.0))
    assert judging._has_judged({"judge": "mine"})  # from before weights were noted
    assert judging._has_judged({"judge": "mine", "judge_weights": second})
    assert not judging._has_judged({"judge": "mine", "judge_weights": first})
    assert not judging._has_judged({"judge": "another"})


@pytest.mark.parametrize("word", ["../../x", "/x", "a/b", "", ".x", "a b"])
def test_a_packed_model_stays_in_its_zoo(cli: Any, tmp_path: Path, word: str) -> None:
    zoo = tmp_path / "a" / "b" / "zoo"
    zoo.mkdir(parents=True)
    for option in ("--name", "--corpus"):
        words = {"--name": "fine", "--corpus": "fine"} | {option: word}
        flat = [part for pair in words.items() for part in pair]
        code, _, err = cli("text", "pack", str(tmp_path), *flat, "--zoo", str(zoo))
        assert code == 2 and f"{option} {word!r} cannot be part of a file's name" in err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_plan_of_nothing() -> None:
    assert Plan.of([], []) == Plan([], [], [])
