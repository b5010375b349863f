"""`maskwalk verify`: the documents agree with their records, and every form of comment notices."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from maskwalk.paper import theory
from maskwalk.report.verify.grammar import split
from maskwalk.report.verify.printed import Truth, agrees, numbers
from tests.computed_theory import computed_lemmas

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LEAST = {  # numbers tied at least: a comment taken away is noticed
    "README.md": 11,
    "atlas.md": 550,
    "diagnosis.md": 60,
    "frontier.md": 70,
    "language.md": 390,
    "reproduction.md": 500,
    "results.md": 95,
    "theory.md": 20,
    "training.md": 200,
    "verify.md": 2,
    "which_sampler.md": 80,
    "worlds.md": 800,
    "your_model.md": 18,
}
Cli = Callable[..., tuple[int, str, str]]


def test_the_documents_say_what_their_sources_say(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(theory, "check_all", computed_lemmas)  # once per process
    code, out, err = cli("verify", "--json", *(str(page.relative_to(ROOT)) for page in PAGES))
    assert code in (0, 1), err
    results = {Path(r["path"]).name: r["ties"] for r in json.loads(out)}
    wrong = [
        f"{name}:{t['line']}: {t['printed']}; {t['source']}: {t['says']}"
        for name, ties in results.items()
        for t in ties
        if not t["agrees"]
    ]
    assert not wrong and code == 0, wrong
    assert {name: n for name, n in LEAST.items() if len(results[name]) < n} == {}


def test_the_readme_counts_the_zoo() -> None:
    """It stands in a block of code, where no comment goes."""
    models = json.loads((ROOT / "zoo/manifest.json").read_text())["models"]
    assert f"{len(models)} trained models" in (ROOT / "README.md").read_text()


# ---- every form of comment, with the right number and with a wrong one

ATLAS = "results/atlas denoiser=oracle"
FRONT = "`maskwalk compare results/prompts --json`"
DUEL = "benchmarks/worlds_answers.py:carries results/carries"
CARRIES = "| Addition, plain | entropy | 9.0 | .0018 ± .0021 | .0002 ± .0004 | .0005 ± .0010 |"
HEAD = "| order of the digits | sampler | calls | a | b | c |\n|---|---|---|---|---|---|\n"
FORMS = {
    "a record": (
        f"It has .404. <!-- verify: {ATLAS} title=Tree task=unconditional sampler=dus(base=2) -->",
        ".404",
        ".405",
    ),
    "a shaped record, its distance to the law in another": (
        f"It has .297. <!-- verify: {ATLAS} title=\"2 communities, b=1\""
        " sampler=low_confidence(steps=8) -->",
        ".297",
        ".298",
    ),
    "its interval": (
        f"Text .404 ± .043 <!-- verify: {ATLAS} title=Tree task=unconditional sampler=dus(base=2)"
        " --> goes on.",
        "± .043",
        "± .022",
    ),
    "several values": (
        f"x (.678, .672) <!-- verify: {ATLAS} task=endpoints sampler=entropy(block=2)"
        " title=Tree,p=.005 -->",
        ".672",
        ".673",
    ),
    "parts, one not tied": (
        f"x .404 at .5, .088 <!-- verify: {ATLAS} sampler=dus(base=2) ; title=Tree"
        ' task=unconditional ; - ; title="2 communities, b=1" -->',
        ".404",
        ".405",
    ),
    "parts with sources of their own": (
        f"from .404 to 1.3313 <!-- verify: {ATLAS} title=Tree task=unconditional"
        " sampler=dus(base=2) ; zoo/manifest.json key=models/st_er_p0/bound -->",
        ".404",
        ".405",
    ),
    "a base for what follows": (
        f"<!-- verify with: {ATLAS} title=Tree -->\n\nx .777 <!-- verify: task=endpoints"
        " sampler=halton(steps=4) --> y",
        ".777",
        ".778",
    ),
    "an extreme": (
        "at most .275 <!-- verify: results/atlas denoiser=model title=\"Chain of 10\" of=max -->",
        ".275",
        ".276",
    ),
    "a count": (
        "of 43 rules, 181 settings <!-- verify: results/atlas of=count whole ; field=sampler.name ;"
        " field=sampler --> there",
        "43",
        "42",
    ),
    "a field": (
        'floor .217 <!-- verify: results/paper title="Degree 7" task=unconditional'
        " mode=as_published sampler=random(block=1) metric=tv1.floor -->",
        ".217",
        ".222",
    ),
    "a difference": (
        "own −.128 ± .020 <!-- verify: results/language mode=exact sampler=bisection(order=8)"
        " against=random(block=6) metric=own_bpb -->",
        "−.128",
        "+.128",
    ),
    "a bound": (
        "so ≤ 1.619 <!-- verify: results/language mode=exact sampler=random(block=6)"
        " metric=replay_bpb -->",
        "≤ 1.619",
        "1.619",
    ),
    "JSON": (
        "a bound of 1.3313 ± .0126 <!-- verify: zoo/manifest.json key=models/st_er_p0/bound -->",
        "1.3313",
        "1.3314",
    ),
    "a table of a file": (
        "in 0.66 ms <!-- verify: benchmarks/RESULTS.md row=\"one CUDA graph, seven\" column=ms -->",
        "0.66",
        "0.67",
    ),
    "words of a file": (
        "took 3 min 52 s <!-- verify: benchmarks/RESULTS.md \"3 min 52 s\" --> there",
        "3 min 52 s",
        "3 min 53 s",
    ),
    "a table of a Python file": (
        f"<!-- verify: {DUEL} part -->\n{HEAD}{CARRIES}\n",
        ".0018",
        ".0019",
    ),
    "a number of a Python file": (
        f"wrong in .0005 ± .0010 <!-- verify: {DUEL} row=\"Addition, plain | entropy | 9.0\""
        " column=\"chains of 4 to 8\" -->",
        "± .0010",
        "± .0011",
    ),
    "rows and columns": (
        f"<!-- verify: {ATLAS} task=unconditional\nrow: sampler=bisection(order=1)\n"
        "row: sampler=dus(base=2)\ncolumns: - ; title=Tree ; title=p=.005\n-->\n"
        "| | tree | .005 |\n|---|---|---|\n| bisection | 1.000 | 1.000 |\n| DUS | .404 | .129 |\n",
        ".129",
        ".128",
    ),
    "a row's parts": (
        f"<!-- verify: {ATLAS}\nrow: title=Tree task=unconditional ; sampler=dus(base=2) ;"
        " sampler=dus(base=3)\nrow: -\n-->\n"
        "| a | b |\n|---|---|\n| DUS .404 | .076 |\n| other | .5 |\n",
        ".404",
        ".403",
    ),
    "words of the table": (
        "<!-- verify: zoo/manifest.json\nrow: key=models/{1}/bound\n-->\n"
        "| model | bound |\n|---|---|\n| st_er_p0 | 1.3313 |\n| two_b1 | 2.3710 |\n",
        "2.3710",
        "2.3711",
    ),
    "a row of its own": (
        f"| a | b |\n|---|---|\n| DUS | .404 <!-- verify: {ATLAS} title=Tree task=unconditional"
        " sampler=dus(base=2) --> |\n",
        ".404",
        ".444",
    ),
    "a fenced block": (
        f"<!-- verify: {ATLAS} task=unconditional title=Tree,p=.005\n"
        "row: sampler=dus(base=2)\n-->\n"
        "```\nsampler   tree  other\ndus       0.404±.043   0.129\n```\n",
        "0.129",
        "0.130",
    ),
}  # fmt: skip


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Callable[..., tuple]:
    monkeypatch.chdir(ROOT)

    def check(text: str, *words: str) -> tuple[int, str, str]:
        (tmp_path / "page.md").write_text(text, "utf-8")
        return cli("verify", str(tmp_path / "page.md"), *words)

    return check


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_number_is_found_in_every_form(page: Callable[..., tuple], form: str) -> None:
    text, right, wrong = FORMS[form]
    code, out, err = page(text)
    assert code == 0 and re.search(r"([1-9]\d*) numbers? tied, \1 agree", out), out + err
    at = text.index(right, text.index("-->") if text.startswith("<!--") else 0)
    code, out, err = page(text[:at] + wrong + text[at + len(right) :])
    line = text.count("\n", 0, at) + 1
    assert code == 1 and f"page.md:{line}: " in out, out + err


def test_a_commands_numbers_and_words(page: Callable[..., tuple]) -> None:
    said = json.loads(page(f"x .000 <!-- verify: {FRONT} key=rmse_above -->", "--json")[1])
    right = said[0]["ties"][0]["says"]
    assert page(f"x {right} <!-- verify: {FRONT} key=rmse_above -->")[0] == 0
    words = '<!-- verify: `maskwalk compare results/prompts` "{}" -->'
    good, bad = "cells differ by more than 3 combined", "cells differ by more than 4 combined"
    assert page(f"41 {good} {words.format(good)}")[0] == 0
    code, out, _ = page(f"41 {bad} {words.format(bad)}")
    assert code == 1 and "does not stand there" in out
    code, out, _ = page(f"41 other words {words.format(good)}")
    assert code == 1 and "does not stand in this document" in out


def test_a_number_of_a_real_page_that_goes_stale_is_found(page: Callable[..., tuple]) -> None:
    """The whole document of the language run, with one number of its table as it is not."""
    text = (ROOT / "docs" / "language.md").read_text("utf-8")
    assert text.count("≤ 1.607 ± .027") == 1
    code, out, _ = page(text.replace("≤ 1.607 ± .027", "≤ 1.599 ± .027"))
    assert code == 1 and "≤ 1.599 ± .027 is printed" in out and out.count("is printed") == 1


def test_a_row_taken_out_of_a_whole_table_is_missed(page: Callable[..., tuple]) -> None:
    code, out, _ = page(f"<!-- verify: {DUEL} -->\n{HEAD}{CARRIES}\n")
    assert code == 1 and "35 more rows" in out


# ---- a comment that names nothing

MISTAKES = {
    "no such folder": ("x .5 <!-- verify: results/nothing sampler=dus -->", "no file or folder"),
    "no such setting": (f"x .5 <!-- verify: {ATLAS} smapler=dus -->", "Did you mean 'sampler'"),
    "no such value": (f"x .5 <!-- verify: {ATLAS} title=Oak -->", "Known:"),
    "two records": (f"x .5 <!-- verify: {ATLAS} title=Tree sampler=dus(base=2) -->", "which task"),
    "no such metric": (
        f"x .5 <!-- verify: {ATLAS} title=Tree task=endpoints sampler=dus(base=2) metric=mauve -->",
        "Unknown metric",
    ),
    "too few numbers": (
        f"x .5 <!-- verify: {ATLAS} task=endpoints sampler=dus(base=2) title=Tree,p=.005 -->",
        "ties 2 numbers, and 1 stand before it",
    ),
    "no such key": ("x .5 <!-- verify: zoo/manifest.json key=models/x -->", "Unknown key"),
    "no JSON": ("x .5 <!-- verify: benchmarks/RESULTS.md key=a -->", "is no JSON"),
    "no number": ("x .5 <!-- verify: zoo/manifest.json key=models/st_er_p0 -->", "is no number"),
    "no such row": ("x .5 <!-- verify: benchmarks/RESULTS.md row=x column=ms -->", "0 cells"),
    "nothing asked": ("x .5 <!-- verify: benchmarks/RESULTS.md -->", "needs key="),
    "rows that do not fit": (
        f"<!-- verify: {ATLAS}\nrow: title=Tree\nrow: title=Tree\n-->\n| a |\n|---|\n| .5 |\n",
        "has 2 rows, and 1 stand below it",
    ),
    "columns that do not fit": (
        f"<!-- verify: {ATLAS}\nrow: title=Tree\ncolumns: - ; - ; -\n-->\n| a |\n|---|\n| .5 |\n",
        "3 columns are named",
    ),
    "rows without a table": (f"x .5 <!-- verify: {ATLAS}\nrow: title=Tree -->", "need a table"),
    "a command that writes": ("x .5 <!-- verify: `maskwalk bench x` key=a -->", "may write"),
    "no source": ("x .5 <!-- verify: title=Tree -->", "names no source"),
    "a quote left open": ('x .5 <!-- verify: results/atlas title="Tree -->', "is missing"),
    "tied twice": (
        "x 1.3313 <!-- verify: zoo/manifest.json key=models/st_er_p0/bound -->"
        " <!-- verify: zoo/manifest.json key=models/st_er_p0/bound -->",
        "tied by an earlier comment",
    ),
    "a table of records": (f"<!-- verify: {ATLAS} -->\n| a |\n|---|\n| .5 |\n", "as a whole needs"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_comment_that_names_nothing_is_a_sentence(
    page: Callable[..., tuple], mistake: str
) -> None:
    text, said = MISTAKES[mistake]
    code, _, err = page("First line.\n\n" + text)
    words = " ".join(err.split())
    assert code == 2 and said in words and "page.md:3: " in words and "Traceback" not in err, err


def test_a_document_that_cannot_be_read_is_a_sentence(cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("verify", str(tmp_path / "none.md"))
    assert code == 2 and "none.md" in err
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe .5")
    code, _, err = cli("verify", str(tmp_path / "bytes.md"))
    assert code == 2 and "UTF-8" in err


# ---- what nothing ties, and examples


def test_untied_numbers_are_listed(page: Callable[..., tuple]) -> None:
    text = (
        "Two: .404 <!-- verify: results/atlas denoiser=oracle title=Tree task=unconditional"
        " sampler=dus(base=2) --> and .5 ± .1, 1.234, p = .05, `0.125` in code.\n\n"
        "    maskwalk sample 0.125\n\n```\n0.999 ± .1\n```\n"
    )
    code, out, _ = page(text, "--untied")
    assert code == 0 and "1 number tied, 1 agrees, 2 not tied" in out
    assert "page.md:1: .5 ± .1 is not tied" in out and "page.md:1: 1.234 is not tied" in out


def test_an_example_in_code_is_no_comment(page: Callable[..., tuple]) -> None:
    text = "```\n.5 <!-- verify: nothing here -->\n```\n\n`<!-- verify: nor here -->`\n"
    code, out, _ = page(text)
    assert code == 0 and "0 numbers tied" in out


# ---- the parts


@pytest.mark.parametrize(
    ("printed", "value", "half", "same"),
    [
        (".404 ± .043", 0.40449, 0.0434, True),
        (".404 ± .043", 0.40449, 0.0436, False),
        (".404", 0.40449, None, True),
        (".405", 0.40449, 0.1, False),
        ("−.000", -0.0001, None, True),
        ("-.261", -0.2612, None, True),
        ("1,188", 1188.0, None, True),
        ("0.33", 0.325, None, True),
        (".5 ± .1", 0.5, None, False),
    ],
)
def test_numbers_are_compared_at_the_printed_digits(
    printed: str, value: float, half: float | None, same: bool
) -> None:
    (number,) = numbers(f"x {printed} y")
    assert agrees(number, Truth(value, half)) is same


def test_numbers_of_a_text() -> None:
    text = "5.0–7.1 calls, H200, 2⁻⁸, b=1, e^11, 1e-12, v1.2.3, ×31, .03\n± .05, 45,010 (≤ 1.6)"
    found = [str(number) for number in numbers(text)]
    assert found == ["5.0", "7.1", "1", "31", ".03 ± .05", "45,010", "≤ 1.6"]


def test_a_list_is_split_outside_quotes_and_brackets() -> None:
    words = "a=b(c=1, d='x y') e=\"f; g\" [h i] `j k`"
    assert split(words) == ["a=b(c=1, d='x y')", 'e="f; g"', "[h i]", "`j k`"]
    assert split('1;"2;3";f(4;5)', ";") == ["1", '"2;3"', "f(4;5)"]
