"""How fast the first-order oracle is, beside a plain forward–backward and hmmlearn.

    python benchmarks/oracle.py            (needs the extra `bench` for hmmlearn's row)

V = 500 (st_er(nodes=500, p=0.01)), L = 24, 512 walks with random positions revealed. Everyone
answers the same question, the marginals of all masked positions, in the same run and in turns; the
best of several times counts. hmmlearn takes one sequence at a time, so it is given fewer and its
time is scaled up.
"""

import resource
import sys
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from maskwalk.denoiser import normalise
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, ChainLaw
from maskwalk.worlds.walks.oracles import ChainOracle, LiftedOracle

NODES, LENGTH, BATCH, FEW, REPEATS = 500, 24, 512, 8, 7
MEBIBYTES = 2**20 if sys.platform == "darwin" else 2**10  # what ru_maxrss counts in


def peak() -> float:
    """The largest memory this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTES


def timed(function: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Seconds a call takes, and its answer."""
    start = time.perf_counter()
    answer = function()
    return time.perf_counter() - start, answer


def forward_backward(law: ChainLaw, tokens: Tensor) -> Tensor:
    """The textbook way, all sequences at once: two sweeps of dense products."""
    nodes = torch.arange(law.vocab_size)
    evidence = (tokens[:, :, None] == nodes) | (tokens[:, :, None] == law.vocab_size)
    kernel = law.transition
    forward = [law.initial * evidence[:, 0]]
    for t in range(1, law.length):
        message = (forward[-1] @ kernel) * evidence[:, t]
        forward.append(message / message.sum(1, keepdim=True))
    message = torch.ones_like(forward[-1])
    weights = [forward[-1]]
    for t in reversed(range(law.length - 1)):
        message = (message * evidence[:, t + 1]) @ kernel.T
        message = message / message.sum(1, keepdim=True)
        weights.append(forward[t] * message)
    posterior = torch.stack(weights[::-1], 1)
    return normalise(posterior[tokens == law.vocab_size])


def hmmlearn_model(law: ChainLaw) -> Callable[[Tensor], Tensor]:
    """A hidden Markov model whose state shows itself half the time and a mask otherwise."""
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(n_components=law.vocab_size, implementation="scaling")
    model.startprob_ = law.initial.numpy()
    model.transmat_ = law.transition.numpy()
    shown = torch.cat([torch.eye(law.vocab_size), torch.ones(law.vocab_size, 1)], 1) / 2
    model.emissionprob_ = shown.double().numpy()
    model.n_features = law.vocab_size + 1

    def answer(tokens: Tensor) -> Tensor:
        flat = tokens.reshape(-1, 1).numpy()
        posterior = torch.from_numpy(model.predict_proba(flat, [law.length] * len(tokens)))
        return normalise(posterior[flat[:, 0] == law.vocab_size])

    return answer


def main() -> None:
    """Measures and prints."""
    graph = GRAPHS.build(f"st_er(nodes={NODES}, p=0.01)", seed=0)
    law = WALKS.build("lazy(stay=0.125)", graph=graph, length=LENGTH)
    assert isinstance(law, ChainLaw)
    tokens = law.sample(BATCH, seed=0)
    draws = torch.Generator().manual_seed(0)
    share = torch.rand((BATCH, 1), generator=draws)
    tokens[torch.rand(tokens.shape, generator=draws) < share] = NODES

    before = peak()
    oracle = ChainOracle(law)
    build, _ = timed(lambda: oracle(tokens[:0]))
    answer = oracle(tokens)
    oracle(torch.full_like(tokens, NODES))  # the most there is to answer
    memory = peak()

    lifted = LiftedOracle(law)
    ways: list[tuple[str, int, Callable[[], Tensor]]] = [
        ("ChainOracle (tables)", BATCH, lambda: oracle(tokens)),
        ("LiftedOracle (sparse)", BATCH, lambda: lifted(tokens)),
        ("plain forward–backward", BATCH, lambda: forward_backward(law, tokens)),
    ]
    try:
        model = hmmlearn_model(law)
        ways.append((f"hmmlearn, scaled up from {FEW} walks", FEW, lambda: model(tokens[:FEW])))
    except ImportError:
        print("hmmlearn is not installed (the extra `bench`): its row is left out.")
    # Taken in turns, so that a busy moment of the machine hits all of them alike.
    times = [[timed(way)[0] for _, _, way in ways] for _ in range(REPEATS)]
    ours = min(row[0] for row in times)

    table = Table(title=f"marginals of {len(answer):,} masked positions, V={NODES}, L={LENGTH}")
    for column in ("", "seconds", "times ours", "largest difference of a probability"):
        table.add_column(column, justify="left" if not column else "right")
    for i, (name, count, way) in enumerate(ways):
        scaled = min(row[i] for row in times) * BATCH / count
        theirs = way()
        apart = (theirs.exp() - answer[: len(theirs)].exp()).abs().max()
        table.add_row(name, f"{scaled:.4f}", f"{scaled / ours:.1f}", f"{apart:.1e}")
    console = Console(width=100)
    console.print(table)
    console.print(
        f"tables built once in {build:.2f} s; peak memory {memory:.0f} MiB in all, "
        f"{memory - before:.0f} MiB of it for the tables and {BATCH} canvases (also all masked)"
    )


if __name__ == "__main__":
    main()
