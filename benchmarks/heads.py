"""Heads: what else the states of a trained network tell (docs/frontier.md).

    python benchmarks/heads.py --models st_er_deg7 --out runs/heads --device cuda
    maskwalk bench experiments/frontier/heads.toml --include benchmarks/heads.py --out runs/records

A head reads a frozen network: the states before its last linear map and the tokens it was shown, a
block of attention over them, one number for every position. Four are trained for every model:

    information   of a masked position: the nats its token tells about the other masked positions of
                  its run, Σ_i KL(p_i after ‖ p_i before). Contexts are coarse, the token is the
                  training walk's own.

and of a revealed token, the log-odds that it is one to take back. They differ in the examples:

    replaced      training walks in which up to half of the tokens are the model's, drawn all at
                  once given the others: which ones differ from the walk's own?
    drafted       training walks masked coarsely and completed by bisection: which are drafts?
    broken        the model's own walks by bisection: which stand at a step that the world says is
                  impossible? (The others need no such help.)

`--include` registers three samplers:

    looked_bisection(draws=n)    guided bisection by information instead of entropy: every candidate
                                 pivot is tried with n tokens drawn for it, one call each
    read_bisection(head=FILE)    the same, information read off the states
    verified(head=FILE, label=…, bar=b)   self_correct with one of the last three as its check: a
                                 token is taken back where its probability to be bad is over b

A head's number comes from the pass that answers, so no call is counted for it; here it is computed
apart. Of the examples the last twentieth is held out: other contexts, but of walks seen before.
"""

import argparse
import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.files import Pretrained, load_pretrained
from maskwalk.denoisers.network.ddit import hidden_states, modulations
from maskwalk.denoisers.network.weights import layout
from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.samplers.guided_bisection import GuidedBisection
from maskwalk.samplers.parts.runs import runs
from maskwalk.samplers.punt import divergence
from maskwalk.samplers.self_correct import SelfCorrect
from maskwalk.streams import Purpose, Streams, inverse_cdf
from maskwalk.training.maskings import Coarse
from maskwalk.training.zoo import TRAIN_SEED, chosen

LABELS = ("replaced", "drafted", "broken")
KINDS = ("information", *LABELS)
WIDTH, ROWS, MOST = 128, 4096, 50.0  # of a head; sequences at a time; nats a target has at most


class Head(nn.Module):
    """One number for every position, from the states of a network and the tokens it was shown."""

    def __init__(self, hidden: int, length: int) -> None:
        super().__init__()
        self.norm, self.map = nn.LayerNorm(2 * hidden), nn.Linear(2 * hidden, WIDTH)
        self.place = nn.Parameter(torch.randn(length, WIDTH) * 0.3)
        self.block = nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.last = nn.Linear(WIDTH, 1)
        self.register_buffer("usual", torch.zeros(()))  # the number that everything has

    def forward(self, states: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch length"]:
        """Nats, or log-odds."""
        number: Tensor = self.last(self.block(self.map(self.norm(states)) + self.place))
        return number[..., 0] + self.usual


class States:
    """A frozen network, read for its states."""

    def __init__(self, model: Pretrained, device: torch.device | str) -> None:
        self.config, parts = model.config, layout(model.config)
        flat = model.weights[None].to(device)
        self._weights = parts.grouped(*parts.parts(flat))
        self._modulation = modulations(model.config, self._weights)
        self._angles = model.config.angles(model.config.length, device)

    @torch.no_grad()
    def __call__(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d"]:
        """The state before the last map beside the embedding, at every position."""
        weights, angles = self._weights, self._angles
        hidden = hidden_states(self.config, weights, tokens[None], angles, self._modulation)[0]
        shown = weights["vocab_embed.embedding"][0][tokens]
        return torch.cat([hidden.view(shown.shape).to(shown), shown], -1)


class Reader:
    """A network with one of its heads."""

    def __init__(self, states: States, head: Head) -> None:
        self._states, self._head = states, head.eval()

    @torch.no_grad()
    def __call__(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length"]:
        """What the head says of every position."""
        return torch.cat([self._head(self._states(some)) for some in tokens.split(ROWS)]).double()


@cache
def reader(file: str, kind: str, device: str) -> Reader:
    """A head in a file, with the network it was trained on."""
    path = Path(file)
    if not path.exists():
        raise MaskwalkError(
            f"There is no head {file}; train it: python benchmarks/heads.py --models {path.stem}"
        )
    model = load_pretrained(f"zoo:{path.stem}")
    head = Head(model.config.hidden, model.config.length).to(device)
    values = load_file(path, device=device)
    mine = {k.removeprefix(f"{kind}."): v for k, v in values.items() if k.startswith(f"{kind}.")}
    head.load_state_dict(mine)
    return Reader(States(model, device), head)


@SAMPLERS.register("read_bisection")
@dataclass(frozen=True)
class ReadBisection(GuidedBisection):
    """Guided bisection by the information that a head reads off the states."""

    head: str = ""
    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The most informative position of every centre."""
        read = reader(self.head, "information", view.tokens.device.type)
        grid = view.score_grid
        return self._led(view, state, torch.round(-read(view.tokens) / grid) * grid)


@SAMPLERS.register("looked_bisection")
@dataclass(frozen=True)
class LookedBisection(GuidedBisection):
    """Guided bisection by the information that trying the candidates shows; no draws: at random."""

    draws: int = 1
    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("draws", self.draws, 0, 64)

    @property
    def asks_elsewhere(self) -> bool:
        """The candidates."""
        return True

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Try, choose, draw anew, reveal."""
        view = View(canvas, denoise, rng)
        told = torch.round(self._told(view, denoise, rng) / view.score_grid) * view.score_grid
        chosen, state = self._led(view, canvas.state, -told)
        return canvas.reveal(chosen, rng.draw(view.take_marginals(chosen), chosen), state)

    def _told(
        self, view: View, denoise: Denoiser, rng: RoundStreams
    ) -> Float[Tensor, "batch length"]:
        """Mean nats that each candidate's drawn tokens told; 0 for what is no candidate."""
        masked, before = view.masked, view.log_marginals
        start, centre = self._centre(masked)
        order = centre.long().cumsum(1)
        number = order - order.gather(1, start) + centre.gather(1, start).long()  # 1, 2, … a run
        row, place = masked.nonzero(as_tuple=True)
        uniforms = rng.streams.single_at(Purpose.REDRAW, rng.round, row, place, max(self.draws, 1))
        told = torch.zeros_like(masked, dtype=torch.float64)
        for draw in range(self.draws):
            drawn = view.tokens.masked_scatter(
                masked, inverse_cdf(before, uniforms[:, draw].double())
            )
            for candidate in range(1, int(number[centre].max()) + 1):
                tried = centre & (number == candidate)
                told += informed(denoise, view.tokens, masked, before, start, tried, drawn)
        return told / max(self.draws, 1)


def informed(
    denoise: Denoiser,
    shown: Int[Tensor, "batch length"],
    masked: Bool[Tensor, "batch length"],
    before: Float[Tensor, "rows vocab"],
    start: Int[Tensor, "batch length"],
    tried: Bool[Tensor, "batch length"],
    tokens: Int[Tensor, "batch length"],
) -> Float[Tensor, "batch length"]:
    """At what is tried, one position of a run at most: the nats that its token tells its run."""
    active = torch.zeros_like(tokens).scatter_add(1, start, tried.long()) * masked  # by run
    asked = masked & ~tried & (active.gather(1, start) > 0)
    told = torch.zeros_like(tried, dtype=torch.float64)
    if bool(asked.any()):
        after = denoise(torch.where(tried, tokens, shown), asked)
        told[asked] = divergence(after, before[asked[masked]]).clamp(0.0, MOST)
    of_run = torch.zeros_like(told).scatter_add(1, start, told)
    return torch.where(tried, of_run.gather(1, start), 0.0)


@SAMPLERS.register("verified")
@dataclass(frozen=True)
class Verified(SelfCorrect):
    """Self-correction by a head that says how probably a token is bad."""

    head: str = ""
    label: str = "replaced"
    bar: float = 0.5
    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("label", self.label, LABELS)
        real("bar", self.bar, 0.0, 1.0)

    def _look(
        self, canvas: Canvas, denoise: Denoiser, looked: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "n vocab"], Bool[Tensor, "batch length"]]:
        """One call: it is asked where masked, and a row that only looks at one of its tokens."""
        masked, read = canvas.masked, reader(self.head, self.label, canvas.tokens.device.type)
        first = looked & (looked.long().cumsum(1) == 1) & ~masked.any(1, keepdim=True)
        asked = masked | first
        log_probs = denoise(canvas.tokens, asked)
        return log_probs[masked[asked]], looked & (read(canvas.tokens).sigmoid() > self.bar)


@dataclass(frozen=True)
class Examples:
    """What a head learns from: tokens as shown, the positions that count, the right numbers."""

    tokens: Int[Tensor, "count length"]
    counted: Bool[Tensor, "count length"]
    target: Float[Tensor, "count length"]


def informing(
    denoiser: Denoiser, law: Any, walks: Int[Tensor, "count length"], streams: Streams
) -> Examples:
    """Contexts with a masked position each, and the nats that its token tells its run."""
    u = streams.uniform(Purpose.TRAIN, 0, 6)
    masked = Coarse().masked(u[:, :5], walks.shape[1])
    masked[~masked.any(1)] = True
    tokens = walks.masked_fill(masked, denoiser.mask_id)
    nth = (u[:, 5] * masked.sum(1)).long() + 1
    tried = masked & (masked.long().cumsum(1) == nth[:, None])
    before = denoiser(tokens, masked)
    told = informed(denoiser, tokens, masked, before, runs(masked)[0], tried, walks)
    return Examples(tokens, tried, told.float())


def replaced(
    denoiser: Denoiser, law: Any, walks: Int[Tensor, "count length"], streams: Streams
) -> Examples:
    """Walks in which a part was drawn by the model, all at once, and what is not the walk's own."""
    u = streams.uniform(Purpose.TRAIN, 0, 1)
    own = streams.uniform(Purpose.CHOICE, 0, walks.shape[1]) < u / 2
    row, place = own.nonzero(as_tuple=True)
    answers = denoiser(walks.masked_fill(own, denoiser.mask_id), own)
    drawn = inverse_cdf(answers, streams.uniform_at(Purpose.TOKEN, 0, row, place))
    tokens = walks.masked_scatter(own, drawn)
    return Examples(tokens, torch.ones_like(own), (tokens != walks).float())


def drafted(
    denoiser: Denoiser, law: Any, walks: Int[Tensor, "count length"], streams: Streams
) -> Examples:
    """Walks of which a part is completed by bisection, and which part; a quarter all of it."""
    u = streams.uniform(Purpose.TRAIN, 0, 6)
    masked = Coarse().masked(u[:, :5], walks.shape[1]) | (u[:, 5:] < 0.25)
    tokens = walks.masked_fill(masked, denoiser.mask_id)
    drafts = decode("bisection", denoiser, tokens, streams=streams).tokens
    return Examples(drafts, torch.ones_like(masked), masked.float())


def broken(
    denoiser: Denoiser, law: Any, walks: Int[Tensor, "count length"], streams: Streams
) -> Examples:
    """The model's own walks, and the two ends of every impossible step."""
    start = torch.full_like(walks, denoiser.mask_id)
    drafts = decode("bisection", denoiser, start, streams=streams).tokens
    breaks = ~law.valid(drafts.cpu()).to(walks.device)
    ends = breaks | F.pad(breaks[:, 1:], (0, 1))
    return Examples(drafts, torch.ones_like(ends), ends.float())


POOLS = {"information": informing, "replaced": replaced, "drafted": drafted, "broken": broken}


def pool(kind: str, denoiser: Denoiser, law: Any, count: int, device: str) -> Examples:
    """As many examples of training walks, made `ROWS` at a time."""
    walks, parts = law.sample(100_000, seed=TRAIN_SEED).to(device), []
    for first in range(0, count, ROWS):
        ids = torch.arange(first, min(first + ROWS, count), device=device)
        parts.append(POOLS[kind](denoiser, law, walks[ids % len(walks)], Streams(7, ids)))
    return Examples(
        *(torch.cat([getattr(p, name) for p in parts]) for name in ("tokens", "counted", "target"))
    )


def cost(kind: str, number: Tensor, target: Tensor) -> Tensor:
    """Squared error of nats, or the cross-entropy of a yes or no."""
    if kind == "information":
        return F.mse_loss(number, target)
    return F.binary_cross_entropy_with_logits(number, target)


def train(
    kind: str, states: States, data: Examples, steps: int, batch: int = 512
) -> tuple[Head, dict[str, float]]:
    """A head, and how well it does on the last twentieth of the examples."""
    torch.manual_seed(0)
    seen = torch.cat([states(some).to(torch.float16) for some in data.tokens.split(ROWS)])
    held = max(1, len(seen) // 20)
    learn, rest = slice(0, -held), slice(-held, None)
    head = Head(states.config.hidden, seen.shape[1]).to(seen.device)
    share = data.target[learn][data.counted[learn]].mean()
    head.usual = share if kind == "information" else torch.logit(share)
    nothing = head.usual.expand_as(data.target[rest][data.counted[rest]])
    optimiser = torch.optim.AdamW(head.parameters(), 1e-3)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        some = torch.randint(len(seen) - held, (batch,), generator=generator).to(seen.device)
        counted = data.counted[some]
        error = cost(kind, head(seen[some].float())[counted], data.target[some][counted])
        optimiser.zero_grad()
        error.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        rate.step()
    answer = data.target[rest][data.counted[rest]]
    number = Reader(states, head)(data.tokens[rest]).float()[data.counted[rest]]
    about = {"held_out": float(cost(kind, number, answer))}
    about["knowing_nothing"] = float(cost(kind, nothing, answer))
    if kind != "information":
        about["auc"] = auc(number, answer > 0.5)
    return head, about


def auc(score: Float[Tensor, " n"], yes: Bool[Tensor, " n"]) -> float:
    """How often a yes has the higher score than a no; ties count half on average."""
    rank = score.argsort().argsort().double() + 1
    many, few = int(yes.sum()), int((~yes).sum())
    return float((rank[yes].sum() - many * (many + 1) / 2) / max(1, many * few))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["st_er_deg7", "st_er_deg7_coarse"])
    parser.add_argument("--out", type=Path, default=Path("runs/heads"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--pool", type=int, default=200_000, help="examples of a head")
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"pool": args.pool, "steps": args.steps}
    for name, recipe in chosen(args.models).items():
        model, law = load_pretrained(f"zoo:{name}"), recipe.law()
        denoiser, states = model.denoiser(device=args.device), States(model, args.device)
        heads: dict[str, Tensor] = {}
        result[name] = {}
        for kind in args.kinds:
            begun = time.monotonic()
            data = pool(kind, denoiser, law, args.pool, args.device)
            head, about = train(kind, states, data, args.steps)
            about["seconds"] = time.monotonic() - begun
            result[name][kind] = about
            print(name, kind, {key: round(value, 4) for key, value in about.items()}, flush=True)
            heads |= {f"{kind}.{k}": v.contiguous() for k, v in head.state_dict().items()}
        save_file(heads, args.out / f"{name}.safetensors")
    (args.out / "heads.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
