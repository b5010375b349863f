"""Text as people ask for it: many prompts, chats, several ends, stop strings, answers, streams.

On stand-ins with random weights; where an end has to be drawn, its row of the last map is made that
of a common token.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.decoding.stopping import stop_in
from maskwalk.denoisers.language import LanguageModel, Masked, load
from maskwalk.denoisers.language.standins import STAND_INS
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.text.chat import conversation, wrapped
from maskwalk.worlds.text.prompt_files import read_prompts
from tests.text_files import with_head

pytest.importorskip("transformers")
PROMPTS = ["the cat", "a walk on a graph visits one", "once upon a time there was", "door"]
RULE = "blocks(size=8, inner=low_confidence(steps=4))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("llada", "dream", "bert", "mdlm", "gpt2"):
        STAND_INS[name](folder / name)
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    return {name: load(folder / name) for name in ("llada", "dream", "bert", "mdlm", "gpt2")}


def with_common(model: LanguageModel, token: int, **options: Any) -> LanguageModel:
    """The model with one token as likely as the commonest of a text."""
    changed = deepcopy(model)
    made = generate(model, RULE, preset="llada", **options)
    common = made.tokens[~made.given].mode().values
    weight = changed.denoiser.model.lm_head.weight.data  # type: ignore[attr-defined]
    weight[token] = 1.1 * weight[common]
    return changed


# --- many prompts


@pytest.mark.parametrize("name", ["llada", "dream", "bert", "mdlm", "gpt2"])
def test_a_prompt_does_not_see_the_others(name: str, models: dict[str, LanguageModel]) -> None:
    model = models[name]
    text: dict[str, Any] = {"new_tokens": 10, "count": 2, "seed": 5}
    every = generate(model, prompt=PROMPTS, **text)
    for number, prompt in enumerate(PROMPTS):
        alone = generate(model, prompt=prompt, **text)
        rows = slice(2 * number, 2 * number + 2)
        length = alone.tokens.shape[1]
        assert every.texts[rows] == alone.texts
        assert torch.equal(every.tokens[rows, :length], alone.tokens)
        assert bool((every.tokens[rows, length:] == model.mask).all())
        assert bool(every.given[rows, length:].all())
        assert torch.equal(every.calls[rows], alone.calls) and torch.equal(
            every.new[rows], alone.new
        )
        assert alone.texts[0] != alone.texts[1]


@pytest.mark.parametrize("name", ["llada", "dream", "bert"])
def test_padding_is_not_read(name: str, models: dict[str, LanguageModel], folder: Path) -> None:
    """Read together, shorter prompts are filled up in front: the same answers but for rounding."""
    together = load(folder / name, rows=4)
    assert isinstance(together.denoiser, Masked) and together.denoiser.can_skip
    plain = [generate(models[name], RULE, preset="llada", prompt=p, new_tokens=16) for p in PROMPTS]
    every = generate(together, RULE, preset="llada", prompt=PROMPTS, new_tokens=16)
    assert every.texts == [one.texts[0] for one in plain]
    tokens = torch.tensor([[7, 7, 7, *together.encode("the cat"), *[together.mask] * 4]])
    padded = deepcopy(together.denoiser)
    padded.skip = 7
    bare = together.denoiser(tokens[:, 3:])
    assert torch.allclose(padded(tokens).exp(), bare.exp(), atol=1e-5)
    assert not torch.allclose(together.denoiser(tokens).exp(), bare.exp(), atol=1e-3)


def test_no_sampler_sees_padding(folder: Path) -> None:
    """Drawn texts, too, are those of each prompt alone, whatever rule says where."""
    model = load(folder / "llada", rows=2)
    prompts, text = ["a walk on", "cat"], {"new_tokens": 6, "seed": 5}
    for name in SAMPLERS:
        every = generate(model, name, prompt=prompts, **text)  # type: ignore[arg-type]
        alone = [generate(model, name, prompt=one, **text) for one in prompts]  # type: ignore[arg-type]
        assert every.answers == [one.answers[0] for one in alone], name
        assert every.calls.tolist() == [int(one.calls) for one in alone], name
    nested = SAMPLERS.build("blocks(size=4, inner=halton(steps=2))")
    assert nested.by_place and not SAMPLERS.build("bisection").by_place


def test_files_of_prompts(tmp_path: Path, cli: Any, folder: Path) -> None:
    lines = tmp_path / "prompts.txt"
    lines.write_text("the cat\n\na walk on\n")
    assert read_prompts(lines) == ["the cat", "a walk on"]
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "the cat"}]
    chat.append({"role": "user", "content": "more"})
    table = tmp_path / "prompts.jsonl"
    values = ["two\nlines", {"prompt": "the dog"}, {"messages": chat}, chat]
    table.write_text("".join(json.dumps(value) + "\n" for value in values))
    assert read_prompts(table) == ["two\nlines", "the dog", chat, chat]
    words = ("generate", "--denoiser", f"hf:{folder / 'llada'}", "--sampler", RULE, "--json")
    code, out, err = cli(*words, "--prompt-file", str(table), "--new-tokens", "8", "--count", "2")
    found = json.loads(out)
    assert code == 0 and len(found["texts"]) == 8 and found["texts"][4] == found["texts"][6], err
    assert {"the cat", "more"} <= {m["content"] for m in found["prompt"][2]}
    assert found["texts"][2].startswith("the dog") and "the cat" in found["texts"][4]
    assert len(found["tokens"][0]) < len(found["tokens"][4]) == found["length"]
    for content, says in (
        ("\n\n", "every line of it is empty"),
        ("{", "line 1"),
        ("3", "is no prompt"),
        ('{"messages": [{"role": "user"}]}', "a role and a content"),
        ("[]", "at least one message"),
    ):
        table.write_text(content)
        with pytest.raises(MaskwalkError, match=says):
            read_prompts(table)
    table.write_bytes(b"\xff\xfe")
    with pytest.raises(MaskwalkError, match="UTF-8"):
        read_prompts(table)
    with pytest.raises(MaskwalkError, match="no file of prompts"):
        read_prompts(tmp_path / "none")


# --- chats


def test_a_system_message_and_several_turns(models: dict[str, LanguageModel]) -> None:
    model = models["llada"]
    turns = [{"role": role, "content": f"{role} says"} for role in ("user", "assistant", "user")]
    made = generate(model, RULE, prompt=turns, system="be short", new_tokens=8)
    head = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
    expected = "<|startoftext|>" + head.format("system", "be short")
    expected += "".join(head.format(turn["role"], turn["content"]) for turn in turns)
    expected += "<|start_header_id|>assistant<|end_header_id|>\n\n"
    assert made.tokens[0][made.given[0]].tolist() == model.encode(expected)
    one = generate(model, RULE, prompt="user says", chat=True, new_tokens=8)
    same = generate(model, RULE, prompt=turns[:1], new_tokens=8)
    assert torch.equal(one.tokens, same.tokens)
    for given, says in (
        ({"prompt": "x", "system": "y"}, "goes with a chat"),
        ({"prompt": [{"role": "user", "content": 3}]}, "a role and a content"),
        ({"prompt": [{"role": "system", "content": "a"}], "system": "b"}, "of its own"),
        ({"prompt": []}, "no prompt"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            generate(model, RULE, **given)  # type: ignore[arg-type]
    assert conversation("a", "b") == [
        {"role": "system", "content": "b"},
        {"role": "user", "content": "a"},
    ]


# --- where a text ends


def test_the_end_of_a_turn_ends_an_answer(models: dict[str, LanguageModel]) -> None:
    text: dict[str, Any] = {"prompt": "the cat", "chat": True, "new_tokens": 24}
    turn = models["llada"].tokenizer.convert_tokens_to_ids("<|eot_id|>")
    model = with_common(models["llada"], turn, **text)
    made = generate(model, RULE, **text, draw="llada")
    answer = made.tokens[0][~made.given[0]].tolist()
    where = answer.index(turn)
    assert int(made.new) == where + 1 < 24 and made.answers[0] == model.decode(answer[:where])
    assert made.texts[0].endswith(made.answers[0])
    # Outside a chat it is a token like others.
    plain = generate(model, RULE, prompt="the cat", new_tokens=24, draw="llada")
    assert int(plain.new) == 24


def test_messages_end_at_the_end_of_a_turn(
    models: dict[str, LanguageModel], folder: Path, tmp_path: Path, cli: Any
) -> None:
    """However a chat is given; a text beside it does not end there."""
    chat = [{"role": "user", "content": "the cat"}]
    text: dict[str, Any] = {"new_tokens": 24}
    turn = models["llada"].tokenizer.convert_tokens_to_ids("<|eot_id|>")
    model = with_common(models["llada"], turn, prompt="the cat", chat=True, **text)
    for stop in (False, None):
        told: dict[str, Any] = text | {"draw": "llada", "stop": stop}
        plain = generate(model, RULE, prompt="the cat", **told)
        asked = generate(model, RULE, prompt="the cat", chat=True, **told)
        assert int(asked.new) < 24 == int(plain.new)
        one = generate(model, RULE, prompt=chat, **told)
        both = generate(model, RULE, prompt=["the cat", chat], **told)
        assert one.answers == asked.answers and one.new.tolist() == asked.new.tolist()
        assert both.answers == [plain.answers[0], asked.answers[0]]
        assert both.new.tolist() == [24, int(asked.new)]
        assert int(one.calls) == int(asked.calls)
    network: Any = model.denoiser.model  # type: ignore[attr-defined]
    with_head(folder / "llada", tmp_path, network.lm_head.weight.data)
    (tmp_path / "chats.jsonl").write_text(json.dumps("the cat") + "\n" + json.dumps(chat))
    words = ("generate", "--denoiser", f"hf:{tmp_path}", "--sampler", RULE, "--draw")
    words += ("draw(temperature=0, over='all')", "--ties", "index", "--new-tokens", "24", "--json")
    code, out, err = cli(*words, "--prompt-file", str(tmp_path / "chats.jsonl"))
    assert code == 0, err
    assert json.loads(out)["answers"] == [plain.answers[0], asked.answers[0]]


def test_rows_with_other_ends_are_decoded_apart(models: dict[str, LanguageModel]) -> None:
    """The same tokens as a text and as a chat: of one length, and only the chat stops."""
    chat = [{"role": "user", "content": "the cat"}]
    text: dict[str, Any] = {"new_tokens": 24}
    turn = models["llada"].tokenizer.convert_tokens_to_ids("<|eot_id|>")
    model = with_common(models["llada"], turn, prompt=chat, **text)
    same = wrapped(model.tokenizer, chat)
    made = generate(model, RULE, prompt=[same, chat], **text, draw="llada")
    first = generate(model, RULE, prompt=same, **text, draw="llada")
    second = generate(model, RULE, prompt=chat, **text, draw="llada")
    assert torch.equal(made.given[0], made.given[1])
    assert made.calls.tolist() == [int(first.calls), int(second.calls)] and made.new[1] < 24
    assert int(second.calls) < int(first.calls)


def test_several_ends(models: dict[str, LanguageModel], folder: Path, tmp_path: Path) -> None:
    text: dict[str, Any] = {"prompt": "the cat", "new_tokens": 24}
    made = generate(models["llada"], RULE, **text, preset="llada")
    answer = made.tokens[0][~made.given[0]].tolist()
    ends = sorted(
        {token: i for i, token in reversed(list(enumerate(answer)))}.items(), key=lambda x: x[1]
    )
    (first, _), (second, place) = ends[0], ends[-1]
    assert place > 0 and first != second
    told = load(folder / "llada", end_of_text=[str(second), "<|eot_id|>"])
    assert told.ends[0] == second and len(told.ends) == 2
    cut = generate(told, RULE, **text, preset="llada")
    assert torch.equal(cut.tokens, made.tokens) and int(cut.new) == place + 1
    for file in (folder / "llada").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = {"eos_token_id": [models["llada"].end_of_text, second, 10**6, True, "x"]}
    (tmp_path / "generation_config.json").write_text(json.dumps(config))
    assert load(tmp_path).ends == (models["llada"].end_of_text, second)
    stopped = generate(told, RULE, **text, preset="llada", stop=True)
    assert int(stopped.calls) <= int(cut.calls) and stopped.texts == cut.texts


def test_stop_strings_end_a_text_before_them(models: dict[str, LanguageModel]) -> None:
    assert stop_in("a door, a door", ("door", "mat")) == 2  # the first of several
    assert stop_in("a door", ("or", "do")) == 2 and stop_in("a door", ("mat",)) is None
    model = models["llada"]
    text: dict[str, Any] = {"prompt": "the cat", "new_tokens": 32, "preset": "llada"}
    rule = "blocks(size=4, inner=low_confidence(steps=4))"
    whole = generate(model, rule, **text)
    answer = whole.answers[0]
    string = answer[7:11]  # lies across tokens, wherever it comes first
    cut = generate(model, rule, **text, stop_strings=[string, "not there"])
    assert cut.answers[0] == answer[: answer.index(string)]
    assert cut.texts[0] == whole.texts[0][: whole.texts[0].index(string)]
    assert int(cut.new) < int(whole.new) and int(cut.calls) == int(whole.calls)
    early = generate(model, rule, **text, stop_strings=string, stop=True)
    assert early.answers == cut.answers and int(early.calls) < int(whole.calls)
    assert int(early.new) == int(cut.new)
    for strings, more, says in (
        (("",), {}, "not empty"),
        (("a",), {"template": "a {3}"}, "not with a template"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            generate(model, rule, stop_strings=strings, **more)  # type: ignore[arg-type]


# --- lengths, answers, infilling


def test_new_tokens_and_answers(models: dict[str, LanguageModel]) -> None:
    for name in ("llada", "bert"):
        model = models[name]
        made = generate(model, RULE, prompt="the cat", new_tokens=9)
        assert int((~made.given).sum()) == 9
        assert made.texts[0] == "the cat" + made.answers[0] or name == "bert"
        filled = generate(model, "confidence", template="the {3} sat on {2} door")
        assert filled.answers[0].endswith("door") and not filled.answers[0].startswith("the")
        assert int((~filled.given).sum()) == 5
    for given, says in (
        ({"new_tokens": 4, "length": 9}, "not both"),
        ({"new_tokens": 4, "template": "a {2}"}, "gaps of a template"),
        ({"new_tokens": 0}, "new_tokens"),
        ({"new_tokens": 5000}, "at most 4096 tokens"),
        ({"prompt": ["a", "b"], "trace": True}, "one prompt"),
        ({"guidance": -1.0}, "guidance"),
        ({"preset": "lada"}, "llada"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            generate(models["llada"], RULE, **given)  # type: ignore[arg-type]
    with pytest.raises(MaskwalkError, match="masked models"):
        generate(models["gpt2"], prompt="a", guidance=1.0)


# --- the terminal


def test_streams_end_in_the_text(cli: Any, folder: Path, monkeypatch: Any) -> None:
    from maskwalk.cli import streaming

    written: list[str] = []
    put = streaming.Stream._put
    monkeypatch.setattr(streaming.Stream, "_put", lambda self, x: (written.append(x), put(self, x)))
    words = ["generate", "--denoiser", f"hf:{folder / 'llada'}", "--preset", "llada"]
    words += ["--sampler", "blocks(size=4, inner=low_confidence(steps=2))", "--prompt", "the cat"]
    words += ["--new-tokens", "16"]
    for more in ([], ["--answer-only"], ["--answer-only", "--chat", "--system", "be short"]):
        written.clear()
        _, plain, _ = cli(*words, *more)
        code, streamed, err = cli(*words, *more, "--stream")
        assert code == 0, err
        assert streamed.split("\n")[:-4] == plain.split("\n")[:-4]
        assert len([part for part in written if part.strip()]) >= 4  # a block after another
    code, _, err = cli(*words, "--stream", "--count", "2")
    assert code == 2 and "one text" in err


def test_rounds_are_told(models: dict[str, LanguageModel]) -> None:
    seen: list[tuple[list[int], int]] = []

    def told(rows: torch.Tensor, tokens: torch.Tensor) -> None:
        seen.append((rows.tolist(), int((tokens == models["llada"].mask).sum())))

    made = generate(models["llada"], RULE, prompt=["a", "the"], new_tokens=8, on_round=told)
    assert [masked for _, masked in seen] == [16, 12, 8, 4, 0] and seen[0][0] == [0, 1]
    assert made.rounds.tolist() == [4, 4]
    one: Callable[..., None] = told
    seen.clear()
    generate(models["llada"], RULE, prompt=["a", "the cat"], new_tokens=8, on_round=one)
    assert [rows for rows, _ in seen] == [[0]] * 5 + [[1]] * 5
