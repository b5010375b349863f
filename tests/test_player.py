"""The player's data: a reel is what `decode` did and what the denoiser said; a map is the graph."""

import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from maskwalk import SAMPLERS
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.reels import Reel, record_reel
from maskwalk.report.player.maps import (
    APART,
    DISTANCES,
    MOST_VISITED,
    _distances,
    _layout,
    _scaled,
    walk_map,
)
from maskwalk.report.player.page import TITLES, play_page
from maskwalk.report.player.reels import reel_data
from maskwalk.report.player.stages import spec_stage, stage_of
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.world import WORLDS, build_world
from tests.fake_records import data_of

WALK = "walk(graph=st_er(nodes=30, p=0.08), law=lazy(stay=0.2), length=10)"


def cell(sampler: str, world: str = WALK, task: str = "endpoints", **more: Any) -> Cell:
    return Cell.checked(world=world, task=task, sampler=sampler, count=1, **more)


def played(reel: Reel) -> list[int | None]:
    """The canvas after all rounds of a reel."""
    canvas = list(reel.given)
    for changes in reel.rounds:
        for change in changes:
            canvas[change.position] = change.token
    return canvas


@pytest.mark.parametrize("sampler", ["bisection", "random(block=4)", "p2(steps=10)"])
def test_a_reel_is_what_decode_did(sampler: str) -> None:
    """Sequence 5 alone is sequence 5 of eight, and its rounds end in its tokens."""
    one = cell(sampler, task="unconditional")
    _, decoded = run_cell(Cell.from_json({**vars(one), "count": 8, "metrics": []}), trace=False)
    reel = record_reel(one, 5)
    assert list(reel.tokens) == decoded.tokens[5].tolist() == played(reel)
    assert reel.calls == int(decoded.calls[5]) and len(reel.rounds) == int(decoded.rounds[5])
    assert len(reel.guesses) == len(reel.rounds)
    valid = build_world(one.world).valid(decoded.tokens[5][None])[0].tolist()
    assert list(reel.valid or ()) == valid


def test_a_sampler_that_masks_again_shows_it() -> None:
    reels = [record_reel(cell("p2(steps=10)", task="unconditional"), i) for i in range(2)]
    assert any(c.token is None for reel in reels for round in reel.rounds for c in round)


def test_guesses_are_the_marginals_tokens_were_drawn_from() -> None:
    """With one call a round: entropy and probability, before the draw and at it, are the same."""
    oracle = build_world(WALK).oracle()
    for sampler in ("bisection", "random(block=3)"):
        reel = record_reel(cell(sampler))
        canvas = [oracle.mask_id if token is None else token for token in reel.given]
        for changes, guesses in zip(reel.rounds, reel.guesses, strict=True):
            assert [g.position for g in guesses] == [
                i for i, token in enumerate(canvas) if token == oracle.mask_id
            ]
            by_position = {g.position: g for g in guesses}
            probs = dict(zip(by_position, oracle(torch.tensor([canvas])).exp(), strict=True))
            for c in changes:
                guess = by_position[c.position]
                assert guess.nats == pytest.approx(c.nats, abs=1e-9)
                assert c.prob == pytest.approx(float(probs[c.position][c.token]), abs=1e-9)
                best = float(probs[c.position].max())
                assert guess.likeliest[0][1] == pytest.approx(best, abs=1e-9)
                canvas[c.position] = c.token


def test_data_for_the_page_keeps_rounds_and_labels_apart() -> None:
    reels = [record_reel(cell(name)) for name in ("random(block=4)", "random(block=2)")]
    first, second = reel_data(reels)
    assert (first["label"], second["label"]) == ("random ×4", "random ×2")
    assert [len(step) for step in first["steps"]] == [4, 4] and len(second["steps"]) == 4
    assert [i for i, t in enumerate(first["given"]) if t is not None] == [0, 9]
    assert len(first["ahead"][1]) == 4 and set(first["valid"]) <= set("01")


# ------------------------------------------------------------------------------- maps


def test_a_map_holds_the_walks_and_true_edges_only() -> None:
    law = build_world(WALK)
    walks = law.sample(3, 1).tolist()
    drawn = walk_map(law.graph, walks)
    nodes, visited = drawn["nodes"], {node for walk in walks for node in walk}
    assert set(nodes[: drawn["visited"]]) == visited and len(set(nodes)) == len(nodes)
    joined = law.graph.adjacency.toarray() > 0
    edges = {(nodes[a], nodes[b]) for a, b in np.reshape(drawn["edges"], (-1, 2))}
    wanted = {(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if joined[a, b]}
    assert edges == wanted and len(edges) >= len(visited) - 1
    for extra in nodes[drawn["visited"] :]:
        assert joined[extra][sorted(visited)].any()


def test_neighbours_stand_near_each_other_and_none_on_another() -> None:
    graph = GRAPHS.build("st_er(nodes=40, p=0.0)", seed=2)
    drawn = walk_map(graph, [list(range(40))])
    places = np.reshape(drawn["places"], (-1, 2)).astype(float)
    far = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    joined = np.zeros_like(far, dtype=bool)
    for a, b in np.reshape(drawn["edges"], (-1, 2)):
        joined[a, b] = True
    apart = ~(joined | joined.T | np.eye(40, dtype=bool))
    assert far[joined].mean() < 0.5 * far[apart].mean()
    assert far[~np.eye(40, dtype=bool)].min() > APART - 4
    assert np.ptp(places[:, 0]) >= np.ptp(places[:, 1]) - APART  # its longest side is level


@pytest.mark.parametrize("spec", ["st_er(nodes=30, p=0.0)", "st_er(nodes=40, p=0.1)"])
def test_the_layout_has_no_more_energy_than_networkx_finds(spec: str) -> None:
    graph = GRAPHS.build(spec, seed=3)
    steps = _distances(graph, np.arange(graph.nodes), graph.adjacency.toarray() > 0)
    dist = {i: dict(enumerate(row.tolist())) for i, row in enumerate(steps)}
    theirs = nx.kamada_kawai_layout(nx.empty_graph(graph.nodes), dist=dist)

    def energy(places: np.ndarray) -> float:
        """At the scale that suits it best: networkx gives places in the unit square."""
        far = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
        ratio = (far / np.where(steps > 0, steps, 1))[steps > 0]
        return float(((ratio * ratio.sum() / (ratio**2).sum() - 1) ** 2).sum())

    ours = _layout(steps)
    assert energy(ours) < 1.02 * energy(np.array([theirs[i] for i in range(graph.nodes)]))
    assert energy(ours) < 0.8 * energy(_scaled(steps))


def test_maps_of_a_large_graph_and_of_too_many_nodes() -> None:
    graph = GRAPHS.build(f"st_er(nodes={DISTANCES + 1}, p=0.001)", seed=0)
    walk = [0, *graph.targets[graph.sources == 0][:2].tolist(), 7]
    drawn = walk_map(graph, [walk])
    assert drawn["nodes"][:4] == sorted(set(walk)) and len(drawn["edges"]) >= 4
    assert walk_map(graph, [list(range(MOST_VISITED + 1))]) is None
    assert walk_map(graph, [[0, graph.nodes]]) is walk_map(graph, [[-1, 0]]) is None  # not its own


@pytest.mark.parametrize(
    ("world", "wanted"),
    [
        ("sudoku(box=2)", {"kind": "grid", "rows": 4, "columns": 4, "box": 2}),
        ("latin(n=3)", {"kind": "grid", "rows": 3, "box": 0, "signs": ["1", "2", "3"]}),
        ("addition(digits=2)", {"kind": "sum", "lines": [[0, 1], [2, 3], [4, 5, 6]], "base": 10}),
        ("dyck(length=8)", {"kind": "words", "signs": ["(", ")", "[", "]"]}),
        ("hmm(length=4)", {"kind": "words", "signs": None}),
    ],
)
def test_a_world_has_its_stage(world: str, wanted: dict[str, Any]) -> None:
    place = build_world(world)
    stage = stage_of(place, place.sample(1, 0).tolist())
    assert {key: stage[key] for key in wanted} == wanted
    json.dumps(stage)


def test_cells_of_a_strip_stand_where_the_strip_has_them() -> None:
    place = build_world("potts(height=2, width=3, order='columns')")
    stage = stage_of(place, [])
    assert stage["cells"] == [0, 2, 4, 1, 3, 5] and stage["colours"] == place.states


def test_a_record_of_an_unknown_world_has_no_stage() -> None:
    assert spec_stage("nowhere(length=3)", [[1]]) is None


# ------------------------------------------------------------------------------- the page


def test_a_page_names_its_command_and_runs_no_name(tmp_path: Path) -> None:
    file = tmp_path / "graph.txt"
    evil = "</script><script>alert(1)</script>"
    file.write_text(f"{evil.replace(' ', '')}\tb\nb\tc\nc\td\n")
    world = f"walk(graph=file(path='{file}'), law=lazy(stay=0.2), length=6)"
    reel = record_reel(cell("bisection", world, "unconditional"))
    page = play_page(cell("bisection", world), build_world(world), [reel], "maskwalk play <b>")
    assert "alert(1)</script>" not in page and "maskwalk play &lt;b&gt;" in page
    assert page.count("<script") == 2 and "default-src 'none'" in page


def test_the_command_writes_one_file_without_requests(cli: Any, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "page.html"
    words = ("--world", WALK, "--task", "endpoints", "--sampler", "bisection")
    code, said, err = cli("play", *words, "--sampler", "random(block=4)", "--out", str(out))
    assert code == 0 and f"Wrote {out}" in said, err
    text = out.read_text("utf-8")
    assert "A walk on 30 nodes, unmasked" in text and "random ×4 in 2 rounds" in text
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", text)


def test_a_label_says_what_differs_from_the_default() -> None:
    def labels(*specs: str) -> list[str]:
        return [one["label"] for one in reel_data([record_reel(cell(spec)) for spec in specs])]

    assert labels("bisection(order=4)") == ["bisection order 4"]
    assert labels("bisection") == ["bisection"]
    assert labels("random(block=4)", "entropy(block=1)") == ["random ×4", "entropy"]


def test_a_world_has_a_plain_title(cli: Any, tmp_path: Path) -> None:
    for world, title in (("dyck(length=6)", "Balanced brackets"), ("potts", "A grid of spins")):
        out = tmp_path / "page.html"
        assert cli("play", "--world", world, "--out", str(out))[0] == 0
        assert f"<h1>{title}, unmasked</h1>" in out.read_text("utf-8")
    assert set(TITLES) == set(WORLDS) - {"walk", *WORLDS.own()}


def test_what_takes_long_says_how_far_it_is(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("play", "--world", "latin(n=3)", "--out", str(tmp_path / "a.html"))
    assert "1 of 2" not in cli(*words)[2]
    monkeypatch.setattr("maskwalk.cli.play.SLOW", 0.0)
    code, _, err = cli(*words)
    assert code == 0 and re.search(r"bisection.*: 1 of 2, \d+ s\n.*random.*: 2 of 2", err)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sequence", "-1"], "sequence"),
        (["--sampler", "nope"], "Unknown sampler 'nope'"),
        ([w for i in range(1, 10) for w in ("--sampler", f"random(block={i})")], "at most 8"),
    ],
)
def test_bad_input_is_a_sentence(cli: Any, tmp_path: Path, words: list[str], sentence: str) -> None:
    out = tmp_path / "page.html"
    code, _, err = cli("play", "--world", WALK, *words, "--out", str(out))
    assert code == 2 and sentence in err and not out.exists()


OWN = """
from dataclasses import dataclass
from maskwalk import SAMPLERS, UnmaskingPolicy
{register}
@dataclass(frozen=True)
class Mine(UnmaskingPolicy):
    size: int = 2
    def choose(self, view, state, rng):
        return view.lowest(view.score("entropy"), self.size), state
"""


def test_a_sampler_of_a_file_plays_as_it_is_evaluated(cli: Any, tmp_path: Path) -> None:
    """FILE.py:Class, with or without settings, registered or not; as with --include."""
    for name, register in (("plain", ""), ("known", '@SAMPLERS.register("my_rule")')):
        file, out = tmp_path / f"{name}.py", tmp_path / f"{name}.html"
        file.write_text(OWN.replace("{register}", register))
        two = ("--sampler", f"{file}:Mine", "--sampler", f"{file}:Mine(size=4)")
        code, _, err = cli("play", "--world", WALK, *two, "--out", str(out), "--no-open")
        spec = "my_rule" if register else "Mine"
        shown = [reel["spec"] for reel in data_of(out.read_text("utf-8"))["reels"]]
        assert code == 0 and shown == [f"{spec}(size=2)", f"{spec}(size=4)"], err
        words = ("sample", "--world", WALK, "--count", "2", "--json", "--sampler", f"{file}:Mine")
        code, said, err = cli(*words)
        assert code == 0 and json.loads(said)["sampler"] == f"{spec}(size=2)", err
    code, _, err = cli("play", "--world", WALK, "--sampler", f"{file}:Other")
    assert code == 2 and "Unknown sampler in" in err and "Mine" in err


def test_the_browser_opens_if_asked(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not asked.append(address))
    words = ("play", "--world", "latin(n=3)", "--sampler", "left_to_right", "--out")
    code, said, _ = cli(*words, str(tmp_path / "a.html"))
    assert code == 0 and asked == [] and said.endswith("Open it in a browser.\n")
    code, said, _ = cli(*words, str(tmp_path / "b.html"), "--open")
    assert code == 0 and asked == [(tmp_path / "b.html").as_uri()] and "Open it" not in said
    monkeypatch.setattr("webbrowser.open", lambda address: False)  # there is none here
    assert cli(*words, str(tmp_path / "c.html"), "--open")[1].endswith("Open it in a browser.\n")
    assert "left_to_right" in SAMPLERS
