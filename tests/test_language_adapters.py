"""Masked and autoregressive models behind the Denoiser protocol, and the contract over each."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import maskwalk.denoisers.language.masked as masked_module
from maskwalk.analysis.contract import CHECKS, BrokenContract, Stand
from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.decoding.stopping import StopAt
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.language import MDLM, Causal, Masked
from maskwalk.denoisers.language.base import LogMarginals, places_at_once
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec
from maskwalk.streams import Streams
from tests.test_contract import Kept

transformers = pytest.importorskip("transformers")

VOCAB, LENGTH = 4, 4  # three clean tokens and the mask
SHAPE = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
SHAPE |= {"intermediate_size": 16, "max_position_embeddings": 32}


def network(family: str, scale: float = 1.0, **changes: Any) -> nn.Module:
    """A tiny network of a family of transformers; scale 0 makes all its logits equal."""
    shape: dict[str, Any] = {"vocab_size": VOCAB, **SHAPE} | changes
    if family == "ModernBertForMaskedLM":
        shape |= {f"{n}_token_id": None for n in ("pad", "bos", "eos", "cls", "sep")}
    elif family == "GPT2LMHeadModel":
        shape = {"vocab_size": VOCAB - 1, "n_embd": 8, "n_layer": 2, "n_head": 2} | changes
    elif family.endswith("ForCausalLM"):
        shape |= {"num_key_value_heads": 2}
    stem = family.replace("ForMaskedLM", "").replace("ForCausalLM", "").replace("LMHeadModel", "")
    with torch.random.fork_rng(devices=[]):
        model = getattr(transformers, family)(getattr(transformers, f"{stem}Config")(**shape))
    generator = torch.Generator().manual_seed(len(family))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(scale * torch.randn(weight.shape, generator=generator))
    return model.eval()


def bert(scale: float = 1.0, rows: int = 256) -> Denoiser:
    return Masked(network("BertForMaskedLM", scale), mask_id=3, rows=rows)


def modernbert(scale: float = 1.0, rows: int = 256) -> Denoiser:
    return Masked(network("ModernBertForMaskedLM", scale), mask_id=3, rows=rows)


def llada(scale: float = 1.0, rows: int = 256) -> Denoiser:
    return Masked(network("LlamaForCausalLM", scale, is_causal=False), mask_id=3, rows=rows)


def dream(scale: float = 1.0, rows: int = 256) -> Denoiser:
    model = network("Qwen2ForCausalLM", scale, is_causal=False)
    return Masked(model, mask_id=3, shifted=True, rows=rows)


def own(scale: float = 1.0, rows: int = 256) -> Denoiser:
    """A function: a bigram table read from both neighbours."""
    table = scale * torch.randn(2, VOCAB, VOCAB, generator=torch.Generator().manual_seed(5))

    def function(tokens: Tensor) -> Tensor:
        return table[0][tokens.roll(1, 1)] + table[1][tokens.roll(-1, 1)]

    return Masked(function, mask_id=3, vocab_size=VOCAB, rows=rows)


def mdlm(scale: float = 1.0, rows: int = 256) -> Denoiser:
    config = DDiTConfig(vocab_size=3, length=4, hidden=16, cond=4, blocks=1, heads=2)
    flat = layout(config).initial([0])[0]
    noise = torch.randn(flat.shape, generator=torch.Generator().manual_seed(0))
    return MDLM(config, flat + 0.4 * scale * noise, rows=rows)


def causal(scale: float = 1.0, rows: int = 256) -> Denoiser:
    return Causal(network("GPT2LMHeadModel", scale), begin=0, rows=rows)


ADAPTERS: dict[str, Callable[..., Denoiser]] = {
    f.__name__: f for f in (mdlm, bert, modernbert, llada, dream, own)
}


@cache
def stand(name: str, rows: int = 256) -> Stand:
    make = (ADAPTERS | {"causal": causal})[name]
    return Kept(make(rows=rows), make(0.0, rows), LENGTH, samples=2000)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", [*ADAPTERS, "causal"])
def test_the_contract_holds_on_every_adapter(name: str, check: str) -> None:
    spec = "left_to_right" if name == "causal" else "entropy(block=2)"
    if name == "causal" and check == "fits_in_wrappers":
        with pytest.raises(BrokenContract, match="only knows the next token"):
            CHECKS[check](SAMPLERS.build(spec), stand(name))
        return
    CHECKS[check](SAMPLERS.build(spec), stand(name))


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_sampler_runs_on_every_adapter(name: str) -> None:
    for sampler in SAMPLERS:
        rule = SAMPLERS.build(Spec(sampler, (), SAMPLERS[sampler].sweep[0]))
        CHECKS["terminates"](rule, stand(name, 64))


# Each reads the float32 marginals in another way.
READERS = ("margin", "blocks", "klass", "pc", "p2", "remdm", "speculative", "corrected")


@pytest.mark.parametrize("sampler", [*READERS, "dependence_bounded", "threshold_drawn"])
def test_samplers_are_the_same_in_any_batch_on_text(sampler: str) -> None:
    rule = SAMPLERS.build(Spec(sampler, (), SAMPLERS[sampler].sweep[0]))
    CHECKS["batch_free"](rule, stand("own", 64))


def some_tokens(batch: int = 5, length: int = 6, mask: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, 3, (batch, length), generator=generator)
    tokens[torch.rand(tokens.shape, generator=generator) < 0.6] = mask
    return tokens


@pytest.mark.parametrize(
    "family", ["BertForMaskedLM", "ModernBertForMaskedLM", "RobertaForMaskedLM"]
)
def test_a_masked_model_gives_its_own_logits_where_asked(family: str) -> None:
    model, tokens = network(family), some_tokens()
    denoiser = Masked(model, mask_id=3)
    assert denoiser._map is not None  # the saving applies
    with torch.no_grad():
        logits = model(tokens).logits[tokens == 3]
    logits[:, 3] = -torch.inf
    expected = torch.log_softmax(logits, -1)
    found = denoiser(tokens)
    assert found.dtype == torch.float32 and expected[:, :3].std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    at = (tokens == 3) & (torch.arange(6) % 3 == 0)
    assert torch.equal(denoiser(tokens, at), found[at[tokens == 3]])
    assert not model.training and not model.get_output_embeddings()._forward_pre_hooks


def test_without_the_saving_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = network("BertForMaskedLM"), some_tokens()
    fast = Masked(model, mask_id=3, rows=2)(tokens)
    monkeypatch.setattr(masked_module, "last_map", lambda *_: None)
    slow = Masked(model, mask_id=3, rows=2)
    assert slow._map is None
    torch.testing.assert_close(slow(tokens), fast, rtol=1e-4, atol=1e-5)


class Capped(nn.Module):
    """A model that squashes the logits after its last map, as some do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network("BertForMaskedLM")
        self.config = self.inner.config

    def get_output_embeddings(self) -> nn.Module:
        return self.inner.get_output_embeddings()

    def get_input_embeddings(self) -> nn.Module:
        return self.inner.get_input_embeddings()

    def forward(self, tokens: Tensor) -> Any:
        found = self.inner(tokens)
        found.logits = 2 * torch.tanh(found.logits / 2)
        return found


def test_what_follows_the_last_map_is_not_lost() -> None:
    model, tokens = Capped(), some_tokens()
    denoiser = Masked(model, mask_id=3)
    assert denoiser._map is None
    with torch.no_grad():
        logits = model(tokens).logits[tokens == 3]
    logits[:, 3] = -torch.inf
    torch.testing.assert_close(denoiser(tokens), torch.log_softmax(logits, -1))


def test_shifted_logits_are_read_one_place_before() -> None:
    """A toy whose logits at i speak of i + 1 is the toy whose logits speak of i."""
    table = torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(4))

    def straight(tokens: Tensor) -> Tensor:
        return table[tokens.roll(-1, 1)] + torch.arange(tokens.shape[1])[:, None]

    def ahead(tokens: Tensor) -> Tensor:
        logits = straight(tokens)
        return torch.cat([logits[:, 1:], logits[:, :1]], 1)

    tokens = some_tokens()
    tokens[:, 0] = 1  # the first position has no place before it
    one = Masked(straight, mask_id=3, vocab_size=VOCAB)
    two = Masked(ahead, mask_id=3, vocab_size=VOCAB, shifted=True)
    assert torch.equal(one(tokens), two(tokens))
    wrong = Masked(ahead, mask_id=3, vocab_size=VOCAB)
    assert not torch.equal(one(tokens), wrong(tokens))
    # There it reads its own logits, as the public code does.
    first = torch.full((1, 6), 3)
    at = torch.arange(6)[None] == 0
    assert torch.equal(two(first, at), wrong(first, at))


def test_shifted_models_of_transformers() -> None:
    model, tokens = network("Qwen2ForCausalLM", is_causal=False), some_tokens()
    denoiser = Masked(model, mask_id=3, shifted=True, rows=2)
    assert denoiser._map is not None
    with torch.no_grad():
        logits = model(tokens).logits
    logits = torch.cat([logits[:, :1], logits[:, :-1]], 1)[tokens == 3]
    logits[:, 3] = -torch.inf
    torch.testing.assert_close(
        denoiser(tokens), torch.log_softmax(logits, -1), rtol=1e-4, atol=1e-4
    )


def test_forbidden_tokens_have_probability_zero() -> None:
    denoiser = Masked(network("BertForMaskedLM"), mask_id=3, forbidden=[0, 7])
    answer = denoiser(torch.full((1, 4), 3))
    assert denoiser.forbidden == (0, 3) and bool((answer[:, [0, 3]] == -torch.inf).all())
    torch.testing.assert_close(answer.exp().sum(1), torch.ones(4))
    with pytest.raises(MaskwalkError, match="nothing is left to draw"):
        Masked(network("BertForMaskedLM"), mask_id=3, forbidden=[0, 1, 2])


@pytest.mark.parametrize("family", ["GPT2LMHeadModel", "LlamaForCausalLM"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_cache_changes_the_work_and_not_the_text(family: str, rows: int) -> None:
    model, read = network(family), []
    embedding = model.get_input_embeddings()
    hook = embedding.register_forward_hook(lambda _, given, __: read.append(given[0].shape[1]))
    vocab = model.config.vocab_size
    tokens = torch.full((5, 9), vocab)
    tokens[:2, :3] = torch.tensor([1, 0, 2])  # prompts, and a token fixed further on
    tokens[3, 4] = 1
    found, most = [], []
    for cache_on in (True, False):
        denoiser = Causal(model, begin=0, cache=cache_on, rows=rows)
        read.clear()
        rule = StopAt(SAMPLERS.build("left_to_right"), 2)  # rows leave at different times
        found.append(decode(rule, denoiser, tokens, streams=Streams(4, 5)))
        most.append(max(read))
    hook.remove()
    assert torch.equal(found[0].tokens, found[1].tokens)
    assert torch.equal(found[0].calls, found[1].calls) and len(found[0].calls.unique()) > 1
    assert most[0] <= 4 and most[1] >= 8  # it reads a prompt once, then what is new


def test_a_causal_model_answers_with_its_next_token_logits() -> None:
    model = network("GPT2LMHeadModel")
    denoiser = Causal(model, begin=0)
    tokens = torch.tensor([[1, 2, 3, 3], [3, 3, 3, 1]])
    at = torch.tensor([[0, 0, 1, 0], [1, 0, 0, 0]]).bool()
    with torch.no_grad():
        expected = [model(torch.tensor([text])).logits[0, -1] for text in ([0, 1, 2], [0])]
    for _ in range(2):  # the second time everything is in the cache
        torch.testing.assert_close(
            denoiser(tokens, at), torch.log_softmax(torch.stack(expected), -1), rtol=1e-4, atol=1e-5
        )
    denoiser.forget()
    assert not denoiser._seen


def test_replay_is_the_likelihood_of_text_under_a_policy() -> None:
    """Left to right it is the model's own loss; in parallel, the product of marginals."""
    model, text = network("GPT2LMHeadModel"), torch.tensor([[1, 2, 0, 1], [2, 2, 1, 0]])
    found = replay(
        SAMPLERS.build("left_to_right"), Causal(model, begin=0), text, streams=Streams(0, 2)
    )
    read = torch.cat([torch.zeros(2, 1, dtype=torch.int64), text], 1)
    with torch.no_grad():
        logits = torch.log_softmax(model(read).logits[:, :-1].double(), -1)
    own = logits.gather(2, text[..., None])[..., 0]
    torch.testing.assert_close(found.log_prob, own, rtol=1e-4, atol=1e-5)
    denoiser = bert(rows=2)
    given = torch.tensor([[True, False, False, True]] * 2)
    found = replay(
        SAMPLERS.build("random(block=2)"), denoiser, text, streams=Streams(0, 2), given=given
    )
    at_once = denoiser(text.masked_fill(~given, 3)).gather(1, text[~given][:, None])
    assert torch.allclose(found.log_prob[~given], at_once[:, 0].double(), rtol=0, atol=1e-6)
    assert (found.log_prob[given] == 0).all() and found.calls.tolist() == [1, 1]


def test_questions_a_causal_model_cannot_answer() -> None:
    denoiser = Causal(network("GPT2LMHeadModel"), begin=0)
    blank = torch.full((2, 4), denoiser.mask_id)
    for sampler in ("entropy", "random", "bisection", "speculative"):
        with pytest.raises(MaskwalkError, match="left_to_right"):
            decode(SAMPLERS.build(sampler), denoiser, blank, streams=Streams(0, 2))
    with pytest.raises(MaskwalkError, match="needs a token to begin with"):
        bare = Causal(network("GPT2LMHeadModel"))
        decode(SAMPLERS.build("left_to_right"), bare, blank, streams=Streams(0, 2))


def test_stopping_saves_calls_and_changes_nothing_before_the_end() -> None:
    """With every sampler that keeps what it reveals."""
    denoiser, blank = own(), torch.full((40, 10), 3)
    for name in SAMPLERS:
        rule = SAMPLERS.build(Spec(name, (), SAMPLERS[name].sweep[0]))
        if rule.remasks:
            with pytest.raises(MaskwalkError, match="takes revealed tokens back"):
                StopAt(rule, 2)
            continue
        full = decode(rule, denoiser, blank, streams=Streams(0, 40))
        short = decode(StopAt(rule, 2), denoiser, blank, streams=Streams(0, 40))
        assert not bool((short.tokens == 3).any()), name
        assert int(short.calls.sum()) <= int(full.calls.sum()), name
    rule = SAMPLERS.build("left_to_right")
    full = decode(rule, denoiser, blank, streams=Streams(0, 40))
    short = decode(StopAt(rule, 2), denoiser, blank, streams=Streams(0, 40))
    first = (short.tokens == 2).cumsum(1) == 0
    assert torch.equal(full.tokens[first], short.tokens[first])
    ended = ~first[:, -1]
    assert bool(ended.any()) and bool((short.tokens[~first] == 2).all())
    assert torch.equal(short.calls, first.sum(1) + ended.long())
    # A token that was given is no end.
    given = blank.clone()
    given[:, 0] = 2
    assert int(decode(StopAt(rule, 2), denoiser, given, streams=Streams(0, 40)).calls.min()) > 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Masked(network("BertForMaskedLM"), mask_id=4), r"mask 4 is not a token .* 0\.\.3"),
        (lambda: Masked(lambda tokens: tokens, mask_id=3), "vocab_size="),
        (lambda: Masked(lambda t: t, mask_id=3, vocab_size=4)(torch.full((1, 2), 3)), "logits"),
        (
            lambda: Masked(lambda t: torch.zeros(*t.shape, 3), mask_id=3, vocab_size=4)(
                torch.full((1, 2), 3)
            ),
            "logits for 3 tokens, and 4 were promised",
        ),
        (
            lambda: Masked(lambda t: torch.full((*t.shape, 4), torch.nan), mask_id=3, vocab_size=4)(
                torch.full((1, 2), 3)
            ),
            "not finite",
        ),
        (
            lambda: Masked(network("BertForMaskedLM"), mask_id=3)(
                torch.full((1, 2), 3, device="meta"), torch.ones(1, 2).bool()
            ),
            "on meta and the model on cpu",
        ),
    ],
)
def test_mistakes_are_sentences(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(MaskwalkError, match=says):
        make()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("never", [(), (1, 6)])
def test_logits_become_marginals_on_their_way_into_the_table(
    dtype: torch.dtype, never: tuple[int, ...]
) -> None:
    """Whatever stands in columns beyond the vocabulary, or at tokens that are never drawn."""
    generator = torch.Generator().manual_seed(0)
    logits, bias = (torch.randn(9, 10, generator=generator), torch.randn(7, generator=generator))
    logits = logits.to(dtype)
    want = logits[:, :7].float() + bias
    want[:, list(never)] = -torch.inf
    want = want.log_softmax(-1)
    logits[:, 8] = torch.nan
    for token in never:
        logits[2, token], logits[3, token] = torch.nan, torch.inf
    table = LogMarginals(9, 7, never, bias, torch.device("cpu"))
    table.append(logits[:4])
    table.put(torch.tensor([8, 5]), logits[[8, 5]])
    with pytest.raises(AssertionError):
        table.whole()  # not all of it is there
    table.put(torch.tensor([4, 6, 7]), logits[[4, 6, 7]])
    torch.testing.assert_close(table.whole(), want)
    assert table.whole().dtype == torch.float32


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    table = LogMarginals(3, 5, (4,), None, torch.device("cpu"))
    logits = torch.zeros(3, 5)
    logits[1, slice(None) if bad < 0 else 2] = bad
    table.append(logits)
    with pytest.raises(MaskwalkError, match="not finite"):
        table.whole()


def test_a_causal_model_with_more_rows_than_a_slice_of_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("maskwalk.denoisers.language.base.PLACES", 2)
    model = network("GPT2LMHeadModel", 3.0)
    tokens = torch.tensor([[0, 1, 3], [2, 3, 3], [1, 1, 3], [0, 3, 3], [2, 2, 3]])
    at = (tokens == 3) & ((tokens == 3).cumsum(1) == 1)
    many, one = (Causal(model, rows=rows, begin=0)(tokens, at) for rows in (5, 1))
    torch.testing.assert_close(many, one)
    assert float(many.exp().std(0).max()) > 1e-3  # the texts matter


def test_a_wide_map_is_given_fewer_places_on_an_accelerator() -> None:
    """Always as many, so that an answer does not depend on what else is asked; as few as the
    vocabulary needs, since the rest is filled up: 4,096 of LLaDA's would be 1 GiB a call."""
    assert [places_at_once("cuda", n) for n in (100, 8192, 8193, 50_258, 126_464, 10**7)] == [
        4096,
        4096,
        2048,
        512,
        256,
        64,
    ]
    assert places_at_once("cpu", 126_464) == 64
