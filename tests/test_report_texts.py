"""The report of text records: arrangement, sentences, tables, and the files written."""

import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from maskwalk.errors import MaskwalkError
from maskwalk.report import terminal_table, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.budgets import leaders
from maskwalk.report.finding import Finding
from maskwalk.report.formats import to_csv, to_latex, to_markdown
from maskwalk.report.modes import compared
from maskwalk.report.page import page
from maskwalk.report.page_data import text_pair
from maskwalk.report.standings import standings
from maskwalk.report.study import Study
from maskwalk.report.summary import intro
from maskwalk.report.tables import tables
from maskwalk.stats import NORMAL
from maskwalk.worlds.metrics import METRICS, Metric
from tests import fake_records, fake_texts
from tests.fake_texts import SOME, small, with_metric

Record = dict[str, Any]
EVIL = "</script><img src=x onerror=alert(1)>\u2028& 'quotes'"


class Tables(HTMLParser):
    """The text of every cell of every table of a page, and the text of its list items."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.items: list[str] = []
        self._into: list[str] | None = None
        self.feed(page.split('<script type="application/json"')[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self._into = self.tables[-1][-1]
            self._into.append("")
        elif tag == "li":
            self._into = self.items
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td", "li"):
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data


def words(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def page_of(records: list[Record]) -> str:
    return page(arrange(records))


def described(key: str) -> Metric:
    return METRICS.describe(key)


def said(study: Study, mode: int = 0) -> list[Finding]:
    return standings(study, mode, leaders(study, mode))


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def settings_tables(page: str) -> list[list[list[str]]]:
    return [t for t in Tables(page).tables if words(t[0][0]) == "sampler"]


def expected(held: dict[str, Any] | None, digits: int) -> str:
    """A cell as it must be shown, made from the record alone."""
    if not held or held["value"] is None:
        return "–"
    error = "–" if held["se"] is None else f"{NORMAL * held['se']:.{digits}f}"
    return f"{held['value']:.{digits}f} ±{error}"


# ------------------------------------------------------------------------------- arrangement


def test_held_out_text_is_the_mark_and_ar_comes_first():
    study = arrange(small())
    assert study.modes == ["exact", "top-p 0.9"] and study.panels[0].title == "Books"
    labels = [s.label for s in study.samplers]
    assert labels == ["AR", "random ×8", "bisection order 1", "bisection order 4"]
    assert study.causal == {0} and set(study.references) == {(0, 0), (1, 0)}
    assert [f.label for f in study.families] == ["AR", "random", "bisection"]
    assert [row.label for row in tables(study)[0].rows] == ["held-out text", *labels]
    assert intro(study) == (
        "3 samplers, AR and held-out text on Books (unconditional), with exact and top-p 0.9. "
        "8,192 sequences of 256 tokens in all."
    )


def test_what_looks_alike_is_told_apart():
    one, held_out = fake_texts.record(), fake_texts.record("held_out")
    study = arrange([held_out, one, one | {"denoiser": "large_mdm", "key": "1"}])
    assert study.modes == ["books mdm · exact", "large mdm · exact"]
    assert set(study.references) == {(0, 0), (1, 0)}  # held-out text stands in both
    masked = fake_texts.record("left_to_right()") | {"denoiser": "books_mdm", "key": "1"}
    study = arrange([fake_texts.record("left_to_right()"), masked, one])
    assert [s.label for s in study.samplers] == ["AR", "left to right", "bisection"]
    assert study.causal == {0}
    for field, modes in (
        ({"seed": 1}, ["exact · seed 0", "exact · seed 1"]),
        ({"mode": "draw(top_p=0.9, temperature=0.7)"}, ["exact", "top-p 0.9, temperature 0.7"]),
        ({"mode": "draw(top_p=0.9), ties index"}, ["exact", "top-p 0.9, ties index"]),
    ):
        assert arrange([one, one | field | {"key": "1"}]).modes == modes
    both = arrange([one, one | {"title": "News", "key": "1"}])
    assert [panel.title for panel in both.panels] == ["Books", "News"] and both.modes == ["exact"]


def test_two_seeds_keep_their_own_held_out_text():
    first = [fake_texts.record("held_out"), fake_texts.record()]
    second = [r | {"seed": 1, "key": str(i)} for i, r in enumerate(first)]
    study = arrange([*first, *second])
    assert [study.references[mode, 0]["seed"] for mode in (0, 1)] == [0, 1]


def test_several_corpora_are_panels_with_references_and_texts_of_their_own():
    news = [r | {"title": "News", "key": r["key"] + "n"} for r in small(modes=1)]
    study = arrange([*small(modes=1), *news])
    assert set(study.references) == {(0, 0), (0, 1)} and not study.single
    text = page(study)
    assert 'id="text-panel"' in text and "Held-out text is the mark" not in text
    assert {row.sampler for row in tables(study)[0].rows[:2]} == {None, 0}


def test_the_later_record_counts_and_a_judged_one_is_the_same_record():
    one = fake_texts.record()
    study = arrange([one, with_metric(one, "mauve", 0.5)])
    held = study.estimate(0, 0, 0, described("mauve"))
    assert study.superseded == 0 and held is not None and held.value == 0.5
    assert arrange([one, one | {"key": "1"}]).superseded == 1
    assert "1 earlier record of the same cells left out" in page_of([one, one | {"key": "1"}])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "no records"),
        ([{"schema": 1, "kind": "text"}], "schema 1"),
        ([{"schema": 2, "world": "text()", "task": "t()", "sampler": "dus()"}], "lacks mode, met"),
    ],
)
def test_unusable_records_get_a_sentence(records: list[Record], said: str):
    with pytest.raises(MaskwalkError, match=said):
        arrange(records)


def test_the_first_texts_are_ars_and_the_best_bisections_in_the_middle():
    study = arrange(fake_texts.records())
    # Ten numbers of calls from 9 to 90; order 4 makes the lower of the two in the middle, 28.
    assert [study.label(s) for s in text_pair(study, 0, 0)] == ["AR", "bisection order 4"]
    # Of two at the same calls the one with the higher MAUVE.
    rivals = [fake_texts.record(f"bisection(order={k})") for k in (4, 5)]
    rivals = [with_metric(r, "calls", 28.0, 0.0) for r in rivals]
    rivals = [with_metric(r, "mauve", v) for r, v in zip(rivals, (0.6, 0.7))]
    study = arrange([fake_texts.record("held_out"), *rivals])
    assert [study.label(s) for s in text_pair(study, 0, 0)] == [
        "held-out text",
        "bisection order 5",
    ]


# ------------------------------------------------------------------------------- the numbers


def test_every_number_of_the_table_is_the_records():
    records = fake_texts.records()
    records[3]["metrics"]["mauve"] = fake_texts.metric(0.5, None, 128)  # no interval, another n
    records[4]["metrics"]["entropy"] = None
    text = page_of(records)
    both = settings_tables(text)  # for each mode what is shown at once, and the whole table
    shown = both[1::2]
    assert all(row in whole for short, whole in zip(both[::2], shown) for row in short)
    study = arrange(records)
    assert len(shown) == len(tables(study)) == 2
    by = {metric.title: metric for metric in study.drawn}
    checked = 0
    for mode, (head, *rows) in enumerate(shown):
        names = [words(re.split(r"n = ", cell)[0]) for cell in head]
        ns = [words(cell).partition("n = ")[2].replace(",", "") for cell in head]
        assert len(rows) == len(records) // 2 and set(names[2:]) <= set(by)
        for row in rows:
            label = words(row[0]).removesuffix("†")
            place = [None, *range(len(study.samplers))][
                ["held-out text", *(s.label for s in study.samplers)].index(label)
            ]
            record = study.record(mode, 0, place)
            assert record is not None
            for name, usual, cell in list(zip(names, ns, row))[2:]:
                metric = by[name]
                held = record["metrics"].get(metric.key)
                want = expected(held, metric.digits)
                if held and held["value"] is not None and str(held["n"]) != usual:
                    want += f" n = {held['n']}"
                bound = "≤ " if metric.key == "replay_bpb" and held and held["bound"] else ""
                assert words(cell) == bound + want, (label, name)
                checked += want != "–"
    assert checked > 350
    assert "0.500 ±– n = 128" in [words(c) for row in shown[0] for c in row]


def test_the_figures_draw_the_records_numbers():
    records = small()
    data = data_of(page_of(records))
    assert len(data["cells"]) == 2 * len(SOME) and len(data["references"]) == 2
    for cell in [*data["cells"], *data["references"]]:
        spec = "held_out" if cell["s"] is None else data["samplers"][cell["s"]]["spec"]
        (record,) = (
            r for r in records if r["sampler"] == spec and r["mode"] == fake_texts.MODES[cell["m"]]
        )
        assert set(cell["e"]) == {key for key, held in record["metrics"].items() if held}
        for key, held in record["metrics"].items():
            assert cell["e"][key]["v"] == pytest.approx(held["value"], rel=1e-4)
            assert cell["e"][key]["n"] == held["n"]
            assert cell["e"][key]["half"] == pytest.approx(NORMAL * held["se"], rel=1e-4)
        assert cell["texts"] == record["texts"]


def test_every_number_of_the_summary_has_an_interval_and_is_the_records():
    records = fake_texts.records()
    items = [words(item) for item in Tables(page_of(records)).items]
    allowed = {
        f"{held['value']:.3f} ± {NORMAL * held['se']:.3f}"
        for r in records
        for name, held in r["metrics"].items()
        if name != "calls" and held
    }
    told = 0
    for item in items:
        if item.startswith("Modes compared"):
            continue
        numbers = re.findall(r"(?<!MAUVE: [-+])\d+\.\d{3} ± \d\.\d{3}", item)
        assert set(numbers) <= allowed, item
        told += len(numbers)
    assert told >= 4
    study = arrange(records)
    sheets = [f.sheet for m in range(2) for f in standings(study, m, leaders(study, m)) if f.sheet]
    assert len(sheets) == 2 and all("held-out text" in sheet.heads for sheet in sheets)
    shown = [words for sheet in sheets for row in sheet.rows for words in row]
    numbers = re.findall(r"\d+\.\d{3} ± \d\.\d{3}", " ".join(shown))
    assert set(numbers) <= allowed and len(numbers) > 30
    gap = next(item for item in items if item.startswith("Against AR"))
    ar, best = (r["metrics"]["mauve"] for r in _ar_and_best(records, "exact"))
    noise = NORMAL * math.hypot(ar["se"], best["se"])
    assert f"{best['value'] - ar['value']:+.3f} ± {noise:.3f} from the" in gap


def _ar_and_best(records: list[Record], mode: str) -> tuple[Record, Record]:
    mine = [r for r in records if r["mode"] == mode and "mauve" in r["metrics"]]
    ar = next(r for r in mine if r["denoiser"] == "books_ar")
    masked = [r for r in mine if r["denoiser"] == "books_mdm"]
    return ar, max(masked, key=lambda r: r["metrics"]["mauve"]["value"])


def test_draws_are_compared_over_what_both_have():
    records = small()
    study = arrange(records)
    finding = compared(study)[0]
    for mode, name in zip(fake_texts.MODES, study.modes):
        mine = [r for r in records if r["mode"] == mode and r["denoiser"] == "books_mdm"]
        held = [r["metrics"]["own_bpb"] for r in mine]
        mean = sum(h["value"] for h in held) / 3
        half = NORMAL * math.sqrt(sum(h["se"] ** 2 for h in held)) / 3
        assert finding.sheet is not None
        (row,) = (row for row in finding.sheet.rows if row[0] == "own bits/byte")
        assert row[2 + study.modes.index(name)] == f"{mean:.3f} ± {half:.3f}"
    assert compared(arrange(small(modes=1))) == []


# ------------------------------------------------------------------------------- who leads


def rivals(gap: float, se: float | None = 0.01, metric: str = "mauve") -> list[Record]:
    """Two policies of 16 calls that differ by `gap`."""
    sign = -1 if metric == "replay_bpb" else 1
    made = []
    for name, value in (("bisection(order=2)", 0.5 + sign * gap), ("random(block=16)", 0.5)):
        one = fake_texts.record(name)
        one["metrics"] = {"calls": fake_texts.metric(16.0, 0.0, 1024)}
        made.append(with_metric(one, metric, value, se))
    return made


def test_a_planted_leader_is_named_and_noise_is_not():
    study = arrange(rivals(0.2))
    (one,) = leaders(study, 0)  # nobody makes fewer than 16 calls
    assert one.budget == 24 and one.clear and study.label(one.best.point.sampler) == "bisection"
    text = " ".join(f.text for f in said(study))
    assert "Within 24 calls, bisection (0.700 ± 0.020 at 16 calls) is ahead of random" in text
    study = arrange(rivals(0.02))  # 1.4 standard errors of the difference
    (one,) = leaders(study, 0)
    assert not one.clear and one.level == ["bisection", "random"]
    text = " ".join(f.text for f in said(study))
    assert "the noise leaves open who leads" in text and "ahead" not in text


def test_nobody_leads_by_replay():
    """Of a stochastic policy it is an upper bound, which an exact number does not beat."""
    study = arrange(rivals(0.2, metric="replay_bpb"))
    assert leaders(study, 0) == []
    assert "ahead" not in " ".join(f.text for f in said(study))


def test_nothing_leads_without_an_interval():
    study = arrange(rivals(0.2, None))
    assert leaders(study, 0) == []
    (finding,) = said(study)
    assert "no interval, so nothing is said to lead" in finding.text
    assert "ahead" not in page_of(rivals(0.2, None)).split("</ul>")[0].split("<ul")[1]


def test_the_highest_policy_is_held_against_ar():
    ar = with_metric(fake_texts.record("left_to_right()"), "mauve", 0.9, 0.01)
    near = with_metric(fake_texts.record("bisection(order=4)"), "mauve", 0.88, 0.01)
    far = with_metric(fake_texts.record("bisection(order=1)"), "mauve", 0.5, 0.01)
    found = {f.lead: f.text for f in said(arrange([ar, near, far]))}
    assert found["Against AR."] == (
        "Bisection order 4 at 28 calls (0.880 ± 0.020, n = 256) is the best sampler by MAUVE: "
        "-0.020 ± 0.028 from the 0.900 ± 0.020 of AR."
    )
    found = {f.lead: f.text for f in said(arrange([ar, far]))}
    assert "-0.400 ± 0.028 from the 0.900 ± 0.020" in found["Against AR."]


# ------------------------------------------------------------------------------- tables


def test_only_policies_are_marked_and_only_where_there_is_a_direction():
    study = arrange(small(modes=1))
    (table,) = tables(study)
    for c, column in enumerate(table.columns):
        metric = column.metric
        marks = [row.cells[c].mark for row in table.rows]
        assert marks[:2] == ["", ""]  # held-out text and AR, though AR's MAUVE is the highest
        values = [row.cells[c].value for row in table.rows[2:]]
        best = [v for v, mark in zip(values, marks[2:]) if mark == "best"]
        known = [v for v in values if v is not None]
        if metric.better:
            assert best[0] == (max(known) if metric.better > 0 else min(known))
        else:
            assert not any(marks)
    assert {c.metric.key for c in table.columns if c.metric.better} == {"mauve", "replay_bpb"}


def test_gaps_are_dashes_in_every_format():
    one, other = fake_texts.record(), fake_texts.record("random(block=8)")
    one = with_metric(one, "mauve", 0.5, None)
    del other["metrics"]["mauve"]
    other["metrics"]["calls"]["se"] = None
    study = arrange([one, other])
    (table,) = tables(study)
    at = [c.metric.key for c in table.columns].index("mauve")
    assert [row.cells[at].text for row in table.rows] == ["–", "0.500 ± –"]
    assert table.rows[0].cost == "32 ± –"
    lines = to_markdown(table, study).splitlines()
    assert lines[4].split(" | ")[2] == "–" and lines[5].split(" | ")[2] == "0.500 ± –"
    latex = to_latex(table, study)
    assert r"0.500 $\pm$ --" in latex and latex.count("&") == 3 * (len(table.columns) + 1)
    (shown,) = settings_tables(page(study))
    assert [words(row[2]) for row in shown[1:]] == ["–", "0.500 ±–"]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table([one, other]))
    shown_text = console.export_text()
    assert "1 number without" in shown_text and re.search(r"random ×8 +32 +– ", shown_text)
    assert not re.search(r"NaN|None|null", to_csv(table, study) + shown_text + latex)


def test_csv_comes_back_as_it_went(tmp_path: Path):
    records = fake_texts.records()
    records[3]["metrics"]["mauve"] = None
    made = write_report(records, tmp_path, ("csv",))
    stem = "metrics-unconditional-books"
    assert [p.name for p in made] == [f"{stem}-exact.csv", f"{stem}-top-p-0-9.csv", "records.csv"]
    held = {(r["mode"], r["sampler"]): r["metrics"] for r in records}
    for mode, path in zip(fake_texts.MODES, made):
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
        assert len(rows) == len(records) // 2
        assert [row["sampler"] for row in rows[:2]] == ["held-out text", "AR"]
        _check_numbers(rows, lambda row, mode=mode: held[mode, row["spec"] or "held_out"])
    rows = list(csv.DictReader(io.StringIO(made[2].read_text("utf-8"))))
    assert len(rows) == len(records)
    _check_numbers(rows, lambda row: held[row["mode"], row["sampler"]])
    assert {row["denoiser"] for row in rows} == {"", "books_ar", "books_mdm"}


def _check_numbers(rows: list[dict[str, str]], metrics: Callable[[dict[str, str]], Record]) -> None:
    names = {name for row in rows for name in metrics(row) if f"{name}_se" in rows[0]}
    assert {"mauve", "own_bpb", "calls"} <= names
    for row in rows:
        for name in names:
            held = metrics(row).get(name) or {}
            for key, column in (("value", name), ("se", f"{name}_se"), ("n", f"{name}_n")):
                want = held.get(key)
                assert row[column] == "" if want is None else float(row[column]) == want


@pytest.mark.parametrize("modes", [1, 2])
def test_the_terminal_table_fits_80_columns(modes: int):
    records = fake_texts.records(modes=modes)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(records))
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    # Eight metrics do not fit beside each other, so every mode has two parts.
    assert "…" not in text and text.count("held-out text") == 2 * modes
    assert text.count("guided bisection order 16") == 2 * modes
    assert "n=256" in text and "n=1,024" in text
    held = records[1]["metrics"]
    lines = [line for line in text.splitlines() if line.startswith("AR ")][:2]
    keys = ("mauve", "replay_bpb", "judge_bpb", "own_bpb", "entropy", "rep1", "rep2", "rep3")
    numbers = [word for line in lines for word in line.split()[2:]]
    assert numbers == [f"{held[key]['value']:.3f}" for key in keys]


def test_the_terminal_table_has_intervals_where_they_fit():
    records = [with_metric(r, "mauve", 0.5, 0.01, 128 + i) for i, r in enumerate(small(modes=1))]
    for record in records:
        kept = ("mauve", "calls", "entropy")
        record["metrics"] = {k: v for k, v in record["metrics"].items() if k in kept}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(records))
    text = console.export_text()
    assert text.count("0.500±.020") == len(records) and "n 128 to 1024" in text
    assert "n=1,024" in text


# ------------------------------------------------------------------------------- files


def test_the_page_is_self_contained_and_stable(tmp_path: Path):
    records = small()
    (path,) = write_report(records, tmp_path / "deep", command="maskwalk mine --out DIR")
    text = path.read_text("utf-8")
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.]+\.[a-z]{2,}", text))
    assert addresses == {"http://www.w3.org"}  # the name of SVG, not an address
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=\"(?!data:,)", text)
    assert "default-src 'none'" in text and ".innerHTML" not in text
    assert text == page(arrange(records), "maskwalk mine --out DIR")
    plain = page_of(records)
    assert "maskwalk reproduce paper --only figure_language --out DIR\nmaskwalk report DIR" in plain
    about = text.split('<footer id="about">')[1]
    for said in (
        "0.1.0",
        "0123abc",
        "books_ar, books_mdm",
        "SmolLM2-135M (10 of 10 records)",
        "mine --out",
    ):
        assert said in about


def test_hostile_text_is_inert():
    record = fake_texts.record() | {"texts": [EVIL], "title": EVIL, "notes": [EVIL, "judge" + EVIL]}
    record |= {
        "judge": EVIL,
        "denoiser": EVIL,
        "experiment": EVIL,
        "version": EVIL,
        "sampler": EVIL,
    }
    text = page_of([record, fake_texts.record("held_out") | {"title": EVIL}])
    assert "<img" not in text and "\u2028" not in text.split('id="data">')[1]
    assert data_of(text)["cells"][0]["texts"] == [EVIL]
    assert "\\&" in to_latex(tables(arrange([record]))[0], arrange([record]))


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_figures_are_files_that_open(tmp_path: Path, suffix: str):
    records = small()
    stem = "metrics-unconditional-books"
    made = write_report(records, tmp_path / "a", (suffix,))
    again = write_report(records, tmp_path / "b", (suffix,))
    assert [p.name for p in made] == [f"{stem}-exact.{suffix}", f"{stem}-top-p-0-9.{suffix}"]
    for one, two in zip(made, again):
        assert one.read_bytes() == two.read_bytes()
    if suffix == "pdf":
        assert all(p.read_bytes().startswith(b"%PDF") for p in made)
    else:
        words_of = [set(ElementTree.parse(p).getroot().itertext()) for p in made]
        assert {"MAUVE against held-out text", "AR", "bisection"} <= words_of[0]
        replay = "Bits per byte of held-out text, by replay"
        assert replay in words_of[0] and replay not in words_of[1]
        value = records[0]["metrics"]["entropy"]["value"]
        assert f"held-out text {value:.3f}" in words_of[0]


@pytest.mark.parametrize("kind", ["bare", "held out alone", "no calls", "nothing"])
def test_thin_records_make_every_file(tmp_path: Path, kind: str):
    one = fake_texts.record()
    bare = {k: one[k] for k in ("world", "task", "sampler", "mode")}
    records = {
        "bare": [bare | {"metrics": {"mauve": {"value": 0.5}}}],
        "held out alone": [fake_texts.record("held_out")],
        "no calls": [one | {"metrics": {"entropy": one["metrics"]["entropy"]}, "texts": None}],
        "nothing": [bare | {"metrics": {"mauve": None}}],
    }[kind]
    made = write_report(records, tmp_path, ("html", "csv", "md", "tex", "svg"))
    # The page, records.csv and three tables; without calls no figure, without a number no table.
    assert len(made) == (2 if kind == "nothing" else 5) and all(p.stat().st_size for p in made)
    Console(file=io.StringIO()).print(terminal_table(records))


def test_bad_formats_and_bad_disks_get_a_sentence(tmp_path: Path):
    with pytest.raises(MaskwalkError, match="Did you mean 'html'"):
        write_report(small(), tmp_path, ("htm",))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MaskwalkError, match="Cannot write"):
        write_report(small(), tmp_path / "file")


# ------------------------------------------------------------------------------- the command


def lay_down(directory: Path, records: list[Record]) -> Path:
    directory.mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (directory / "records.jsonl").write_text(lines, encoding="utf-8")
    return directory


def test_the_command_knows_texts_from_walks(cli: Any, tmp_path: Path):
    texts = lay_down(tmp_path / "texts", small())
    code, out, _ = cli("report", str(texts))
    assert code == 0 and out.count("Wrote") == 1
    assert "report.html, 5 tables in " in out
    assert "Texts side by side" in (texts / "report.html").read_text("utf-8")
    walks = lay_down(tmp_path / "walks", fake_records.small())
    assert cli("report", str(walks), "--format", "html")[0] == 0
    assert "Texts side by side" not in (walks / "report.html").read_text("utf-8")
    both = lay_down(tmp_path / "both", [*small(), *fake_records.small()])
    assert cli("report", str(both), "--format", "html")[0] == 0  # panels of two worlds
    text = (both / "report.html").read_text("utf-8")
    assert "Texts side by side" in text and "spanning tree" in text and 'id="traces"' in text
    code, out, _ = cli("report", str(texts), "--fronts")
    assert code == 0 and "MAUVE ± half of a 95 % interval" in out


def test_bounds_are_marked_and_nobody_is_best_by_them() -> None:
    records = small(modes=1)
    (table,) = tables(arrange(records))
    column = [c.metric.key for c in table.columns].index("replay_bpb")
    assert {row.cells[column].mark for row in table.rows} == {"", "best"}
    for record in records:
        if record["sampler"].startswith("random"):
            record["metrics"]["replay_bpb"] |= {"bound": True, "nats": [1.0, 2.0]}
    study = arrange(records)
    (table,) = tables(study)
    cells = {row.label: row.cells[column] for row in table.rows}
    assert not any(cell.mark for cell in cells.values())
    assert {name for name, cell in cells.items() if cell.text.startswith("≤ ")} == {"random ×8"}
    assert "≤ " in to_markdown(table, study)
    rows = list(csv.DictReader(io.StringIO(to_csv(table, study))))
    told = {row["sampler"]: row["replay_bpb_bound"] for row in rows}
    assert told["random ×8"] == "True" and told["AR"] == "False" and told["held-out text"] == ""
    console = Console(width=80, file=io.StringIO())
    console.print(terminal_table(records))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "≤ an upper bound" in " ".join(shown.split())
        and f"≤{cells['random ×8'].value:.3f}" in shown
    )
    sentences = " ".join(finding.text for finding in said(study))
    assert "≤" not in sentences  # held-out text and AR have no bounds
    for record in records:  # who does not say may be stochastic
        record["metrics"].get("replay_bpb", {}).pop("bound", None)
    (silent,) = tables(arrange(records))
    assert all(row.cells[column].text[0] in "≤–" for row in silent.rows)
