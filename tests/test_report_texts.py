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
from maskwalk.report import text_table, write_text_report
from maskwalk.report.texts import CALLS, METRICS, arrange_texts, side_by_side
from maskwalk.report.texts_page import text_page
from maskwalk.report.texts_summary import best_policies, draws_compared, text_findings, text_intro
from maskwalk.report.texts_tables import text_tables, texts_csv, texts_latex, texts_markdown
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
    return text_page(arrange_texts(records))


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def settings_tables(page: str) -> list[list[list[str]]]:
    return [t for t in Tables(page).tables if words(t[0][0]) == "setting"]


def expected(held: dict[str, Any] | None, digits: int) -> str:
    """A cell as it must be shown, made from the record alone."""
    if not held or held["value"] is None:
        return "–"
    error = "–" if held["se"] is None else f"{1.96 * held['se']:.{digits}f}"
    return f"{held['value']:.{digits}f} ±{error}"


# ------------------------------------------------------------------------------- arrangement


def test_held_out_text_is_the_mark_and_ar_comes_first():
    study = arrange_texts(small())
    assert study.modes == ["exact", "top-p 0.9"] and study.title == "Books"
    labels = [s.label for s in study.samplers]
    assert labels == ["AR", "random ×8", "bisection order 1", "bisection order 4"]
    assert study.causal == {0} and set(study.held) == {0, 1}
    assert [f.label for f in study.families] == ["AR", "random", "bisection"]
    assert [row.label for row in text_tables(study)[0].rows] == ["held-out text", *labels]
    assert text_intro(study) == (
        "3 settings of the masked model, AR and held-out text on Books, with exact and top-p 0.9. "
        "8,192 texts of 256 tokens in all."
    )


def test_what_looks_alike_is_told_apart():
    one = fake_texts.record()
    study = arrange_texts([one, one | {"model": "large_mdm", "key": "1"}])
    assert [s.label for s in study.samplers] == [
        "bisection · model books_mdm",
        "bisection · model large_mdm",
    ]
    masked = fake_texts.record("left_to_right()") | {"model": "books_mdm", "key": "1"}
    study = arrange_texts([fake_texts.record("left_to_right()"), masked, one])
    assert [s.label for s in study.samplers] == ["AR", "left to right", "bisection"]
    assert study.causal == {0}
    for field, told in (
        ({"seed": 1}, ["exact · seed 0", "exact · seed 1"]),
        ({"title": "News"}, ["Books · exact", "News · exact"]),
        ({"preset": "top_p=0.9,temperature=0.7"}, ["exact", "top-p 0.9,temperature 0.7"]),
    ):
        assert arrange_texts([one, one | field | {"key": "1"}]).modes == told


def test_the_later_record_counts_and_a_judged_one_is_the_same_record():
    one = fake_texts.record()
    study = arrange_texts([one, with_metric(one, "mauve", 0.5)])
    held = study.estimate(0, 0, "mauve")
    assert study.superseded == 0 and held is not None and held.value == 0.5
    assert arrange_texts([one, one | {"key": "1"}]).superseded == 1
    assert "1 earlier record of the same settings left out" in page_of([one, one | {"key": "1"}])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "no records"),
        ([{"schema": 2, "kind": "text"}], "schema 2"),
        ([{"schema": 1, "kind": "text", "sampler": "dus()"}], "lacks preset, metrics"),
    ],
)
def test_unusable_records_get_a_sentence(records: list[Record], said: str):
    with pytest.raises(MaskwalkError, match=said):
        arrange_texts(records)


def test_the_first_texts_are_ars_and_the_best_bisections_in_the_middle():
    study = arrange_texts(fake_texts.records())
    # Ten numbers of calls from 9 to 90; order 4 makes the lower of the two in the middle, 28.
    assert [study.label(s) for s in side_by_side(study, 0)] == ["AR", "bisection order 4"]
    # Of two at the same calls the one with the higher MAUVE.
    rivals = [fake_texts.record(f"bisection(order={k})") for k in (4, 5)]
    rivals = [with_metric(r, "calls", 28.0, 0.0) for r in rivals]
    rivals = [with_metric(r, "mauve", v) for r, v in zip(rivals, (0.6, 0.7))]
    study = arrange_texts([fake_texts.record("held_out"), *rivals])
    assert [study.label(s) for s in side_by_side(study, 0)] == [
        "held-out text",
        "bisection order 5",
    ]


# ------------------------------------------------------------------------------- the numbers


def test_every_number_of_the_table_is_the_records():
    records = fake_texts.records()
    records[3]["metrics"]["mauve"] = fake_texts.metric(0.5, None, 128)  # no interval, another n
    records[4]["metrics"]["entropy"] = None
    page = page_of(records)
    shown = settings_tables(page)
    study = arrange_texts(records)
    assert len(shown) == len(text_tables(study)) == 2
    by = {metric.name: metric for metric in (CALLS, *METRICS)}
    checked = 0
    for mode, (head, *rows) in enumerate(shown):
        names = [words(re.split(r"n = ", cell)[0]) for cell in head]
        ns = [words(cell).partition("n = ")[2].replace(",", "") for cell in head]
        assert len(rows) == len(records) // 2
        for row in rows:
            label = words(row[0])
            record = study.held[mode]
            if label != "held-out text":
                place = [s.label for s in study.samplers].index(label)
                record = study.cells[mode, place]
            for name, usual, cell in list(zip(names, ns, row))[2:]:
                metric = by[name]
                held = record["metrics"].get(metric.key)
                want = expected(held, metric.digits)
                if held and held["value"] is not None and str(held["n"]) != usual:
                    want += f" n = {held['n']}"
                assert words(cell) == want, (label, name)
                checked += want != "–"
    assert checked > 400
    assert "0.500 ±– n = 128" in [words(c) for row in shown[0] for c in row]


def test_the_figures_draw_the_records_numbers():
    records = small()
    data = data_of(page_of(records))
    assert len(data["cells"]) == 2 * len(SOME) and len(data["held"]) == 2
    for cell in [*data["cells"], *data["held"]]:
        spec = "held_out" if cell["s"] is None else data["samplers"][cell["s"]]["spec"]
        (record,) = (
            r
            for r in records
            if r["sampler"] == spec and r["preset"] == fake_texts.PRESETS[cell["m"]]
        )
        for metric in (CALLS, *METRICS):
            held = record["metrics"].get(metric.key)
            assert (metric.key in cell) == bool(held)
            if held:
                assert cell[metric.key]["v"] == held["value"] and cell[metric.key]["n"] == held["n"]
                assert cell[metric.key]["half"] == pytest.approx(1.96 * held["se"])
        assert cell["texts"] == record["texts"]


def test_every_number_of_the_summary_has_an_interval_and_is_the_records():
    records = fake_texts.records()
    said = [words(item) for item in Tables(page_of(records)).items]
    allowed = {
        f"{held['value']:.3f} ± {1.96 * held['se']:.3f}"
        for r in records
        for name, held in r["metrics"].items()
        if name != "calls" and held
    }
    told = 0
    for item in said:
        if item.startswith("Draws compared"):
            continue
        numbers = re.findall(r"\d+\.\d{3} ± \d\.\d{3}(?! from it)", item)
        assert set(numbers) <= allowed, item
        assert len(re.findall(r"\d\.\d{3}", item)) >= 2 * len(numbers)
        told += len(numbers)
    assert told > 30 and sum(item.startswith("Held-out text:") for item in said) == 2
    gap = next(item for item in said if item.endswith("from it."))
    ar, best = (r["metrics"]["mauve"] for r in _ar_and_best(records, "exact"))
    noise = 1.96 * math.hypot(ar["se"], best["se"])
    assert f"{best['value'] - ar['value']:+.3f} ± {noise:.3f} from it" in gap


def _ar_and_best(records: list[Record], preset: str) -> tuple[Record, Record]:
    mine = [r for r in records if r["preset"] == preset and "mauve" in r["metrics"]]
    ar = next(r for r in mine if r["model"] == "books_ar")
    masked = [r for r in mine if r["model"] == "books_mdm"]
    return ar, max(masked, key=lambda r: r["metrics"]["mauve"]["value"])


def test_draws_are_compared_over_what_both_have():
    records = small()
    study = arrange_texts(records)
    (finding,) = draws_compared(study)
    for preset, name in zip(fake_texts.PRESETS, study.modes):
        mine = [r for r in records if r["preset"] == preset and r["model"] == "books_mdm"]
        held = [r["metrics"]["own_bpb"] for r in mine]
        mean = sum(h["value"] for h in held) / 3
        half = 1.96 * math.sqrt(sum(h["se"] ** 2 for h in held)) / 3
        assert f"{mean:.3f} ± {half:.3f} with {name}" in finding.text
    assert draws_compared(arrange_texts(small(presets=1))) == []


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
    study = arrange_texts(rivals(0.2))
    (contest,) = best_policies(study, 0)
    one = contest.at(16.0)
    assert one is not None and one.clear and study.label(one.first.setting) == "bisection"
    assert contest.at(8.0) is None  # nobody makes so few calls
    text = " ".join(f.text for f in text_findings(study, 0))
    assert "within 16, 32, 64 and 128 calls bisection (" in text and "is ahead of random" in text
    study = arrange_texts(rivals(0.02))  # 1.4 standard errors of the difference
    (contest,) = best_policies(study, 0)
    one = contest.at(16.0)
    assert one is not None and not one.clear and one.level == 2
    text = " ".join(f.text for f in text_findings(study, 0))
    assert "the noise leaves open who leads" in text and "ahead" not in text


def test_nobody_leads_by_replay():
    """Of a policy that throws dice it is an upper bound, which an exact number does not beat."""
    study = arrange_texts(rivals(0.2, metric="replay_bpb"))
    assert best_policies(study, 0) == []
    assert "ahead" not in " ".join(f.text for f in text_findings(study, 0))


def test_nothing_leads_without_an_interval():
    study = arrange_texts(rivals(0.2, None))
    assert best_policies(study, 0) == []
    (finding,) = text_findings(study, 0)
    assert "no interval, so nothing is said to lead" in finding.text
    assert "ahead" not in page_of(rivals(0.2, None)).split("</ul>")[0].split("<ul")[1]


def test_the_highest_policy_is_held_against_ar():
    ar = with_metric(fake_texts.record("left_to_right()"), "mauve", 0.9, 0.01)
    near = with_metric(fake_texts.record("bisection(order=4)"), "mauve", 0.88, 0.01)
    far = with_metric(fake_texts.record("bisection(order=1)"), "mauve", 0.5, 0.01)
    said = {f.lead: f.text for f in text_findings(arrange_texts([ar, near, far]), 0)}
    assert said["To AR’s MAUVE (0.900 ± 0.020):"] == (
        "the highest policy is bisection order 4 at 28 calls (0.880 ± 0.020, n = 256), "
        "-0.020 ± 0.028 from it."
    )
    said = {f.lead: f.text for f in text_findings(arrange_texts([ar, far]), 0)}
    assert said["To AR’s MAUVE (0.900 ± 0.020):"].endswith("-0.400 ± 0.028 from it.")


# ------------------------------------------------------------------------------- tables


def test_only_policies_are_marked_and_only_where_there_is_a_direction():
    study = arrange_texts(small(presets=1))
    (table,) = text_tables(study)
    for c, metric in enumerate(table.metrics):
        marks = [row.cells[c].mark for row in table.rows]
        assert marks[:2] == ["", ""]  # held-out text and AR, though AR's MAUVE is the highest
        values = [row.cells[c].value for row in table.rows[2:]]
        best = [v for v, mark in zip(values, marks[2:]) if mark == "best"]
        known = [v for v in values if v is not None]
        if metric.better:
            assert best[0] == (max(known) if metric.better > 0 else min(known))
        else:
            assert not any(marks)
    assert {m.key for m in table.metrics if m.better} == {"mauve", "replay_bpb"}


def test_gaps_are_dashes_in_every_format():
    one, other = fake_texts.record(), fake_texts.record("random(block=8)")
    one = with_metric(one, "mauve", 0.5, None)
    del other["metrics"]["mauve"]
    other["metrics"]["calls"]["se"] = None
    study = arrange_texts([one, other])
    (table,) = text_tables(study)
    at = [m.key for m in table.metrics].index("mauve")
    assert [row.cells[at].text for row in table.rows] == ["–", "0.500 ± –"]
    assert table.rows[0].calls.text == "32 ± –"
    lines = texts_markdown(table).splitlines()
    assert lines[4].split(" | ")[2] == "–" and lines[5].split(" | ")[2] == "0.500 ± –"
    latex = texts_latex(table)
    assert r"0.500 $\pm$ --" in latex and latex.count("&") == 3 * (len(table.metrics) + 1)
    (shown,) = settings_tables(text_page(study))
    assert [words(row[2]) for row in shown[1:]] == ["–", "0.500 ±–"]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(text_table([one, other]))
    said = console.export_text()
    assert "1 number without" in said and re.search(r"random ×8 +32 +– ", said)
    assert not re.search(r"NaN|None|null", texts_csv(table, study) + said + latex)


def test_csv_comes_back_as_it_went(tmp_path: Path):
    records = fake_texts.records()
    records[3]["metrics"]["mauve"] = None
    made = write_text_report(records, tmp_path, ("csv",))
    assert [p.name for p in made] == ["texts-exact.csv", "texts-top-p-0-9.csv", "records.csv"]
    held = {(r["preset"], r["sampler"]): r["metrics"] for r in records}
    for preset, path in zip(fake_texts.PRESETS, made):
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
        assert len(rows) == len(records) // 2
        assert [row["setting"] for row in rows[:2]] == ["held-out text", "AR"]
        _check_numbers(rows, lambda row, preset=preset: held[preset, row["sampler"]])
    rows = list(csv.DictReader(io.StringIO(made[2].read_text("utf-8"))))
    assert len(rows) == len(records)
    _check_numbers(rows, lambda row: held[row["preset"], row["sampler"]])
    assert {row["model"] for row in rows} == {"books", "books_ar", "books_mdm"}


def _check_numbers(rows: list[dict[str, str]], metrics: Callable[[dict[str, str]], Record]) -> None:
    names = {name for row in rows for name in metrics(row)} & set(rows[0])
    assert {"mauve", "own_bpb", "calls"} <= names
    for row in rows:
        for name in names:
            held = metrics(row).get(name) or {}
            for key, column in (("value", name), ("se", f"{name}_se"), ("n", f"{name}_n")):
                want = held.get(key)
                assert row[column] == "" if want is None else float(row[column]) == want


@pytest.mark.parametrize("presets", [1, 2])
def test_the_terminal_table_fits_80_columns(presets: int):
    records = fake_texts.records(presets=presets)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(text_table(records))
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text and text.count("held-out text") == presets
    assert text.count("guided bisection order 16") == presets
    assert "n=256" in text and "n=1024" in text
    ar = next(line for line in text.splitlines() if line.startswith("AR "))
    held = records[1]["metrics"]
    keys = ("mauve", "judge_bpb", "own_bpb", "entropy", "rep1", "replay_bpb")
    assert ar.split() == ["AR", "256", *(f"{held[key]['value']:.3f}" for key in keys)]


def test_the_terminal_table_has_intervals_where_they_fit():
    records = [with_metric(r, "mauve", 0.5, 0.01, 128 + i) for i, r in enumerate(small(presets=1))]
    for record in records:
        kept = ("mauve", "calls", "entropy")
        record["metrics"] = {k: v for k, v in record["metrics"].items() if k in kept}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(text_table(records))
    text = console.export_text()
    assert text.count("0.500±.020") == len(records) and "n from 128 to 1024" in text
    assert "n=1024" in text and "n=128" not in text


# ------------------------------------------------------------------------------- files


def test_the_page_is_self_contained_and_stable(tmp_path: Path):
    records = small()
    (path,) = write_text_report(records, tmp_path / "deep", command="maskwalk texts --out DIR")
    text = path.read_text("utf-8")
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.]+\.[a-z]{2,}", text))
    assert addresses == {"http://www.w3.org"}  # the name of SVG, not an address
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=\"(?!data:,)", text)
    assert "default-src 'none'" in text and ".innerHTML" not in text
    assert text == text_page(arrange_texts(records), "maskwalk texts --out DIR")
    plain = page_of(records)
    assert "maskwalk reproduce paper --only figure_language --out DIR\nmaskwalk report DIR" in plain
    about = text.split('<footer id="about">')[1]
    for said in (
        "0.1.0",
        "0123abc",
        "books_ar, books_mdm",
        "SmolLM2-135M (10 of 10 records)",
        "texts --out",
    ):
        assert said in about


def test_hostile_text_is_inert():
    record = fake_texts.record() | {"texts": [EVIL], "title": EVIL, "notes": [EVIL, "judge" + EVIL]}
    record |= {"judge": EVIL, "model": EVIL, "experiment": EVIL, "version": EVIL, "sampler": EVIL}
    text = page_of([record, fake_texts.record("held_out") | {"title": EVIL}])
    assert "<img" not in text and "\u2028" not in text.split('id="data">')[1]
    assert data_of(text)["cells"][0]["texts"] == [EVIL]
    assert "\\&" in texts_latex(text_tables(arrange_texts([record]))[0])


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_figures_are_files_that_open(tmp_path: Path, suffix: str):
    records = small()
    made = write_text_report(records, tmp_path / "a", (suffix,))
    again = write_text_report(records, tmp_path / "b", (suffix,))
    assert [p.name for p in made] == [f"texts-exact.{suffix}", f"texts-top-p-0-9.{suffix}"]
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
    bare = {k: one[k] for k in ("sampler", "preset")}
    records = {
        "bare": [bare | {"metrics": {"mauve": {"value": 0.5}}}],
        "held out alone": [fake_texts.record("held_out")],
        "no calls": [one | {"metrics": {"entropy": one["metrics"]["entropy"]}, "texts": None}],
        "nothing": [bare | {"metrics": {"mauve": None}}],
    }[kind]
    made = write_text_report(records, tmp_path, ("html", "csv", "md", "tex", "svg"))
    assert len(made) == 5 and all(p.stat().st_size for p in made)  # without calls no figure
    Console(file=io.StringIO()).print(text_table(records))


def test_bad_formats_and_bad_disks_get_a_sentence(tmp_path: Path):
    with pytest.raises(MaskwalkError, match="Did you mean 'html'"):
        write_text_report(small(), tmp_path, ("htm",))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MaskwalkError, match="Cannot write"):
        write_text_report(small(), tmp_path / "file")


# ------------------------------------------------------------------------------- the command


def lay_down(directory: Path, records: list[Record]) -> Path:
    directory.mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (directory / "records.jsonl").write_text(lines, encoding="utf-8")
    return directory


def test_the_command_knows_texts_from_walks(cli: Any, tmp_path: Path):
    texts = lay_down(tmp_path / "texts", small())
    code, out, _ = cli("report", str(texts))
    assert code == 0 and out.count("Wrote") == 1 + 3 + 2
    assert "Texts side by side" in (texts / "report.html").read_text("utf-8")
    walks = lay_down(tmp_path / "walks", fake_records.small())
    assert cli("report", str(walks), "--format", "html")[0] == 0
    assert "Texts side by side" not in (walks / "report.html").read_text("utf-8")
    both = lay_down(tmp_path / "both", [*small(), *fake_records.small()])
    code, _, err = cli("report", str(both))
    assert code == 2 and "10 records of texts beside others" in err
    assert not (both / "report.html").exists()
    code, _, err = cli("report", str(texts), "--fronts")
    assert code == 2 and "of texts" in err


def test_bounds_are_marked_and_nobody_is_best_by_them() -> None:
    records = small(presets=1)
    (table,) = text_tables(arrange_texts(records))
    column = [m.key for m in table.metrics].index("replay_bpb")
    assert {row.cells[column].mark for row in table.rows} == {"", "best", "second"}
    for record in records:
        if record["sampler"].startswith("random"):
            record["metrics"]["replay_bpb"] |= {"bound": True, "nats": [1.0, 2.0]}
    study = arrange_texts(records)
    (table,) = text_tables(study)
    cells = {row.label: row.cells[column] for row in table.rows}
    assert not any(cell.mark for cell in cells.values())
    assert {name for name, cell in cells.items() if cell.text.startswith("≤ ")} == {"random ×8"}
    assert "≤ " in texts_markdown(table)
    rows = list(csv.DictReader(io.StringIO(texts_csv(table, study))))
    told = {row["setting"]: row["replay_bound"] for row in rows}
    assert told["random ×8"] == "True" and told["AR"] == "False" and told["held-out text"] == ""
    console = Console(width=80, file=io.StringIO())
    console.print(text_table(records))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "≤ an upper bound" in shown and f"≤{cells['random ×8'].value:.3f}" in shown
    told = " ".join(finding.text for finding in text_findings(study, 0))
    assert "≤" not in told  # held-out text and AR have no bounds
    for record in records:  # who does not say may throw dice
        record["metrics"].get("replay_bpb", {}).pop("bound", None)
    (silent,) = text_tables(arrange_texts(records))
    assert all(row.cells[column].text[0] in "≤–" for row in silent.rows)
