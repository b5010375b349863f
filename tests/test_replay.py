"""Replay against full enumeration, against sampling, and everything it must refuse."""

import json
from dataclasses import dataclass, field
from io import StringIO
from math import log

import pytest
import torch
import typer
from rich.console import Console
from scipy.stats import chi2
from torch import Tensor
from typer.testing import CliRunner

from maskwalk.analysis.contract import FALSE_ALARM, goodness_of_fit
from maskwalk.analysis.law import bridge_law, sampler_law
from maskwalk.analysis.likelihood import Likelihood, estimate
from maskwalk.analysis.losses import PAPER, best_plans, diagnose, exact_sequences, for_json
from maskwalk.analysis.replay import Replayed, Watched, bridges, replay, truth_of
from maskwalk.bench.cell import Cell
from maskwalk.cli.diagnose import diagnose as command
from maskwalk.cli.diagnose import table
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import build_denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.planned import Planned
from maskwalk.samplers.random import Random
from maskwalk.specs import Spec
from maskwalk.streams import Purpose, Streams
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.oracles import EnumerationOracle, oracle_for
from maskwalk.worlds.world import build_world
from tests.conftest import STANDS, small_law
from tests.mutants.samplers import DrawsFirst, NeverRemasks, OverwritesGiven

POLICIES = ["bisection()", "entropy(block=2)", "margin(block=3)", "confidence(block='exponential')"]
LARGER = small_law("st_er(nodes=20, p=0.1)", "lazy(stay=0.2)", 8)


@dataclass
class Noisy:
    """An imperfect denoiser: the oracle mixed with uniform noise."""

    oracle: Denoiser
    noise: float = 0.05
    score_grid: float = 1e-9
    vocab_size: int = field(init=False)
    mask_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.vocab_size, self.mask_id = self.oracle.vocab_size, self.oracle.mask_id

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        probs = self.oracle(tokens, at).exp()
        return ((1 - self.noise) * probs + self.noise / self.vocab_size).log()


def denoisers(law: WalkLaw) -> list[Denoiser]:
    return [oracle_for(law), Noisy(oracle_for(law))]


def enumerate_walks(
    law: WalkLaw, spec: str, denoiser: Denoiser, prompt: Tensor | None = None, **options: object
) -> tuple[Replayed, Likelihood, Tensor, Tensor]:
    """All walks (that agree with the prompt) replayed, and the sampler's exact law on them."""
    start = torch.full((law.length,), law.vocab_size) if prompt is None else prompt
    walks, weights = bridge_law(law, start, law.vocab_size)
    sampler = SAMPLERS.build(spec)
    outputs, probs = sampler_law(sampler, denoiser, start, **options)
    table = {tuple(x): p for x, p in zip(outputs.tolist(), probs.tolist())}
    truth = torch.tensor([table.get(tuple(x), 0.0) for x in walks.tolist()], dtype=torch.float64)
    given = (start != law.vocab_size).expand(walks.shape)
    found = replay(
        sampler,
        denoiser,
        walks,
        streams=Streams(0, len(walks)),
        given=given,
        world=law,
        **options,
    )
    return found, estimate([found], weights), truth, weights


@pytest.mark.parametrize("name", list(STANDS))
@pytest.mark.parametrize("spec", POLICIES)
@pytest.mark.parametrize("which", [0, 1], ids=["oracle", "noisy"])
def test_replay_equals_enumeration_and_its_parts_add_up(name: str, spec: str, which: int) -> None:
    law = STANDS[name]
    found, got, truth, weights = enumerate_walks(law, spec, denoisers(law)[which], ties="index")
    assert torch.allclose(found.log_prob.sum(1).exp(), truth, atol=1e-12, rtol=1e-9)
    kl = float((weights * (weights / truth).log()).sum())
    assert got.kl_kind == "exact" and got.lost == 0
    assert got.kl == pytest.approx(kl, abs=1e-9)
    assert got.coherence == pytest.approx(float(truth.sum()), abs=1e-9)
    # The two parts sum to the KL, in conditional mean and pathwise.
    assert got.dependence + got.denoiser == pytest.approx(kl, abs=1e-9)
    paths = found.split["dependence_path"] + found.split["denoiser_path"]
    assert float((weights * paths.sum(1)).sum()) == pytest.approx(kl, abs=1e-9)
    for part in ("dependence", "denoiser"):
        mean = float((weights * found.split[f"{part}_path"].sum(1)).sum())
        assert mean == pytest.approx(getattr(got, part), abs=1e-9)
    assert (got.denoiser == 0) == (which == 0) and got.dependence > -1e-12
    if name != "order-2" and spec == "bisection()":
        assert got.dependence == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", list(STANDS))
def test_each_round_is_total_correlation_and_marginal_error_by_listing_walks(name: str) -> None:
    """Both parts from their definitions, by conditioning the listed walks by hand."""
    law = STANDS[name]
    noisy = Noisy(EnumerationOracle(law), 0.1)
    walks, logs = law.support()
    nu = logs.exp()
    sets, plan = ((1, 3), (0, 2, 4)), Planned(turns=(1, 0, 1, 0, 1))
    got = replay(plan, noisy, walks, streams=Streams(0, len(walks)), world=law)
    revealed: list[int] = []
    for r, block in enumerate(sets):
        correlation = error = 0.0
        for seen in sorted({tuple(x) for x in walks[:, revealed].tolist()}):
            agree = (walks[:, revealed] == torch.tensor(seen)).all(1)
            mass = nu[agree].sum()
            some, p = walks[agree], nu[agree] / mass
            canvas = torch.full((1, law.length), law.vocab_size)
            canvas[0, revealed] = torch.tensor(seen, dtype=torch.int64)
            answers = noisy(canvas)
            masked = [i for i in range(law.length) if i not in revealed]
            joint = torch.zeros(len(some[:, block].unique(dim=0))).double()
            joint.index_add_(0, some[:, block].unique(dim=0, return_inverse=True)[1], p)
            correlation -= float(mass * torch.special.entr(joint).sum())
            for i in block:
                marginal = torch.zeros(law.vocab_size).double().index_add_(0, some[:, i], p)
                correlation += float(mass * torch.special.entr(marginal).sum())
                log_ratio = marginal.log() - answers[masked.index(i)]
                error += float(mass * torch.where(marginal > 0, marginal * log_ratio, 0.0).sum())
        for kind in ("", "_path"):
            dependence = nu @ got.per_round(got.split["dependence" + kind])[:, r]
            denoiser = nu @ got.per_round(got.split["denoiser" + kind])[:, r]
            assert float(dependence) == pytest.approx(correlation, abs=1e-9)
            assert float(denoiser) == pytest.approx(error, abs=1e-9)
        revealed = sorted([*revealed, *block])


@pytest.mark.parametrize("which", [0, 1], ids=["oracle", "noisy"])
def test_bridges_are_replayed_under_the_bridge_law(which: int) -> None:
    for name, law in STANDS.items():
        walk = law.sample(1, 3)[0]
        prompt = torch.full((law.length,), law.vocab_size)
        prompt[0], prompt[-1] = walk[0], walk[-1]
        for spec in ("entropy(block=2)", "bisection()"):
            found, got, truth, weights = enumerate_walks(
                law, spec, denoisers(law)[which], prompt, ties="index"
            )
            assert torch.allclose(found.log_law, weights.log()), name
            assert got.kl == pytest.approx(float((weights * (weights / truth).log()).sum()))
            assert got.coherence == pytest.approx(float(truth.sum()), abs=1e-9)
            assert (found.round[:, [0, -1]] == -1).all()
            assert (found.log_prob[:, [0, -1]] == 0).all()
        drawn = bridges(law, prompt.expand(3000, -1).clone(), seed=5)
        statistic, freedom = goodness_of_fit(drawn, *bridge_law(law, prompt, law.vocab_size))
        assert chi2.sf(statistic, freedom) > FALSE_ALARM, name


def test_random_orders_give_an_upper_bound_that_more_orders_tighten() -> None:
    law = STANDS["chain"]
    for denoiser in denoisers(law):
        walks, weights = bridge_law(law, torch.full((5,), 5), 5)
        outputs, probs = sampler_law(Random(block=2), denoiser, torch.full((5,), 5))
        table = {tuple(x): p for x, p in zip(outputs.tolist(), probs.tolist())}
        truth = torch.tensor([table[tuple(x)] for x in walks.tolist()], dtype=torch.float64)
        kl = float((weights * (weights / truth).log()).sum())
        replays = [
            replay(Random(block=2), denoiser, walks, streams=Streams(s, len(walks)), world=law)
            for s in range(64)
        ]
        got = {n: estimate(replays[:n], weights) for n in (1, 8, 64)}
        assert all(g.kl_kind == "upper" for g in got.values())
        # One order is a bound on average over orders; 64 orders all but close the gap.
        single = sum(estimate([r], weights).kl for r in replays) / 64
        assert single > kl + 0.02 and single > got[8].kl + 0.01
        assert got[64].kl == pytest.approx(kl, abs=0.01)
        assert got[64].mixing == pytest.approx(single - got[64].kl, abs=1e-2)
        assert got[64].coherence == pytest.approx(float(truth.sum()), abs=0.02)


def test_a_watch_hears_every_question_whoever_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an accelerator kernels answer, and nobody asks for the words of the plain formula."""
    rows = torch.zeros(2, dtype=torch.int64)
    questions: dict[str, tuple[object, ...]] = {
        "uniform": (Purpose.TIE, 0, 5),
        "uniform_at": (Purpose.TIE, 0, rows, rows),
        "single_at": (Purpose.TOKEN, 0, rows, rows, 7),
    }
    assert {name for name in vars(Streams) if not name.startswith("_")} == {"select", *questions}
    monkeypatch.setattr(Watched, "_words", Streams._words)
    for name, words in questions.items():
        watched = Watched(Streams(0, 3))
        getattr(watched.select(torch.tensor([1])), name)(*words)
        assert watched.asked, name


@pytest.mark.parametrize("which", [0, 1], ids=["oracle", "noisy"])
@pytest.mark.parametrize("spec", ["random(block=2)", "entropy(block=2)", "bisection()"])
@pytest.mark.parametrize("task", ["unconditional", "endpoints"])
def test_replayed_and_sampled_coherence_agree(which: int, spec: str, task: str) -> None:
    law, n = LARGER, 3000
    denoiser = denoisers(law)[which]
    prompts = TASKS.build(task, world=law, prompts=n, seed=1)
    walks, given = exact_sequences(law, prompts)
    found = replay(
        SAMPLERS.build(spec), denoiser, walks, streams=Streams(2, n), given=given, world=law
    )
    got = estimate([found])
    tokens = decode(SAMPLERS.build(spec), denoiser, prompts.tokens, streams=Streams(3, n)).tokens
    sampled = law.valid(tokens).all(1).double()
    error = (got.coherence_se**2 + float(sampled.var()) / n) ** 0.5
    assert got.ess > 50 and got.reliable
    assert abs(got.coherence - float(sampled.mean())) < 4 * error + 1e-9
    # The conditional means estimate what the paths do, with less noise.
    paths = found.loss
    spread = float(paths.std()) / n**0.5
    assert abs(got.kl - float(paths.mean())) < 4 * spread + 1e-9
    assert got.kl_se <= spread + 1e-12


@pytest.mark.parametrize(
    ("model", "spec", "n"),
    [("st_er_p0", "bisection()", 96), ("st_er_deg7", "guided_bisection()", 160)],
)
def test_replayed_and_sampled_coherence_agree_for_a_trained_model(
    model: str, spec: str, n: int
) -> None:
    """The shipped models: coherence near 1 on the tree, near a half on the degree-7 graph."""
    cell = Cell.checked(denoiser=f"zoo:{model}", task="unconditional", sampler=spec)
    law = build_world(cell.world)
    network, sampler = build_denoiser(cell.denoiser, law, "cpu"), SAMPLERS.build(spec)
    walks, _ = exact_sequences(
        law, TASKS.build("unconditional", world=law, prompts=n, seed=0)
    )  # held out
    found = replay(sampler, network, walks, streams=Streams(2, n), world=law)
    got = estimate([found])
    blank = torch.full((n, law.length), network.mask_id)
    sampled = law.valid(decode(sampler, network, blank, streams=Streams(3, n)).tokens).all(1)
    share = float(sampled.double().mean())
    error = (got.coherence_se**2 + max(share * (1 - share), 1 / n) / n) ** 0.5
    assert got.ess > 50 and got.reliable and error < 0.08
    assert abs(got.coherence - share) < 4 * error
    # Bisection is exact in law on both graphs: all that is lost is the network's.
    assert got.dependence < 1e-9 < 0.1 < got.denoiser
    assert (share > 0.9) == (model == "st_er_p0") and share > 0.3


def test_replaying_what_was_decoded_retraces_it() -> None:
    law = LARGER
    streams = Streams(4, torch.arange(40, 104))
    for spec in ("random(block=3)", "entropy(block=2)", "guided_bisection()"):
        denoiser = oracle_for(law)
        start = torch.full((64, law.length), law.vocab_size)
        made = decode(SAMPLERS.build(spec), denoiser, start, streams=streams, trace=True)
        got = replay(SAMPLERS.build(spec), denoiser, made.tokens, streams=streams)
        assert made.trace is not None
        assert torch.equal(got.round, made.trace.reveal_rounds())
        assert torch.equal(got.calls, made.calls)
        drawn = made.trace.events["log_prob"].nan_to_num().sum()
        assert float(got.log_prob.sum()) == pytest.approx(float(drawn))
        assert got.random and got.log_law is None and not got.split


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_every_sampler_is_retraced_or_refused(name: str) -> None:
    law, streams = STANDS["chain"], Streams(1, 16)
    oracle, start = oracle_for(law), torch.full((16, 5), 5)
    sampler = SAMPLERS.build(Spec(name, (), SAMPLERS[name].sweep[-1]))
    made = decode(sampler, oracle, start, streams=streams, trace=True)
    if not isinstance(sampler, UnmaskingPolicy) or sampler.remasks:
        with pytest.raises(MaskwalkError, match="cannot be replayed"):
            replay(sampler, oracle, made.tokens, streams=streams)
        return
    got = replay(sampler, oracle, made.tokens, streams=streams)
    assert made.trace is not None
    assert torch.equal(got.round, made.trace.reveal_rounds())
    assert torch.equal(got.calls, made.calls)


def test_draw_options_are_part_of_the_law() -> None:
    law = STANDS["chain"]
    oracle = oracle_for(law)
    hot = {"draw": Draw(temperature=2.0), "ties": "index"}
    _, got, truth, weights = enumerate_walks(law, "entropy(block=2)", oracle, **hot)
    assert got.kl == pytest.approx(float((weights * (weights / truth).log()).sum()), abs=1e-9)
    assert got.denoiser > 0.01 and got.coherence == pytest.approx(float(truth.sum()), abs=1e-9)
    cut = {"draw": Draw(top_p=0.6), "ties": "index"}
    _, got, truth, weights = enumerate_walks(law, "bisection()", oracle, **cut)
    assert got.kl == float("inf") and got.denoiser == float("inf")
    assert got.lost == pytest.approx(float(weights[truth == 0].sum())) and 0 < got.lost < 1
    assert got.coherence == pytest.approx(float(truth.sum()), abs=1e-9)
    kept = truth > 0  # the KL of the law given what can be drawn, by its definition
    left = weights[kept] / weights[kept].sum()
    assert got.kl_rest == pytest.approx(float((left * (left / truth[kept]).log()).sum()), abs=1e-9)
    row = diagnose(law, oracle, SAMPLERS.build("bisection()"), law.sample(99, 0), draw=cut["draw"])
    assert row["kl_infinite"] and row["lost"] > 0 and "∞" in text_of([row])
    stored = json.loads(json.dumps(for_json(row), allow_nan=False))
    assert stored["kl"] is None and stored["kl_rest"] > 0
    said = " ".join(text_of([stored]).split())
    assert f"{row['lost']:.1%} of the exact sequences can never be drawn; KL of the rest" in said


def test_what_cannot_be_replayed_says_why() -> None:
    law = STANDS["chain"]
    oracle, walks = oracle_for(law), law.sample(4, 0)
    for sampler, why in (
        (NeverRemasks(), "takes revealed tokens back"),
        (OverwritesGiven(), "choose by what it drew"),
        (DrawsFirst(), "looks at its own draws"),
    ):
        with pytest.raises(MaskwalkError, match=why):
            replay(sampler, oracle, walks, streams=Streams(0, 4))
    bisection = SAMPLERS.build("bisection()")
    with pytest.raises(MaskwalkError, match="bfloat16"):
        replay(bisection, oracle, walks, streams=Streams(0, 4), draw=Draw(precision="bfloat16"))
    with pytest.raises(MaskwalkError, match="complete"):
        replay(bisection, oracle, torch.full((4, 5), 5), streams=Streams(0, 4))
    with pytest.raises(MaskwalkError, match="stream id"):
        replay(bisection, oracle, walks, streams=Streams(0, torch.zeros(4, dtype=torch.int64)))
    walks[2, 1] = (law.next_probs(walks[2:3, :1])[0] == 0).nonzero()[0, 0]
    with pytest.raises(MaskwalkError, match="Walk 2 has probability zero"):
        replay(bisection, Noisy(oracle), walks, streams=Streams(0, 4), world=law)
    with pytest.raises(MaskwalkError, match="nothing to estimate"):
        estimate([])


@dataclass
class Flat:
    """Every token alike: a denoiser for laws that have no oracle."""

    vocab_size: int
    mask_id: int
    score_grid: float = 1e-4

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        return torch.full((int(at.sum()), self.vocab_size), -log(self.vocab_size)).double()


def test_without_an_oracle_the_joint_gives_kl_and_without_a_law_the_likelihood() -> None:
    law = small_law("st_er(nodes=500, p=0.01)", "distant()", 8)
    assert truth_of(law) is None
    flat = Flat(500, 500)
    prompts = TASKS.build("unconditional", world=law, prompts=60, seed=0)
    walks, given = exact_sequences(law, prompts)
    row = diagnose(law, flat, SAMPLERS.build("bisection()"), walks, given)
    assert row["nll"] == pytest.approx(8 * log(500)) and row["lost"] == 0
    assert row["kl"] == pytest.approx(8 * log(500) + float(law.log_prob(walks).mean()))
    assert row["dependence"] is None and row["worst_round"] is None and row["regret"] is None
    assert 0 < row["coherence"] < 1e-3
    # Between given tokens ν(x | given) is not known either: the likelihood remains.
    prompts = TASKS.build("endpoints", world=law, prompts=8, seed=0)
    walks, given = exact_sequences(law, prompts)
    row = diagnose(law, flat, SAMPLERS.build("bisection()"), walks, given)
    assert row["kl"] is None and row["nll"] == pytest.approx(6 * log(500))
    assert diagnose(None, flat, SAMPLERS.build("random()"), walks)["coherence"] is None
    with pytest.raises(MaskwalkError, match="needs an oracle"):
        bridges(law, prompts.tokens)


def test_the_ledger_adds_up_and_flags_what_few_walks_carry() -> None:
    law = small_law("st_er(nodes=60, p=0.05)", "lazy(stay=0.125)", 16)
    noisy = Noisy(oracle_for(law), 0.02)
    walks, given = exact_sequences(law, TASKS.build("unconditional", world=law, prompts=64, seed=0))
    plans = best_plans(law, walks, given)
    rows = {
        spec: diagnose(law, noisy, SAMPLERS.build(spec), walks, given, plans=plans, orders=2)
        for spec in ("bisection()", "random(block=6)", "left_to_right")
    }
    for row in rows.values():
        for part in ("dependence", "denoiser", "nll"):
            total = sum(r[part] for r in row["rounds"])
            assert total == pytest.approx(row[part] + (row["mixing"] if part == "nll" else 0))
        assert row["kl"] == pytest.approx(row["dependence"] + row["denoiser"] - row["mixing"])
        costs = [r["dependence"] + r["denoiser"] for r in row["rounds"]]
        assert row["worst_round"] == costs.index(max(costs))
        assert sum(r["revealed"] for r in row["rounds"]) == pytest.approx(16)
    assert rows["bisection()"]["reliable"] and not rows["random(block=6)"]["reliable"]
    assert rows["random(block=6)"]["kl_kind"] == "upper" and rows["random(block=6)"]["ess"] < 50
    assert rows["bisection()"]["rounds"][1]["positions"] == [3, 11]
    assert rows["bisection()"]["rounds"][1]["share"] == 1.0
    assert rows["bisection()"]["mixing"] == pytest.approx(0, abs=1e-12)
    assert rows["bisection()"]["regret"] == pytest.approx(0, abs=1e-9)
    assert rows["random(block=6)"]["best"] > 0.1  # three rounds, where bisection takes five
    assert rows["random(block=6)"]["regret"] > 0.1
    assert "~" in text_of(list(rows.values())) and "≤" in text_of(list(rows.values()))


def text_of(rows: list[dict]) -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(table(rows))
    return console.export_text()


def test_the_papers_rows() -> None:
    assert len(PAPER) == len(set(PAPER)) == 24
    assert [SAMPLERS.canonical(spec) for spec in PAPER] == list(PAPER)


def run_command(*words: str) -> tuple[int, str, BaseException | None]:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.stdout, done.exception


SMALL = ["--graph", "st_er(nodes=12, p=0.1)", "--length", "7", "--count", "60"]


def test_the_command_prints_a_ledger_for_machines_and_for_people() -> None:
    code, out, _ = run_command(*SMALL, "--json", "--optimal", "2")
    rows = json.loads(out)
    assert code == 0 and [r["sampler"] for r in rows[:24]] == list(PAPER)
    assert rows[24]["sampler"].startswith("optimal_random(sizes=(")
    assert rows[25]["sampler"].startswith("planned(turns=(") and rows[25]["calls"] == 2
    assert rows[25]["best"] > 0.1 and abs(rows[25]["regret"]) < 5 * rows[25]["dependence_se"]
    needed = ("sampler", "calls", "coherence", "kl", "kl_se", "kl_kind", "dependence", "denoiser")
    for row in rows:
        assert all(row[key] is not None for key in (*needed, "worst_round", "ess", "rounds"))
        assert row["denoiser"] == 0 and row["regret"] > -5 * row["dependence_se"] - 1e-9
    assert rows[0]["kl"] < 1e-9 and rows[0]["calls"] == 3
    words = (*SMALL, "--samplers", "bisection; entropy(block=2)", "--task", "endpoints")
    code, out, _ = run_command(*words)
    assert code == 0 and "entropy ×2" in out and max(map(len, out.splitlines())) <= 80


def test_the_commands_mistakes_are_sentences() -> None:
    for words, says in (
        (["--preset", "as_published"], "--preset exact"),
        (["--samplers", "bisecton"], "Did you mean 'bisection'"),
        (["--count", "0"], "count"),
        (["--orders", "0"], "orders"),
    ):
        code, _, problem = run_command(*SMALL, *words)
        assert code and isinstance(problem, MaskwalkError) and says in str(problem)


@dataclass
class NineInTen:
    """Two tokens that always alternate, known with 90 % certainty once a token is revealed."""

    vocab_size: int = 2
    mask_id: int = 2
    score_grid: float = 1e-9

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == 2 if at is None else at
        row, position = at.nonzero(as_tuple=True)
        known = tokens != 2
        first = known.to(torch.uint8).argmax(1)  # any revealed token tells the whole walk
        right = (tokens.gather(1, first[:, None])[row, 0] + position - first[row]) % 2
        sure = 0.5 + 0.4 * known.any(1)[row].double()
        probs = torch.stack([1 - sure, sure], 1)
        return torch.where(right[:, None] == 1, probs, probs.flip(1)).log()


def test_the_worked_example_of_the_documentation() -> None:
    law = small_law("st_er(nodes=2, p=0.0)", "lazy(stay=0)", 3, 0)
    walks, logs = law.support()
    assert walks.tolist() == [[0, 1, 0], [1, 0, 1]] and logs.exp().tolist() == [0.5, 0.5]
    for turns, dependence, error in (
        ((0, 0, 1), log(2), -log(0.9)),
        ((1, 0, 1), 0.0, -2 * log(0.9)),
        ((0, 1, 2), 0.0, -2 * log(0.9)),
        ((0, 0, 0), 2 * log(2), 0.0),
    ):
        got = replay(Planned(turns=turns), NineInTen(), walks, streams=Streams(0, 2), world=law)
        found = estimate([got], logs.exp())
        assert found.dependence == pytest.approx(dependence, abs=1e-12)
        assert found.denoiser == pytest.approx(error, abs=1e-12)
        assert found.coherence == pytest.approx(torch.tensor(-dependence - error).exp().item())
