"""lm-evaluation-harness with a model of ours, on tasks made of local files.

`make test` installs the harness; skipped where it is not (pip install 'maskwalk[harness]').
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.errors import MaskwalkError
from tests.text_files import LINES, eager

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # the harness and its libraries have many
standins = pytest.importorskip("maskwalk.denoisers.language.standins")
harness: Any = pytest.importorskip("maskwalk.bench.harness", reason="lm-eval is not installed")

CHOICES = """
task: local_choice
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{label}}}}"
metric_list:
  - metric: acc
"""
WRITING = """
task: local_writing
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{choices[0]}}}}"
generation_kwargs:
  until: ["door"]
  max_gen_toks: 6
metric_list:
  - metric: exact_match
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in of LLaDA, three questions, and two tasks on them."""
    folder = tmp_path_factory.mktemp("harness")
    standins.STAND_INS["llada"](folder / "llada")
    rows = [{"question": LINES[i], "choices": ["the cat", "a door"], "label": 0} for i in (0, 1)]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "tasks").mkdir()
    for name, text in (("choice", CHOICES), ("writing", WRITING)):
        (folder / "tasks" / f"{name}.yaml").write_text(text.format(data=folder / "data.jsonl"))
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return harness.MaskwalkLM(f"hf:{folder / 'llada'}", "left_to_right")


def asked(*args: Any) -> Any:
    return SimpleNamespace(args=args)


def test_the_likelihood_of_a_continuation_is_the_models_own(model: Any) -> None:
    own, (context, after) = model.model, (LINES[0], " the door")
    before, tokens = own.encode(context), own.encode(after)
    row, total, greedy = torch.tensor([[*before, *[own.mask] * len(tokens)]]), 0.0, True
    for i, token in enumerate(tokens, len(before)):
        at = torch.zeros_like(row, dtype=torch.bool)
        at[0, i] = True
        answer = own.denoiser(row, at)[0]
        total += float(answer[token])
        greedy &= int(answer.argmax()) == token
        row[0, i] = token
    ((found, best),) = model.loglikelihood([asked(context, after)])
    assert found == pytest.approx(total, abs=1e-4) and best is greedy
    written = model.generate_until([asked(context, {"max_gen_toks": 3})])  # drawn, not the argmax
    assert isinstance(written[0], str)


@pytest.mark.parametrize("adds", [False, True])
def test_a_causal_model_is_scored_behind_what_its_tokenizer_adds(
    adds: bool, tmp_path: Path
) -> None:
    """And behind a beginning that the context has already, as a chat's may, no second one."""
    made = harness.MaskwalkLM(f"hf:{standins.STAND_INS['gpt2'](tmp_path / 'gpt2')}")
    own = made.model.denoiser
    own.adds, begin = adds, own.begin
    before, after = made.model.encode(LINES[0]), made.model.encode(" the door")

    def alone(read: list[int]) -> float:
        with torch.no_grad():
            logits = own.model(torch.tensor([[*read, *after]])).logits[0]
        logits[:, [t for t in own.forbidden if t < logits.shape[1]]] = -torch.inf
        steps = range(len(read) - 1, len(read) + len(after) - 1)
        return sum(float(logits[i].log_softmax(-1)[t]) for i, t in zip(steps, after))

    with_begin, without = alone([begin, *before]), alone(before)
    assert abs(with_begin - without) > 1e-3
    wanted = [with_begin if adds else without, with_begin, alone([begin])]
    contexts = [before, [begin, *before], []]
    asks = [made._ask(i, context, after) for i, context in enumerate(contexts)]
    assert [score for score, _ in made._scored(asks)] == pytest.approx(wanted, abs=1e-3)


def test_a_beginning_that_a_context_has_is_not_given_again(tmp_path: Path) -> None:
    made = harness.MaskwalkLM(f"hf:{standins.STAND_INS['bert'](tmp_path / 'bert')}")
    (begin,) = made.model.begin
    plain, chat = (made.loglikelihood([asked(c, "cat")]) for c in ("the", "[CLS] the"))
    assert made.model.encode("[CLS] the")[0] == begin and plain == chat
    texts = [made.generate_until([asked(c, {"max_gen_toks": 6})]) for c in ("the", "[CLS] the")]
    assert texts[0] == texts[1]


def test_what_argmax_draws_write_is_greedy(folder: Path) -> None:
    best = harness.MaskwalkLM(f"hf:{folder / 'llada'}", "left_to_right", draw="draw(temperature=0)")
    (written,) = best.generate_until([asked(LINES[0], {"max_gen_toks": 3})])
    told: dict[str, Any] = {"new_tokens": 3, "draw": best.draw, "stop": False}
    made = generate(best.model, best.rule, prompt=LINES[0], **told)
    tokens, after = made.tokens[0][made.given[0]].tolist(), made.tokens[0][~made.given[0]].tolist()
    assert written == made.answers[0]
    drawing = harness.MaskwalkLM(f"hf:{folder / 'llada'}", "left_to_right")
    for other, right in (([], True), ([(after[-1] + 1) % 200], False)):
        ask = harness.Ask(0, tuple(tokens), (*after[: 3 - len(other)], *other))
        ((scored, greedy),) = drawing._scored([ask])
        assert scored < 0 and greedy is right
    assert best.generate_until([asked(LINES[0], {"max_gen_toks": 3, "until": [written]})]) == [""]


def test_a_preset_is_that_of_generate(folder: Path) -> None:
    """Texts and likelihoods: what is ranked, what may be drawn, and that an end stops nothing."""
    eagerly = eager(folder / "llada", folder / "eager")
    made = harness.MaskwalkLM(f"hf:{eagerly}", preset="llada")
    asks = [asked(line, {"max_gen_toks": 12}) for line in LINES]
    text: dict[str, Any] = {"new_tokens": 12}
    whole, drawn = (
        [generate(made.model, prompt=line, **told, **text).answers[0] for line in LINES]
        for told in ({"preset": "llada"}, {"sampler": made.rule, "draw": "llada"})
    )
    assert made.generate_until(asks) == whole != drawn
    left = harness.MaskwalkLM(f"hf:{eagerly}", "left_to_right", preset="llada", draw="draw()")
    own, after = left.model, left.model.encode("cat")[:1]
    row = torch.tensor([[*own.encode(LINES[0]), own.mask]])
    with torch.no_grad():
        logits = own.denoiser.model(row).logits[0, -1]
    logits[own.mask] = -torch.inf  # any other token may be drawn
    ask = harness.Ask(0, tuple(own.encode(LINES[0])), tuple(after), 0, False)
    ((found, _),) = left._scored([ask])
    assert found == pytest.approx(float(logits.log_softmax(-1)[after[0]]), abs=1e-4)
    plain = harness.MaskwalkLM(f"hf:{eagerly}", "left_to_right")
    assert plain._scored([ask])[0][0] > found + 1e-3


@pytest.mark.parametrize("rows", [1, 3])
def test_requests_together_are_answered_as_alone(folder: Path, rows: int) -> None:
    made = harness.MaskwalkLM(f"hf:{folder / 'llada'}", "entropy(block=2)", seed=3, rows=rows)
    sizes = (7, 9, 7, 7)
    asks = [asked(line, {"max_gen_toks": n}) for line, n in zip((*LINES, LINES[0]), sizes)]
    found = made.generate_until(asks)
    for number, (ask, size) in enumerate(zip(asks, sizes)):
        told: dict[str, Any] = {"prompt": ask.args[0], "new_tokens": size, "seed": 3}
        alone = generate(made.model, made.rule, numbers=[number], **told)
        assert found[number] == alone.answers[0]
    assert found[0] != found[3]  # the same context, drawn apart


def test_a_chat_ends_at_the_end_of_its_turn(folder: Path) -> None:
    made = harness.MaskwalkLM(f"hf:{folder / 'llada'}")
    turn = made.model.tokenizer.convert_tokens_to_ids("<|eot_id|>")
    assert turn not in made._ending(["<|eot_id|>"]).ends  # a text, until a template wrote it
    context = made.apply_chat_template([{"role": "user", "content": "the cat"}])
    assert turn in made._ending([context]).ends and turn not in made.model.ends


@pytest.mark.parametrize("rows", [1, 3])
def test_likelihoods_together_are_those_alone(folder: Path, rows: int) -> None:
    """Of any length, with the numbers of their requests; and the network is asked less often."""
    made = narrow(
        harness.MaskwalkLM(f"hf:{folder / 'llada'}", "random(block=2)", seed=3, rows=rows)
    )
    afters = (" the door", " the cat sat", " the mat", "", " a walk " * 20)
    asks = [asked(context, after) for context in (*LINES[:2], "") for after in afters]
    own, calls = made.model.denoiser, [0]
    forward = own.model.forward

    def counted(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        return forward(*args, **options)

    own.model.forward = counted
    alone = []
    for number, ask in enumerate(asks):
        before, after = (tuple(made.model.encode(text)) for text in ask.args)
        alone += made._scored([harness.Ask(number, before, after)])
    apart, calls[0] = calls[0], 0
    found = made.loglikelihood(asks)
    assert calls[0] < apart if rows > 1 else calls[0] == apart
    assert [best for _, best in found] == [best for _, best in alone]
    assert [p for p, _ in found] == pytest.approx([p for p, _ in alone], abs=1e-4)
    assert found == alone if rows == 1 else len(set(found)) > 10
    assert len({p for p, _ in made.loglikelihood([asks[0]] * 4)}) > 1  # numbers of their own


def narrow(model: Any, longest: int = 128) -> Any:
    """The same model, allowed to read less."""
    model.model = replace(model.model, longest=longest)
    return model


def test_rolling_windows_add_up(folder: Path) -> None:
    model = narrow(harness.MaskwalkLM(f"hf:{folder / 'llada'}", "left_to_right"))
    text = " ".join(LINES * 9)
    tokens, width = model.model.encode(text), model.model.longest
    assert len(tokens) > width
    parts = [tuple(tokens[at : at + width]) for at in range(0, len(tokens), width)]
    wanted = sum(model._scored([harness.Ask(0, (), part, 0, False)])[0][0] for part in parts)
    assert model.loglikelihood_rolling([asked(text)]) == [pytest.approx(wanted)]
    assert model.loglikelihood([asked("", "")]) == [(0.0, True)]


def test_a_context_that_does_not_fit_loses_its_beginning(folder: Path) -> None:
    model = narrow(harness.MaskwalkLM(f"hf:{folder / 'llada'}"))
    text = " ".join(LINES * 9)
    kept = model._fitting(text, 16)
    turn = "<|eot_id|>"  # tokens that make a chat are kept, too
    assert model._fitting(f"{text}{turn}the cat", 16).endswith(f"{turn}the cat")
    assert text.endswith(kept.strip()) and len(model.model.encode(kept)) <= model.model.longest - 16
    with pytest.raises(MaskwalkError, match="no room"):
        model._fitting(text, model.model.longest)


def test_arguments_as_the_harness_hands_them_over(folder: Path) -> None:
    text = f"denoiser=hf:{folder / 'llada'},sampler=blocks(size=4, inner=entropy(block=2)),rows=2"
    made = harness.MaskwalkLM.create_from_arg_string(text, {"batch_size": 1, "device": None})
    assert (
        "Blocks(size=4, inner=Entropy(block=2" in repr(made.rule) and made.model.denoiser.rows == 2
    )
    for arguments, sentence in (
        ({"nobody": 1}, "Unknown argument"),
        ({"sampler": "nobody"}, "Unknown sampler"),
        ({"chat": "true"}, "Unknown argument"),
    ):
        with pytest.raises(MaskwalkError, match=sentence) as problem:
            harness.MaskwalkLM(f"hf:{folder / 'llada'}", **arguments)
        assert str(problem.value).count("chat") == ("chat" in arguments)  # it is no argument
    with pytest.raises(MaskwalkError, match="cannot be replayed"):
        harness.MaskwalkLM(f"hf:{folder / 'llada'}", "p2(steps=4)").loglikelihood([asked("", "a")])


def test_the_harness_runs_tasks_of_local_files(folder: Path, model: Any) -> None:
    """The command, as a person types it; its numbers are the model's own."""
    words = ["--model", "maskwalk", "--model_args", f"denoiser=hf:{folder / 'llada'}"]
    words += ["sampler=left_to_right", "--tasks", "local_choice,local_writing", "--include_path"]
    words += [str(folder / "tasks"), "--output_path", str(folder / "out"), "--log_samples"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "maskwalk.bench.harness", "run", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (results,) = (folder / "out").rglob("results_*.json")
    numbers = json.loads(results.read_text())["results"]
    pairs = [[asked(LINES[i], choice) for choice in (" the cat", " a door")] for i in (0, 1)]
    right = [model.loglikelihood(pair) for pair in pairs]
    share = sum(one[0][0] > one[1][0] for one in right) / 2
    assert numbers["local_choice"]["acc,none"] == share
    assert 0.0 <= numbers["local_writing"]["exact_match,none"] <= 1.0
    (log,) = (folder / "out").rglob("samples_local_choice_*.jsonl")
    first = json.loads(log.read_text().splitlines()[0])
    logged = [float(pair[0][0]) for pair in first["resps"]]
    told = [one[0] for one in right[first["doc_id"]]]
    assert logged == pytest.approx(told, abs=1e-3)
