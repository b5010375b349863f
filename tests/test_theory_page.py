"""Theory in other worlds: what the command prints, and that docs/theory.md says the same."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from maskwalk.paper import theory
from maskwalk.paper.theory import Check, Row
from maskwalk.paper.theory.worlds.page import markdown
from maskwalk.paper.theory.worlds.table import PLAN
from tests.computed_theory import computed_claims, computed_laws

PAGE = (Path(__file__).parent.parent / "docs" / "theory.md").read_text("utf-8")
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rows() -> list[Row]:
    return computed_laws()


@pytest.fixture
def checks() -> list[Check]:
    return computed_claims()


# ---- what is printed


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, rows: list[Row], checks: list[Check]) -> Check:
    """The command prints what was computed already, and one check of the paper's."""
    first = Check("a lemma", "TV 0", "TV 1e-16", True, 0.5)
    monkeypatch.setattr(theory, "check_all", lambda: [first])
    monkeypatch.setattr(theory, "world_laws", lambda: rows)
    monkeypatch.setattr(theory, "check_worlds", lambda _: checks)
    return first


def test_the_parts_print_after_each_other_in_80_columns(cli: Cli, known: Check) -> None:
    code, paper, _ = cli("theory", "--only", "paper")
    assert code == 0 and "a lemma" in paper and "Other worlds" not in paper
    code, worlds, _ = cli("theory", "--only", "worlds")
    assert code == 0 and "a lemma" not in worlds
    code, both, _ = cli("theory")
    assert code == 0 and both == paper + worlds
    lines = worlds.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("latin(n=3): 12 sequences") < lines.index("Which claims carry over")
    assert "random 2+2+2+3                      4     0.6548   0.3452   0.4235" in worlds
    assert "0.2500  latin(n=3)\n        After the centre, cells 1 and 6 at once" in worlds
    assert "fails" not in worlds


def test_what_fails_is_told_and_ends_with_1(
    cli: Cli, known: Check, monkeypatch: pytest.MonkeyPatch, checks: list[Check]
) -> None:
    for broken in (checks[0], checks[-1]):  # with and without a reason
        one = [replace(broken, holds=False)]
        monkeypatch.setattr(theory, "check_worlds", lambda _, one=one: one)
        code, out, _ = cli("theory", "--only", "worlds")
        assert code == 1 and "fails" in out
    assert cli("theory", "--only", "paper")[0] == 0


def test_json_has_the_checks_as_before_and_then_the_rows(
    cli: Cli, known: Check, rows: list[Row], checks: list[Check]
) -> None:
    entries = json.loads(cli("theory", "--json")[1])
    assert entries[0] == known.as_dict() and "why" not in entries[0]
    claims = [entry for entry in entries if "claim" in entry]
    assert len(claims) == 1 + len(checks) and entries[: len(claims)] == claims
    laws = [entry for entry in entries if "sampler" in entry]
    assert len(laws) == len(rows) == len(entries) - len(claims)
    assert set(laws[0]) == {"world", "sequences", "sampler", "calls", "coherence", "tv", "kl"}


def test_a_part_that_is_none_gets_a_sentence(cli: Cli) -> None:
    code, _, said = cli("theory", "--only", "world")
    assert code == 2 and "Did you mean 'worlds'" in said


def test_help_teaches_the_parts(cli: Cli) -> None:
    _, out, _ = cli("theory", "--help")
    assert "--only" in out and "maskwalk theory --only worlds" in out


# ---- the page


def test_the_page_is_what_the_command_prints(rows: list[Row], checks: list[Check]) -> None:
    assert markdown(rows) in PAGE
    for check in checks:
        if check.why:
            claim = check.claim.replace("|", "\\|")
            assert f"| `{claim}` | {check.computed} | {check.why} |" in PAGE


def test_the_page_says_which_orders(checks: list[Check]) -> None:
    said = {check.claim: check.computed for check in checks}
    for height, width in ((2, 3), (2, 4), (2, 5), (3, 4)):
        assert said[f"exact orders: potts, columns, {height}x{width}"] == f"k >= {height}"
        assert said[f"exact orders: potts, rows, {height}x{width}"] == f"k >= {width}"
    for n in (1, 2, 3, 4):
        assert said[f"exact orders: addition, plain, n={n}"] == f"k >= {2 * n + 1}"
        assert said[f"exact orders: addition, reversed, n={n}"] == f"k >= {n + 1}"
    for line in (
        "| strip, column by column | height | 2×3, 2×4, 2×5, 3×4 |",
        "| strip, row by row | width | 2×3, 2×4, 2×5, 3×4 |",
        "| sum, plain | 2n + 1 | n = 1…4 digits |",
        "| sum, reversed | n + 1 | n = 1…4 digits |",
        "| sum, interleaved | 5 (4 is not enough) | n = 4 digits |",
        "| sum, interleaved, fewer digits | 2 | n = 3 digits |",
    ):
        assert line in PAGE


@pytest.mark.parametrize(
    ("claim", "computed", "sentence"),
    [
        ("exact orders: addition, interleaved, n=4", "k >= 5", "5 (4 is not enough)"),
        ("exact orders: addition, interleaved, n=3", "k >= 2", "fewer digits | 2 |"),
        ("not so k=3: addition, interleaved, n=2", "TV 0.2500", "order 3: TV 0.2500"),
        ("not so k=2: dyck of depth 2", "TV 0.1250", "order 2: TV 0.1250"),
        ("guided k=3: addition, reversed, n=2", "TV 0.0781", "(TV 0.0781)"),
        (
            "entropy, latin: 4, 6 calls",
            "0.1667, 0.5000",
            "0.1667 with 4 calls (2+2+2+3) and\n  0.5000 with 6",
        ),
        ("along the world, shortest: potts, 2x4", "6, 4 calls", "6 calls where 4 are enough"),
        ("shortest exact plan: addition, plain", "2 calls", "6 calls where a\nplan of 2 is"),
    ],
)
def test_the_page_says_what_is_computed(
    checks: list[Check], claim: str, computed: str, sentence: str
) -> None:
    assert computed in {check.computed for check in checks if check.claim == claim}
    assert sentence in PAGE


def test_the_sentences_below_the_table(rows: list[Row]) -> None:
    """Who is ahead of whom, as the page says."""
    least = {row.world: row.calls for row in reversed(rows) if row.sampler != PLAN}
    fewest = [row for row in rows if row.calls == least[row.world]]
    random, entropy, line = (
        {row.world: row for row in fewest if row.sampler.startswith(name)}
        for name in ("random ", "entropy ", "bisection(order=1)")
    )
    assert len(random) == len(entropy) == len(line) == 13
    assert [w for w in random if entropy[w].kl < random[w].kl] == ["latin(n=3)"]
    misled = [w for w in random if (entropy[w].coherence or 0) > (random[w].coherence or 1)]
    assert misled == [
        "latin(n=3)",  # the one where it is right
        "dyck(kinds=2, depth=3, length=6)",
        "pcfg(nonterminals=5, words=3, length=7, branches=2, lexicon=1)",
        "hierarchy(depth=2, symbols=3, nodes='shown')",
    ]
    assert [w for w in random if line[w].kl < random[w].kl] == [
        "latin(n=3)",
        "dyck(kinds=2, depth=3, length=6)",
        "hmm(states=4, tokens=4, length=7, successors=2, emissions=2)",
        "potts(height=2, width=3, order='rows')",
    ]
    strip = [row for row in rows if row.world == "potts(height=2, width=3, order='rows')"]
    by_name = {row.sampler: row for row in strip}
    chance, block = by_name["random 1+1+2+2"], by_name["bisection(order=2)"]
    assert chance.tv < block.tv and chance.kl > block.kl
