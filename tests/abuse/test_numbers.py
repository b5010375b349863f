"""Numbers out of any range: of specs, of options, in every table."""

from pathlib import Path

import pytest

from tests.abuse.case import Case, refused
from tests.abuse.own import without_type_checks
from tests.abuse.sweep import KINDS, decoded, swept

HUGE, LONG = str(2**63 + 1), "1" + "0" * 400
SMALL = ("--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "4")

# (command and option, spec with a gap, what is named): a spec with a number that cannot be
SPECS = [
    ("sample --sampler", "random(block={})", "block"),
    ("sample --sampler", "bisection(order={})", "order"),
    ("sample --sampler", "guided_bisection(order={})", "order"),
    ("sample --sampler", "spaced(gap={})", "gap"),
    ("sample --sampler", "klass(window={})", "window"),
    ("sample --sampler", "local_leap(radius={})", "radius"),
    ("sample --sampler", "speculative(k={})", "k"),
    ("sample --sampler", "optimal_random(sizes=({}, 1))", "size"),
    ("sample --sampler", "spaced(start={})", "start"),
    ("sample --sampler", "maskgit(steps={})", "steps"),
    ("sample --sampler", "random_sizes(steps={})", "steps"),
    ("sample --sampler", "blocks(size={})", "size"),
    ("sample --sampler", "blocks(4, random(block={}))", "block"),
    ("sample --graph", "st_er(nodes={}, p=0.1)", "nodes"),
    ("sample --graph", "two_communities(bridges={})", "bridges"),
    ("sample --walk", "distant(K={})", "K"),
    ("sample --walk", "markov(seed={})", "seed"),
    ("sample --world", "latin(n={})", "n"),
    ("sample --world", "potts(width={})", "width"),
    ("diagnose --samplers", "random(block={})", "block"),
    ("evaluate", "random(block={})", "block"),
]
DECIMALS = [
    ("sample --walk", "lazy(stay={})", "stay"),
    ("sample --graph", "st_er(nodes=12, p={})", "p"),
    ("sample --draw", "draw(temperature={})", "temperature"),
    ("sample --draw", "draw(top_p={})", "top_p"),
    ("sample --sampler", "threshold(tau={})", "tau"),
    ("sample --sampler", "punt(eps={})", "eps"),
    ("sample --sampler", "moment(temperature={})", "temperature"),
    ("sample --sampler", "wino(back={})", "back"),
    ("sample --task", "given(share={})", "share"),
    ("sample --world", "potts(beta={})", "beta"),
]
OPTIONS = [
    ("sample --count", ("0", "-1", str(10**12), LONG)),
    ("sample --per-prompt", ("0", "-1", str(10**12), LONG)),
    ("sample --seed", ("-1", str(2**63), str(2**64), LONG)),
    ("sample --graph-seed", ("-1", str(2**63), str(2**70), LONG)),
    ("sample --length", ("0", "1", "-5", "65536", LONG)),
    ("diagnose --orders", ("0", "-1", LONG)),
    ("diagnose --workers", ("0", "-1")),
    ("diagnose --count", ("0", "-1", LONG)),
    ("evaluate random(block=2) --workers", ("-1", LONG)),
    ("train --out {dir}/m --walks", ("0", "-1", str(10**12), LONG)),
    ("train --out {dir}/m --hidden", ("0", "-2", str(10**9), LONG)),
    ("train --out {dir}/m --blocks", ("0", str(10**9))),
    ("train --out {dir}/m --heads", ("0", "-1")),
    ("train --out {dir}/m --batch", ("0", "-1", str(10**9))),
    ("train --out {dir}/m --steps", ("0", "-1", LONG)),
    ("train --out {dir}/m --devices", ("0", "-1", LONG)),
    ("train --out {dir}/m --seed", ("-1", str(2**64))),
    ("train --out {dir}/m --lr", ("-1", "nan", "inf", "1e301")),
    ("train --out {dir}/m --dropout", ("-0.1", "1.5", "nan")),
]


def spec_case(where: str, spec: str, named: str, number: str) -> Case:
    words = tuple(where.split())
    text = spec.format(number)
    end = SMALL if words[0] == "sample" and words[1] not in ("--graph", "--world") else ()
    says = spec.split("(")[0] if number in (HUGE, LONG, "1e999") else named
    return Case(f"{words[0]} {spec} {number[:8]}", (*words, text, *end), says)


def cases() -> list[Case]:
    rows = [spec_case(*spec, number) for spec in SPECS for number in ("-1", HUGE, LONG)]
    rows += [spec_case(*spec, number) for spec in DECIMALS for number in ("-1e3", LONG, "1e999")]
    for where, numbers in OPTIONS:
        *words, option = where.split()
        named = {"graph-seed": "seed", "per-prompt": "per_prompt"}.get(option[2:], option[2:])
        rows += [Case(f"{where} {n[:8]}", (*words, f"{option}={n}"), named) for n in numbers]
    return rows


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_number_out_of_range_is_a_sentence(
    case: Case,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused(case, tmp_path, capsys, monkeypatch)


# ---- every table, every member, every parameter; every sampler


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_builds_or_says_why_not(kind: str) -> None:
    with without_type_checks():
        tried, wrong = swept(kind)
    assert wrong == []
    assert tried >= (1 if kind == "denoisers" else 90)


def test_a_number_that_a_sampler_takes_is_one_it_works_with() -> None:
    with without_type_checks():
        tried, wrong = decoded()
    assert wrong == [] and tried > 150
