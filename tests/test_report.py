"""The report: names, arrangement, sentences, and the files written."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from maskwalk.bench.labels import KNOWN, SPARE, families, samplers, task_label
from maskwalk.errors import MaskwalkError
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.drawing import draw_legend, head
from maskwalk.report.page import embedded, page
from maskwalk.report.summary import findings, intro
from maskwalk.report.swaps import sampler_swaps
from maskwalk.report.words import listed
from maskwalk.worlds.metrics import METRICS
from tests import fake_records
from tests.fake_records import SOME, small, with_coherence

# ------------------------------------------------------------------------------- labels


def test_labels_keep_only_what_tells_samplers_apart():
    named = {s.spec: s for s in samplers([*SOME, "guided_bisection(order=1, score='entropy')"])}
    assert [s.label for s in named.values()] == [
        "random",
        "random ×2",
        "random exp",
        "bisection",
        "guided bisection",
    ]
    guided = [
        "guided_bisection(order=1, score='entropy')",
        "guided_bisection(order=2, score='margin')",
    ]
    assert {s.label for s in samplers(guided)} == {
        "guided bisection order 1 entropy",
        "guided bisection order 2 margin",
    }
    # Block sizes are one line; "exponential" is not a size.
    assert named[SOME[0]].line == named[SOME[1]].line != named[SOME[2]].line
    assert task_label("bottleneck(separation=None)") == "bottleneck"
    assert task_label("bottleneck(separation=3)") == "bottleneck, separation 3"


def test_labels_are_distinct_and_ordered():
    made = samplers(fake_records.SAMPLERS)
    assert len({s.label for s in made}) == len(made) == 27
    blocks = [s.short for s in made if s.family == "margin"]
    assert blocks == ["×1", "×2", "×4", "×6", "×8", "exp"]


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_a_family_looks_the_same_in_every_report(names: list[str]):
    looks = {f.name: (f.light, f.marker) for f in families([*names, "bisection"])}
    assert looks["bisection"] == (KNOWN["bisection"][0], KNOWN["bisection"][2])
    assert len(set(looks.values())) == len(looks)  # up to eight new names never share a look
    alone = families([sorted(names)[0]])[0]
    assert looks[sorted(names)[0]] == (alone.light, alone.marker)


@given(st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), max_size=8, unique=True))
def test_a_look_does_not_depend_on_the_order_of_the_names(names: list[str]):
    assert families(names) == families(names[::-1]) == families([*names, *names])


def test_the_legend_has_the_colours_and_markers_of_the_points():
    figure, shown = Figure(), families(["entropy", "random", "bisection"])
    draw_legend(figure, shown, 3)
    (legend,) = figure.legends
    looks = {
        text.get_text(): (handle.get_color(), handle.get_marker())
        for handle, text in zip(legend.legend_handles, legend.get_texts())
    }
    markers = {"square": "s", "circle": "o", "diamond": "D"}
    assert looks == {name: (KNOWN[name][0], markers[KNOWN[name][2]]) for name in looks}
    assert list(looks) == ["random", "entropy", "bisection"]


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=2, max_size=12, unique=True))
def test_a_familys_look_does_not_depend_on_the_order_of_names(names: list[str]):
    looks = {f.name: f for f in families(names)}
    assert {f.name: f for f in families(names[::-1])} == looks
    assert {f.name: f for f in families([*names, *names, "entropy"])} | looks == {
        f.name: f for f in families([*names, "entropy"])
    }


def test_the_papers_families_keep_their_published_colours():
    """Pinned: pages of different days are laid beside each other."""
    assert {name: look[:2] for name, look in KNOWN.items()} == {
        "left_to_right": ("#1f2328", "#e8eaed"),
        "random": ("#6b7280", "#a9b1bd"),
        "entropy": ("#0072b2", "#56b4e9"),
        "confidence": ("#00855f", "#2cc79a"),
        "margin": ("#9a6a00", "#f0c14b"),
        "bisection": ("#d55e00", "#ff8f4a"),
        "guided_bisection": ("#b03a86", "#f29bce"),
    }
    assert KNOWN["bisection"][2] == "diamond" and KNOWN["entropy"][2] == "square"


def test_colours_stand_out_on_both_pages():
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for light, dark, _ in [*KNOWN.values(), *SPARE]:
        assert contrast(light, "#ffffff") >= 3
        assert contrast(dark, "#1b2027") >= 3


# ------------------------------------------------------------------------------- study


def test_a_model_for_every_graph_is_one_mode():
    records = small(modes=1)
    for record in records:
        record["denoiser"] = f"network(model='{record['title']}')"
    assert arrange(records).modes == ["network · exact"]


def test_modes_split_where_one_cell_has_two():
    first = fake_records.record()
    study = arrange([first, first | {"seed": 1}, first | {"mode": "as_published"}])
    assert study.modes == [
        "oracle · exact · seed 0",
        "oracle · exact · seed 1",
        "oracle · as published",
    ]
    assert len(study.cells) == 3 and study.superseded == 0


def test_of_two_models_of_one_kind_the_model_is_named():
    first = fake_records.record()
    models = [first | {"denoiser": f"zoo:{name}"} for name in ("plain", "coarse")]
    study = arrange([first, *models, models[0] | {"seed": 1}])
    assert study.modes == [
        "oracle · exact",
        "zoo:plain · exact · seed 0",
        "zoo:coarse · exact",
        "zoo:plain · exact · seed 1",
    ]


def test_the_later_record_of_a_cell_counts():
    first = fake_records.record()
    study = arrange([first, with_coherence(first, 0.5)])
    assert study.superseded == 0  # it is the same record, written again
    made = study.estimate(0, 0, 0, METRICS.describe("coherence"))
    assert made is not None and made.value == 0.5
    assert arrange([first, with_coherence(first, 0.5) | {"key": "1"}]).superseded == 1


def test_equal_titles_of_different_graphs_are_told_apart():
    first = fake_records.record()
    study = arrange([first, first | {"world": first["world"].replace("seed=0", "seed=1")}])
    assert [p.title for p in study.panels] == [
        "spanning tree · seed 0",
        "spanning tree · seed 1",
    ]
    nameless = [r | {"title": None} for r in (first, *fake_records.coins())]
    assert {p.title for p in arrange(nameless).panels} == {
        "st_er(nodes=500, p=0.0)",
        "coins(length=8, parity='even')",
    }


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "no records"),
        ([{"schema": 3}], "schema 3"),
        ([{"schema": 2, "world": "w()", "task": "x"}], "lacks sampler, mode"),
    ],
)
def test_unusable_records_get_a_sentence(records: list[dict[str, Any]], words: str):
    with pytest.raises(MaskwalkError, match=words):
        arrange(records)


# ------------------------------------------------------------------------------- sentences


def test_the_summary_names_what_the_records_say():
    study = arrange(fake_records.records(3, 2, 1))
    said = {f.lead: f.text for f in findings(study, 0, sampler_swaps(study, 0))}
    flawless = said["Flawless."]
    assert "have coherence 1.000 in all 6 panels. Bisection needs the fewest: 5 calls" in flawless
    assert said["What to use."].startswith(  # tasks may be of other worlds: panels are counted
        "Bisection is as good as the best with the fewest calls in all 6 panels: 1.000 at 5 calls."
    )
    assert intro(study).startswith(
        "27 samplers on 3 worlds and 2 tasks (unconditional and endpoints)"
    )
    assert "82,944 sequences of 24 tokens" in intro(study)


def test_the_summary_does_not_praise_what_failed_once():
    records = small(modes=1)
    records[3] = with_coherence(records[3], 0.9, 0.013)  # bisection, on the first graph
    study = arrange(records)
    said = " ".join(f"{f.lead} {f.text}" for f in findings(study, 0, sampler_swaps(study, 0)))
    assert "Flawless. Random (22–24 calls) has coherence 1.000 in all 4 panels." in said
    assert "worlds" not in said.split("What to use.")[1].split("Rankings")[0]
    study = arrange([with_coherence(r, 0.9) for r in records])
    said = " ".join(f"{f.lead} {f.text}" for f in findings(study, 0, sampler_swaps(study, 0)))
    assert "No sampler is right everywhere" in said and "worst case: coherence 0.900" in said


def test_lists_read_well():
    assert listed(["a"]) == "a" and listed(["a", "b"]) == "a and b"
    assert listed(["a", "b, c", "d"]) == "a; b, c; and d"
    assert listed([str(i) for i in range(12)], 4) == "0, 1, 2 and 9 more"


# ------------------------------------------------------------------------------- files


def test_the_page_is_self_contained_and_stable(tmp_path: Path):
    records = small()
    (path,) = write_report(records, tmp_path / "deep" / "folder")
    text = path.read_text("utf-8")
    assert path == tmp_path / "deep" / "folder" / "report.html"
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.]+\.[a-z]{2,}", text))
    assert addresses == {"http://www.w3.org"}  # the name of SVG, not an address
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=\"(?!data:,)", text)
    assert page(arrange(records)) == text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(data["cells"]) == len(records)


def test_hostile_titles_stay_text(tmp_path: Path):
    evil = "</script><img src=x onerror=alert(1)>"
    record = fake_records.record() | {"title": evil, "notes": [evil], "experiment": evil}
    own = fake_records.OWN | {"title": evil, "meaning": evil, "heading": evil}
    record = fake_records.with_own(record, 1.0) | {"described": {"heads": own}}
    for records in ([record], [record, fake_records.record("degree 7")]):  # one panel, and two
        assert "<img" not in page(arrange(records))
    assert json.loads(str(embedded([evil]))) == [evil]


def test_gaps_in_records_are_not_errors():
    bare = {k: fake_records.record()[k] for k in ("world", "task", "sampler", "denoiser", "mode")}
    for metrics in (
        {"coherence": None},
        {"coherence": {"value": float("nan"), "se": None, "n": None}},
    ):
        text = page(arrange([bare | {"metrics": metrics}]))
        assert "nothing to compare" in text and "NaN" not in text
    half = with_coherence(fake_records.record(), 0.5, None) | {
        "trace": {"tokens": [1, 2], "rounds": [0]}
    }
    assert '"trace"' not in page(arrange([half])).split('id="data">')[1].split("</script>")[0]


@pytest.mark.parametrize("width", [3.6, 11.0])
def test_a_figures_heading_is_not_cut(width: float) -> None:
    words = "unconditional, sums, against calls per sequence (exact); bars are 95 % intervals"
    figure = Figure(figsize=(width, 3))
    head(figure, words)
    box = figure.texts[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1 and figure.texts[0].get_text().split() == words.split()
    assert figure.texts[0].get_text().count("\n") == (width < 4)


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_figures_are_files_that_open(tmp_path: Path, suffix: str):
    records = small(modes=1)
    made = write_report(records, tmp_path / "a", (suffix,))
    again = write_report(records, tmp_path / "b", (suffix,))
    names = {"coherence-unconditional-oracle-exact", "coherence-endpoints-oracle-exact"}
    names |= {"traces-unconditional-oracle-exact", "traces-endpoints-oracle-exact"}
    assert {p.stem for p in made} == names | {"tv1-unconditional-oracle-exact"}
    for one, two in zip(made, again):
        assert one.read_bytes() == two.read_bytes()
    if suffix == "pdf":
        assert all(p.read_bytes().startswith(b"%PDF") for p in made)
    else:
        tree = ElementTree.parse(next(p for p in made if p.stem.startswith("coherence-unc")))
        assert {"spanning tree", "degree 7", "bisection"} <= set(tree.getroot().itertext())


def test_tables_are_written_in_every_format(tmp_path: Path):
    made = write_report(small(modes=1), tmp_path, ("csv", "md", "tex", "csv"))
    assert len(made) == len(set(made)) == 3 * 3 + 1
    assert (tmp_path / "tables" / "records.csv").stat().st_size > 0


def test_bad_formats_and_bad_disks_get_a_sentence(tmp_path: Path):
    with pytest.raises(MaskwalkError, match="Did you mean 'html'"):
        write_report(small(), tmp_path, ("htm",))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MaskwalkError, match="Cannot write"):
        write_report(small(), tmp_path / "file")
