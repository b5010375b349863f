"""docs/samplers.md has a row for every registered sampler and preset, with its kind and parts."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from maskwalk.decoding.presets import PRESETS
from maskwalk.samplers import SAMPLERS

PAGE = Path(__file__).parent.parent / "docs" / "samplers.md"


def table(first: str) -> dict[str, dict[str, str]]:
    """The rows of the table whose first column is called so, by the name in it."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    columns = [cell.strip() for cell in lines[begin].strip("|").split("|")]
    rows: dict[str, dict[str, str]] = {}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == len(columns), f"A row of another width: {line}"
        name = cells[0].strip("`")
        assert name not in rows, f"docs/samplers.md has two rows for {name}"
        rows[name] = dict(zip(columns, cells))
    return rows


def built_in() -> list[str]:
    return [name for name in SAMPLERS if SAMPLERS[name].__module__.startswith("maskwalk.")]


def test_every_sampler_has_a_row_and_no_row_is_left_over() -> None:
    rows, names = table("rule"), built_in()
    missing = [name for name in names if name not in rows]
    assert not missing, f"docs/samplers.md has no row for: {', '.join(missing)}"
    assert not set(rows) - set(names), f"Rows without a sampler: {set(rows) - set(names)}"


@pytest.mark.parametrize("name", built_in())
def test_the_row_says_the_kind_and_knobs_of_the_class(name: str) -> None:
    row = table("rule").get(name)
    assert row is not None, f"docs/samplers.md has no row for {name}"
    sampler = SAMPLERS.build(name)
    assert row["kind"] == sampler.law_kind, f"the kind of {name} is {sampler.law_kind}"
    knobs = {field.name for field in fields(sampler)} - {"world"}  # type: ignore[arg-type]
    assert set(re.findall(r"`(\w+)`", row["parameters"])) == knobs, f"the knobs of {name}: {knobs}"
    assert all(row[column] for column in ("source", "calls", "when to use"))


def test_every_preset_has_a_row_that_says_what_it_is() -> None:
    rows = table("preset")
    missing = [name for name in PRESETS if name not in rows]
    assert not missing, f"docs/samplers.md has no row for the presets: {', '.join(missing)}"
    assert set(rows) == set(PRESETS)
    for name, preset in PRESETS.items():
        row = rows[name]
        assert row["sampler"] == (f"`{preset.sampler}`" if preset.sampler else "any"), name
        assert row["draw"] == f"`{preset.draw}`" and row["ties"] == preset.ties, name
        assert row["source"] == preset.source, name
