"""The losses of `maskwalk diagnose --out` in the report: rows, page, tables and figures."""

import csv
import html
import io
import json
import shlex
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwalk.analysis.losses import diagnose, exact_sequences, for_json
from maskwalk.bench.diagnosis import FILE, load_rows
from maskwalk.cli.main import app
from maskwalk.errors import MaskwalkError
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.losses import groups, sheet, specs
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law
from tests.fake_records import SOME, small
from tests.test_replay import Noisy

NAMES = ["bisection(order=1)", "random(block=2)", "entropy(block=4)"]
WORLD = "walk(graph=st_er(nodes=12, p=0.1), law=lazy(stay=0.2), length=8, seed=1)"
COMMAND = ["diagnose", "--graph", "st_er(nodes=12, p=0.1)", "--length", "8", "--count", "16"]


def lost(task: str = "unconditional()", names: list[str] = NAMES) -> list[dict[str, Any]]:
    """Rows of a small law with an imperfect denoiser, as the command writes them."""
    law = small_law("st_er(nodes=12, p=0.1)", "lazy(stay=0.2)", 8)
    walks, given = exact_sequences(law, TASKS.build(task, world=law, prompts=16, seed=0))
    rows = []
    for spec in names:
        row = diagnose(law, Noisy(oracle_for(law), 0.02), SAMPLERS.build(spec), walks, given)
        place = {"model": "noisy", "task": task, "world": WORLD, "mode": "exact"}
        rows.append(for_json({"key": f"{spec}{task}", **row, "sampler": spec, **place}))
    return rows


def test_the_example_walk_tells_what_was_revealed_together_and_what_it_cost():
    row = lost(names=["random(block=2)"])[0]
    example = row["example"]
    assert sorted(example["rounds"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(example["tokens"]) == len(example["dependence"]) == len(example["denoiser"]) == 8
    assert all(cost >= 0 for cost in example["dependence"] + example["denoiser"])
    given = lost("endpoints(start=None, end=None)", ["bisection(order=1)"])[0]["example"]
    assert given["rounds"][0] == given["rounds"][-1] == -1 and given["dependence"][0] == 0


def test_rows_of_one_setting_are_a_group_and_the_later_row_counts():
    rows = [*lost(), *lost("endpoints(start=None, end=None)")]
    rows.append(rows[0] | {"kl": 9.0})
    study = arrange(small(modes=1), specs(rows))
    one, two = groups(study, rows)
    assert (one.title, two.title) == ("noisy, unconditional", "noisy, endpoints")
    assert len(one.rows) == len(two.rows) == 3 and one.split
    assert {row["kl"] for row in one.rows if row["sampler"] == NAMES[0]} == {9.0}
    assert one.stem == "diagnosis-noisy-unconditional"
    # Samplers of the losses join the legend, but not the counts of what was run.
    assert {s.spec for s in study.samplers} == {*SOME, *NAMES}
    assert len(study.tried) == len(SOME)
    twins = groups(study, [rows[0], rows[0] | {"seed": 1}])
    assert len({g.title for g in twins}) == 2


def test_the_table_marks_bounds_infinities_and_what_is_not_known():
    rows = lost()
    rows[0] |= {"kl": None, "kl_infinite": True, "denoiser": None, "lost": 0.25}
    rows[1] |= {"coherence": 0.5, "coherence_se": None, "reliable": False}
    rows[2] |= {"dependence": None, "denoiser": None, "kl": None, "worst_round": None}
    study = arrange([], specs(rows))
    head, *body = sheet(groups(study, rows)[0], study)
    said = {line[0]: dict(zip(head, line)) for line in body}
    assert said["bisection"]["KL"] == said["bisection"]["denoiser"] == "∞"
    assert said["random ×2"]["coherence"] == "~0.500"
    assert said["random ×2"]["KL"].startswith("≤ ")
    assert said["entropy ×4"]["KL"] == said["entropy ×4"]["worst round"] == "–"


@pytest.mark.parametrize("records", [[], small(modes=1)], ids=["alone", "with records"])
def test_every_format_has_the_losses(tmp_path: Path, records: list[dict[str, Any]]):
    rows = lost()
    made = write_report(records, tmp_path, ("html", "csv", "md", "tex", "svg"), losses=rows)
    mine = {p.name: p for p in made if p.stem.startswith("diagnosis-noisy")}
    assert set(mine) == {f"diagnosis-noisy-unconditional.{s}" for s in ("csv", "md", "tex", "svg")}
    sheet_ = list(
        csv.DictReader(io.StringIO(mine["diagnosis-noisy-unconditional.csv"].read_text()))
    )
    assert [float(r["kl"]) for r in sheet_] == [
        row["kl"] for row in sorted(rows, key=lambda r: ("random", "entropy", "bisection").index(
            r["sampler"].split("(")[0]))
    ]  # fmt: skip
    assert "| bisection | 4 |" in mine["diagnosis-noisy-unconditional.md"].read_text()
    assert r"$\leq$" in mine["diagnosis-noisy-unconditional.tex"].read_text()
    words = set(ElementTree.parse(mine["diagnosis-noisy-unconditional.svg"]).getroot().itertext())
    assert {"dependence", "denoiser", "bisection", "nats per sequence", "round"} <= words
    text = (tmp_path / "report.html").read_text()
    assert 'id="losses"' in text and ('id="swaps"' in text) == bool(records)
    assert 'id="losses"' not in write_report(small(modes=1), tmp_path)[0].read_text()


def test_the_command_keeps_rows_goes_on_after_a_kill_and_the_report_finds_it(tmp_path: Path):
    run = CliRunner()
    command = [*COMMAND, "--out", str(tmp_path), "--samplers"]
    first = run.invoke(app, [*command, "bisection;random(block=2)"])
    assert first.exit_code == 0 and f"maskwalk report {tmp_path}" in first.output
    kept = (tmp_path / FILE).read_bytes()
    assert kept.count(b"\n") == 2
    (tmp_path / FILE).write_bytes(kept + b'{"key": "half')
    more = run.invoke(app, [*command, "bisection;random(block=2);entropy(block=4)", "--json"])
    assert more.exit_code == 0, more.output
    rows = load_rows(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    assert whole.startswith(kept) and len(rows) == 3  # the known ones were not measured again
    told = [{k: v for k, v in row.items() if k != "decoding"} for row in json.loads(more.stdout)]
    assert told == rows
    assert rows[0]["world"].startswith("walk(graph=st_er(nodes=12, p=0.1), law=lazy(stay=0.125")
    assert rows[0]["mode"] == "exact" and rows[0]["model"] == "oracle"
    other = run.invoke(app, [*command, "bisection", "--seed", "5"])
    assert other.exit_code == 0 and len(load_rows(tmp_path)) == 4
    shown = run.invoke(app, ["report", str(tmp_path), "--format", "html"])
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "report.html").read_text()
    assert "oracle, unconditional · seed 0" in text and 'id="summary"' not in text
    # The command the page names makes the same rows again.
    told = groups(arrange([], specs(rows)), rows)[0].command
    assert told in html.unescape(text)
    words = [str(tmp_path / "again") if w == "DIR" else w for w in shlex.split(told)[1:]]
    assert run.invoke(app, words).exit_code == 0
    again = {row["key"]: row["kl"] for row in load_rows(tmp_path / "again")}
    assert again == {row["key"]: row["kl"] for row in rows}


def test_what_is_no_row_gets_a_sentence(tmp_path: Path):
    assert load_rows(tmp_path) == []
    (tmp_path / FILE).write_text('{"sampler": "bisection()"}\n')
    with pytest.raises(MaskwalkError, match="there is no calls"):
        load_rows(tmp_path)
    (tmp_path / FILE).write_text("[]\n")
    with pytest.raises(MaskwalkError, match="not a row of `maskwalk diagnose`"):
        load_rows(tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(MaskwalkError, match="no records"):
        write_report([], tmp_path)


def test_the_page_names_worlds_in_words_and_is_of_a_version(tmp_path: Path):
    rows = lost()
    tree = [r | {"world": WORLD.replace("p=0.1", "p=0.0"), "model": "zoo:mine"} for r in rows]
    one, two = groups(arrange([], specs(rows)), [*rows, *tree])
    assert one.heading == "Graph of 12 nodes, average degree 2.8, unconditional · noisy"
    assert two.heading == "Tree of 12 nodes, unconditional · zoo:mine"
    (path,) = write_report([], tmp_path, losses=rows)
    assert "<dt>Version</dt>" in path.read_text() and one.heading in path.read_text()


def test_names_have_room_and_lines_of_one_family_differ(visit: Any, tmp_path: Path):
    long = "planned(turns=(3, 2, 3, 1, 3, 2, 3, 0))"
    rows = lost(names=[*NAMES, "random(block=4)", long])
    (path,) = write_report([], tmp_path, losses=rows)
    tab = visit(path)
    names = tab.locator('[data-view="bars"] .loss-row .name').all_text_contents()
    assert "random ×2" in names and any(name.startswith("planned") for name in names)
    said = set(tab.locator('[data-view="curves"] .end-label').all_text_contents())
    assert {"random ×2", "random ×4", "bisection"} <= said
    drawn = tab.evaluate(
        """() => [...document.querySelectorAll('[data-view="curves"] .series-line')]
        .map((n) => n.getAttribute('class') + n.getAttribute('stroke-dasharray'))"""
    )
    assert len(set(drawn)) == len(rows)
    boxes = [n.bounding_box() for n in tab.locator('[data-view="curves"] .end-label').all()]
    tops = sorted(box["y"] for box in boxes)
    assert all(b - a > 8 for a, b in pairwise(tops))
