"""What many tests share: small laws, their oracles, and the stands of the contract test."""

import sys
from collections.abc import Callable

import pytest
import torch

from maskwalk.cli import main
from maskwalk.contract import Stand
from maskwalk.graphs import GRAPHS
from maskwalk.oracles import oracle_for
from maskwalk.walks import WALKS, WalkLaw

torch.set_num_threads(1)  # xdist runs one worker a core
try:
    from hypothesis import settings
except ImportError:  # the GPU tests also run where nothing can be installed
    pass
else:
    # A slow machine is not a failure, and a pass stays a pass.
    settings.register_profile("maskwalk", deadline=None, derandomize=True)
    settings.load_profile("maskwalk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def small_law(
    graph: str = "st_er(nodes=5, p=0.2)",
    walk: str = "lazy(stay=0.2)",
    length: int = 5,
    seed: int = 1,
) -> WalkLaw:
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=seed), length=length)


# On the complete graph with laziness 1/(deg+1) every token is uniform and independent.
FLAT = small_law("st_er(nodes=4, p=1.0)", "lazy()", 5)

STANDS = {
    "chain": small_law(),
    "directed": small_law("directed(nodes=5, p=0.2)", "lazy(stay=0.3, start='stationary')"),
    "order-2": small_law("st_er(nodes=4, p=0.3)", "markov(order=2, seed=3)"),
}


@pytest.fixture(params=list(STANDS))
def stand(request: pytest.FixtureRequest) -> Stand:
    law = STANDS[request.param]
    return Stand(oracle_for(law), oracle_for(FLAT), law.length)


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The command line: words in; exit code, stdout and stderr out."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["maskwalk", *words])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
