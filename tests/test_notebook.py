"""`maskwalk.run` has the numbers of `maskwalk sample`; its results pair, show and convert."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

import maskwalk
from maskwalk import GRAPHS, SAMPLERS, TASKS, WORLDS, Graph, MaskwalkError, Results, Streams
from maskwalk.cli.catalogue import all_tables
from tests.abuse.own import without_type_checks

SMALL = "walk(graph=st_er(nodes=30, p=0.08), length=9)"
SHORT = 120  # characters of a repr


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def three() -> Results:
    samplers = ["bisection(order=1)", "random(block=4)", "entropy(block=2)"]
    return maskwalk.run(samplers, world=SMALL, task="endpoints", count=96, per_prompt=2, seed=3)


# ---- the same as the command line


def test_a_run_has_the_numbers_of_maskwalk_sample(cli: Any) -> None:
    words = ("--world", SMALL, "--task", "endpoints", "--count", "40", "--per-prompt", "2")
    code, out, err = cli("sample", *words, "--sampler", "random(block=2)", "--seed", "7", "--json")
    assert code == 0, err
    said = json.loads(out)
    settings = {"task": "endpoints", "count": 40, "per_prompt": 2, "seed": 7}
    result = maskwalk.run("random(block=2)", world=SMALL, **settings)
    assert float(result.coherence) == said["coherence"] != 1.0
    assert float(result.calls) == said["calls"] and result.tokens.shape == (80, 9)
    assert result.coherence.se == said["coherence_se"]
    assert result.coherence.half == pytest.approx(1.96 * said["coherence_se"], rel=1e-3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("sampler", "entropie"),
        ("sampler", "entropy(block=0)"),
        ("world", "valk"),
        ("world", "walk(length=0)"),
        ("task", "endpoint"),
        ("denoiser", "zoo:nothing"),
        ("preset", "exakt"),
        ("draw", "draw(top_p=2)"),
        ("ties", "first"),
        ("count", 0),
        ("seed", -1),
    ],
)
def test_a_mistake_is_the_sentence_of_the_command_line(cli: Any, option: str, value: Any) -> None:
    code, _, err = cli("sample", f"--{option}", str(value))
    with pytest.raises(MaskwalkError) as caught:
        maskwalk.run(**{option: value})
    assert code == 2 and str(caught.value) in " ".join(err.split())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sampler": 5}, "not 5"),
        ({"sampler": type(SAMPLERS.build("entropy"))}, "give an instance of it"),
        ({"sampler": []}, "the list of samplers is empty"),
        ({"sampler": [{"sampler": "entropy", "count": 3}]}, "Unknown setting of a run in a list"),
        ({"sampler": ["entropy", 5]}, "not 5"),
        ({"world": 5}, "world is a World, or a spec such as"),
        ({"denoiser": 5}, "5 is no denoiser: it lacks"),
        ({"graph": "nope.txt"}, "There is no file 'nope.txt'; a graph from a file is written"),
        ({"task": 3}, "task is a text in quotes"),
        ({"preset": 4}, "preset is a text in quotes"),
        ({"device": "gpu"}, "not usable here"),
        ({"graph": 5}, "a networkx graph, not 5"),
        ({"graph": nx.Graph()}, "no edges"),
        ({"length": 2.5}, "whole number"),
        ({"trace": -1}, "how many sequences to follow"),
        ({"metrics": ["nothing"]}, "Unknown metric"),
        ({"include": "nothing.py"}, "does not exist"),
        ({"sampler": [{"denoiser": "zoo:st_er_p0"}, "entropy"]}, "know different worlds"),
    ],
)
def test_what_only_python_can_get_wrong_is_a_sentence(settings: dict[str, Any], says: str) -> None:
    with without_type_checks(), pytest.raises(MaskwalkError, match=re.escape(says)):
        maskwalk.run(**settings)


# ---- several runs


def test_runs_of_a_list_are_those_of_the_samplers_alone(three: Results) -> None:
    settings = {"task": "endpoints", "count": 96, "per_prompt": 2, "seed": 3}
    alone = maskwalk.run("random(block=4)", world=SMALL, **settings)
    assert torch.equal(three["random(block=4)"].tokens, alone.tokens)
    assert three[1].record["key"] == alone.record["key"]
    assert [run.sampler for run in three[1:]] == [run.sampler for run in three][1:]


def test_differences_are_paired_by_prompt(three: Results) -> None:
    each = [
        run.world.valid(run.tokens).all(1).double().view(96, 2).mean(1).numpy() for run in three
    ]
    for place, paired in enumerate(three.differences, 1):
        d = each[place] - each[0]
        assert paired.difference.value == pytest.approx(d.mean())
        padded = np.append(d, [1.0, -1.0])  # Bonett and Price
        half = 1.96 * padded.std() / np.sqrt(len(padded))
        assert paired.difference.low == pytest.approx(padded.mean() - half, abs=1e-4)
        assert paired.difference.high == pytest.approx(padded.mean() + half, abs=1e-4)
    alone = sorted(three.difference(i, 0).p for i in (1, 2))
    corrected = sorted(paired.p for paired in three.differences)
    assert corrected[0] == pytest.approx(2 * alone[0], rel=1e-9, abs=0)
    assert three.difference(1, 2).difference.value == pytest.approx((each[1] - each[2]).mean())
    assert three.difference(2, 1).difference.value == -three.difference(1, 2).difference.value


def test_runs_may_differ_in_denoiser_and_draw() -> None:
    runs = maskwalk.run(
        [
            {"sampler": "entropy(block=2)"},
            {"sampler": "entropy(block=2)", "preset": "as_published"},
        ],
        world=SMALL,
        count=8,
    )
    assert runs.labels == ["entropy ×2", "entropy ×2 · as_published"]
    assert runs[1].record["ties"] == "index" != runs[0].record["ties"]
    assert runs["entropy ×2 · as_published"] is runs[1]
    with pytest.raises(MaskwalkError, match="Unknown run"):
        runs["margin"]


def test_a_sampler_object_runs_and_is_named_by_its_spec() -> None:
    spec = "blocks(size=4, inner=entropy(block=2))"
    given = maskwalk.run(SAMPLERS.build(spec), world=SMALL, count=16, seed=5)
    named = maskwalk.run(spec, world=SMALL, count=16, seed=5)
    assert given.sampler == named.sampler and torch.equal(given.tokens, named.tokens)

    class Mine(type(SAMPLERS.build("random"))):  # type: ignore[misc]
        """In no table."""

    assert maskwalk.run(Mine(block=2), world=SMALL, count=4).sampler.startswith("Mine(block=2")


def test_more_metrics_are_measured_besides_the_worlds_own() -> None:
    runs = maskwalk.run(
        ["bisection", "random(block=4)"], world=SMALL, count=32, metrics=["replay_dependence"]
    )
    lost = [float(run.metrics["replay_dependence"]) for run in runs]
    assert lost[0] < 1e-9 < lost[1] and runs[1].coherence is not None
    table = str(runs.table("replay_dependence")).splitlines()
    assert table[0].endswith("dependence")
    assert table[2].endswith(repr(runs[1].metrics["replay_dependence"]))
    with pytest.raises(MaskwalkError, match="Unknown metric of these runs"):
        runs.table("pair_tv")


# ---- what is shown


class Tags(HTMLParser):
    """Fails on tags that do not close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_result_shows_itself(three: Results) -> None:
    run = three[1]
    assert repr(run).startswith("<Result random ×4 · endpoints: ") and len(repr(run)) < SHORT
    for text in (str(run), Tags(run._repr_html_()).words, str(run.table())):
        assert repr(run.coherence) in "".join(text)
    assert "Share of sequences that the world can produce" in " ".join(str(run.table()).split())
    assert run.world.show(run.tokens[0]) in "".join(Tags(run._repr_html_()).words)
    row = run.to_arrow().to_pylist()[0]
    assert row["coherence"] == float(run.coherence) and row["seed"] == 3
    assert row["coherence_se"] == run.coherence.se


def test_results_show_calls_coherence_and_differences(three: Results) -> None:
    assert repr(three) == "<Results of 3 runs · endpoints · n = 192>"
    assert repr(three[:1]) == "<Results of 1 run · endpoints · n = 192>"
    lines = str(three).splitlines()
    assert lines[0].split() == ["calls", "coherence", "to", "the", "first", "p"]
    assert lines[1].startswith("bisection ") and lines[1].endswith(repr(three[0].coherence))
    value = three.differences[0].difference.value
    assert f"{value:+.3f} [" in lines[2] and f"{value:+.3f} [" in three._repr_html_()
    Tags(three._repr_html_())
    rows = three.to_arrow().to_pylist()
    assert [row["difference"] for row in rows[1:]] == [
        paired.difference.value for paired in three.differences
    ]
    assert rows[0]["difference"] is None


def test_html_holds_text_only(three: Results) -> None:
    run = maskwalk.run("entropy", world="dyck(length=8)", count=4)
    run.record["notes"] = ["<script>"]
    assert "<script>" not in run._repr_html_()
    Tags(run._repr_html_())


def test_without_pandas_a_frame_is_a_sentence(
    three: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    for thing in (three, three[0]):
        with pytest.raises(MaskwalkError, match=r"pip install 'maskwalk\[notebook\]'"):
            thing.to_pandas()


def test_with_pandas_there_is_a_frame(three: Results) -> None:
    pytest.importorskip("pandas")
    frame = three.to_pandas()
    assert list(frame["coherence"]) == [float(run.coherence) for run in three]


def test_figures_have_a_point_a_run_and_a_bar_a_position(three: Results) -> None:
    figure = three.plot()
    (axes,) = figure.axes
    points = sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines)
    assert points == sorted((float(run.calls), float(run.coherence)) for run in three)
    assert {text.get_text() for text in axes.texts} == set(three.labels)
    assert figure._repr_png_().startswith(b"\x89PNG")
    broken, rounds = three[1].plot().axes
    valid = three[1].world.valid(three[1].tokens)
    heights = [bar.get_height() for bar in broken.patches]
    assert heights == pytest.approx((~valid).double().mean(0).tolist())
    means = three[1].trace.reveal_rounds().double().mean(0) + 1
    assert rounds.lines[0].get_ydata() == pytest.approx(means.numpy())


def test_intervals_end_where_the_metric_does() -> None:
    sure = maskwalk.run(["bisection", "random(block=9)"], world=SMALL, task="endpoints", count=12)
    assert float(sure[0].coherence) == 1.0 and sure[0].coherence.half > 0.05
    (axes,) = sure.plot().axes
    ends = [y for lines in axes.collections for path in lines.get_paths() for y in path.vertices]
    assert len(ends) >= 4 and all(0.0 <= y <= 1.0 for _, y in ends)


def test_a_figure_says_what_its_bars_are(three: Results) -> None:
    broken, rounds = three[1].plot().axes
    assert "break at a position" in broken.get_title()
    assert "from the earliest to the latest (bar)" in rounds.get_title()


def test_a_frame_has_no_column_that_is_empty_and_no_p_of_zero() -> None:
    runs = maskwalk.run(["bisection", "random(block=9)"], world=SMALL, count=2048, trace=0)
    frame = runs.to_arrow().to_pydict()
    assert all(any(value is not None for value in column) for column in frame.values())
    assert "tv1" not in frame or any(frame["tv1"])
    p = frame["difference_p"][1]
    assert 0 < p < 1e-300 and runs.difference(1).p > 0
    assert repr(runs.differences[0]).endswith("p < .0001")


def test_the_trace_shows_every_round(three: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = three[2]
    shown = run.trace.show(5)
    lines = str(shown).splitlines()
    rounds = run.trace.reveal_rounds()[5]
    assert len(lines) == int(rounds.max()) + 2 and lines[0].startswith("given")
    assert re.findall(r"\d+", lines[-1])[1:] == [str(t) for t in run.tokens[5].tolist()]
    for number, line in enumerate(lines[1:]):
        new = [int(word) for word in re.findall(r"\[ *(\d+)\]", line)]
        assert new == run.tokens[5][rounds == number].tolist()
    Tags(shown._repr_html_())
    with pytest.raises(MaskwalkError, match="sequence must be a whole number from 0 to 63"):
        run.trace.show(64)
    grid = maskwalk.run("entropy(block=2)", world="sudoku(box=2)", task="clues(count=6)", count=2)
    last = str(grid.trace.show()).split("\n\n")[-1]
    assert grid.world.show(grid.tokens[0]) in last
    assert maskwalk.run("entropy", world=SMALL, count=2, trace=0).trace is None


def test_text_goes_on_below_where_the_terminal_ends(
    three: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = three[2]
    monkeypatch.setenv("COLUMNS", "300")
    wide = {what: str(what()) for what in (run.trace.show, run.table, run.__str__)}
    for width in (66, 72, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        for what, text in wide.items():
            narrow = str(what())
            assert max(map(len, narrow.splitlines())) <= width
            assert sorted(re.findall(r"\d+\.\d+", narrow)) == sorted(re.findall(r"\d+\.\d+", text))
    assert max(map(len, wide[run.table].splitlines())) > 80
    monkeypatch.setenv("COLUMNS", "40")
    parts = [part.splitlines() for part in str(run.trace.show()).split("\n\n")]
    assert [part[0] for part in parts] == ["positions 0 to 4", "positions 5 to 8"]
    for line, first, second in zip(wide[run.trace.show].splitlines(), *(p[1:] for p in parts)):
        assert first[:9] == second[:9] == line[:9]
        assert (first[9:].ljust(5 * 4) + second[9:]).rstrip() == line[9:]


# ---- decode, graphs, reprs


def test_decode_takes_a_seed() -> None:
    oracle = WORLDS.build(SMALL).oracle()
    blank = torch.full((6, 9), oracle.mask_id)
    seeded = maskwalk.decode("random(block=2)", oracle, blank, seed=4)
    told = maskwalk.decode("random(block=2)", oracle, blank, streams=Streams(4, 6))
    assert torch.equal(seeded.tokens, told.tokens)
    zero = maskwalk.decode("random(block=2)", oracle, blank, seed=0)
    assert not torch.equal(zero.tokens, seeded.tokens)
    with pytest.raises(MaskwalkError, match="or give a seed"):
        maskwalk.decode("random", oracle, blank)
    with pytest.raises(MaskwalkError, match="not both"):
        maskwalk.decode("random", oracle, blank, seed=4, streams=Streams(4, 6))
    with without_type_checks(), pytest.raises(MaskwalkError, match="A seed is a whole number"):
        maskwalk.decode("random", oracle, blank, seed="four")


@pytest.mark.parametrize(
    "spec",
    [
        "st_er(nodes=12, p=0.2)",
        "directed(nodes=9, p=0.3)",
        "weighted(nodes=8, p=0.3)",
        "two_communities(nodes=20, p=0.4, bridges=2)",
    ],
)
def test_graphs_go_to_networkx_and_back(spec: str) -> None:
    graph = GRAPHS.build(spec, seed=2)
    there = graph.to_networkx()
    assert there.is_directed() == graph.directed and len(there) == graph.nodes
    assert len(repr(graph)) < SHORT and f"{there.number_of_edges()} " in repr(graph)
    back = Graph.from_networkx(there)
    assert back.digest == graph.digest
    if graph.community is not None:
        assert np.array_equal(back.community, graph.community)


def test_a_run_walks_on_a_networkx_graph() -> None:
    club = nx.karate_club_graph()
    result = maskwalk.run("bisection", graph=club, length=6, count=64)
    assert float(result.coherence) == 1.0
    names = result.world.graph.names
    for walk in result.tokens[:16].tolist():
        for a, b in pairwise(walk):
            assert a == b or club.has_edge(int(names[a]), int(names[b]))
    again = maskwalk.run("bisection", graph=Graph.from_networkx(club), length=6, count=64)
    assert again.record["key"] == result.record["key"]
    with pytest.raises(MaskwalkError, match="no networkx graph"):
        Graph.from_networkx([(0, 1)])


def test_reprs_are_short(three: Results) -> None:
    for name in set(WORLDS) - set(WORLDS.own()):
        world = WORLDS.build(name)
        assert len(repr(world)) < SHORT and str(world.length) in repr(world)
        assert len(repr(world.oracle())) < SHORT
    world = WORLDS.build(SMALL)
    prompts = TASKS.build("endpoints", world=world, prompts=64, seed=0)
    denoiser = maskwalk.from_pretrained("zoo:st_er_p0")
    oracle = world.oracle()
    sequences = world.sample(64, 0)
    replayed = maskwalk.replay(SAMPLERS.build("entropy"), oracle, sequences, streams=Streams(0, 64))
    things = [prompts, denoiser, Streams(0, 64), three[0].decoded, three[0].trace, replayed]
    things += [maskwalk.Canvas(sequences, sequences < 3, oracle.mask_id), three.differences[0]]
    things += [*all_tables().values(), maskwalk.PRESETS, maskwalk.METRICS]
    for thing in things:
        assert 10 < len(repr(thing)) < SHORT and "\n" not in repr(thing)


def test_a_table_says_what_is_in_it() -> None:
    assert len(SAMPLERS) == len(list(SAMPLERS)) > 40
    assert repr(SAMPLERS).startswith(f"<Registry of {len(SAMPLERS)} samplers: ancestral, ")
    assert repr(maskwalk.DENOISERS).startswith("<Registry of 1 denoiser: oracle")
    assert TASKS.short("endpoints(start=None, end=None)") == "endpoints"
    assert TASKS.short("given(share=0.25)") == "given(share=0.25)"


def test_the_public_list_is_what_dir_says() -> None:
    assert {"run", "Result", "Results", "decode", "Graph"} <= set(dir(maskwalk))
    assert dir(maskwalk) == sorted(maskwalk.__all__)


def test_cells_keep_apart_and_numbers_whole(three: Results) -> None:
    html = three._repr_html_()
    numbers = re.findall(r'<td style="([^"]*)">[^<]*±', html)
    assert len(numbers) >= 3
    assert all("padding:" in style and "white-space:nowrap" in style for style in numbers)
    assert 'style="padding:' in three[1].trace.show().html


def test_figures_have_no_background_of_their_own(three: Results) -> None:
    for figure in (three.plot(), three[1].plot()):
        assert figure.get_facecolor()[3] == 0
        assert all(axes.get_facecolor()[3] == 0 for axes in figure.axes)
