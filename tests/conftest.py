"""What many tests share: small laws and their oracles, the contract's stands, a browser."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tests
from maskwalk.analysis.contract import Stand
from maskwalk.analysis.contract.trial import broken_checks
from maskwalk.cli.main import main
from maskwalk.decoding.policy import Sampler
from maskwalk.specs.registry import TABLES
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw
from maskwalk.worlds.walks.oracles import oracle_for

torch.set_num_threads(1)  # xdist runs one worker per core
try:
    from hypothesis import settings
except ImportError:  # the GPU tests also run where nothing can be installed
    pass
else:
    # A slow machine is not a failure, and a pass stays a pass.
    settings.register_profile("maskwalk", deadline=None, derandomize=True)
    settings.load_profile("maskwalk")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    name = item.nodeid.partition("[")[0]
    if name != tests.test:
        tests.test = name  # its first calls are checked


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def tables_as_before() -> Iterator[None]:
    """What a test registers is gone after it: tests in one process do not meet."""
    before = [(table, set(table.own())) for table in TABLES]
    yield
    for table, names in before:
        for name in set(table.own()) - names:
            del table._members[name]


@pytest.fixture(autouse=True, scope="session")
def contract_once() -> Iterator[None]:
    """Evaluations in one process try the contract of a shipped rule once; it costs seconds."""
    tried: dict[str, dict[str, str]] = {}

    def broken(sampler: Sampler) -> dict[str, str]:
        if not type(sampler).__module__.startswith("maskwalk."):
            return broken_checks(sampler)
        if repr(sampler) not in tried:
            tried[repr(sampler)] = broken_checks(sampler)
        return dict(tried[repr(sampler)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maskwalk.bench.verdict.run.broken_checks", broken)
        yield


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


CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-quic"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if os.environ.get("MASKWALK_BROWSER") == "required":  # CI: a missing browser is a failure
        import playwright.sync_api as api

        assert CHROMIUM, "MASKWALK_BROWSER=required, but there is no chromium on this machine"
    else:
        api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
        if not CHROMIUM:
            pytest.skip("no chromium on this machine")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Any]:
    """Opens a page from disk; at the end nothing was logged or requested."""
    complaints: list[str] = []
    contexts = []

    def visited(path: Path, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": 1300, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda asked: complaints.append(asked.url) if asked.url != path.as_uri() else None,
        )
        tab.goto(path.as_uri())
        return tab

    yield visited
    for context in contexts:
        context.close()
    assert complaints == []
