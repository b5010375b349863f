"""The paper's numbers as data, and the comparison of records with them."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from maskwalk.bench.experiment import Experiment
from maskwalk.bench.records import load_records
from maskwalk.errors import MaskwalkError
from maskwalk.paper import reproduce
from maskwalk.paper.claims import CLAIMS, At, Claim, more, rising, wider
from maskwalk.paper.compare import Pair, compare
from maskwalk.paper.ledger import markdown, verdicts
from maskwalk.paper.tables import attach, printed, published_cell, spec_of, tables
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import parse
from maskwalk.stats import share_se
from maskwalk.training import zoo
from maskwalk.training.settings import Settings
from maskwalk.worlds.tasks import TASKS

RESULTS = Path(__file__).parent.parent / "results"
TASK = {
    "unconditional": "unconditional()",
    "endpoint_conditional": "endpoints(start=None, end=None)",
    "bottleneck_conditional": "bottleneck(separation=None, ends=None)",
}


def records(shift: float = 0.0, preset: str = "as_published") -> list[dict[str, Any]]:
    """A record for every published cell, off by `shift` towards one half."""
    made = []
    for table, samplers in tables().items():
        for name, columns in samplers.items():
            for column, (value, sd) in columns.items():
                n = 512 if table == "unconditional" else 16_384
                value += shift if value < 0.5 else -shift
                held = {"value": value, "se": sd / 3**0.5, "n": n}
                record = {
                    "task": TASK[table],
                    "sampler": spec_of(name),
                    "mode": preset,
                    "schema": 2,
                }
                record |= {"denoiser": f"zoo:{column}", "title": column, "column": column}
                record |= {"metrics": {"coherence": held}, "world": column, "key": f"{len(made)}"}
                made.append({**record, "cell": len(made)})
    return made


def test_the_tables_are_whole() -> None:
    held = tables()
    assert {name: len(samplers) for name, samplers in held.items()} == dict.fromkeys(TASK, 24)
    cells = [c for samplers in held.values() for row in samplers.values() for c in row.values()]
    assert len(cells) == 384 and sum(value > 0.05 for value, _ in cells) == 152
    assert held["bottleneck_conditional"]["random_x2"]["two_b1"] == [0.083, 0.01]


def test_every_name_is_a_canonical_spec_of_the_experiments() -> None:
    specs = [spec_of(name) for name in tables()["unconditional"]]
    assert specs == [SAMPLERS.canonical(spec) for spec in specs] and len(set(specs)) == 24
    for task in TASK.values():
        assert task == TASKS.canonical(task)
    cells = {"unconditional": 0, "endpoint_conditional": 0, "bottleneck_conditional": 0}
    for experiment in reproduce.paper():
        for entry in experiment.entries if experiment.name.startswith("table") else ():
            record = {"task": entry.cell.task, "sampler": entry.cell.sampler}
            where = published_cell({**record, "column": entry.column})
            assert where is not None
            cells[where[0]] += 1
    assert cells == {  # each in three modes
        "unconditional": 3 * 144,
        "endpoint_conditional": 3 * 144,
        "bottleneck_conditional": 3 * 96,
    }


def test_the_papers_own_numbers_fit_perfectly() -> None:
    found = compare(records())
    assert found["cells_above"] == 152 and len(found["cells"]) == 384
    assert found["rmse"] == found["rmse_above"] == 0.0 and not found["far"]
    columns = found["modes"]["as_published"]["columns"]
    assert len(columns) == 16 and all(c["rank"] == pytest.approx(1.0) for c in columns)
    assert all(0.3 < c["expected_above"] <= 1.0 for c in columns)


def test_a_shift_is_found_in_every_number() -> None:
    found = compare(records(0.1))
    assert found["rmse"] == pytest.approx(0.1) and -0.1 < found["bias_above"] < 0.0
    assert found["tables"]["endpoint_conditional"]["rmse_above"] == pytest.approx(0.1)
    assert abs(found["far"][0]["sigmas"]) > 3
    # Two perfect scores in groups without spread are not infinitely far from anything.
    assert all(abs(cell["sigmas"]) < 1000 for cell in found["cells"])
    one = [r for r in records() if r["column"] == "two_b1"]
    one[0]["metrics"]["coherence"]["value"] -= 0.5
    rows = compare(one)["far"]
    assert len(rows) == 1 and rows[0]["sampler"] == one[0]["sampler"]
    assert rows[0]["difference"] == pytest.approx(-0.5)


def test_modes_stay_apart() -> None:
    found = compare([*records(), *records(0.2, "exact")])
    assert found["mode"] == "as_published" and found["rmse"] == 0.0
    assert found["modes"]["exact"]["rmse"] == pytest.approx(0.2)


def test_published_values_are_attached_where_there_are_any() -> None:
    some = records()[:1]
    other = {**some[0], "column": None}
    first, second = attach([some[0], other])
    assert first["published"]["value"] == 0.996 and first["published"]["sd"] == 0.004
    assert first["published"]["z"] == 0.0 and "published" not in second
    assert "published" not in some[0]


def test_compare_explains_nothing_it_did_not_measure(cli: Any, tmp_path: Path) -> None:
    """Whatever the records are: no cause, and what a second measurement gets is no ceiling."""
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records(0.3))
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(lines))
    code, out, _ = cli("compare", str(tmp_path))
    assert code == 0 and "cells differ by more than 3" in out
    assert "cause" not in out and "RMSE ." not in out and "graph instance" not in out
    assert "ceiling" not in out and "expected: the mean of the latter" in out
    found = compare(records(0.3))
    assert found["far"] and not any("cause" in cell for cell in found["cells"])


def test_what_two_measurements_get_is_a_mean_that_one_may_exceed() -> None:
    """Two measurements of the paper's tables: on average as expected, and above it as often."""
    from maskwalk.paper.compare import _expected, pairs

    tree = [p for p in pairs(records()) if (p.table, p.column) == ("unconditional", "st_er_p0")]
    above = [p for p in tree if p.published > 0.05]
    draws = np.random.default_rng(5).standard_normal((2, 300, len(above)))
    truth, error = ([getattr(p, k) for p in above] for k in ("published", "published_se"))
    once, twice = np.array(truth) + np.array(error) * draws
    ranks = [spearmanr(a, b).statistic for a, b in zip(once, twice)]
    assert _expected(above) == pytest.approx(float(np.mean(ranks)), abs=0.05)
    assert 0.3 < np.mean(np.array(ranks) > _expected(above)) < 0.8


def test_compare_command(cli: Any, tmp_path: Path) -> None:
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records(0.01))
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(lines))
    code, out, _ = cli("compare", str(tmp_path), "--json")
    found = json.loads(out)
    assert code == 0 and found["rmse"] == pytest.approx(0.01)
    code, out, _ = cli("compare", str(tmp_path))
    assert code == 0 and "two_b64" in out and max(map(len, out.splitlines())) <= 80
    code, _, err = cli("compare", str(tmp_path), "--mode", "oracle")
    assert code == 2 and "as_published" in err
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(lines)[:100])
    with pytest.raises(MaskwalkError, match="gzip"):
        load_records(tmp_path)
    (tmp_path / "records.jsonl").write_text(
        json.dumps(
            {
                "schema": 2,
                "key": "x",
                "metrics": {},
                "world": "walk()",
                "task": "unconditional()",
                "sampler": "x()",
                "denoiser": "oracle",
                "mode": "exact",
            }
        )
        + "\n"
    )
    code, _, err = cli("compare", str(tmp_path))
    assert code == 2 and "reproduce paper" in err


def cell(sampler: str, value: float, se: float = 0.01, **more: Any) -> dict[str, Any]:
    record = {
        "title": "Tree",
        "task": "unconditional()",
        "sampler": sampler,
        "mode": "exact",
        "schema": 2,
    }
    record |= {"denoiser": "oracle", "metrics": {"coherence": {"value": value, "se": se, "n": 9}}}
    return record | more


def at(name: str) -> At:
    return At("Tree", "unconditional", name)


def verdict(held: list[dict[str, Any]], claim: Claim) -> str:
    return str(verdicts(held, (claim,))[0]["modes"]["oracle"]["verdict"])


def test_a_claim_is_judged_by_its_comparisons() -> None:
    held = [cell("a()", 0.9), cell("b()", 0.5), cell("c()", 0.89)]
    cases = {
        "holds": (("a()", "b()"),),
        "reversed": (("b()", "a()"),),
        "not shown": (("a()", "c()"),),
        "mixed": (("a()", "b()"), ("b()", "c()")),
        "in part": (("a()", "b()"), ("a()", "c()")),
    }
    for wanted, names in cases.items():
        claim = Claim("x", "y", tuple(more(at(a), at(b)) for a, b in names))
        assert verdict(held, claim) == wanted
    absent = Claim("x", "y", (more(at("a()"), at("z()")),))
    assert verdicts(held, (absent,))[0]["modes"]["oracle"] is None


def test_what_is_the_same_must_be_shown_to_be() -> None:
    held = [cell("a()", 0.9), cell("b()", 0.5), cell("c()", 0.89), cell("d()", 0.9, se=0.1)]
    cases = {  # (cells, margin): .01 ± .028 lies within .05, not within .03
        "holds": (("a()", "c()"), 0.05),
        "not shown": (("a()", "c()"), 0.03),
        "lower": (("b()", "c()"), 0.05),
        "higher": (("c()", "b()"), 0.05),
    }
    for wanted, (names, margin) in cases.items():
        claim = Claim("x", "y", (more(*map(at, names)),), margin=margin)
        assert verdict(held, claim) == wanted
    # Equal numbers with wide errors show nothing.
    assert verdict(held, Claim("x", "y", (more(at("a()"), at("d()")),), margin=0.05)) == "not shown"
    less = Claim("x", "y", (more(at("b()"), at("c()")),), margin=0.05)
    found = verdicts(held, (less,))
    assert found[0]["modes"]["oracle"] == {
        "verdict": "lower",
        "decided": [0, 1, 1],
        "agree": 0,
        "numbers": [".500 : .890"],
    }
    assert "| x (± .050) | y | **lower** .500 : .890 |" in markdown(found, (less,))


def test_the_ledger_corrects_for_many_comparisons() -> None:
    """2.5 errors are decided alone, and not as one of twenty comparisons."""
    names = [f"s{i}()" for i in range(21)]
    held = [cell("s0()", 0.5)] + [cell(name, 0.5 - 0.0354) for name in names[1:]]
    assert verdict(held, Claim("x", "y", (more(at("s0()"), at("s1()")),))) == "holds"
    every = tuple(more(at("s0()"), at(name)) for name in names[1:])
    assert verdict(held, Claim("x", "y", every)) == "not shown"
    # The other claims of a ledger count as well, and a comparison that two claims share once.
    one, rest = Claim("x", "y", every[:1]), Claim("x", "y", every)
    assert verdicts(held, (one, rest))[0]["modes"]["oracle"]["verdict"] == "not shown"
    assert verdicts(held, (one, one))[0]["modes"]["oracle"]["verdict"] == "holds"


def test_gaps_and_trends_are_contrasts() -> None:
    held = [cell(f"s{i}()", value) for i, value in enumerate((0.9, 0.6, 0.5, 0.4))]
    gap = more(at("s0()"), at("s1()")), more(at("s2()"), at("s3()"))
    found = verdicts(held, (Claim("x", "y", (wider(*gap),)),))[0]["modes"]["oracle"]
    assert found["verdict"] == "holds" and found["numbers"] == ["gap .300 : .100"]
    assert verdict(held, Claim("x", "y", (wider(*reversed(gap)),))) == "reversed"
    trend = rising(at(f"s{i}()") for i in range(4))
    assert [weight for weight, _ in trend] == [-1.5, -0.5, 0.5, 1.5]
    found = verdicts(held, (Claim("x", "y", (trend,)),))[0]["modes"]["oracle"]
    assert found["verdict"] == "reversed" and found["numbers"] == ["(.900, .600, .500, .400)"]


def test_what_the_committed_records_say_of_the_new_claims() -> None:
    found = {row["claim"]: row["modes"] for row in verdicts(load_records(RESULTS / "paper"))}
    said = {
        "Guided bisection of order 4 recovers the coherence of entropy one at a time": "lower",
        "… at substantially smaller depth (half its calls)": "reversed",
        "… at every step of the order": "mixed",
        "Exponential schedules degrade sharply": "holds",
        "… with b=8 between b=1 and b=64": "holds",
    }
    assert {claim: found[claim]["as_published"]["verdict"] for claim in said} == said


def test_every_claim_names_cells_of_the_experiments() -> None:
    known = {
        At(entry.title, parse(entry.cell.task).name, entry.cell.sampler)
        for experiment in reproduce.paper()
        for entry in experiment.entries
    }
    for claim in CLAIMS:
        cells = {place for contrast in claim.contrasts for _, place in contrast}
        assert cells and cells <= known, claim.said


def every(step: int, experiment: Experiment) -> Experiment:
    """With one cell of so many."""
    return replace(experiment, entries=experiment.entries[::step])


def test_reproduce_runs_compares_and_resumes(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reproduce.paper
    monkeypatch.setattr(reproduce, "QUICK", (2, 1))
    monkeypatch.setattr(reproduce, "paper", lambda *a, **k: [every(6, e) for e in whole(*a, **k)])
    words = ["reproduce", "paper", "--quick", "--only", "figure_distant_k", "--workers", "1"]
    code, out, _ = cli(*words, "--out", str(tmp_path))
    assert code == 0 and "report.html" in out
    held = load_records(tmp_path)
    assert len(held) == 6 and {r["experiment"] for r in held} == {"figure_distant_k"}
    page = (tmp_path / "report.html").read_text()
    assert "maskwalk reproduce paper --only figure_distant_k --quick --out DIR" in page
    before = (tmp_path / "records.jsonl").read_bytes()
    code, _, err = cli(*words, "--out", str(tmp_path))
    assert code == 0 and "days" not in err
    assert (tmp_path / "records.jsonl").read_bytes() == before
    few = reproduce.paper(["figure_distant_k"], quick=True)
    monkeypatch.setattr(reproduce, "paper", lambda only, quick: few)
    words.remove("--quick")
    code, _, err = cli(*words, "--device", "cpu", "--out", str(tmp_path))
    assert code == 0 and "days on a CPU" in err


def test_training_for_the_reproduction_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the last checkpoint and the packing: the same weights, packed."""
    monkeypatch.setattr(zoo, "HELD", 4)
    settings = Settings(steps=2, batch=4, every=2)
    made = reproduce.fit(tmp_path, ["two_b1"], settings, "cpu", samples=1)
    first = json.loads((made / "manifest.json").read_text())["models"]["two_b1"]
    shutil.rmtree(made)
    assert reproduce.fit(tmp_path, ["two_b1"], settings, "cpu", samples=1) == made
    again = json.loads((made / "manifest.json").read_text())["models"]["two_b1"]
    assert first["sha256"] == again["sha256"]
    # A zoo that is whole is not trained again, whatever the device.
    before = (made / "manifest.json").stat().st_mtime_ns
    assert reproduce.train(tmp_path, "cpu") == made
    assert (made / "manifest.json").stat().st_mtime_ns == before


def test_reproduce_refuses_in_sentences(cli: Any, tmp_path: Path) -> None:
    code, _, err = cli("reproduce", "papers", "--out", str(tmp_path))
    assert code == 2 and "paper" in err
    code, _, err = cli("reproduce", "paper", "--only", "table_9", "--out", str(tmp_path))
    assert code == 2 and "table_endpoints" in err
    code, _, err = cli("reproduce", "paper", "--train", "--device", "cpu", "--out", str(tmp_path))
    assert code == 2 and "shipped models" in err


def test_a_difference_is_counted_in_the_errors_of_both() -> None:
    place = ("as_published", "unconditional", "st_er_p0", "Tree", "unconditional()", "random()")
    pair = Pair(*place, ours=0.5, se=0.03, published=0.3, published_se=0.04)
    assert pair.difference == pytest.approx(0.2) and pair.sigmas == pytest.approx(4.0)


def test_the_printed_spread_of_four_groups_is_divided_by_the_root_of_three() -> None:
    """Or is the error of as many coins where that is larger: 512 walks, or 32 for each prompt."""
    for table, rows in tables().items():
        n = 512 if table == "unconditional" else 512 * 32
        for name, columns in rows.items():
            for column, (value, sd) in columns.items():
                expected = max(sd / 3**0.5, share_se(value, n))
                assert printed(table, name, column)["se"] == pytest.approx(expected)
