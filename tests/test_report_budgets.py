"""Rules at matched calls: the best setting in a budget, what is noise, who changes places."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwalk.report import front_tables, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.budget_lines import drawn_series
from maskwalk.report.budgets import MANY, Stand, beats, crowded, leaders, stands
from maskwalk.report.page import page
from maskwalk.report.points import Point, front, points_of
from maskwalk.report.swaps import rule_swaps
from maskwalk.stats import holm
from tests import fake_records

TREE, DEGREE = "spanning tree", "degree 7"


def held(
    sampler: str, calls: float, value: float, title: str = TREE, se: float = 0.01, **more: Any
) -> dict[str, Any]:
    """A record of a sampler with this many calls and this coherence."""
    one = fake_records.with_coherence(fake_records.record(title, sampler=sampler), value, se)
    counts = {"value": calls, "se": 0.0, "n": 512, "max": calls}
    metrics = {"coherence": one["metrics"]["coherence"], "calls": counts}
    return one | {"metrics": metrics, "trace": None} | more


def test_a_rule_stands_at_its_best_setting_within_the_budget():
    records = [held("random(block=4)", 6, 0.3), held("random(block=2)", 12, 0.5)]
    records += [held("random(block=8)", 3, 0.3), held("bisection(order=1)", 5, 0.2)]
    study = arrange(records)
    points = points_of(study, 0)

    def told(budget: float) -> list[tuple[str, float, float, int]]:
        found = stands(study, points, budget)
        return [(s.rule, s.point.value, s.point.cost, s.choices) for s in found]

    assert told(2) == []
    assert told(5) == [("random", 0.3, 3, 1), ("bisection", 0.2, 5, 1)]
    assert told(6) == [("random", 0.3, 3, 2), ("bisection", 0.2, 5, 1)]  # the cheaper of equals
    assert told(12)[0] == ("random", 0.5, 12, 3)


def test_choosing_among_settings_has_a_price():
    def stand(value: float, se: float, choices: int) -> Stand:
        return Stand("x", Point(0, 0, value, se, 5, 5), choices)

    one, other = stand(0.6, 0.03, 1), stand(0.5, 0.04, 9)
    assert beats(one, other) == pytest.approx(0.02275, abs=1e-5)  # z = 2; the loser's are free
    assert beats(stand(0.6, 0.03, 3), other) == pytest.approx(3 * 0.02275, abs=3e-5)
    assert beats(other, one) == beats(one, one) == 1.0


def test_holm_by_hand():
    # Sorted: .01 · 4, .03 · 3, .04 · 2 = .08, raised to .09. Four were made, three are looked at.
    assert holm(np.array([0.01, 0.04, 0.03]), 4) == pytest.approx([0.04, 0.09, 0.09])
    assert len(holm(np.array([]), 4)) == 0


def test_fronts_leave_out_what_is_noise():
    points = [
        Point(i, 0, v, 0.01, c, c) for i, (c, v) in enumerate([(1, 0.1), (2, 0.12), (3, 0.2)])
    ]
    assert [p.sampler for p in front(points)] == [0, 2]


def test_leaders_tell_winners_from_ties():
    records = [held("bisection(order=1)", 5, 1.0, se=0.0), held("random(block=8)", 3, 0.1)]
    records += [held("random(block=1)", 24, 1.0, se=0.0), held("entropy(block=2)", 12, 0.4)]
    study = arrange(records)
    early, late = leaders(study, 0, (5, 24))
    assert (early.best.rule, early.second and early.second.rule) == ("bisection", "random")
    assert early.clear and early.level == ["bisection"]
    assert not late.clear and late.p == 1 and late.level == ["bisection", "random"]
    assert leaders(study, 0, (1,)) == []
    alone = leaders(arrange(records[:1]), 0, (5,))[0]
    assert alone.second is None and not alone.clear


def swapped(gap: float) -> list[dict[str, Any]]:
    """random ×2 wins by `gap` on the tree, entropy ×2 on the other graph; both at 12 calls."""
    out = []
    for title, sign in ((TREE, 1), (DEGREE, -1)):
        out.append(held("random(block=2)", 12, 0.5 + sign * gap / 2, title))
        out.append(held("entropy(block=2)", 12, 0.5 - sign * gap / 2, title))
        out.append(held("bisection(order=1)", 5, 0.9, title))
    return out


def test_rules_that_change_places():
    study = arrange(swapped(0.3))
    found = rule_swaps(study, 0, (8, 12))
    # Within 8 calls there is one rule and so no pair; within 12 three pairs on one pair of graphs.
    assert found.comparisons == 3
    (swap,) = found.pairs
    assert {swap.first, swap.second} == {"random", "entropy"} and swap.budget == 12
    assert swap.swing == pytest.approx(0.3) and swap.p < 1e-6 and swap.places == 1
    here = study.panels[swap.here].title
    assert (here, swap.first) == (TREE, "random")
    assert [p.value for p in swap.points] == pytest.approx([0.65, 0.35, 0.35, 0.65])
    assert rule_swaps(arrange(swapped(0.02)), 0).pairs == []  # 1.4 standard errors are noise


def test_both_halves_of_a_swap_of_rules_must_hold():
    records = [held("random(block=2)", 12, 0.8, TREE), held("entropy(block=2)", 12, 0.5, TREE)]
    records += [held("random(block=2)", 12, 0.5, DEGREE)]
    records += [held("entropy(block=2)", 12, 0.51, DEGREE)]
    assert rule_swaps(arrange(records), 0, (12,)).pairs == []


def test_equal_rules_seldom_change_places_or_win():
    """Of studies in which nothing differs, at most about one in twenty says that something does."""
    rng, names = np.random.default_rng(0), ("random", "entropy", "margin")
    false = {"swaps": 0, "leaders": 0}
    for _ in range(150):
        records = []
        for title in list(fake_records.GRAPHS)[:3]:
            for name in names:
                for block in (2, 4, 8):
                    value = rng.binomial(512, 0.4) / 512
                    se = (value * (1 - value) / 512) ** 0.5
                    records.append(held(f"{name}(block={block})", 8, value, title, se))
        study = arrange(records)
        false["swaps"] += bool(rule_swaps(study, 0, (8,)).pairs)
        false["leaders"] += any(one.clear for one in leaders(study, 0, (8,)))
    assert max(false.values()) <= 13  # 7.5 expected at most; more than 13 has a chance of 2 %


# ------------------------------------------------------------------------------- the command


def test_fronts_are_printed_and_nothing_is_written(cli: Any, tmp_path: Path):
    text = "".join(json.dumps(r) + "\n" for r in swapped(0.3))
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    code, out, _ = cli("report", str(tmp_path), "--fronts", "--calls", "12", "--calls", "8")
    assert code == 0 and [p.name for p in tmp_path.iterdir()] == ["records.jsonl.gz"]
    assert out == front_tables(swapped(0.3), [8, 12])
    rows = [line for line in out.splitlines() if line.startswith("| spanning tree")]
    assert rows == [
        "| spanning tree, unconditional | 5.0 | 0.900 ± 0.020 | bisection |",
        "| spanning tree, unconditional | 8 | bisection (5.0) | 0.900 ± 0.020 | – | – "
        "| 1.000 | 1 |",
        "| spanning tree, unconditional | 12 | bisection (5.0) | 0.900 ± 0.020 | random ×2 (12.0) "
        "| 0.650 ± 0.020 | < 0.001 | 1 |",
    ]
    assert "1 pair of rules changes places; 3 comparisons (Holm, 5 %)." in out
    row = "| unconditional | 12 | {} (12.0) | {} | 0.650 : 0.350 | {} (12.0) | {} | 0.650 : 0.350 |"
    assert row.format("random ×2", TREE, "entropy ×2", DEGREE) in out


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--fronts", "--calls", "0"], "give 1 or more"), (["--calls", "8"], "add --fronts")],
)
def test_budgets_that_mean_nothing_get_a_sentence(
    cli: Any, tmp_path: Path, words: list[str], said: str
):
    (tmp_path / "records.jsonl").write_text(json.dumps(held("random(block=2)", 12, 0.5)) + "\n")
    code, _, err = cli("report", str(tmp_path), *words)
    assert code == 2 and said in " ".join(err.split())


def test_fronts_of_records_without_coherence_say_so():
    bare = held("random(block=2)", 12, 0.5) | {"metrics": {"coherence": None}}
    assert "no quality with its cost" in front_tables([bare])


# ------------------------------------------------------------------------------- a crowd's page


def crowd() -> list[dict[str, Any]]:
    """More settings than can be compared each with each, on two graphs of one axis."""
    out = []
    for place, title in enumerate((TREE, DEGREE)):
        world = fake_records.walk_of(f"st_er(p={place})", "lazy()")
        axis = {"axis": {"name": "density", "value": place}, "world": world}
        for block in range(1, MANY):
            value = 1 / (block if place else 2 * block)
            out.append(held(f"random(block={block})", 24 / block, value, title, **axis))
        out.append(held("bisection(order=1)", 5, 0.9, title, **axis))
        out.append(held("entropy(block=1)", 24, 0.95, title, **axis))
    return out


def test_a_crowd_is_compared_by_rule():
    study = arrange(crowd())
    assert crowded(study) and not crowded(arrange(fake_records.records(2, 1, 1)))
    drawn = drawn_series(study)
    assert [one.title.split(", ")[-1] for one in drawn] == [
        f"at most {b} calls" for b in (5, 8, 12, 24)
    ]
    last = {line.label: [p.value for p in line.points] for line in drawn[-1].lines}
    assert last == {"bisection": [0.9, 0.9], "random": [0.5, 1.0], "entropy": [0.95, 0.95]}
    first = {line.label: [p.value for p in line.points] for line in drawn[0].lines}
    assert first == {"bisection": [0.9, 0.9], "random": [0.1, 0.2]}  # ×5, at 4.8 calls
    text = page(study)
    assert "The best rule for a budget of calls" in text and "Pairs of rules" in text
    short, whole = text.split('id="tables"')[1].split("<summary>All 61 settings</summary>")
    assert short.count("<tr>") - 1 < whole.split("</table>")[0].count("<tr>") - 1 == 61


def test_a_small_study_is_compared_by_sampler():
    text = page(arrange(fake_records.records(2, 1, 1)))
    assert 'id="budgets"' not in text and "Pairs of samplers" in text
    assert "<summary>All 27 samplers</summary>" in text


def test_the_static_figures_of_a_crowd_open(tmp_path: Path):
    made = write_report(crowd(), tmp_path, ("svg",))
    assert len(made) == 1 + 4 and all(b"</svg>" in path.read_bytes() for path in made)
