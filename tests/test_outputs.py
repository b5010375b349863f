"""Outputs of the network: the chain against enumeration, entmax against its conditions."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskwalk.denoisers.files import load_pretrained, load_zoo, save_pretrained, save_zoo
from maskwalk.denoisers.network.outputs import OUTPUTS, PLAIN, Chain, Entmax, Output
from maskwalk.denoisers.network.outputs.chain import LEFT, RIGHT
from maskwalk.denoisers.network.outputs.entmax import entmax
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.training.checkpoints import identity
from maskwalk.training.fit import Plan
from maskwalk.training.loop import Judge, train
from maskwalk.training.objective import bound, split_bound
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Stepper
from maskwalk.training.zoo import WORLD_RECIPES, by_shape
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law

V, L = 4, 5
SHAPE = DDiTConfig(vocab_size=V, length=L, hidden=16, cond=4, blocks=1, heads=2, output="chain(3)")
Logits = tuple[Tensor, Tensor]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def padded(given: Tensor) -> Logits:
    """Logits (models, batch, length, vocab) as the network gives them: a part in the bias."""
    bias = random(len(given), given.shape[-1], seed=9)
    rows = (given - bias[:, None, None]).flatten(1, 2)
    pad = (0, -given.shape[-1] % 8)
    fill = torch.nn.functional.pad
    return fill(rows, pad, value=99.0), fill(bias, pad)


def tied(models: int, vocab: int = V, rank: int = 3) -> dict[str, Tensor]:
    return {LEFT: random(models, vocab, rank, seed=5), RIGHT: random(models, vocab, rank, seed=6)}


def chain_case() -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
    """(weights, logits, walks, tokens): two models, every mask of one walk each."""
    masks = torch.tensor(list(itertools.product([False, True], repeat=L)))
    walks = torch.tensor([[0, 3, 1, 1, 2], [2, 0, 0, 3, 1]])[:, None].expand(2, len(masks), L)
    return tied(2), 2 * random(2, len(masks), L, V), walks, walks.masked_fill(masks, V)


def enumerated(weights: dict[str, Tensor], given: Tensor, walks: Tensor, tokens: Tensor) -> Logits:
    """(marginals, −log p of the masked tokens together), over all 4⁵ sequences, in float64."""
    every = torch.tensor(list(itertools.product(range(V), repeat=L)))
    marginals = torch.zeros(given.shape, dtype=torch.float64)
    joint = torch.zeros(given.shape[:2], dtype=torch.float64)
    for m, b in itertools.product(*map(range, given.shape[:2])):
        table = (weights[LEFT][m].double() @ weights[RIGHT][m].double().T).exp()
        masked = tokens[m, b] == V
        fits = ((every == walks[m, b]) | masked).all(1).double()
        for i in range(L):
            if masked[i]:
                fits *= given[m, b, i].double().exp()[every[:, i]]
            if i:
                fits *= table[every[:, i - 1], every[:, i]]
        fits /= fits.sum()
        joint[m, b] = -fits[(every == walks[m, b]).all(1)].log()
        for i, v in itertools.product(range(L), range(V)):
            marginals[m, b, i, v] = fits[every[:, i] == v].sum()
    return marginals, joint


def test_the_chain_is_its_law_by_enumeration() -> None:
    """Marginals, nats and loss of two models at once, for every set of masked positions."""
    weights, given, walks, tokens = chain_case()
    marginals, joint = enumerated(weights, given, walks, tokens)
    output, logits = Chain(rank=3), padded(given)
    logs = output.log_marginals(SHAPE, weights, logits, tokens)
    torch.testing.assert_close(logs.double().exp(), marginals, rtol=1e-4, atol=1e-6)
    nats = output.nats(SHAPE, weights, logits, walks, tokens)
    own = -marginals.gather(-1, walks[..., None])[..., 0].log()
    torch.testing.assert_close(nats.double(), own, rtol=1e-4, atol=1e-5)
    losses = output.losses(SHAPE, weights, logits, walks, tokens)
    torch.testing.assert_close(losses.sum(-1).double(), joint, rtol=1e-4, atol=1e-5)
    assert bool((losses[tokens != V] == 0).all())  # all of it at masked positions, and finite


def test_the_chains_gradient_is_what_it_says() -> None:
    """By differences, for logits and table; at a logit it is p − 1[x_i = v]."""
    weights, given, walks, tokens = chain_case()
    some = slice(5, 32, 6)
    given, walks, tokens = given[:, some].double(), walks[:, some], tokens[:, some]
    left, right = (weights[name].double().requires_grad_() for name in (LEFT, RIGHT))

    def total(given: Tensor, left: Tensor, right: Tensor) -> Tensor:
        flat = given.flatten(1, 2), given.new_zeros(2, V)
        return Chain(rank=3).losses(SHAPE, {LEFT: left, RIGHT: right}, flat, walks, tokens).sum()

    given.requires_grad_()
    with torch.enable_grad():
        inputs = (given, left, right)
        slopes = torch.autograd.grad(total(*inputs), inputs)
    with torch.no_grad():
        for value, slope in zip(inputs, slopes):
            for direction in range(4):
                way = random(*value.shape, seed=direction).double()
                moved = [
                    tuple(x + e * way if x is value else x for x in inputs) for e in (1e-2, -1e-2)
                ]
                found = (total(*moved[0]) - total(*moved[1])) / 2e-2
                assert float(found) == pytest.approx(float((slope * way).sum()), rel=2e-3, abs=2e-3)
        flat = given.flatten(1, 2), given.new_zeros(2, V)
        p = Chain(rank=3).log_marginals(SHAPE, {LEFT: left, RIGHT: right}, flat, tokens).exp()
    hot = torch.nn.functional.one_hot(walks, V)
    expected = torch.where((tokens == V)[..., None], p - hot, 0.0)
    torch.testing.assert_close(slopes[0].float(), expected.float(), rtol=1e-4, atol=1e-5)


def test_with_the_true_kernel_the_chain_is_the_oracle() -> None:
    """log K the walk's transitions, the start law as logits at the first position, others flat."""
    law = small_law(length=6)
    vocab, oracle = law.vocab_size, oracle_for(law)
    walks = law.sample(200, seed=3)
    masked = torch.rand(walks.shape, generator=torch.Generator().manual_seed(0)) < 0.7
    tokens = walks.masked_fill(masked, vocab)
    nodes = torch.arange(vocab)
    kernel = law.next_probs(nodes[:, None]).clamp(min=1e-30).log().float()
    start = oracle(torch.full((1, 6), vocab))[0].float()
    given = torch.zeros(1, len(walks), 6, vocab)
    given[:, :, 0] = start
    config = DDiTConfig(vocab, 6, hidden=16, cond=4, blocks=1, heads=2)
    weights = {LEFT: torch.eye(vocab)[None], RIGHT: kernel.T[None]}
    logs = Chain(rank=vocab).log_marginals(config, weights, padded(given), tokens[None])
    torch.testing.assert_close(
        logs[0][masked].double().exp(), oracle(tokens).exp(), rtol=1e-3, atol=1e-6
    )


def test_a_long_chain_of_strong_ties_stays_in_float32() -> None:
    """Factors of e^±60 over 200 places: finite, and a distribution."""
    config = replace(SHAPE, length=200)
    weights = {name: 6 * value for name, value in tied(1).items()}
    tokens = torch.full((1, 3, 200), V)
    tokens[0, 1, ::7], tokens[0, 2, 0] = 1, 2
    walks = torch.where(tokens == V, 3, tokens)
    logits = padded(60 * random(1, 3, 200, V))
    p = Chain(rank=3).log_marginals(config, weights, logits, tokens).exp()
    torch.testing.assert_close(p.sum(-1), torch.ones(1, 3, 200))
    for value in (left := {k: w.requires_grad_() for k, w in weights.items()}).values():
        value.grad = None
    with torch.enable_grad():
        loss = Chain(rank=3).losses(config, left, logits, walks, tokens).sum()
        slopes = torch.autograd.grad(loss, list(left.values()))
    assert all(bool(x.isfinite().all()) for x in (loss, *slopes))


def test_a_wrong_chain_still_learns_the_true_marginals() -> None:
    """Free logits beside a table that is wrong: the best answer's marginals are the truth's."""
    every = torch.tensor(list(itertools.product(range(V), repeat=3)))
    truth = torch.softmax(2 * random(len(every), seed=1), 0)  # no chain
    config, weights = replace(SHAPE, length=3), tied(1)
    walks, tokens = every[None], torch.full((1, len(every), 3), V)
    given = torch.zeros(1, 1, 3, V, requires_grad=True)
    optimiser = torch.optim.LBFGS([given], max_iter=200, line_search_fn="strong_wolfe")
    bias = torch.zeros(1, V)

    def close() -> Tensor:
        optimiser.zero_grad()
        flat = given.expand(1, len(every), 3, V).flatten(1, 2)
        losses = Chain(rank=3).losses(config, weights, (flat, bias), walks, tokens)
        loss = (losses.sum(-1)[0] * truth).sum()
        loss.backward()
        return loss

    with torch.enable_grad():
        optimiser.step(close)
    with torch.no_grad():
        logits = given.flatten(1, 2), bias
        p = Chain(rank=3).log_marginals(config, weights, logits, tokens[:, :1]).exp()[0, 0]
    expected = torch.stack(
        [torch.stack([truth[every[:, i] == v].sum() for v in range(V)]) for i in range(3)]
    )
    torch.testing.assert_close(p, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("alpha", [1.05, 1.3, 1.5, 2.0])
def test_entmax_is_the_projection(alpha: float) -> None:
    """KKT: on the support z − (p^(α−1) − 1/α)/(α − 1) is one number, elsewhere z is no larger."""
    z = torch.cat([s * random(40, 500, seed=n).double() for n, s in enumerate((0.0, 0.1, 1, 20))])
    p = entmax(z, alpha)
    torch.testing.assert_close(p.sum(-1), torch.ones(160, dtype=torch.float64))
    level = (alpha - 1) * z - p.pow(alpha - 1)
    mean = (level * p).sum(-1, keepdim=True)  # τ
    assert float((level - mean)[p > 0].abs().max()) < 1e-6
    assert float(((alpha - 1) * z - mean)[p == 0].max()) <= 1e-6 if bool((p == 0).any()) else True
    assert bool((p[80:] == 0).any()) or alpha < 1.2
    narrow = entmax(z.float(), alpha)
    torch.testing.assert_close(narrow.double(), p, rtol=1e-3, atol=1e-5)


def test_entmaxs_loss_has_its_gradient_and_is_least_at_the_truth() -> None:
    """Against differences; with a truth that has zeros the minimiser is exactly it."""
    config = DDiTConfig(V, L, hidden=16, cond=4, blocks=1, heads=2, output="entmax")
    walks = torch.tensor([[[0, 1, 2, 3, 1]]])
    given = random(1, 1, L, V).double().requires_grad_()
    output = Entmax()

    def total(given: Tensor) -> Tensor:
        from maskwalk.denoisers.network.outputs.entmax import _FenchelYoung

        return _FenchelYoung.apply(given, walks, 1.5).sum()  # type: ignore[no-any-return]

    with torch.enable_grad():
        assert torch.autograd.gradcheck(total, given, eps=1e-6, atol=1e-5)
    assert float(total(30.0 * torch.nn.functional.one_hot(walks, V).double())) == 0.0
    truth = torch.tensor([0.6, 0.3, 0.1, 0.0])
    best = 2 * truth.sqrt() + 0.7  # p = max(z/2 − τ, 0)²
    best[3] -= 1.0
    answers, bias = torch.arange(4)[None, :, None], torch.zeros(1, V)

    def mean(z: Tensor) -> float:
        logits = z.expand(1, 4, V), bias
        return float(output.losses(config, {}, logits, answers, answers)[0, :, 0] @ truth)

    logs = output.log_marginals(config, {}, (best[None, None], bias), answers[:, :1])[0, 0, 0]
    torch.testing.assert_close(logs.exp(), truth)
    assert float(logs[3]) == -torch.inf
    assert all(mean(best + 0.3 * random(V, seed=n)) > mean(best) + 1e-4 for n in range(20))


def trained(output: str, tmp: Path | None = None, steps: int = 150, **changes: object) -> Stepper:
    law = small_law(length=6)
    config = DDiTConfig(law.vocab_size, 6, hidden=16, cond=4, blocks=1, heads=2, output=output)
    walks = law.sample(500, seed=1)
    job = Job("a", walks, 2, 0.0, law.sample(40, seed=2))
    job = replace(job, **changes)  # type: ignore[arg-type]
    stepper = Stepper(config, [job], Settings(steps=steps, batch=32, lr=0.02))
    stepper.advance(steps)
    return stepper


@pytest.mark.parametrize("output", ["chain(rank=4)", "entmax(alpha=1.5)"])
def test_a_denoiser_answers_with_the_outputs_marginals(output: str) -> None:
    """Normalised, at the places asked, whatever else is in the batch; and it has learned."""
    stepper = trained(output)
    config, flat = stepper.config, stepper.averages()[0]
    denoiser = NetworkDenoiser(config, flat, rows=4)
    law = small_law(length=6)
    walks = law.sample(11, seed=7)
    masked = torch.rand(walks.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    tokens = walks.masked_fill(masked, config.mask_id)
    answers = denoiser(tokens)
    torch.testing.assert_close(answers.exp().sum(-1), torch.ones(len(answers)).double())
    at = masked & (torch.arange(6) % 2 == 0)
    assert torch.equal(denoiser(tokens, at), answers[at[masked]])
    alone = torch.cat([denoiser(tokens[i : i + 1]) for i in range(11)])
    assert torch.equal(alone, answers)
    if config.head.joint:
        truth = oracle_for(law)(tokens).exp()
        flat_error = float((truth - 1 / law.vocab_size).abs().sum(-1).mean())
        assert float((answers.exp() - truth).abs().sum(-1).mean()) < 0.5 * flat_error
        sure = denoiser(tokens, ~masked).exp()
        assert torch.equal(sure, torch.nn.functional.one_hot(tokens[~masked], 5).double())
    with pytest.raises(MaskwalkError, match="output=softmax"):
        NetworkDenoiser(config, flat, asked_only=True)


def test_the_bound_is_of_the_marginals_and_says_what_is_impossible() -> None:
    """By hand for one order of masking; tokens with p = 0 are a share of their own."""
    stepper = trained("entmax(alpha=2.0)", steps=6)
    for part in stepper.parts:
        part.average += 0.3 * random(*part.average.shape)
    config, flat = stepper.config, stepper.averages()
    weights = layout(config).grouped(*layout(config).parts(flat))
    held = small_law(length=6).sample(40, seed=2)[None]
    nats, lost = split_bound(config, weights, held, stepper.angles)
    whole = bound(config, weights, held, stepper.angles)
    assert 0 < float(lost.mean()) < 1 and bool(nats.isfinite().all())
    assert torch.equal(whole.isinf(), lost > 0)
    denoiser = NetworkDenoiser(config, flat[0])
    from maskwalk.streams import Purpose, Streams

    order = Streams(0, torch.arange(40)).uniform(Purpose.TRAIN, 0, 6).argsort(1).argsort(1)
    finite, never = torch.zeros(40).double(), torch.zeros(40).double()
    for k in range(1, 7):
        masked = order < k
        logs = denoiser(held[0].masked_fill(masked, config.mask_id))
        rows = masked.nonzero()[:, 0]
        own = -logs.gather(1, held[0][masked][:, None])[:, 0]
        finite.index_add_(0, rows, torch.where(own.isinf(), 0.0, own) / k)
        never.index_add_(0, rows, own.isinf().double() / k)
    torch.testing.assert_close(nats[0], finite / 6, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(lost[0], never / 6)
    (numbers,) = Judge(stepper, stepper._jobs, None)()
    assert "bound" not in numbers and numbers["impossible"] == pytest.approx(float(lost.mean()))
    rest = float(nats.mean()) / (1 - float(lost.mean()))
    assert numbers["bound_rest"] == pytest.approx(rest)


@pytest.mark.parametrize("output", ["chain(rank=4)", "entmax(alpha=1.5)"])
def test_a_run_goes_on_to_the_same_bytes_and_is_found_again(output: str, tmp_path: Path) -> None:
    whole = trained(output, steps=24, dropout=0.1)
    first = Stepper(whole.config, whole._jobs, whole.settings)
    first.advance(10)
    state = {name: tensor.clone() for name, tensor in first.tensors().items()}
    again = Stepper(whole.config, whole._jobs, whole.settings)
    again.load(state, 10)
    again.advance(14)
    assert torch.equal(again.averages(), whole.averages())
    settings = Settings(steps=4, batch=8, every=4)
    (made,) = train(whole.config, whole._jobs, settings, tmp_path / "a", live=False)
    found = load_pretrained(tmp_path / "a")
    assert found.config == made.config and found.config.output == whole.config.output
    assert torch.equal(found.weights, made.weights)
    save_zoo({"tiny": made}, tmp_path / "zoo")
    packed = load_zoo("tiny", tmp_path / "zoo")
    assert packed.config == made.config
    assert torch.equal(packed.weights, made.weights.bfloat16().float())


@pytest.mark.parametrize("output", ["chain(rank=4)", "entmax(alpha=1.5)"])
def test_several_models_of_one_output_are_those_models(output: str) -> None:
    alone = [trained(output, steps=6, seed=seed).averages()[0] for seed in (2, 3)]
    stepper = trained(output, steps=6)
    jobs = [replace(stepper._jobs[0], seed=seed, name=str(seed)) for seed in (2, 3)]
    together = Stepper(stepper.config, jobs, stepper.settings)
    together.advance(6)
    torch.testing.assert_close(together.averages(), torch.stack(alone), rtol=1e-3, atol=1e-4)


def test_the_usual_output_leaves_no_trace(tmp_path: Path) -> None:
    """Files, identities and initial weights are those of before there were outputs."""
    plain = replace(SHAPE, output="softmax")
    assert plain == DDiTConfig(V, L, 16, 4, 1, 2) and plain.output == PLAIN
    assert "output" not in plain.to_json() and SHAPE.to_json()["output"] == "chain(rank=3)"
    job = Job("a", torch.zeros(4, L, dtype=torch.int64))
    assert "output" not in json.dumps(identity(plain, [job], Settings(), 1))
    assert DDiTConfig.from_json(SHAPE.to_json()) == SHAPE
    assert set(layout(SHAPE).second) - set(layout(plain).second) == {LEFT, RIGHT}
    mine, theirs = layout(SHAPE).initial([4]), layout(plain).initial([4])
    assert torch.equal(mine[:, : theirs.shape[1]], theirs)
    named = layout(SHAPE).named(mine)
    assert 0 < float(named[LEFT].abs().max()) <= 3**-0.5 and not bool(named[RIGHT].any())
    recipe = replace(WORLD_RECIPES["sudoku"], output="chain(rank=8)")
    groups = by_shape({"a": WORLD_RECIPES["sudoku"], "b": recipe, "c": recipe})
    assert [list(group) for _, group in groups] == [["a"], ["b", "c"]]


def test_outputs_that_cannot_be_are_sentences(tmp_path: Path) -> None:
    def made(**changes: object) -> object:
        return replace(SHAPE, **changes)  # type: ignore[arg-type]

    for changes, said in (
        ({"output": "chain(rank=0)"}, "rank"),
        ({"output": "entmax(alpha=1.0)"}, "alpha"),
        ({"output": "entmax(alpha=2.5)"}, "alpha"),
        ({"output": "mixture"}, "chain"),
        ({"causal": True}, "no masked positions"),
        ({"causal": True, "output": "entmax"}, "needs output=softmax"),
        ({"vocab_size": 10_000}, "8,192"),
    ):
        with pytest.raises(MaskwalkError, match=said):
            made(**changes)
    place = ("st_er(nodes=5, p=0.2)", None, 4, 0, 64, 0.0, 16, 1, 2, 0, None)
    for masking, output, said in (
        ("mistakes()", "chain", "all masked positions"),
        ("along()", "chain", "counted='all'"),
        ("uniform(planner=1.0)", "chain", "planner"),
        ("coarse(planner=1.0)", "entmax", "planner"),
    ):
        with pytest.raises(MaskwalkError, match=said):
            Plan.checked(*place, masking, output)
    assert Plan.checked(*place, "along(counted='all')", "chain").config.output == "chain(rank=32)"
    with pytest.raises(NotImplementedError, match="no marginals"):
        Output().log_marginals(
            SHAPE, {}, padded(torch.zeros(1, 1, L, V)), torch.zeros(1, 1, L).long()
        )
    save_pretrained(load_zoo("sudoku"), tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    for value, said in ((3, "config.output"), ("x" * 300, "config.output"), ("mixture", "chain")):
        about["config"]["output"] = value
        (tmp_path / "model.json").write_text(json.dumps(about))
        with pytest.raises(MaskwalkError, match=said):
            load_pretrained(tmp_path)


def test_every_output_says_what_it_is() -> None:
    assert set(OUTPUTS) == {"softmax", "chain", "entmax"}
    assert all(OUTPUTS.summary(name) for name in OUTPUTS)
