"""The report knows no metric and no world by name: any of them gets a whole report."""

import ast
import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from maskwalk.bench.records import load_records
from maskwalk.report import front_tables, terminal_table, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.page import page
from maskwalk.report.sequence import sample_summary
from maskwalk.report.tables import tables
from maskwalk.worlds.metrics import METRICS
from tests import fake_records, fake_texts
from tests.fake_records import coins, small, with_own
from tests.test_report_losses import lost

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "src" / "maskwalk" / "report"
KEYS = {
    *("coherence", "coherence_by_separation", "transition_validity", "first_invalid", "tv1"),
    *("tvk", "calls", "tokens_per_call", "mauve", "replay_bpb", "judge_bpb", "judge_ppl"),
    *("own_bpb", "own_ppl", "entropy", "rep1", "rep2", "rep3"),
}


def printed(renderable: Any) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


# ------------------------------------------------------------------------------- no names


def test_no_file_of_the_report_names_two_metrics():
    for path in sorted(REPORT.rglob("*")):
        if "notebook" in path.parts:  # a result there has two of them as its attributes
            continue
        if path.suffix == ".py":
            literals = [
                node.value
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
            named = {word for text in literals for word in re.findall(r"\w+", text)} & KEYS
        elif path.suffix in (".html", ".js", ".css"):
            quoted = re.findall(r"""["'`](\w+)["'`]|\.(\w+)\b""", path.read_text("utf-8"))
            named = {word for pair in quoted for word in pair} & KEYS
        else:
            continue
        assert len(named) < 2, (path.name, named)


def test_a_summary_in_the_terminal_needs_no_page():
    code = (
        "import sys; import maskwalk.report.sequence, maskwalk.report.terminal; "
        "print([m for m in ('matplotlib', 'jinja2', 'maskwalk.report.page') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------- a third world


def test_a_third_world_gets_a_whole_report(tmp_path: Path):
    made = write_report(coins(), tmp_path, ("html", "csv", "md", "tex", "svg"))
    stem = "metrics-unconditional-even-parity-oracle-exact"
    assert {p.name for p in made} == {
        "report.html",
        "records.csv",
        *(f"{stem}.{suffix}" for suffix in ("csv", "md", "tex", "svg")),
        "traces-unconditional-even-parity-oracle-exact.svg",
    }
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<h1>even parity: coherence against calls</h1>" in text
    assert (
        "coins(length=8, parity=&#39;even&#39;)" in text and "graph" not in text.split("<main")[0]
    )
    for name in ("series", "losses", "swaps", "texts"):
        assert f'id="{name}"' not in text and f'href="#{name}"' not in text
    said = printed(terminal_table(coins()))
    assert "heads" in said and "coherence" in said and "even parity" in said
    assert "## Pareto fronts (oracle · exact)" in front_tables(coins())


def test_two_panels_of_a_third_world_are_compared():
    study = arrange(coins(worlds=2))
    assert not study.single and [p.title for p in study.panels] == ["even parity", "short"]
    text = page(study)
    assert "Pairs of samplers" in text and 'id="figures2"' in text
    assert [t.stem.split("-")[0] for t in tables(study)] == ["coherence", "heads"]


def test_worlds_along_their_own_parameter_are_a_line():
    records = coins(worlds=2)
    for one in records:
        one["axis"] = {"name": "length", "value": 8 if "8" in one["world"] else 4}
    data = json.loads(re.search(r'id="data">(.*?)</script>', page(arrange(records)))[1])
    assert [s["y"] for s in data["series"]] == ["coherence", "calls per sequence"]
    assert [p["x"] for p in data["series"][0]["lines"][0]["points"]] == [4, 8]


# ------------------------------------------------------------------------------- a user's metric


def test_a_users_metric_appears_everywhere_as_it_describes_itself(tmp_path: Path):
    records = [with_own(r, 3 - i / 3) for i, r in enumerate(small(modes=1))]
    write_report(records, tmp_path, ("html", "csv", "md"))
    said = printed(terminal_table(records))
    assert "unconditional: heads shown" in said and "3.00±.10" in said
    table = (tmp_path / "tables" / "heads-unconditional-oracle-exact.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows[0]["spanning tree"] == "3.0" and rows[0]["spanning tree (se)"] == "0.05"
    text = (tmp_path / "tables" / "heads-unconditional-oracle-exact.md").read_text("utf-8")
    assert "heads shown ± half of a 95 % interval" in text
    best = min(r["metrics"]["heads"]["value"] for r in records if r["task"] == "unconditional()")
    assert f"**{best:.2f} ± 0.10**" in text  # lower is better, two digits
    long = (tmp_path / "tables" / "records.csv").read_text("utf-8")
    assert {"heads", "heads_se", "heads_n"} <= set(long.splitlines()[0].split(","))
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Heads shown against calls" in text and "mean number of heads; lower is better" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    metric = next(m for m in data["metrics"] if m["key"] == "heads")
    assert (metric["title"], metric["better"], metric["digits"]) == ("heads shown", -1, 2)


def test_a_users_quality_is_what_samplers_lead_by():
    own = fake_records.OWN | {"role": "quality"}
    records = [with_own(r, i) | {"described": {"heads": own}} for i, r in enumerate(coins())]
    for one in records:
        del one["metrics"]["coherence"]
    study = arrange(records)
    assert study.quality is not None and study.quality.title == "heads shown"
    out = front_tables(records)
    assert re.search(r"\| even parity, unconditional \| 8.0 \| 0.00 ± 0.10 \| random \|", out)


def test_a_metric_that_is_not_drawn_is_told_and_kept():
    own = fake_records.OWN | {"drawn": False}
    records = [with_own(r, 2.0) | {"described": {"heads": own}} for r in small(modes=1)]
    study = arrange(records)
    assert "heads" not in [m.key for m in study.drawn]
    assert '"key":"heads"' in page(study) and "Heads shown against" not in page(study)


def test_a_registered_metric_needs_no_description():
    try:

        @METRICS.register("tails", title="tails seen", better=1, digits=1, world=None)
        def tails(sample: Any) -> None:
            """Mean number of tails."""

        records = coins()
        for i, one in enumerate(records):
            one["metrics"] = one["metrics"] | {"tails": {"value": 1.25 * i, "se": 0.5, "n": 256}}
        assert "tails seen" in page(arrange(records)) and "tails" in printed(
            terminal_table(records)
        )
    finally:
        METRICS._members.pop("tails", None)


# ------------------------------------------------------------------------------- every ± is said


@pytest.mark.parametrize("kind", ["walks", "text", "coins", "losses", "crowd"])
def test_every_interval_is_explained(kind: str, tmp_path: Path):
    from tests.test_report_budgets import crowd

    records = {
        "walks": small(),
        "text": fake_texts.small(),
        "coins": coins(),
        "losses": [],
        "crowd": crowd(),
    }[kind]
    losses = lost() if kind == "losses" else []
    made = write_report(records, tmp_path, ("html", "md", "tex"), losses=losses)
    for path in made:
        text = path.read_text("utf-8").replace("\u00a0", " ").replace("&nbsp;", " ")
        if path.suffix == ".html":
            body = text.split("<main>")[1].split('<script type="application/json"')[0]
            assert "± 1 standard error" not in text and "± standard error" not in text
            for section in re.split(r"<section ", body)[1:]:
                if "±" in section:
                    assert "half of a 95 % interval" in section, section[:60]
        elif "±" in text or r"$\pm$" in text:
            assert "± half of a 95 % interval" in text
    if records:
        said = printed(terminal_table(records))
        assert "±" not in said or "± half of a 95 % interval" in said
        assert "± half of a 95 % interval" in front_tables(records)


def test_a_page_of_losses_alone_says_nothing_of_records(tmp_path: Path):
    (path,) = write_report([], tmp_path, losses=lost())
    text = path.read_text("utf-8")
    assert "unknown" not in text.split("<footer")[1] and "0 records" not in text
    assert 'id="summary"' not in text and "Records</dt>" not in text
    assert "maskwalk diagnose" in text and "<h1>Losses of samplers</h1>" in text


# ------------------------------------------------------------------------------- old records


@pytest.mark.parametrize("name", ["paper", "language"])
def test_records_of_an_earlier_schema_give_a_whole_page(name: str):
    text = page(arrange(load_records(ROOT / "results" / name)))
    sections = {"paper": ("series", "swaps", "traces"), "language": ("budgets", "texts")}[name]
    for one in ("summary", "figures", "tables", *sections):
        assert f'id="{one}"' in text
    other = {"paper": "texts", "language": "traces"}[name]
    shown = re.sub(r"[A-Za-z0-9+/=]{200,}", "", text)  # packed data may spell anything
    assert f'id="{other}"' not in shown and "NaN" not in shown


# ------------------------------------------------------------------------------- one sample


def test_a_sample_is_summed_up_in_any_world():
    one = fake_records.record(sampler="random(block=2)") | {"impossible": 3}
    said = printed(sample_summary(one, ["3 1 4 1", "2 7 1 8"]))
    for words in (
        "graph     st_er(nodes=500, p=0.0)",
        "mode        exact",
        "± half of a 95 % interval",
        "exact sequences of this number get 0.105",
        "  3 1 4 1",
        "Order of unmasking of the first sequence",
        "Note: 3 times the tokens so far fitted no sequence; the oracle then answers",
    ):
        assert words in " ".join(said.split("\n")) or words in said, words
    value = one["metrics"]["coherence"]["value"]
    assert re.search(rf"coherence +{value:.3f} ± 0\.0\d\d +Share of sequences", said)
    assert "Note" not in printed(sample_summary(one | {"impossible": 0}, ["3 1 4 1"]))
    said = printed(sample_summary(coins()[0] | {"trace": None, "notes": []}, ["HHTT"]))
    assert "coins(length=8, parity='even')" in said and "heads shown" in said and "HHTT" in said
    assert "Order of unmasking" not in said
    text = fake_texts.record() | {"trace": None}
    assert "MAUVE" in printed(sample_summary(text, [text["texts"][0]]))
