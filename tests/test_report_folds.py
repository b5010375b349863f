"""What a long page folds, and what its heads say."""

import re
from pathlib import Path
from typing import Any

import pytest

from maskwalk.report import folded, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.page import page
from maskwalk.report.standings import _cost
from maskwalk.report.tables import tables
from tests.fake_records import small


def test_one_call_is_not_calls() -> None:
    study = arrange(small(modes=1, tasks=1))
    assert (_cost(study, 1.0), _cost(study, 5.0)) == ("1 call", "5 calls")


def test_every_head_of_numbers_says_what_it_means() -> None:
    text = page(arrange(small(modes=1)))
    for table in re.findall(r"<table class=\"(?:budgets|swaps|losses|sortable).*?</thead>", text):
        heads = re.findall(r"<th [^>]*class=\"num\"[^>]*>", table)
        assert heads and all("title=" in head for head in heads[:1])
    assert re.search(r"<th scope=\"col\" title=\"[^\"]*at most \d+ calls\">at most", text) or (
        'id="budgets"' not in text
    )


def test_what_was_evaluated_is_never_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "MOST_ROWS", 2)
    study = arrange(small(modes=1, tasks=1))
    table = tables(study)[0]
    shown = [row.sampler for row in folded.layout(study, table).rows]
    (own,) = {study.samplers[r.sampler].family for r in table.rows if r.sampler not in shown}
    rows = folded.layout(study, table, [own]).rows
    mine = [row for row in table.rows if study.samplers[row.sampler].family == own]
    assert mine and all(row in rows for row in mine) and len(rows) == len(shown) + len(mine)
    assert "panels and what was evaluated, then" in page(study, policies=[own])
    assert "panels and what was evaluated, then" not in page(study)


def test_records_without_traces_say_that_there_is_no_player() -> None:
    records = small(modes=1, tasks=1)
    assert "hold no sequence" not in page(arrange(records))
    text = page(arrange([record | {"trace": None} for record in records]))
    assert "hold no sequence" in text and 'id="watch"' not in text
    assert re.search(r"<pre>maskwalk play --world .* --sampler ", text)


def test_figures_beyond_the_first_metric_are_folded_on_a_long_page(
    visit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = write_report(small(), tmp_path / "short")
    assert 'class="fold"' not in path.read_text("utf-8")
    monkeypatch.setattr("maskwalk.report.page.MOST_OPEN", 1)
    (path,) = write_report(small(), tmp_path / "long")
    tab = visit(path)
    fold = tab.locator(".fold").first
    assert fold.locator(".plot svg").count() == 0
    tall = tab.locator("#bar").bounding_box()["height"]
    tab.locator('nav a[href="#figures2"]').click()  # a link opens what it leads to
    fold.locator(".plot svg").first.wait_for()
    tab.wait_for_function("document.getElementById('bar').classList.contains('small')")
    assert tab.locator("#bar").bounding_box()["height"] <= tall
