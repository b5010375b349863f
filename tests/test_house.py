"""The house itself: few entries, metrics known in one place, a new world or metric in one file."""

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from maskwalk import METRICS, WORLDS
from maskwalk.bench.records import load_records, read_records

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "maskwalk"
COINS = Path(__file__).parent / "coins.py"
# Where metrics are made, compared with print and judged; what `generate` says it cost is no record.
MAY_KNOW = ("worlds", "paper", "bench/verdict", "cli/generated.py")


def test_at_most_19_entries_at_the_top() -> None:
    beside = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
    assert len({path.name for path in SOURCE.iterdir()} - beside) <= 19


def builtin_metrics() -> set[str]:
    return {key for key in METRICS if METRICS[key].__module__.startswith("maskwalk.")}


def metrics_named(path: Path, keys: set[str]) -> set[str]:
    """The metrics a file spells out: as a string in Python, as a name or a string elsewhere."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        constants = {n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
        return constants & keys
    words = re.findall(r"""(?:["'`.]|\bsections\.)([a-z_0-9]+)\b""", text)
    return set(words) & keys


def test_no_file_knows_two_metrics_by_name() -> None:
    """Tables, figures, terminal and page read what a metric says of itself."""
    keys, wrong = builtin_metrics(), []
    for path in sorted(SOURCE.rglob("*")):
        name = path.relative_to(SOURCE).as_posix()
        if path.suffix not in (".py", ".js", ".html") or name.startswith(MAY_KNOW):
            continue
        # Scores share their names with a metric of texts; they are no metrics.
        named = metrics_named(path, keys) - {"entropy"}
        if len(named) > 1:
            wrong.append(f"{name}: {', '.join(sorted(named))}")
    assert not wrong, wrong


def test_the_scan_finds_what_it_looks_for(tmp_path: Path) -> None:
    for name, text in (
        ("a.py", "x['coherence'] + y.get('calls')"),
        ("a.js", "c.coherence + c['calls']"),
    ):
        (tmp_path / name).write_text(text)
        assert metrics_named(tmp_path / name, builtin_metrics()) == {"coherence", "calls"}


# ---- a world in a file of under 60 lines


@pytest.fixture
def no_coins() -> Any:
    """The toy world is not known but through --include."""
    before = dict(WORLDS._members)
    WORLDS._members.pop("coins", None)
    yield
    WORLDS._members.clear()
    WORLDS._members.update(before)


def test_a_toy_world_is_listed_sampled_benchmarked_reported_and_diagnosed(
    cli: Any, tmp_path: Path, no_coins: None
) -> None:
    assert len(COINS.read_text().splitlines()) < 60
    include = ("--include", str(COINS))
    assert cli("sample", "--world", "coins()", "--count", "8")[0] == 2  # not without its file
    code, out, _ = cli("list", "worlds", *include)
    assert code == 0 and "coins(length=8)" in out and "Fair coins, an even number" in out
    words = ("--world", "coins(length=6)", *include)
    code, out, err = cli("sample", *words, "--sampler", "random(block=2)", "--count", "64")
    assert code == 0, err
    assert "coherence" in out and re.search(r"[HT]{6}", out)
    code, out, _ = cli("sample", *words, "--json", "--sampler", "left_to_right")
    found = json.loads(out)
    assert code == 0 and found["coherence"] == 1.0 and found["world"] == "coins(length=6)"
    file = tmp_path / "coins.toml"
    file.write_text(
        'name = "coins"\ncount = 32\ntasks = ["unconditional", "endpoints"]\n'
        'samplers = ["left_to_right", "random(block=2)", "bisection"]\n'
        '[[worlds]]\ntitle = "Even coins"\nworld = "coins(length=6)"\n'
    )
    run = tmp_path / "run"
    code, out, err = cli("bench", str(file), "--out", str(run), "--workers", "2", *include)
    assert code == 0 and "Even coins" in out, err
    records = load_records(run)
    assert len(records) == 6 and {r["world"] for r in records} == {"coins(length=6)"}
    exact = [r for r in records if r["sampler"] == "left_to_right()"]
    assert all(r["metrics"]["coherence"]["value"] == 1.0 for r in exact)
    code, out, err = cli(
        "diagnose", *words, "--count", "16", "--out", str(run),
        "--samplers", "left_to_right;random(block=2);random(block=6)",
    )  # fmt: skip
    assert code == 0, err
    lines = (run / "diagnosis.jsonl").read_text().splitlines()
    rows = {row["sampler"]: row for row in map(json.loads, lines)}
    # All six at once: every coin is fair, so one bit of parity is lost, and nothing else.
    assert rows["random(block=6)"]["kl"] == pytest.approx(0.6931, abs=1e-4)
    assert rows["left_to_right()"]["kl"] == pytest.approx(0, abs=1e-12)
    code, out, err = cli("report", str(run))
    assert code == 0, err
    page = (run / "report.html").read_text()
    assert "Even coins" in page and "random(block=6)" in page
    small = ("--hidden", "16", "--blocks", "1", "--heads", "1", "--batch", "8", "--steps", "2")
    model = str(tmp_path / "model")
    code, _, err = cli("train", *words, *small, "--walks", "16", "--out", model)
    assert code == 0, err
    code, out, err = cli("sample", "--denoiser", model, *include, "--count", "4", "--json")
    assert code == 0 and json.loads(out)["world"] == "coins(length=6)", err


# ---- a metric in a file of a user's own

METRIC = '''
from maskwalk import METRICS, Estimate

@METRICS.register("repeats", title="repeated neighbours", better=-1, digits=2, limits=(0, 1))
def repeats(sample):
    """Share of neighbours that are the same token."""
    same = (sample.tokens[:, 1:] == sample.tokens[:, :-1]).double().mean(1)
    return Estimate(float(same.mean()), float(same.std()) / len(same) ** 0.5, len(same))
'''


def test_a_metric_of_ones_own_appears_everywhere(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(METRIC)
    include = ("--include", str(tmp_path / "mine.py"))
    file, run = tmp_path / "small.toml", tmp_path / "run"
    file.write_text(
        'count = 16\nlength = 8\nsamplers = ["random(block=2)", "bisection"]\n'
        '[[graphs]]\ntitle = "Tree"\ngraph = "st_er(nodes=20, p=0.0)"\nwalk = "lazy(stay=0.5)"\n'
        '[[graphs]]\ntitle = "Dense"\ngraph = "st_er(nodes=20, p=0.3)"\nwalk = "lazy()"\n'
    )
    try:
        code, out, err = cli("bench", str(file), "--out", str(run), *include)
        assert code == 0 and "repeated neighbours" in out, err
    finally:  # what follows reads records alone
        for table in (METRICS._members, METRICS._described, METRICS._worlds, METRICS._reads):
            table.pop("repeats", None)
        for name in [name for name in sys.modules if name.startswith("maskwalk_include_mine")]:
            del sys.modules[name]
    for record in load_records(run):
        assert 0 < record["metrics"]["repeats"]["value"] < 1
        assert record["described"]["repeats"]["better"] == -1
    assert "repeats" in read_records(run).column_names
    code, _, err = cli("report", str(run), "--format", "html", "--format", "csv", "--format", "md")
    assert code == 0, err
    page = (run / "report.html").read_text()
    assert "repeated neighbours" in page and "hare of neighbours that are the same token" in page
    assert "repeats" in (run / "tables" / "records.csv").read_text()
    assert any("repeat" in path.name for path in (run / "tables").glob("*.md"))


# ---- records


def test_records_are_a_table() -> None:
    table = read_records(ROOT / "results" / "paper")
    assert table.num_rows > 1000
    assert {"world", "sampler", "mode", "coherence", "coherence_se", "tv1_floor"} <= set(
        table.column_names
    )
    modes = set(table.column("mode").to_pylist())
    assert modes == {"exact", "as_published"}
    text = read_records(ROOT / "results" / "language")
    assert {"mauve", "replay_bpb_bound"} <= set(text.column_names)
