"""`maskwalk text score`: answers read and compared, sums as text, records that can be drawn."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.scoring import Exam, answered
from maskwalk.decoding.generation import generate
from maskwalk.denoisers.digits import Digits, digit_model, of_sums, sums
from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.text.questions import Marking, Question, read_questions
from tests.text_files import LINES, eager

Cli = Callable[..., tuple[int, str, str]]
WORLD = "addition(digits=2)"


@pytest.mark.parametrize(
    ("marking", "written", "answers", "right"),
    [
        (Marking(), " 46 ", ["46"], True),
        (Marking(), "046", ["46"], False),
        (Marking("number"), "046", ["46"], True),
        (Marking("number"), "4,600", ["4600"], True),
        (Marking("number"), "46.0", ["46"], True),
        (Marking("number"), "forty", ["46"], False),
        (Marking("number"), "", [""], False),
        (Marking(), "b", ["a", "b"], True),
        (Marking(until=("\n", "Q")), "46\nQ: 47", ["46"], True),
        (Marking(until=("Q", "\n")), "46Q\n", ["46"], True),
        (Marking("number", r"-?\d+"), "so 12 and 34 make 46.", ["46"], True),
        (Marking("number", r"#### (\d+)"), "it is 7 #### 46", ["46"], True),
        (Marking("text", r"\d+"), "none", ["46"], False),
    ],
)
def test_answers_are_read_and_compared(
    marking: Marking, written: str, answers: list[str], right: bool
) -> None:
    assert marking.right(written, answers) is right


def test_a_marking_says_what_is_wrong_with_it() -> None:
    with pytest.raises(MaskwalkError, match="no pattern"):
        Marking(pattern="(")
    with pytest.raises(MaskwalkError, match="compare"):
        Marking(compare="meaning")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 1"),
        ("[]", "a question is"),
        ('{"prompt": "x"}', "a question is"),
        ('{"prompt": "x", "template": "{2}", "answer": "1"}', "a question is"),
        ('{"prompt": "x", "answer": []}', "a question is"),
        ("\n", "no questions"),
    ],
)
def test_files_of_questions_that_cannot_be_used(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "q.jsonl").write_text(line)
    with pytest.raises(MaskwalkError, match=sentence):
        read_questions(tmp_path / "q.jsonl")


def test_questions_of_both_kinds(tmp_path: Path) -> None:
    rows = [{"prompt": "1+1=", "answer": 2}, {"template": "1+{1}=2", "answer": ["1", "01"]}]
    (tmp_path / "q.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    first, second = read_questions(tmp_path / "q.jsonl")
    assert (first.text, first.template, first.answers) == ("1+1=", False, ("2",))
    assert (second.text, second.template, second.answers) == ("1+{1}=2", True, ("1", "01"))


def test_sums_are_those_of_the_worlds_own_task() -> None:
    rows = list(sums(3, 20, seed=4))
    for row in rows:
        a, b = row["prompt"].rstrip("=").split("+")
        assert len(a) == len(b) == 3 and int(a) + int(b) == int(row["answer"])
    assert len({row["prompt"] for row in rows}) > 15
    assert rows[:5] == list(sums(3, 5, seed=4)) and rows != list(sums(3, 20, seed=5))


def test_a_perfect_denoiser_adds_without_a_mistake() -> None:
    model = digit_model("oracle", WORLD)
    for row in list(sums(2, 6)):
        made = generate(model, "random(block=1)", prompt=row["prompt"], length=7)
        assert made.texts[0].startswith(row["prompt"].replace("+", "").rstrip("="))
        assert int(made.texts[0][4:]) == int(row["answer"])
    assert Digits().encode(" 1 2+3=") == [1, 2, 3] and Digits().decode([1, 2, 10]) == "12"
    assert of_sums("oracle", WORLD) and of_sums("zoo:addition", None)
    assert not of_sums("oracle", "dyck") and not of_sums("zoo:two_b1", None)
    with pytest.raises(MaskwalkError, match="no world of sums"):
        digit_model("oracle", "addition(digits=2, base=3)")


def test_accuracy_against_calls_is_a_record_like_any_other(cli: Cli, tmp_path: Path) -> None:
    file, to = str(tmp_path / "sums.jsonl"), tmp_path / "scores"
    assert cli("text", "sums", file, "--digits", "2", "--count", "12")[0] == 0
    words = ["text", "score", file, "--denoiser", "oracle", "--world", WORLD, "--compare", "number"]
    words += ["--sampler", "random(block=1)", "--sampler", "random(block=3)", "--out", str(to)]
    code, out, err = cli(*words, "--json")
    assert code == 0, err
    one, all_at_once = json.loads(out)
    assert one["metrics"]["accuracy"]["value"] == 1.0 and one["metrics"]["calls"]["value"] == 3.0
    # The sum of given operands is determined: its digits do not depend on each other.
    assert all_at_once["metrics"]["accuracy"]["value"] == 1.0
    assert all_at_once["metrics"]["calls"]["value"] == 1.0
    assert len(one["answers"]) == 12 and all(a["right"] for a in one["answers"])
    code, out, err = cli(*words)
    assert code == 0 and "1.000 ±" in out and "12 questions" in out, err
    assert len((to / "records.jsonl").read_text().splitlines()) == 2  # nothing was run again
    code, out, err = cli("report", str(to))
    page = (to / "report.html").read_text()
    assert code == 0 and "<h1>sums: accuracy against calls</h1>" in page, err
    assert "no quality with its cost" not in page  # it is what a sampler leads by


def test_gaps_are_filled_and_wrong_answers_are_wrong(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"template": "12{2}046", "answer": "34"},
        {"template": "12{2}046", "answer": "35"},
        {"prompt": "1234", "answer": "046"},
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("text", "score", str(tmp_path / "q.jsonl"), "--denoiser", "oracle", "--world", WORLD)
    code, out, err = cli(*words, "--sampler", "left_to_right", "--json")
    assert code == 0, err
    (record,) = json.loads(out)
    assert [a["written"] for a in record["answers"]] == ["34", "34", "046"]
    assert record["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3)
    code, out, _ = cli(*words, "--sampler", "left_to_right", "--json", "--count", "1")
    assert json.loads(out)[0]["count"] == 1
    code, _, err = cli("text", "score", str(tmp_path / "q.jsonl"), "--denoiser", "zoo:two_b1")
    assert code == 2 and "no model of text" in err


RULE = "blocks(size=8, inner=low_confidence(steps=4))"


def asked_of(folder: Path) -> Path:
    """Questions with prompts of several lengths, the first of them twice."""
    rows = [{"prompt": text, "answer": "x"} for text in (*LINES, "the cat", LINES[0])]
    (folder / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "q.jsonl"


def test_a_preset_is_that_of_generate(cli: Cli, tmp_path: Path) -> None:
    """All of it: what is ranked, what may be drawn, and that an end does not stop it."""
    pytest.importorskip("transformers")
    folder = eager(STAND_INS["llada"](tmp_path / "llada"), tmp_path / "eager")
    words = ["text", "score", str(asked_of(tmp_path)), "--denoiser", f"hf:{folder}", "--new", "24"]
    words += ["--sampler", RULE, "--out", str(tmp_path / "out"), "--json"]
    code, out, err = cli(*words, "--preset", "llada")
    assert code == 0, err
    (record,) = json.loads(out)
    model = load(folder)
    text: dict[str, Any] = {"new_tokens": 24}
    prompts = [answer["question"] for answer in record["answers"]]
    whole = [generate(model, RULE, preset="llada", prompt=one, **text) for one in prompts]
    drawn = [generate(model, RULE, draw="llada", prompt=one, **text) for one in prompts]
    assert [a["written"] for a in record["answers"]] == [made.answers[0] for made in whole]
    assert [made.answers[0] for made in drawn] != [made.answers[0] for made in whole]
    assert record["metrics"]["calls"]["value"] == 12.0
    assert min(int(made.calls) for made in drawn) < 12  # which an end stopped
    assert record["decoding"].endswith("--score-grid 1e-12 --no-stop --special")
    # The draw alone is another decoding, with a record of its own.
    draw = ("--draw", "draw(temperature=0, over='all')", "--ties", "index")
    code, out, err = cli(*words, *draw)
    (other,) = json.loads(out)
    assert other["key"] != record["key"] and other["draw"] == record["draw"]
    assert [a["written"] for a in other["answers"]] == [made.answers[0] for made in drawn]


@pytest.mark.parametrize("rows", [1, 3])
def test_questions_together_are_answered_as_alone(rows: int, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = load(STAND_INS["llada"](tmp_path / "llada"), rows=rows)
    questions = read_questions(asked_of(tmp_path))
    questions.insert(1, Question("the {3} sat on {2} door", True, ("x",)))
    exam = Exam("hf:x", str(tmp_path / "q.jsonl"), len(questions), new=9, seed=4)
    rule = SAMPLERS.build("entropy(block=2)")
    every = answered(model, exam, rule, questions)
    assert sorted(every) == list(range(len(questions)))
    told: dict[str, Any] = {"seed": 4, "new_tokens": 9}
    for number, question in enumerate(questions):
        if question.template:
            made = generate(model, rule, template=question.text, numbers=[number], seed=4)
            written = model.decode(made.tokens[0][~made.given[0]].tolist())
        else:
            made = generate(model, rule, prompt=question.text, numbers=[number], **told)
            written = made.answers[0]
        assert every[number].text == written, number
        assert every[number].calls == int(made.calls)
        assert every[number].masked == int((~made.given).sum())
        assert every[number].length == made.tokens.shape[1]
    assert every[0].text != every[len(questions) - 1].text  # the same prompt, drawn apart
    with pytest.raises(MaskwalkError, match="no chat"):
        answered(model, replace(exam, chat=True), rule, questions)
    for numbers, sentence in (([1, 2], "as many numbers"), ([-1], "a number of a text")):
        with pytest.raises(MaskwalkError, match=sentence):
            generate(model, rule, prompt="the cat", numbers=numbers)
